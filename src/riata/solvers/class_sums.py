"""Naive Bayes from noisy sums of each class, calibrated and corrected with what is left."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize

from riata.curator import Curator
from riata.losses import Logistic, Loss, Softmax, Weighted
from riata.mechanisms import GaussianMechanism
from riata.privacy.budget import CHANGED_CONTRIBUTIONS, Budget
from riata.problem import Problem
from riata.queries import ClippedGradient, Influence, Scaling, ScoreCounts, SumsByClass
from riata.solvers.adaptive_budget import noise_std
from riata.solvers.calibrated import gaussian_mechanisms
from riata.solvers.defaults import SURE, VISIBLE
from riata.solvers.joint import LINE_STEPS, calibrated, class_shares, counted, log_priors
from riata.solvers.plan import Plan, Solver, check_steps, count_steps
from riata.solvers.requirements import (
    Requirement,
    bounded_curvature,
    classes,
    positive_delta,
)
from riata.solvers.scales import AnyCurator, short_rows
from riata.solvers.solution import Callback, Fit, Solution
from riata.solvers.step_count import zero_risk
from riata.solvers.whitened_shares import scale_share, whole_strength
from riata.vectors import Vector

# The numbers below were set by benchmarks/tune_class_sums.py on synthetic texts, all but QUIET.
# That there are corrections at all, their form, LONGEST and the number of margin bins were decided
# with scores of real texts in view.

#: The constant that counts the rows of a class is at least this part of the longest row.
COUNTED = 0.1

#: The margins' share of the budget, and that of the corrections where there are any.
MARGINS_SHARE, CORRECTIONS_SHARE = 0.03, 0.3

#: The shares of the lengths of margins and of the line through them, for the logistic loss of two
#: classes. Set with real news in view: with a half more the AUC is .003 lower.
LINE_SHARES = {"lengths": 0.01, "line": 0.05}

#: "auto" makes so many corrections, if the noise of one number of a gradient at theta = 0 would be
#: below this part of its largest value with the whole budget. With more noise they do harm. At
#: this line synthetic texts gain as much as they lose, those of independent words lose; so it was
#: drawn where real posts begin to gain.
CORRECTIONS, QUIET = 8, 1 / 4000

#: The noise of all corrections together moves a typical margin by about this much.
STEP = 0.5

#: A correction is no longer than this over the largest curvature of a typical row.
LONGEST = 512.0

#: Slopes are clipped at this part of the largest one at a margin of 0 when the model is corrected.
CORRECTED_SLOPE = 0.5

#: The prior of t = (P - N) / (P + N) is fitted to columns whose sum exceeds its noise so many
#: times. If there are fewer of them than some, its variance is a guess; it always lies in a range.
COMMON, SOME = 4.0, 10
GUESSED_VARIANCE, LEAST_VARIANCE, MOST_VARIANCE = 0.1, 0.003, 0.5

#: How much of the noise that a random sample of rows would have is counted beside that of the
#: mechanism.
SAMPLED = 1.0

#: |t| is clipped here: log odds are at most 4.6.
MOST_ODD = 0.98

#: A weak penalty on a scale and an intercept that are fitted to counts: classes that counts
#: separate would have no best scale.
PENALTY = 1e-6

#: Bins of margins are no narrower than this part of the largest possible margin.
NARROWEST = 2.0**-12


holds_zero = Requirement(
    lambda p, b: not np.any(p.set.project(np.zeros(p.n_features))),
    lambda p, b: str(p.set),
    "it returns a constant where columns say nothing, and 0 is not in the set",
    "Use a ball, or {another}",
)


@dataclass(frozen=True)
class ClassSums(Solver):
    """Log odds of each column from one noisy sum of the rows of each class.

    Right for classes of rows that are not negative and of bounded length, such as texts: the noise
    of all columns is paid for once, and columns that are rare under it are left out by themselves.
    Negative entries of rows count as 0 while log odds are computed.

    Parameters
    ----------
    steps : int or "auto", default="auto"
        1 for the log odds alone. Each further step is a correction by a noisy gradient, which
        helps if the columns depend on each other and the noise is small.

    Notes
    -----
    *Privacy.* The rows are read by one Gaussian release of their lengths, one of the sums of both
    classes, one of counts of margins in bins, a noisy gradient for each correction and, if there
    are any, one more release of counts. For the logistic loss of two codes, one release of the
    margins' lengths and a few gradients of a line follow. They compose to one Gaussian release,
    whose curve is exact. The rest is post-processing: the prior, the log odds, the scale, the
    intercept and the check that the model is better than a constant, which has no say where there
    is a line.
    """

    name = "class-sums"
    radius_policy: ClassVar[str] = "open"
    errors_unknown: ClassVar[str] = (
        "Its coefficients are weights of naive Bayes: each column by itself, shrunk by its noise. "
        "Where columns are correlated no number of rows makes them those of a regression, so an "
        "interval would have no target."
    )
    requirements = (
        positive_delta(),
        classes,
        bounded_curvature,
        holds_zero,
    )

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        steps = check_steps(self.steps)
        if steps is None:
            alone = self._planned(problem, budget, fits, 1)
            steps = 1 + (CORRECTIONS if _noise_of_slopes(alone) < QUIET else 0)
        return self._planned(problem, budget, fits, steps)

    def _planned(self, problem: Problem, budget: Budget, fits: int, steps: int) -> Plan:
        corrections = steps - 1
        share = {"class sums": 1 - MARGINS_SHARE, "margins": MARGINS_SHARE}
        counts = {"class sums": 1, "margins": 1}
        if corrections:
            share |= {"class sums": share["class sums"] - CORRECTIONS_SHARE}
            share |= {"correction": CORRECTIONS_SHARE}
            counts |= {"margins": 2, "correction": corrections}
        if _as_softmax(problem) is not None:
            share |= {"class sums": share["class sums"] - sum(LINE_SHARES.values()), **LINE_SHARES}
            counts |= {"lengths": 1, "line": LINE_STEPS}
        share |= {"rows": scale_share(whole_strength(problem, budget, fits))}
        counts |= {"rows": 1}
        mechanisms = gaussian_mechanisms(counts, share, budget, fits)
        return Plan(
            self.name, problem, budget, steps, mechanisms, fits, zero_risk(problem),
            assumes="the check against the best constant does not err", times=counts,
        )  # fmt: skip

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        problem, rows = short_rows(problem, curator, plan["rows"])
        run = _Run(plan, problem, rows)
        for t in count_steps(plan.steps, callback):
            if t == 1:
                run.begin()
                run.calibrate()
            else:
                run.correct()
        if plan.steps > 1 and run.kept:
            run.calibrate()
        together = _as_softmax(problem)
        return run.solution() if together is None else run.through_line(together)


def _as_softmax(problem: Problem) -> Problem | None:
    """The same problem with a margin for each class, if it is the logistic one of codes 0 and 1."""
    loss = problem.loss
    codes = problem.y_bound == 2.0 and loss.class_targets() == (1.0, 0.0)
    if not (codes and isinstance(loss.innermost, Logistic)):
        return None
    both: Loss = Softmax(2)
    return replace(
        problem, loss=Weighted(both, loss.weights) if isinstance(loss, Weighted) else both
    )


class _Odds(NamedTuple):
    """Log odds of each column, and what they were computed from, in lengths of the longest row."""

    weights: np.ndarray
    sums: np.ndarray
    #: How much of (P - N) / (P + N) was kept.
    kept: np.ndarray
    noise: float
    #: The mean margins of the classes half way between them, and half their distance.
    centre: float
    half: float
    #: How fast a weight grows with the sum of the positive class, and how much more rows it has.
    growth: np.ndarray
    ratio: float


class _Run:
    """One fit. Rows are in units of their bounds inside this class."""

    def __init__(self, plan: Plan, problem: Problem, curator: AnyCurator) -> None:
        self.plan, self.problem, self.curator = plan, problem, curator
        self.units = problem.bounds.per_column(problem.n_features)
        self.kept, self.size = True, 1.0

    def begin(self) -> None:
        """Release the sums; find log odds."""
        part = counted(self.plan, COUNTED)
        query, mechanism = SumsByClass(self.problem, part), self.plan["class sums"]
        released = self.curator.release(query, mechanism)
        row = self.problem.n_rows / self.problem.bounds.row_norm("l2", self.problem.n_features)
        noise = noise_std(mechanism, query) * row
        rows = np.maximum(released[:, -1] * row / part, noise / part)
        flat, _ = lowest(self.problem, rows[:, None] / rows.sum(), np.zeros(1))
        self.shares = class_shares(released[::-1, -1] * row / part, noise / part)
        self.constant = Vector.zero(self.problem.n_features).with_offset(float(flat[1]))
        self.odds = log_odds(released[:, :-1] * row, rows, noise)
        self.theta = self._projected(self.odds.weights / self.units, 0.0)
        self.centre, self.half = self.odds.centre, self.odds.half

    def calibrate(self) -> None:
        """Multiply the model by a number and shift it, so that it fits the counts of margins."""
        direction = self.theta.with_offset(0.0)
        reach = self.problem.bounds.reach(direction) or 1.0
        centre = float(np.clip(self.centre, -reach, reach))
        spread = max(self.half, NARROWEST * reach)
        query, mechanism = (
            ScoreCounts(self.problem, direction, centre, spread),
            self.plan["margins"],
        )
        counts = self.curator.release(query, mechanism)
        noise = noise_std(mechanism, query)
        found = fitted_line(self.problem, counts, noise, query.middles() + centre / spread)
        self.kept, self.fit = found.sure, found.fit
        a, b = found.scale / spread, found.offset
        self.theta = self._projected(a * direction.dense(), b)
        self.centre, self.half, self.size = a * centre, a * spread, a * self.size

    def correct(self) -> None:
        """A step along a noisy gradient: longer for columns that are common and sure."""
        if not self.kept:
            return
        problem, odds, mechanism = self.problem, self.odds, self.plan["correction"]
        row = problem.bounds.row_norm("l2", problem.n_features)
        clip = CORRECTED_SLOPE * problem.loss.slope_bound(0.0, problem.y_bound) * row
        query = ClippedGradient(problem, self.theta, clip)
        gradient = self.curator.release(query, mechanism)
        pull = odds.kept**2 / (odds.sums + odds.noise)
        shares = odds.sums / max(float(odds.sums.sum()), 1e-300)
        typical = math.sqrt(float(shares @ pull**2))
        if typical == 0:
            return
        noise = noise_std(mechanism, query) / row
        by_noise = STEP / math.sqrt(self.plan.steps - 1) / noise / typical
        curvature = problem.loss.curvature_bound(problem.y_bound) * float(shares @ pull)
        move = min(by_noise, LONGEST / curvature) * pull * (gradient / self.units)
        self.theta = self._projected(self.theta.dense() - move / self.units, self.theta.offset)

    def _projected(self, theta: np.ndarray, offset: float) -> Vector:
        return Vector.of(self.problem.set.project(theta)).with_offset(offset)

    def through_line(self, together: Problem) -> Solution:
        """The model with the scale and the offset of a line that noise pulls to the frequencies.

        A model that the counts do not speak for is not thrown away: its scale is near 0.
        """
        theta, size = self.theta.with_offset(0.0), self.size
        if not self.kept:
            theta, size = self._projected(self.odds.weights / self.units, 0.0), 1.0
        longest = self.problem.bounds.row_norm("l2", theta.size)
        growth = self.odds.growth * self.units / longest
        moved = np.flatnonzero(growth > 0)
        columns = moved if len(moved) else np.arange(theta.size)
        spreads = 1 / growth[columns] if len(moved) else np.ones(theta.size)
        scaling = Scaling.of(theta.size, columns, np.zeros(len(columns)), spreads)
        factors = np.array([self.odds.ratio, 1.0]) * (size if len(moved) else 0.0)
        weights, sums = theta.dense() * self.units, self.odds.sums
        usual = math.sqrt(float(weights**2 @ sums) / max(float(sums.sum()), 1e-300) / 2)
        rest, mine = calibrated(
            self.plan, together, self.curator, (Vector.zero(theta.size), theta),
            log_priors(together, self.shares), Influence(scaling, math.inf, factors), usual,
        )  # fmt: skip
        bound = self.problem.offset_bound
        offset = float(np.clip(mine.theta.offset - rest.theta.offset, -bound, bound))
        return Solution(mine.theta.with_offset(offset), self.plan.steps, fit=self.fit)

    def solution(self) -> Solution:
        theta = self.theta if self.kept else self.constant
        return Solution(theta, self.plan.steps, fit=self.fit)


def log_odds(sums: np.ndarray, rows: np.ndarray, noise: float) -> _Odds:
    """Shrunk log odds of each column between two classes, from noisy sums of their rows.

    With D = P - r N and S = P + r N, where r makes the classes equally many, D / S is an estimate
    of t in [-1, 1] whose noise is known. Its prior is normal, with a variance that the common
    columns show, and 2 artanh(t) is the log of the odds (1 + t) / (1 - t).
    """
    r = float(rows[0] / rows[1])
    D, S = sums[0] - r * sums[1], np.maximum(sums[0] + r * sums[1], 0.0)
    noise_of_both = noise * math.hypot(1.0, r)
    # Rows are a sample too: with entries of size e, a sum P has about P / e of them.
    entry = 1 / max(float((sums[0] + r * sums[1]).sum() / rows[0] / 2), 1.0)
    of_d = noise_of_both**2 + SAMPLED * entry * (1 + r) / 2 * S
    common = COMMON * noise_of_both < S
    variance = GUESSED_VARIANCE
    if np.count_nonzero(common) >= SOME:
        shown = float(np.mean((D[common] ** 2 - of_d[common]) / S[common] ** 2))
        variance = min(max(shown, LEAST_VARIANCE), MOST_VARIANCE)
    floor, square = noise_of_both**2 / variance, S * S + of_d / variance
    free = D * S / square
    t = np.clip(free, -MOST_ODD, MOST_ODD)
    w = 2 * np.arctanh(t)
    # The mean margin of a class is <w, its sum> / its rows, but w knows the sum's noise. Stein's
    # identity says by how much that is too large: the variance times the derivative of w.
    steep = np.where(np.abs(free) < MOST_ODD, 2 / (1 - t * t), 0.0)
    in_d, in_s = S / square, np.where(S > 0, D * (floor - S * S) / square**2, 0.0)
    taken = noise**2 * np.array([steep @ (in_d + in_s), r * (steep @ (in_s - in_d))])
    means = (sums @ w - taken) / rows
    centre, half = float(means.mean()), float(means[0] - means[1]) / 2
    return _Odds(w, S, S * S / square, noise_of_both, centre, half, steep * in_d, r)


class _Line(NamedTuple):
    """A scale and an offset for margins, and whether they are better than the best constant."""

    scale: float
    offset: float
    sure: bool
    fit: Fit


def fitted_line(problem: Problem, counts: np.ndarray, noise: float, margins: np.ndarray) -> _Line:
    """The line a * margin + b of lowest loss over noisy counts of margins, for each class."""
    seen = np.where(counts > VISIBLE * noise, counts, 0.0)
    seen = seen / max(float(seen.sum()), noise)
    line, ours = lowest(problem, seen, margins)
    _, theirs = lowest(problem, seen, np.zeros(len(margins)))
    better = np.where(seen > 0, theirs - ours, 0.0)
    gain, error = float((seen * better).sum()), noise * float(np.linalg.norm(better))
    # The gain grows with the square of the scale: at s standard errors of it, it is s / 2 of these.
    sure = line[0] > 0 and gain > SURE / 2 * error
    before = max(float((seen * theirs).sum()), noise)
    return _Line(float(line[0]), float(line[1]), bool(sure), Fit(gain / before, error / before))


def lowest(
    problem: Problem, weights: np.ndarray, margins: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The scale and the offset of lowest loss, and the loss of each class at each margin."""
    loss, targets = problem.loss, np.repeat(problem.loss.class_targets(), len(margins))
    places, parts, bound = np.tile(margins, 2), weights.ravel(), problem.offset_bound

    def risk(line: np.ndarray) -> tuple[float, np.ndarray]:
        at = line[0] * places + line[1]
        slopes = parts * loss.slope(at, targets)
        value = parts @ loss.value(at, targets) + PENALTY * (line @ line)
        return value, np.array([slopes @ places, slopes.sum()]) + 2 * PENALTY * line

    limits = [(0.0, math.inf), (-bound, bound)]
    line = minimize(risk, np.zeros(2), jac=True, method="L-BFGS-B", bounds=limits).x
    return line, loss.value(line[0] * places + line[1], targets).reshape(2, -1)


def _noise_of_slopes(plan: Plan) -> float:
    """The noise of a mean of slopes with the whole budget, as a part of the largest slope."""
    mechanism = plan["class sums"]
    assert isinstance(mechanism, GaussianMechanism)
    z = mechanism.noise_multiplier * math.sqrt(1 - MARGINS_SHARE)
    return CHANGED_CONTRIBUTIONS[plan.problem.adjacency] * z / plan.problem.n_rows
