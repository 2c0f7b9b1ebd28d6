"""Models of public rows and private targets: one sum with noise says all about the targets.

For a loss whose slope is a function of the margin less the target, the gradient at any model is the
one at another model plus what rows alone decide. So the whole budget buys one sum of rows times
targets (two for numbers, whose scale is found first), and the rest is computed from exact answers
about rows. The proofs are in docs/privacy/label_privacy.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from riata.curator import Curator
from riata.errors import InvalidArgument
from riata.mechanisms import Mechanism, PublicAnswer
from riata.privacy.budget import Budget, default_delta
from riata.problem import Problem
from riata.queries import DesignCurve, DesignRows, LabelSums, SlopeSizes, Whitening
from riata.solvers.adaptive_budget import measurement_at, noise_std
from riata.solvers.calibrated import calibrate_mechanisms
from riata.solvers.design_prior import Estimate, coordinates, estimate
from riata.solvers.empirical_bayes import high_quantile
from riata.solvers.plan import Plan, Solver, check_steps
from riata.solvers.requirements import (
    canonical_loss,
    columns_at_most,
    convex_set,
    public_rows,
    refittable_set,
)
from riata.solvers.solution import Callback, Solution, Step
from riata.solvers.step_count import zero_risk
from riata.solvers.whitened_defaults import (
    CUT,
    CUT_FROM,
    LONGEST_FROM,
    MOST_CUT,
    MOST_LONG,
    SAFE,
    in_range,
    limited,
)
from riata.solvers.whitened_shares import scale_share, whole_strength
from riata.vectors import Vector

#: A fit takes time with the cube of the columns.
MOST_COLUMNS = 512

#: What the label sums of the first round get of what the scales of residuals leave. That round
#: centres targets and finds what rows explain of them; both count by their noise.
FIRST = 0.3

#: A scale gets at most this part where delta is 0, so that the sums have most of the budget.
MOST_FOR_PURE = 0.15

#: Residuals are clipped at a multiple of a high quantile, as in whitened gradients. Of normal ones
#: the quantile is at 1 / 0.6 standard deviations: what a deviation is of the quantile.
DEVIATION = 0.6

#: Rows longer than this multiple of a typical row weigh less (or than a larger one, as in whitened
#: gradients, where rows times strength are many times the columns), and the constant beside a row
#: is this part of it. On a9a from 300 to 10,000 rows 1.5 and 0.5 have less AUC (.01 at 1,000), and
#: 1.1 and 0.25 have the same.
LONGEST, CONSTANT = 1.0, 0.25

#: Coordinates beyond this multiple of a typical row's length are clamped.
REACH = 8.0

#: Newton steps of a classifier end when margins change by less than this, or after so many.
NEAR, MOST_NEWTON = 1e-6, 20

ROWS = "rows"


@dataclass(frozen=True)
class PublicDesign(Solver):
    """The posterior mean of a model, from exact rows and a noisy sum of rows times targets.

    For `adjacency="replace-label"`: rows are public, targets are secret.

    Parameters
    ----------
    steps : 1 or "auto", default="auto"
        There is one step.

    Notes
    -----
    *Privacy.* Targets are read by one release for classes, and by four for numbers. All other
    answers are about rows alone: they are exact, and no neighbour has others.
    """

    name = "public-design"
    radius_policy: ClassVar[str] = "open"
    keeps_unpenalized: ClassVar[bool] = True
    requirements = (
        public_rows,
        canonical_loss,
        refittable_set,
        convex_set,
        columns_at_most(
            MOST_COLUMNS, f"it inverts matrices of at most {MOST_COLUMNS}", "Use {another}"
        ),
    )

    def __post_init__(self) -> None:
        if check_steps(self.steps) not in (None, 1):
            raise InvalidArgument(f"steps={self.steps!r} must be 1: there is one step.")

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        shares, pure = self.shares(problem, budget, fits), budget.delta == 0

        def at(strength: float) -> dict[str, Mechanism]:
            return {role: measurement_at(strength * share, pure) for role, share in shares.items()}

        found = calibrate_mechanisms(at, fits, budget)
        found[ROWS] = PublicAnswer()
        return Plan(
            self.name, problem, budget, 1, found, fits, zero_risk(problem),
            assumes="the model is no worse than one of zeros",
            times={ROWS: 2 + MOST_NEWTON * problem.loss.classifies},
        )  # fmt: skip

    def shares(self, problem: Problem, budget: Budget, fits: int) -> dict[str, float]:
        """What each release gets of the budget."""
        if problem.loss.classifies:
            return {"labels 1": 1.0}
        gaussian = budget if budget.delta else replace(budget, delta=default_delta(problem.n_rows))
        scale = scale_share(whole_strength(problem, gaussian, fits))
        if (
            not budget.delta
        ):  # a part of epsilon, which shrinks noise as a part of rho does its square
            scale = min(math.sqrt(scale), MOST_FOR_PURE)
        sums = 1 - 2 * scale
        return {
            "scale 1": scale, "labels 1": FIRST * sums,
            "scale 2": scale, "labels 2": (1 - FIRST) * sums,
        }  # fmt: skip

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        run = Run(plan, problem, curator)
        if problem.loss.classifies:
            run.learn("labels 1", math.inf)
            run.newton()
        else:
            for each in (1, 2):
                run.learn(f"labels {each}", run.scale(f"scale {each}"))
        if callback is not None:
            callback(Step(1, 1))
        return run.solution()


class Run:
    """One fit. A margin is <w, h>, with h the row in the present coordinates and a constant."""

    def __init__(self, plan: Plan, problem: Problem, curator: Curator) -> None:
        self.plan, self.problem, self.curator = plan, problem, curator
        self.units = problem.bounds.per_column(problem.n_features)
        self.theta = Vector.zero(problem.n_features)
        self.curvature = in_range(problem.loss.curvature_bound(problem.y_bound))
        self.strength, self.unit, self.spread = self._strength(), 0.0, 0.0
        self.rows: DesignRows | None = None
        self.known = np.zeros(0), math.inf

    # Rows.

    def curve(self, rows: DesignRows, theta: Vector) -> np.ndarray:
        """An exact answer about rows."""
        query = DesignCurve(self.problem, theta, rows)
        return np.asarray(self.curator.release(query, self.plan[ROWS]))

    def take_coordinates(self, limit: float) -> DesignRows:
        """The coordinates in which the last and best release of label sums costs least."""
        problem, p = self.problem, self.problem.n_features
        constant = float(problem.fit_intercept)
        plain = DesignRows(
            Whitening.of(np.eye(p), np.zeros(p)), 1.0, constant, 2 * math.sqrt(p + constant)
        )
        moments = self.curve(plain, self.theta)[1:] / self.curvature
        means = moments[:p, p] if constant else np.zeros(p)
        covariance = moments[:p, :p] - np.outer(means, means)
        one = LabelSums(problem, self.theta, limit, self._lengthened(plain, 1.0))
        noise = noise_std(self.plan[self._last], one) * math.hypot(1.0, CONSTANT * constant)
        self.space = coordinates(covariance, noise, self._variance(one), problem.n_rows)
        self.unit = self._variance(one) / self.curvature**2
        longest = min(max(LONGEST, self.strength / LONGEST_FROM), MOST_LONG)
        length = longest * self.space.length
        offset_length = CONSTANT * length * constant
        return DesignRows(
            Whitening.of(self.space.matrix, self.space.matrix @ means),
            REACH * length, offset_length, math.hypot(length, offset_length),
        )  # fmt: skip

    def _strength(self) -> float:
        """The number of rows for each column, times the strength of the last label sums."""
        rows = DesignRows(Whitening.of(np.eye(1), np.zeros(1)), 1.0, 0.0, 1.0)
        query = LabelSums(self.problem, self.theta, math.inf, rows)
        noise = noise_std(self.plan[self._last], query)
        return query.sensitivity("l2") / noise * self.problem.n_rows / self.problem.n_features

    @property
    def _last(self) -> str:
        """The role of the last label sums."""
        return list(self.plan.mechanisms)[-2]

    @staticmethod
    def _lengthened(rows: DesignRows, length: float) -> DesignRows:
        return DesignRows(rows.whitening, rows.reach, rows.constant, length)

    def _variance(self, query: LabelSums) -> float:
        """About the variance of slopes. That of numbers does not grow with where they are cut."""
        most = query.slope_bound()
        return (most if self.problem.loss.classifies else min(self.spread, most)) ** 2

    # Targets.

    def scale(self, role: str) -> float:
        """Where residuals are clipped."""
        query, mechanism = SlopeSizes(self.problem, self.theta), self.plan[role]
        counts, noise = self.curator.release(query, mechanism), noise_std(mechanism, query)
        cut = min(max(CUT, self.strength / CUT_FROM), MOST_CUT)
        high = query.top * high_quantile(counts, noise, query.edges, SAFE)
        self.spread = in_range(DEVIATION * high)
        return in_range(cut * high)

    def learn(self, role: str, limit: float) -> None:
        """Release the label sums at the present model, and find the next one."""
        if self.rows is None:
            self.rows = self.take_coordinates(limit)
            self.response = self.curve(self.rows, self.theta)[1:]
            self.w = np.zeros(self.rows.width)
            self.known = self.w, math.inf
        query = LabelSums(self.problem, self.theta, limit, self.rows)
        mechanism = self.plan[role]
        sums = self.curator.release(query, mechanism)
        noise = max(noise_std(mechanism, query), 1e-150)
        before, error = self.known
        part = 1 / (1 + (noise / error) ** 2)
        found = before + part * (self.response @ self.w - sums - before)
        self.known = found, noise * math.sqrt(part)
        variance = self._variance(query)
        sampled = self.response * (variance / self.curvature / self.problem.n_rows)
        errors = sampled + self.known[1] ** 2 * np.eye(len(found))
        self.guess = estimate(
            found, self.response, errors, self.space, self.curvature, self.unit,
            self.problem.unpenalized,
        )  # fmt: skip
        self._move(self.guess.mean)

    def _move(self, w: np.ndarray) -> None:
        assert self.rows is not None
        self.w, whitening, size = limited(w), self.rows.whitening, self.rows.whitening.size
        offset = self.w[size:].sum() * self.rows.constant - self.w[:size] @ whitening.centre
        offset = float(limited(np.array(offset))) if self.problem.fit_intercept else 0.0
        columns = limited(whitening.matrix.T @ self.w[:size] / self.units)
        self.theta = Vector.of(columns).with_offset(offset)

    def newton(self) -> None:
        """From the model of a straight slope to that of the loss. The target sums stay the same."""
        assert self.rows is not None
        guess, (sums, _) = self.guess, self.known
        for _ in range(MOST_NEWTON):
            found = self.curve(self.rows, self.theta)
            matrix = guess.pull @ found[1:] + guess.precision
            left = guess.pull @ (found[0] - sums) + guess.precision @ self.w
            step = np.linalg.solve(matrix, left)
            size = math.sqrt(max(float(step @ self.response @ step) / self.curvature, 0.0))
            self._move(self.w - step / max(size, 1.0))
            if size < NEAR:
                break
        self.guess = Estimate(self.w, np.linalg.inv(matrix), guess.pull, guess.precision)

    def solution(self) -> Solution:
        """The model, and its standard errors."""
        assert self.rows is not None
        whitening, size = self.rows.whitening, self.rows.whitening.size
        covariance = self.guess.covariance
        inner = covariance[:size, :size]
        matrix = whitening.matrix
        errors = np.sqrt(np.maximum((matrix * (inner @ matrix)).sum(axis=0), 0.0)) / self.units
        at_zero = np.append(-whitening.centre, [self.rows.constant] * (len(covariance) - size))
        offset_error = math.sqrt(max(float(at_zero @ covariance @ at_zero), 0.0))
        dense = self.problem.project(self.theta.dense())
        theta = Vector.of(dense).with_offset(self.theta.offset)
        return Solution(
            theta, 1, errors=errors[theta.support],
            offset_error=offset_error if self.problem.fit_intercept else None,
        )  # fmt: skip
