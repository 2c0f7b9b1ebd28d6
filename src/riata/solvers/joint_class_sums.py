"""Weights of words for all classes, from one release of the sums of each class's rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riata.curator import Curator
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.queries import Influence, Scaling, SumsByClass
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.class_sums import COUNTED, ClassSums, holds_zero
from riata.solvers.joint import (
    LINE_STEPS,
    JointSolver,
    calibrated,
    class_shares,
    counted,
    joint_plan,
    log_priors,
)
from riata.solvers.plan import Plan, check_steps, count_steps
from riata.solvers.requirements import positive_delta, scalable_columns, several_classes
from riata.solvers.scales import short_rows
from riata.solvers.solution import Callback, Solution
from riata.solvers.whitened_shares import scale_share, whole_strength
from riata.vectors import Vector

# Set with the scores of texts of four, ten and 77 classes in view. Of the floors 1, 2 and 4 the
# last is the best or within .02 of it on two of them whichever is left out; on ten classes at
# epsilon 0.3 a floor of 1 has .03 more.

#: What each kind of release gets of the budget.
SHARES = {"class sums": 0.9, "lengths": 0.02, "line": 0.08}

#: Deviations from the mean of the classes are divided by this mean, or by so many standard
#: deviations of its noise if that is more.
FLOOR = 4.0

#: The variance of the deviations is at least this part of the noise's.
LEAST_VARIANCE = 1e-3


@dataclass(frozen=True)
class JointClassSums(JointSolver):
    """Weights of columns for each class from one noisy sum of the rows of every class.

    Right for three classes or more of rows that are not negative and of bounded length, such as
    texts. The noise does not grow with the number of classes, because a row is in one of them.
    Negative entries of rows count as 0 while weights are computed.

    Parameters
    ----------
    steps : int or "auto", default="auto"
        1 and "auto" are the same: sums are released once.

    Notes
    -----
    *Privacy.* The rows are read by one Gaussian release of their lengths, one of the sums and
    counts of all classes, one of counts of the margins' lengths, and by a few noisy gradients in
    one scale and an offset for each class. They compose to one Gaussian release, whose curve is
    exact.
    """

    name = "joint-class-sums"
    radius_policy: ClassVar[str] = "open"
    errors_unknown: ClassVar[str] = ClassSums.errors_unknown
    requirements = (positive_delta(), several_classes, holds_zero, scalable_columns)

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        check_steps(self.steps)
        times = {"rows": 1, "class sums": 1, "lengths": 1, "line": LINE_STEPS}
        shares = SHARES | {"rows": scale_share(whole_strength(problem, budget))}
        return joint_plan(self, problem, budget, 1, shares, times)

    def run_classes(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None
    ) -> tuple[Solution, ...]:
        problem, others = short_rows(problem, curator, plan["rows"])
        part = counted(plan, COUNTED)
        query, mechanism = SumsByClass(problem, part), plan["class sums"]
        for _ in count_steps(plan.steps, callback):
            released = others.release(query, mechanism)
        longest = problem.bounds.row_norm("l2", problem.n_features)
        row = problem.n_rows / longest
        noise = noise_std(mechanism, query) * row
        shares = class_shares(released[:, -1] * row / part, noise / part)
        rows = shares * problem.n_rows
        weights, kept = column_weights(released[:, :-1] * row, rows, noise)
        units = problem.bounds.per_column(problem.n_features)
        every = np.arange(problem.n_features)
        scaling = Scaling.of(len(every), every, np.zeros(len(every)), longest / (kept * units))
        influence = Influence(scaling, math.inf, 1 / rows)
        thetas = tuple(Vector.of(each / units) for each in weights)
        # Where the lengths of margins are lost in noise: those of rows of independent columns.
        often = np.maximum(released[:, :-1].sum(axis=0), 0.0)
        usual = math.sqrt(float((weights**2).sum(axis=0) @ often) / max(often.sum(), 1e-300))
        return calibrated(
            plan, problem, others, thetas, log_priors(problem, shares), influence, usual
        )


def column_weights(
    sums: np.ndarray, rows: np.ndarray, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """The weights of the columns for each class, from noisy sums of the classes' rows.

    With m the mean of the classes' means and D what a class's mean differs from it, the weight is
    D / m, shrunk by the noise of D: a column that is three times as frequent in a class counts
    alike, be it rare or common. Where m itself is lost in noise it counts as `FLOOR` times that.

    Returns
    -------
    weights : ndarray of shape (n_classes, n_features)
    kept : ndarray of shape (n_features,)
        What D is multiplied by, on average.
    """
    n_classes, means = len(rows), sums / rows[:, None]
    del sums  # from here on few arrays of this size are there at a time
    middle = means.mean(axis=0)
    of_means = np.square(noise / rows)
    of_middle = of_means.sum() / n_classes**2
    apart = np.subtract(means, middle, out=means)
    # Rows are a sample too: an entry of a typical size e that comes at random.
    entry = 1 / max(float(middle.sum()), 1.0)
    errors = entry * np.maximum(middle, 0.0) / rows[:, None]
    errors += (of_means * (1 - 2 / n_classes) + of_middle)[:, None]
    precision = np.square(errors)
    np.divide(1, precision, out=precision)
    beyond = np.square(apart)
    beyond -= errors
    beyond *= precision
    shown = float(beyond.sum() / precision.sum())
    variance = max(shown, LEAST_VARIANCE * float(errors.mean()))
    floor = np.maximum(middle, FLOOR * math.sqrt(of_middle))
    del precision, beyond
    factors = np.add(variance, errors, out=errors)
    np.divide(variance, factors, out=factors)
    factors /= floor
    weights = np.multiply(apart, factors, out=apart)
    kept = factors.mean(axis=0)
    weights -= weights.mean(axis=0)
    return weights, kept
