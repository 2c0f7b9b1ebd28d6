"""Noisy softmax gradients of all classes on rows that are centred and scaled."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riata.curator import Curator
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.queries import (
    ClassCounts,
    ColumnSquares,
    ColumnSums,
    EntrySizes,
    Influence,
    Scaling,
    SoftmaxGradient,
)
from riata.solvers.constant_share import constant_share, weight_of_share
from riata.solvers.joint import (
    LINE_STEPS,
    JointSolver,
    calibrated,
    class_shares,
    joint_plan,
    log_priors,
)
from riata.solvers.plan import Plan, check_steps, count_steps
from riata.solvers.requirements import (
    positive_delta,
    refittable_set,
    scalable_columns,
    several_classes,
)
from riata.solvers.scaled_gradient import (
    ENTRY_QUANTILE,
    FLOOR_OF_NOISE,
    KEPT,
    LEFT_OUT,
    MOMENTUM,
    Run,
    ScaledGradient,
)
from riata.solvers.scales import short_rows
from riata.solvers.solution import Callback, Solution
from riata.solvers.whitened_shares import scale_share, whole_strength
from riata.vectors import Vector, length

# How columns are measured and scaled, the momentum and the average are those of ScaledGradient.
# The other numbers were set with the scores of digits, of the cuts of diamonds and of a synthetic
# mixture in view, by a prototype and by benchmarks/classes.py.

#: "auto" takes this many steps; with 64 the accuracy is within .01.
STEPS = 32

#: What each kind of release gets of the budget; the counts of classes at least.
SHARES = {
    "entries": 0.02,
    "sums": 0.02,
    "squares": 0.1,
    "counts": 0.02,
    "lengths": 0.01,
    "line": 0.08,
    "gradient": 0.75,
}

#: The noise of all steps together moves a typical margin by about this much. Twice as much is
#: better on the mixture and worse on digits, half of it the other way round.
MOVED = 1.0

#: A step follows the gradient over the largest curvature between so many times.
SLOWEST, FASTEST = 0.1, 8.0

#: The sizes of entries are counted in so many bins for each power of two.
ENTRY_PARTS = 1

#: A slope is no longer than this, over all classes: it is at first where all are equally likely.
LIMIT = 1.0

#: The entry for the intercepts beside a scaled row, whose columns have variances up to 1.
CONSTANT = 1.0


@dataclass(frozen=True)
class SoftmaxDescent(JointSolver):
    """Noisy gradients of the log-loss of all classes, on rows that are centred and scaled.

    Right for three classes or more and rows of not too many columns. The noise does not grow with
    the number of classes.

    Parameters
    ----------
    steps : int or "auto", default="auto"

    Notes
    -----
    *Privacy.* The rows are read for their lengths, for a scale of entries, for the columns' means
    and mean squares, for class counts, for a gradient in each step, for the lengths of the margins
    and for a few gradients in one scale and an offset for each class. All releases are Gaussian and
    planned before, so that their composition is exact.
    """

    name = "softmax-gradient"
    radius_policy: ClassVar[str] = "open"
    errors_unknown: ClassVar[str] = ScaledGradient.errors_unknown
    requirements = (positive_delta(), several_classes, refittable_set, scalable_columns)

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        steps = check_steps(self.steps) or STEPS
        times = {"rows": 1, "entries": 1, "squares": 1, "counts": 1, "gradient": steps}
        times |= {"sums": 1} if problem.fit_intercept else {}
        times |= {"lengths": 1, "line": LINE_STEPS}
        strength = whole_strength(problem, budget)
        shares = SHARES | {"rows": scale_share(strength)}
        share = constant_share(strength, SHARES["counts"])
        others = sum(shares[role] for role in times if role != "counts")
        shares["counts"] = weight_of_share(share, others)
        return joint_plan(self, problem, budget, steps, shares, times)

    def run_classes(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None
    ) -> tuple[Solution, ...]:
        run = _Run(plan, *short_rows(problem, curator, plan["rows"]))
        problem, rows = run.problem, run.curator
        priors = run.priors()
        run.scale_columns()
        if run.scaling is None:  # no column stands out: the rest of the budget is not used
            zero = Vector.zero(problem.n_features)
            return tuple(Solution(zero.with_offset(float(b)), plan.steps) for b in priors)
        thetas = run.descend_all(priors, callback)
        return calibrated(plan, problem, rows, thetas, priors, run.influence(), run.usual_length)


def smoothed(released: np.ndarray, noise: float) -> np.ndarray:
    """Noisy numbers as they are if they stand out from their noise, and the mean of the others.

    The mean of the others is 0 if it does not stand out either.
    """
    hidden = np.abs(released) <= KEPT * noise
    if not hidden.any():
        return released
    middle = float(released[hidden].mean())
    seen = abs(middle) > KEPT * noise / math.sqrt(np.count_nonzero(hidden))
    return np.where(hidden, middle if seen else 0.0, released)


class _Run(Run):
    """One fit of all classes. Rows are in units of the columns' bounds inside this class."""

    @property
    def n_classes(self) -> int:
        return self.problem.loss.n_margins

    def priors(self) -> np.ndarray:
        query = ClassCounts(self.problem, self.n_classes)
        counts, noise = self.release("counts", query), self.noise("counts", query)
        n = self.problem.n_rows
        return log_priors(self.problem, class_shares(counts * n, noise * n))

    def scale_columns(self) -> None:
        """The centre and the scale of each column; those that noise hides have common ones."""
        problem = self.problem
        entries = self.scale("entries", EntrySizes(problem, ENTRY_PARTS))
        query = ColumnSquares(problem, entries.quantile(ENTRY_QUANTILE, zeros=False))
        noise = self.noise("squares", query)
        squares = smoothed(self.release("squares", query), noise)
        means = np.zeros(problem.n_features)
        if problem.fit_intercept:
            sums = ColumnSums(problem)
            means = smoothed(self.release("sums", sums), self.noise("sums", sums))
        variances = np.maximum(squares - np.square(np.clip(means, -1.0, 1.0)), 0.0)
        finest = query.unit * problem.n_rows
        least = max(FLOOR_OF_NOISE * min(noise, float(variances.mean())), finest)
        self.set_scaling(np.flatnonzero(variances > 0), means, variances, entries, least)

    def query(self, w: np.ndarray) -> SoftmaxGradient:
        scaling, constant = self.scaling, CONSTANT if self.problem.fit_intercept else 0.0
        assert scaling is not None
        size = len(scaling.columns)
        offsets = constant * w[:, size] if constant else np.zeros(len(w))
        thetas = tuple(
            self.model(each[:size], float(b)) for each, b in zip(w, offsets, strict=True)
        )
        return SoftmaxGradient(self.problem, thetas, LIMIT, scaling, self.length, constant)

    def descend_all(self, priors: np.ndarray, callback: Callback | None) -> tuple[Vector, ...]:
        """Heavy-ball steps; the average of most of the iterates, without their intercepts."""
        scaling, steps = self.scaling, self.plan.steps
        assert scaling is not None
        w = np.zeros((self.n_classes, len(scaling.columns)))
        if self.problem.fit_intercept:
            w = np.column_stack([w, priors / CONSTANT])
        penalty = self.curvature / self.n_classes * np.append(self.ridge, 0.0)[: w.shape[1]]
        noise = self.noise("gradient", self.query(w))
        rate = MOVED / max(noise * math.sqrt(steps) * self.length, 1e-300)
        self.rate = min(max(rate, SLOWEST), FASTEST) / self.curvature
        move, visited = np.zeros_like(w), np.zeros_like(w)
        first = math.floor(LEFT_OUT * steps)
        for t in count_steps(steps, callback):
            gradient = self.release("gradient", self.query(w)) + penalty * w
            move = MOMENTUM * move - (1 - MOMENTUM) * self.rate * gradient
            w = w + move
            visited = visited + (w if t > first else 0.0)
        average = visited[:, : len(scaling.columns)] / (steps - first)
        self.usual_length = length(average) * self.length / math.sqrt(len(scaling.columns))
        return tuple(self.model(each, 0.0) for each in average)

    def influence(self) -> Influence:
        """What a row's own gradients made of the margin of its class, with the usual curvature."""
        scaling, moved = self.scaling, 0.0
        assert isinstance(scaling, Scaling)
        at = visited = 0.0
        first = math.floor(LEFT_OUT * self.plan.steps)
        for t in range(1, self.plan.steps + 1):
            moved = MOMENTUM * moved + (1 - MOMENTUM) * self.rate
            at += moved
            visited += at if t > first else 0.0
        far, curvature = visited / (self.plan.steps - first), 1 / self.n_classes
        factor = (1 - math.exp(-far * curvature)) / curvature / self.problem.n_rows
        return Influence(scaling, self.length, np.full(self.n_classes, factor))
