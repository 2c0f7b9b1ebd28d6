"""Noisy gradient descent on rows that are centred and scaled by private moments of the columns.

The columns of counts, flags and categories differ in how often they are not 0 by orders of
magnitude, and none has mean 0. A step of plain gradient descent then moves a few frequent columns
and an average of them; here all columns that stand out from the noise move alike. The proofs are
in docs/privacy/scaled_gradient.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from riata.curator import Curator
from riata.mechanisms import GaussianMechanism
from riata.privacy.budget import CHANGED_CONTRIBUTIONS, Budget
from riata.problem import Problem
from riata.queries import (
    CentredGradient,
    ColumnSquares,
    ColumnSums,
    EntrySizes,
    LimitedSlope,
    ProblemQuery,
    Query,
    Scaling,
    SlopeSizes,
)
from riata.solvers import defaults
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.calibrated import gaussian_mechanisms
from riata.solvers.comparison import comparison, read_comparison
from riata.solvers.constant_share import constant_share, posterior, weight_of_share
from riata.solvers.plan import Plan, Solver, check_steps, count_steps
from riata.solvers.requirements import (
    bounded_curvature,
    positive_delta,
    refittable_set,
    scalable_columns,
)
from riata.solvers.scales import AnyCurator, Scale, released_scale, short_rows
from riata.solvers.solution import Callback, Solution
from riata.solvers.step_count import zero_risk
from riata.solvers.whitened_shares import scale_share, whole_strength
from riata.vectors import Vector, length

# The numbers below were set on synthetic one-hot data by benchmarks/tune_scaled.py, where half or
# twice as much scores nearly the same. One came from real data: that the intercept has a cut of
# its own, INTERCEPT_CUT, after models of the skewed delays of flights were seen to lie too low.

#: "auto" takes this many steps.
STEPS = 32

#: What each kind of release gets of the budget, as parts of the sum of 1 / noise_multiplier^2; the
#: best constant at least.
SHARES = {
    "entries": 0.005,
    "slopes": 0.01,
    "sums": 0.02,
    "squares": 0.13,
    "constant": 0.01,
    "intercept": 0.01,
    "check": 0.015,
    "gradient": 0.8,
}

#: The best constant is found in so many steps.
FIRST_STEPS = 4

#: Entries are clipped at this quantile of their sizes where columns are squared, which is found
#: in so many bins for each power of two: the noise of the squares grows with it.
ENTRY_QUANTILE, ENTRY_BINS = 0.99, 8

#: A column is kept if its mean square exceeds this many standard deviations of the noise.
KEPT = 3.0

#: The floor under a column's variance, which is also the ridge: this many times the noise that
#: one release of a count of all kept columns would have, with a typical entry squared as the
#: unit; and at least this many times the noise of the mean squares.
FLOOR, FLOOR_OF_NOISE = 1.0, 2.0

#: Slopes of regressions are clipped at this multiple of their high quantile. Of normal residuals
#: this is 2 standard deviations.
CUT = 1.0

#: The same for the intercept, which must follow the mean of skewed residuals and is one number.
INTERCEPT_CUT = 2.0

#: Rows are shortened to this multiple of their root mean square length in the scaled space.
LENGTH = 1.0

#: A step goes this far along the gradient over the largest curvature of the loss, and goes on
#: with this much of the last step.
RATE, MOMENTUM = 0.5, 0.8

#: Half of the model is kept if its gain over the best constant is the noise of that so many times,
#: and other parts as a normal distribution says that has this standard deviation, in units of the
#: noise. The loss is convex between both, so that it is at most that of a random choice with these
#: chances, and the order of predictions is never lost. On stays, flights and readmissions (15,000
#: rows, 4,000 and 8,000 columns) models of shuffled targets lose .01 to .05 of R2 and little of
#: them is kept; at 3 half of the models that gain .06 of AUC or .08 of R2 were lost.
SURE, GRADUAL = 1.5, 0.5

#: How far a step of the intercept goes, without momentum.
INTERCEPT_RATE = 0.5

#: The model is the average of the iterates after this part of the steps.
LEFT_OUT = 0.25


@dataclass(frozen=True)
class ScaledGradient(Solver):
    """Noisy gradients of rows that are centred by private means and scaled by private spreads.

    Right for rows of bounded length whose columns differ much in how often they are not 0:
    categories, flags, counts.

    Parameters
    ----------
    steps : int or "auto", default="auto"

    Notes
    -----
    *Privacy.* The rows are read for their lengths, for two scales, for the columns' means and mean
    squares, for a gradient and an intercept's slope in each step, and for a check against the best
    constant. All releases are Gaussian and planned before, so that their composition is exact.
    """

    name = "scaled-gradient"
    radius_policy: ClassVar[str] = "open"
    errors_unknown: ClassVar[str] = (
        "Its coefficients are those of a descent that ends early, with a penalty on rare columns. "
        "How far they are from those of a regression depends on the correlations of all columns, "
        "which it does not measure."
    )
    requirements = (
        refittable_set,
        bounded_curvature,
        positive_delta('solver="greedy"'),
        scalable_columns,
    )

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        steps = check_steps(self.steps) or STEPS
        times = _times(problem, steps)
        strength = whole_strength(problem, budget, fits)
        shares = SHARES | {"rows": scale_share(strength)}
        share = constant_share(strength, SHARES["constant"])
        others = sum(shares[role] for role in times if role != "constant")
        shares["constant"] = weight_of_share(share, others)
        mechanisms = gaussian_mechanisms(times, shares, budget, fits)
        return Plan(
            self.name, problem, budget, steps, mechanisms, fits, zero_risk(problem),
            assumes="the check against the best constant does not err", times=times,
        )  # fmt: skip

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        run = Run(plan, *short_rows(problem, curator, plan["rows"]))
        run.begin()
        run.scale_columns()
        if run.scaling is not None:
            run.descend(callback)
            return run.checked()
        return Solution(run.constant, plan.steps)


def _times(problem: Problem, steps: int) -> dict[str, int]:
    """How often a fit makes each kind of release."""
    times = {"rows": 1, "entries": 1, "slopes": 1, "squares": 1, "check": 1, "gradient": steps}
    if problem.fit_intercept:
        times |= {"slopes": 2, "sums": 1, "constant": FIRST_STEPS, "intercept": steps}
    return times


@dataclass
class Run:
    """One fit. Rows are in units of the columns' bounds inside this class."""

    plan: Plan
    problem: Problem
    curator: AnyCurator
    constant: Vector = field(init=False)
    slopes: Scale = field(init=False)
    scaling: Scaling | None = None
    constant_error: float = 0.0

    def __post_init__(self) -> None:
        self.units = self.problem.bounds.per_column(self.problem.n_features)

    def release(self, role: str, query: ProblemQuery) -> Any:
        return self.curator.release(query, self.plan[role])

    def noise(self, role: str, query: Query) -> float:
        """The standard deviation of the noise of a release."""
        return noise_std(self.plan[role], query)

    def scale(self, role: str, query: Any) -> Scale:
        return released_scale(query, self.plan[role], self.curator)

    @property
    def curvature(self) -> float:
        return self.problem.loss.curvature_bound(self.problem.y_bound)

    def begin(self) -> None:
        """The scale of the slopes, and the best constant."""
        theta = Vector.zero(self.problem.n_features)
        self.slopes = self.scale("slopes", SlopeSizes(self.problem, theta))
        if self.problem.fit_intercept:
            limit = self.limit(INTERCEPT_CUT)
            for t in range(1, FIRST_STEPS + 1):
                # Each step of a regression finds its mean: take the mean of what they find.
                rate = 1.0 if self.problem.loss.classifies else 1 / t
                theta = theta.with_offset(
                    self.moved_offset("constant", theta, theta.offset, limit, rate)
                )
            self.slopes = self.scale("slopes", SlopeSizes(self.problem, theta))
        self.constant = theta

    def moved_offset(
        self, role: str, theta: Vector, offset: float, limit: float, rate: float
    ) -> float:
        """An offset after a step along the derivative at theta."""
        slope = float(self.release(role, LimitedSlope(self.problem, theta, limit))[0])
        bound = self.problem.offset_bound
        return float(np.clip(offset - rate * slope / self.curvature, -bound, bound))

    def scale_columns(self) -> None:
        """Which columns to keep, their centre and their scales."""
        problem = self.problem
        entries = self.scale("entries", EntrySizes(problem, ENTRY_BINS))
        query = ColumnSquares(problem, entries.quantile(ENTRY_QUANTILE, zeros=False))
        squares, noise = self.release("squares", query), self.noise("squares", query)
        means = np.zeros(problem.n_features)
        if problem.fit_intercept:
            means = np.clip(self.release("sums", ColumnSums(problem)), -1.0, 1.0)
        variances = np.maximum(squares - np.square(means), 0.0)
        kept = np.flatnonzero((squares > KEPT * noise) & (variances > 0))
        finest = query.unit * problem.n_rows
        self.set_scaling(kept, means, variances, entries, max(FLOOR_OF_NOISE * noise, finest))

    def set_scaling(
        self, columns: np.ndarray, means: np.ndarray, variances: np.ndarray, entries: Scale,
        least: float,
    ) -> None:  # fmt: skip
        """The scaling of some columns, if there are any, with a floor under their variances."""
        if not len(columns):
            return
        typical = entries.quantile(0.5, zeros=False) ** 2
        counting = self._count_noise() * math.sqrt(len(columns)) * typical
        floor = max(FLOOR * counting, least)
        widened = variances[columns] + floor
        self.scaling = Scaling.of(len(variances), columns, means[columns], widened)
        self.length = LENGTH * math.sqrt(float((variances[columns] / widened).sum()))
        self.ridge = floor / widened

    def _count_noise(self) -> float:
        """The noise of a mean of ones, if all gradients were one release of it."""
        gradient = self.plan["gradient"]
        assert isinstance(gradient, GaussianMechanism)
        z = gradient.noise_multiplier / math.sqrt(self.plan.steps)
        return float(CHANGED_CONTRIBUTIONS[self.problem.adjacency] * z / self.problem.n_rows)

    def limit(self, cut: float) -> float:
        """Where slopes are clipped, which those of classifiers never are."""
        if self.problem.loss.classifies:
            return math.inf
        return cut * self.slopes.quantile(defaults.HIGH_QUANTILE)

    def model(self, w: np.ndarray, offset: float) -> Vector:
        """The model of the rows as they are that w is of the scaled ones."""
        scaling = self.scaling
        assert scaling is not None
        dense = np.zeros(scaling.size)
        dense[scaling.columns] = scaling.scales * w / self.units[scaling.columns]
        return self.shifted(Vector.of(dense), offset)

    def shifted(self, theta: Vector, offset: float) -> Vector:
        """A model whose offset counts from the centre, as one whose offset counts from 0."""
        scaling = self.scaling
        assert scaling is not None
        centre = np.zeros(scaling.size)
        centre[scaling.columns] = scaling.centre * self.units[scaling.columns]
        return theta.with_offset(offset - theta.dot(centre))

    def descend(self, callback: Callback | None) -> None:
        """Heavy-ball steps; the average of most of the iterates is kept."""
        assert self.scaling is not None
        problem, limit, rate = self.problem, self.limit(CUT), RATE / self.curvature
        offset_limit = self.limit(INTERCEPT_CUT)
        penalty = self.curvature * self.ridge
        size, offset = len(self.scaling.columns), self.constant.offset
        w, move, first = np.zeros(size), np.zeros(size), math.floor(LEFT_OUT * self.plan.steps)
        visited, offsets, before = np.zeros(size), 0.0, np.zeros(size)
        for t in count_steps(self.plan.steps, callback):
            theta = self.model(w, offset)
            query = CentredGradient(problem, theta, limit, self.scaling, self.length)
            gradient = self.release("gradient", query) + penalty * w
            if problem.fit_intercept:
                offset = self.moved_offset("intercept", theta, offset, offset_limit, INTERCEPT_RATE)
            slower = _stable(rate, gradient - before, move, self.noise("gradient", query))
            if slower < rate:  # the last step went too far: take it back
                w, move, gradient, rate = w - move, np.zeros(size), before, slower
            move = MOMENTUM * move - (1 - MOMENTUM) * rate * gradient
            w, before = w + move, gradient
            if t > first:
                visited, offsets = visited + w, offsets + offset
        average = 1 / (self.plan.steps - first)
        found = self.model(average * visited, 0.0)
        projected = Vector.of(problem.set.project(found.dense()))
        self.theta = self.shifted(projected, average * offsets)
        if not problem.loss.classifies and problem.fit_intercept:
            of_offset = LimitedSlope(problem, self.theta, offset_limit)
            noise = self.noise("intercept", of_offset) / self.curvature * math.sqrt(average)
            self._mend_constant(average * offsets, noise)

    def _mend_constant(self, offset: float, noise: float) -> None:
        """A constant that knows the mean as well as the model does."""
        move, _ = posterior(offset - self.constant.offset, noise, self.constant_error)
        self.constant = self.constant.with_offset(self.constant.offset + move)

    def checked(self) -> Solution:
        """As much of the model as is likely better than the constant."""
        high = self.slopes.quantile(defaults.HIGH_QUANTILE)
        query = comparison(self.problem, self.theta, self.constant, high)
        released, noise = self.release("check", query), self.noise("check", query)
        fit, _ = read_comparison(released, noise)
        kept = _part_to_keep(float(released[1]) / noise if noise else math.inf)
        dense = kept * self.theta.dense()
        offset = kept * self.theta.offset + (1 - kept) * self.constant.offset
        return Solution(Vector.of(dense).with_offset(offset), self.plan.steps, fit=fit)


def _part_to_keep(gain: float) -> float:
    """How much of a model to keep, from its gain in units of the noise."""
    return math.erfc((SURE - gain) / GRADUAL / math.sqrt(2)) / 2


def _stable(rate: float, change: np.ndarray, move: np.ndarray, noise: float) -> float:
    """The rate, or a smaller one if the curvature along the last move is surely too large for it.

    Heavy-ball steps diverge beyond 2 (1 + momentum) / (1 - momentum) over the rate. Where columns
    nearly repeat each other the curvature is many times that of a single column.
    """
    size = length(move)
    if size == 0:
        return rate
    curvature = float(change @ move) / size**2 - 3 * math.sqrt(2) * noise / size
    largest = (1 + MOMENTUM) / (1 - MOMENTUM) / rate
    return rate * largest / curvature if curvature > largest else rate
