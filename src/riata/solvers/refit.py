"""Find a few columns privately, then fit them well: what the refitting solvers share.

A run looks for columns, fits those that it found by Newton steps with noisy gradients and
curvatures, drops the ones that the noise explains, fits the rest again, and checks that the model
is better than a constant. What it spends on which it decides while it runs, within a filter. The
proofs are in docs/privacy/refit.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np

from riata.curator import Curator
from riata.mechanisms import Additive
from riata.privacy.budget import Budget
from riata.privacy.calibrate import bounded_range_at
from riata.privacy.events import Event, Pure
from riata.problem import Problem
from riata.queries import (
    Coordinate,
    Correlations,
    EntrySizes,
    LengthSizes,
    LimitedSlope,
    Query,
    SlopeSizes,
    Support,
    SupportCurvature,
    SupportGradient,
)
from riata.solvers import defaults
from riata.solvers.adaptive_budget import RemainingBudget, adaptive_budget, noise_std
from riata.solvers.constant_share import constant_share, posterior
from riata.solvers.empirical_bayes import best_constant
from riata.solvers.measured_constant import FAR, MeasuredConstant, first_constant, releases
from riata.solvers.plan import Plan, Solver, check_steps
from riata.solvers.refit_check import check
from riata.solvers.requirements import Requirement, bounded_curvature, refittable_set
from riata.solvers.scales import Scale, released_scale
from riata.solvers.solution import Callback, Fit, Solution, Step
from riata.solvers.step_count import zero_risk
from riata.solvers.whitened_shares import CONSTANTS
from riata.vectors import Vector

#: How much of a normal distribution lies within one standard deviation.
NORMAL_ONE = 0.683


@dataclass(frozen=True)
class Refit(Solver):
    """Columns that a subclass finds, fitted by private Newton steps.

    Parameters
    ----------
    steps : int or "auto", default="auto"
        The largest number of selections.
    """

    radius_policy: ClassVar[str] = "wide"
    keeps_unpenalized: ClassVar[bool] = True

    requirements: ClassVar[tuple[Requirement, ...]] = (refittable_set, bounded_curvature)

    #: The refits, one after the other.
    refits: ClassVar[tuple[defaults.Newton, ...]] = defaults.REFITS

    @abstractmethod
    def selections(self, problem: Problem, paid: Event) -> int:
        """The number of selections that "auto" plans for, of what a fit may spend."""

    @abstractmethod
    def search(self, run: Run) -> None:
        """Find columns: leave them in `run.support`, and a first model in `run.theta`."""

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        paid = adaptive_budget(budget, fits)
        steps = check_steps(self.steps) or self.selections(problem, paid)
        return Plan(
            self.name, problem, budget, steps, {}, fits, zero_risk(problem),
            assumes=_assumes(problem), adaptive_budget=paid,
            uses=self._uses(problem, paid, steps, fits),
        )  # fmt: skip

    def _uses(self, problem: Problem, paid: Any, steps: int, fits: int) -> tuple[str, ...]:
        amount, kind = (
            (f"epsilon = {paid.epsilon:.4g}", "pure")
            if isinstance(paid, Pure)
            else (f"rho = {paid.rho:.4g}", "zCDP")
        )
        each = f" for each of {fits} fits" if fits > 1 else ""
        first, ends = list[str](), "one noisy comparison with the best constant"
        if problem.unpenalized:
            first.append("noisy curvature and a gradient on the unpenalized columns, at first")
            ends = f"noisy comparisons with unpenalized columns alone, and {ends}"
        return (
            f"an adaptive budget of {amount}{each} ({kind} filter)",
            "private scales of entries, slopes and row lengths (counts with noise)",
            *first,
            *self.searches(steps),
            "noisy curvature and gradients on the columns that were found, for Newton steps",
            f"{ends}, which also estimates the fit",
        )

    def searches(self, steps: int) -> tuple[str, ...]:
        """What the search releases, in words."""
        return (f"up to {steps} private selections of a column, each with a noisy step",)

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        assert plan.adaptive_budget is not None
        whole, people = RemainingBudget.of(plan.adaptive_budget), plan.budget.rows_of_a_person
        run = Run(problem, curator, whole, plan.steps, callback, people)
        run.begin()
        run.fit_unpenalized()
        self.search(run)
        rest = run.remaining.left - run.reserved
        for each in self.refits:
            run.refit(each, min(each.share * rest, run.remaining.left - run.reserved))
        check(run)
        return run.solution()


def _assumes(problem: Problem) -> str:
    if problem.unpenalized:
        return (
            "unpenalized columns alone are no worse than the best constant, and the check against "
            "them does not err"
        )
    return "the check against the best constant does not err"


def ruled_selections(problem: Problem, paid: Any) -> int:
    """The explicit rule of docs/algorithms/greedy.md, times a factor for a search that adapts."""
    strength = paid.epsilon / 4 if isinstance(paid, Pure) else bounded_range_at(paid.rho)
    strength *= math.sqrt(defaults.SEARCH * (1 - defaults.MEASURED))
    n, p = problem.n_rows, problem.n_features
    rule = (n * strength / (4 * math.log(2 * p))) ** (2 / 3)
    most = min(defaults.MOST_SELECTIONS, 4 * p)
    return int(min(max(defaults.SELECTIONS * rule, defaults.FEWEST), most))


@dataclass
class Run:
    """One fit: the model so far, its support, and what is left to spend.

    Coefficients are in units of the columns' bounds inside this class: a row's entries are then
    all at most 1.
    """

    problem: Problem
    curator: Curator
    remaining: RemainingBudget
    steps: int
    callback: Callback | None = None
    rows_of_a_person: int = 1
    theta: Vector = field(init=False)
    support: list[int] = field(default_factory=list)
    selected: list[int] = field(default_factory=list)
    made: int = 0
    errors: np.ndarray | None = None
    offset_error: float | None = None
    base: tuple[Vector, np.ndarray | None, float | None] = field(init=False)
    constant_error: float = 0.0
    mean_slope: float = 0.0
    fit: Fit | None = None

    def __post_init__(self) -> None:
        self.whole = self.remaining.left
        self.theta = first_constant(self.problem)
        self.units = self.problem.bounds.per_column(self.problem.n_features)

    # What every run begins and ends with.

    def begin(self) -> None:
        """Scales of entries and slopes, and the intercept of the best constant."""
        self._scale_cost = defaults.SCALES * self.whole / (3 + defaults.SCALES_IN_SEARCH)
        entries = self.scale(EntrySizes(self.problem), self._scale_cost)
        self.entry_limit = entries.quantile(defaults.ENTRY_QUANTILE, zeros=False)
        self.measure_slopes()
        self.measured = MeasuredConstant(self.problem, self.theta, self.largest_curvature)
        self.constant, self.constant_error = self.theta, self.measured.error
        if self.problem.fit_intercept:
            self._first_intercept()
            self.measure_slopes()

    def _first_intercept(self) -> None:
        pure, rows = self.remaining.pure, self.problem.n_rows
        strength = rows * (self.whole / math.sqrt(2) if pure else math.sqrt(2 * self.whole))
        share = constant_share(strength, defaults.INTERCEPT, pure=pure)
        self.measure_constant(min(share, defaults.MOST_INTERCEPT) * self.whole)
        self.theta = self.constant

    def measure_constant(self, amount: float) -> None:
        """Spend an amount on the best constant: move it as far as what is released makes likely."""
        problem, loss, bound = self.problem, self.problem.loss, self.problem.offset_bound
        high = self.slopes.quantile(defaults.HIGH_QUANTILE)
        if loss.measured_curvature:
            each = amount / releases(problem, CONSTANTS)
            for _ in range(CONSTANTS):
                self.measured.measure(high, partial(self._number, amount=each))
            self.constant, self.constant_error = self.measured.model, self.measured.error
        elif loss.classifies:  # a slope at 0 says how often the classes are
            zero = Vector.zero(problem.n_features)
            most = loss.slope_bound(0.0, problem.y_bound)
            slope, noise = self._number(LimitedSlope(problem, zero, most), amount)
            prior = min(self.constant_error, FAR * most)
            move, self.constant_error = posterior(slope - self.mean_slope, noise, prior)
            self.mean_slope += move
            offset, _ = best_constant(loss, self.mean_slope, bound)
            self.constant = self.constant.with_offset(offset)
        else:
            query, curvature = (
                LimitedSlope(problem, self.constant, 2 * high),
                self.largest_curvature,
            )
            slope, noise = self._number(query, amount)
            move, self.constant_error = posterior(
                -slope / curvature, noise / curvature, self.constant_error
            )
            offset = float(np.clip(self.constant.offset + move, -bound, bound))
            self.constant = self.constant.with_offset(offset)

    def _number(self, query: Query, amount: float) -> tuple[float, float]:
        """A released number, and the standard deviation of its noise."""
        released, noise = self.answer(query, amount)
        return float(released[0]), noise

    @property
    def largest_curvature(self) -> float:
        return self.problem.loss.curvature_bound(self.problem.y_bound)

    @property
    def reserved(self) -> float:
        """What the check at the end needs."""
        return defaults.CHECK * self.whole

    @property
    def ranking_limit(self) -> float:
        """Where slopes are clipped when columns are ranked."""
        part = defaults.PART_OF_HIGH * self.slopes.quantile(defaults.HIGH_QUANTILE)
        return max(self.slopes.quantile(defaults.RANKING_QUANTILE), part)

    def measure_slopes(self) -> None:
        """The scale of the slopes at the present model."""
        self.slopes = self.scale(SlopeSizes(self.problem, self.theta), self._scale_cost)

    def scale(self, query: Any, amount: float) -> Scale:
        return released_scale(query, self.remaining.measurement(amount), self.curator)

    def notify_progress(self) -> None:
        """One more selection was made."""
        self.made += 1
        if self.callback is not None:
            self.callback(Step(self.made, self.steps))

    def fit_unpenalized(self) -> None:
        """Columns that are always in the model are in it from the start, and fitted first."""
        self.support = list(self.problem.unpenalized)
        first = defaults.FIRST_REFIT
        self.refit(first, first.share * (self.remaining.left - self.reserved))
        self.base = self.theta, self.errors, self.offset_error
        if self.support:
            self.measure_slopes()

    # Selections and steps.

    def select(self, amount: float) -> tuple[int, float]:
        """A column whose correlation with the slopes is large, and its sign."""
        query = Correlations(self.problem, self.theta, self.ranking_limit, self.entry_limit)
        chosen = int(self.curator.release(query, self.remaining.selection(amount)))
        size = len(self.units)
        return chosen % size, 1.0 if chosen < size else -1.0

    def step_along(self, column: int, amount: float) -> bool:
        """Move one coefficient to where the risk is lowest; False if it is not worth it."""
        query = Coordinate(self.problem, self.theta, self.ranking_limit, self.entry_limit, column)
        mechanism = self.remaining.measurement(amount)
        slope, falls = self.curator.release(query, mechanism)
        noise = noise_std(mechanism, query)
        if abs(slope) <= defaults.FOUND * noise:
            return False
        move = -slope / max(falls, defaults.LEAST_FALL * noise * query.fall_unit)
        self.theta = self.moved(np.array([column]), np.array([move]))
        self.keep(column)
        return True

    def keep(self, column: int) -> None:
        """A selected column is part of the model from now on."""
        if column not in self.support:
            self.support.append(column)
            self.selected.append(column)

    def moved(self, columns: np.ndarray, by: np.ndarray, offset: float = 0.0) -> Vector:
        """The model with some coefficients changed, by amounts in units of the bounds."""
        added = Vector(self.theta.size, columns, by / self.units[columns])
        bound = self.problem.offset_bound
        moved = float(np.clip(self.theta.offset + offset, -bound, bound))
        return self.theta.plus(added).with_offset(moved)

    # The refit.

    def refit(self, newton: defaults.Newton, amount: float) -> None:
        """Newton steps on the support, then drop what is not worth its noise."""
        if not self.support or amount <= 0:
            return
        columns = np.array(sorted(self.support))
        support = Support(columns, self.problem.bounds)
        each = newton.scales * amount / (1 + len(newton.steps))
        rest = (1 - newton.curvature - newton.scales) * amount
        lengths = self.scale(LengthSizes(self.problem, support), each)
        longest = lengths.quantile(defaults.LENGTH_QUANTILE, zeros=False)
        constant = longest / math.sqrt(len(columns)) if self.problem.fit_intercept else 0.0
        # Where the curvature changes with the model, an old one would leave the steps unfinished.
        changes = self.problem.loss.classifies
        looks = len(newton.steps) if changes else 1
        inverse = None
        for part in newton.steps:
            self.slopes = self.scale(SlopeSizes(self.problem, self.theta), each)
            at = (self.theta, self._refit_limit(), support, longest, constant)
            if inverse is None or changes:
                curvature = SupportCurvature(self.problem, *at)
                matrix, noise = self.answer(curvature, newton.curvature * amount / looks)
                inverse = _inverse(matrix, noise)
            query = SupportGradient(self.problem, *at)
            gradient, noise = self.answer(query, part * rest)
            move = -inverse @ gradient
            offset = move[-1] * constant if constant else 0.0
            self.theta = self.moved(columns, move[: len(columns)], offset)
        assert inverse is not None
        self._set_errors(columns, inverse, noise, query, constant, move)
        self._prune(columns, newton.prune)

    def _refit_limit(self) -> float:
        if self.problem.loss.classifies:
            return math.inf
        return defaults.REFIT_CUT * self.slopes.quantile(defaults.HIGH_QUANTILE)

    def answer(self, query: Query, amount: float) -> tuple[np.ndarray, float]:
        """A release, and the standard deviation of its noise."""
        mechanism: Additive = self.remaining.measurement(amount)
        return self.curator.release(query, mechanism), noise_std(mechanism, query)

    def _set_errors(
        self,
        columns: np.ndarray,
        inverse: np.ndarray,
        noise: float,
        query: Any,
        constant: float,
        move: np.ndarray,
    ) -> None:
        """Standard errors: the noise of the last gradient, that of the rows, of which those of a
        person may be copies, and a part of the last step where the curvature changes on the way.
        """
        middle = min(self.slopes.quantile(NORMAL_ONE), query.slope_bound())
        ratio = middle**2 / self.largest_curvature  # of the slopes' variance to their curvature
        if self.problem.loss.classifies:
            ratio = 1.0  # as for every likelihood
        sampled = ratio / self.problem.n_rows
        spread = noise**2 * inverse @ inverse + sampled * inverse
        noisy = np.sqrt(np.maximum(np.diag(spread), 0.0))
        left = defaults.UNFINISHED * move if self.problem.loss.classifies else 0.0
        more = (self.rows_of_a_person - 1) * sampled * np.maximum(np.diag(inverse), 0.0)
        found = np.hypot(np.hypot(noisy, left), np.sqrt(more))
        errors = np.zeros(self.problem.n_features)
        errors[columns] = found[: len(columns)] / self.units[columns]
        self.errors = errors
        self._noise = np.zeros(self.problem.n_features)
        self._noise[columns] = noisy[: len(columns)] / self.units[columns]
        self.offset_error = float(found[-1] * constant) if constant else None

    def _prune(self, columns: np.ndarray, prune: float) -> None:
        dense = self.theta.dense()
        dropped = np.abs(dense) <= prune * self._noise
        dropped[list(self.problem.unpenalized)] = False
        dense[dropped] = 0.0
        self.support = [int(j) for j in columns if not dropped[j]]
        self.theta = Vector.of(dense).with_offset(self.theta.offset)

    def solution(self) -> Solution:
        errors = None if self.errors is None else self.errors[self.theta.support]
        return Solution(
            self.theta, self.made, errors=errors, offset_error=self.offset_error, fit=self.fit,
            selected=tuple(self.selected),
        )  # fmt: skip


def _inverse(matrix: np.ndarray, noise: float) -> np.ndarray:
    """The inverse of a noisy positive matrix, whose small eigenvalues are lifted to the noise."""
    values, vectors = np.linalg.eigh(matrix)
    floor = noise * math.sqrt(len(values))
    return (vectors / np.maximum(values, max(floor, 1e-300))) @ vectors.T
