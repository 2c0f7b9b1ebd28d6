"""Algorithm 7 of the lecture: objective perturbation over a convex set."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from riata.curator import Curator
from riata.errors import InvalidArgument
from riata.mechanisms import GammaObjective, GaussianObjective, ObjectivePerturbation
from riata.privacy.budget import Budget, check_scale
from riata.privacy.calibrate import calibrate
from riata.privacy.events import compose
from riata.problem import Problem
from riata.queries import Minimum
from riata.sets.widths import expected_l2
from riata.solvers.plan import Plan, Solver, check_steps, count_steps
from riata.solvers.requirements import (
    convex_set,
    enforced_curvature,
    exact_projection,
    smoothable_loss,
)
from riata.solvers.solution import Callback, Solution
from riata.solvers.tails import ObjectiveTail

#: The stretch costs at most this part of epsilon, half of it where the user asks for a
#: regularisation, ...
MOST_SHARE = 0.8

#: ... and never more than this: so weak a regularisation could not hide any rounding.
MOST_STRETCH = 15.0

#: How many stretches "auto" tries, from this part of the largest one on: half of them anywhere, and
#: half near the best of these.
CANDIDATES, LEAST_PART = 32, 1e-7

#: The minimum of a rounded corner is found in a time that grows with n * curvature / lambda. Beyond
#: this number "auto" rounds more, as long as the bound grows by no more than this factor.
MOST_CONDITION, WORSE = 500.0, 1.1

#: Where the term loses more than this part of epsilon, together with what is left of the stretch
#: there, the rest of the stretch is not charged.
ABOVE_SHARE = 0.8

#: How much more noise, in units of what it hides, the hiding noise has than the linear term: at 12
#: the linear term has a third of a percent more noise than it would have alone.
HIDING = 12.0

#: The part of a pure epsilon that pays for the hiding noise.
HIDING_SHARE = 0.01


@dataclass(frozen=True)
class PerturbedObjective(Solver):
    """The minimiser of the regularised risk plus a random linear term, over a convex set.

    One look at the data, whatever the number of columns. The error grows with the Gaussian width
    of the set and with the Euclidean length of a row.

    Parameters
    ----------
    steps : 1 or "auto", default="auto"
        There is one step.
    regularisation : float or "auto", default="auto"
        The least weight lambda of ||theta||^2 / 2 beside the *sum* of the losses. What the budget
        needs is taken where it is more. "auto" minimises the explicit bound on the risk.
    smoothing : float or "auto", default="auto"
        For a loss with a corner, the length of the interval of margins over which it is rounded.
        Other losses are minimised as they are. "auto" minimises the bound as well.

    Notes
    -----
    *Privacy.* The rows are read by one release. The intercept is a coordinate like the others: it
    is regularised and its column, the constant 1, counts in a row's length.

    The loss may have a slope without a derivative, such as Huber's. A corner is rounded first.

    *Differences from the paper.* The printed noise gives epsilon 0.70 where 0.5 is claimed. The
    curvature of a row is the loss's times the *square* of its length, and the determinant costs
    log(1 + curvature / lambda) once, also when a row is replaced. The exact minimiser cannot be
    computed: the released one is certified to be near it, and noise hides the difference.

    References
    ----------
    Chaudhuri, Monteleoni, Sarwate (2011). Kifer, Smith, Thakurta (2012). Iyengar et al. (2019).
    Redberg, Koskela, Wang (2023). Improving the privacy and practicality of objective perturbation.
    """

    regularisation: float | str = "auto"
    smoothing: float | str = "auto"

    name = "objective-perturbation"
    row_losses = enforced_curvature
    requirements = (convex_set, smoothable_loss, exact_projection)

    def __post_init__(self) -> None:
        if check_steps(self.steps) not in (None, 1):
            raise InvalidArgument(
                f"steps={self.steps!r} must be 1: objective perturbation looks at the data once."
            )
        if self.regularisation != "auto":
            why = "it is the weight of the penalty beside the sum of the losses."
            check_scale("regularisation", self.regularisation, why)
        if self.smoothing != "auto":
            check_scale("smoothing", self.smoothing, "it is the width of a rounded corner.")

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        most = min(MOST_SHARE * budget.row_epsilon / fits, MOST_STRETCH)
        if self.regularisation != "auto":
            plan = self._plans(problem, budget, fits, np.array([most / 2]))[0]
        else:
            plan = self._best(problem, budget, fits, most)
        return replace(plan, excess_risk=min(plan.excess_risk, problem.worst_excess_risk))

    def _best(self, problem: Problem, budget: Budget, fits: int, most: float) -> Plan:
        """The plan with the smallest bound, or where that is slow one that is nearly as good."""
        every = np.geomspace(LEAST_PART * min(most, 1.0), most, CANDIDATES // 2)
        plans = self._plans(problem, budget, fits, every)
        best = int(np.argmin([plan.excess_risk for plan in plans]))
        ends = every[max(best - 1, 0)], every[min(best + 1, len(every) - 1)]
        near = np.geomspace(*ends, CANDIDATES // 2)
        plans += self._plans(problem, budget, fits, near)
        stretch, plan = min(
            zip([*every, *near], plans, strict=True), key=lambda each: each[1].excess_risk
        )
        # A rounded corner has n * curvature / lambda = n * (e^stretch - 1).
        quick = math.log1p(MOST_CONDITION / problem.n_rows)
        if self.smoothing != "auto" or not _smoothing(plan) or stretch <= quick:
            return plan
        less = np.geomspace(max(quick, stretch / 8), stretch, CANDIDATES // 2)
        rounder = self._plans(problem, budget, fits, less)
        return next(
            each for each in [*rounder, plan] if each.excess_risk <= WORSE * plan.excess_risk
        )

    def _plans(
        self, problem: Problem, budget: Budget, fits: int, stretches: np.ndarray
    ) -> list[Plan]:
        """One plan for each share of epsilon that may pay for the stretch."""
        asked = 0.0 if self.regularisation == "auto" else float(self.regularisation)
        given = Minimum(problem)
        at = [self._regularised(given, stretch, asked) for stretch in map(float, stretches)]
        if budget.delta == 0:
            mechanisms = [_pure(query, budget.row_epsilon / fits, each) for query, each in at]
        else:
            middle = at[len(at) // 2]
            directions = min((1, 2), key=lambda d: _noise(*middle, budget, fits, d))
            mechanisms = [_approximate(*each, budget, fits, directions) for each in at]
        return [
            Plan(
                self.name, problem, budget, 1, {"minimise": mechanism}, fits,
                _excess_risk(query, mechanism), assumes=query.loss.innermost.assumes,
                tail=_tail(query, mechanism),
            )
            for (query, _), mechanism in zip(at, mechanisms, strict=True)
        ]  # fmt: skip

    def _regularised(self, given: Minimum, stretch: float, asked: float) -> tuple[Minimum, float]:
        """The query, and a regularisation at which the determinant costs at most `stretch`."""
        query, problem, size = given, given.problem, _radius(given)
        if problem.loss.curvature_bound(problem.y_bound) == math.inf:
            width = self.smoothing
            if isinstance(width, str):  # so that the two parts of the bound are equal
                one = problem.loss.smoothed(1.0)
                assert one is not None
                share = 2 * query.n_rows * one.smoothing_error * math.expm1(stretch)
                bent = one.curvature_bound(query.y_bound) * query.row_length**2
                width = size * math.sqrt(bent / share)
            query = Minimum(problem, float(width))
        # A straight loss has no determinant to pay for: any regularisation will do.
        curvature = query.row_curvature or query.row_bound("l2") / size
        return query, max(curvature / math.expm1(stretch), asked)

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        """Algorithm 7: line 1 draws b, line 2 minimises, both inside the mechanism."""
        for _ in count_steps(plan.steps, callback):
            mechanism = plan["minimise"]
            assert isinstance(mechanism, ObjectivePerturbation)
            theta = curator.release(Minimum(problem, mechanism.smoothing), mechanism)
        return Solution(theta, plan.steps)


def _smoothing(plan: Plan) -> float:
    mechanism = plan["minimise"]
    assert isinstance(mechanism, ObjectivePerturbation)
    return mechanism.smoothing


def _pure(query: Minimum, epsilon: float, regularisation: float) -> ObjectivePerturbation:
    """The mechanism that spends a pure epsilon at this regularisation."""
    hiding = HIDING_SHARE * epsilon
    rest = (epsilon - hiding) * (1 - 2.0**-30)
    term = _with_the_stretch(query, rest, regularisation, 2)
    stretch = query.stretch(regularisation, term)
    return GammaObjective(regularisation, stretch, term, hiding, smoothing=query.smoothing)


def _approximate(
    query: Minimum, regularisation: float, budget: Budget, fits: int, directions: int
) -> GaussianObjective:
    """The mechanism that spends the budget at this regularisation."""
    stretch, above, steep = query.stretch(regularisation), 0.0, None
    if fits == 1:  # several are accounted for by their usual losses, not by their rare ones
        level = ABOVE_SHARE * budget.row_epsilon
        above = _with_the_stretch(query, level, regularisation, directions)
        steep = query.stretch(regularisation, above, directions) if above else None

    def at(strength: float) -> GaussianObjective:
        return GaussianObjective(
            regularisation, stretch, 1 / strength, HIDING / strength, directions, above, steep,
            smoothing=query.smoothing,
        )  # fmt: skip

    return at(calibrate(lambda s: compose((at(s).event, fits)), budget))


def _noise(
    query: Minimum, regularisation: float, budget: Budget, fits: int, directions: int
) -> float:
    return _approximate(query, regularisation, budget, fits, directions).scale(query)


def _with_the_stretch(
    query: Minimum, level: float, regularisation: float, directions: int
) -> float:
    """The largest loss of the term that is at most `level` together with its stretch."""
    low, high = 0.0, level
    while high - low > 2.0**-40 * level:
        middle = (low + high) / 2
        if middle + query.stretch(regularisation, middle, directions) <= level:
            low = middle
        else:
            high = middle
    return low


def strongly_convex_risk(plan: Plan, modulus: float) -> float:
    """A bound on the expected excess risk of a plan, if the risk is strongly convex.

    The lecture's d log(1/delta) / (n epsilon)^2, with constants. Never more than
    `Plan.excess_risk`. The proof is in docs/algorithms/geometry.md.

    Parameters
    ----------
    plan : Plan
        Of objective perturbation, without an intercept.
    modulus : float
        No eigenvalue of a Hessian of the risk is below it. Known, not computed from private rows.
    """
    mechanism = plan.mechanisms.get("minimise")
    if not isinstance(mechanism, ObjectivePerturbation) or plan.problem.fit_intercept:
        raise InvalidArgument(
            f"The plan is one of {plan.solver}"
            + " with an intercept" * plan.problem.fit_intercept
            + ": this bound is known for objective perturbation without one."
        )
    modulus = check_scale("modulus", modulus, "it is the least curvature of the risk.")
    query = Minimum(plan.problem, mechanism.smoothing)
    longest = mechanism.expected_length(query)
    pull = mechanism.regularisation * query.set.radius_in("l2")
    square = (1 + 1 / query.size) * longest**2 + 2 * pull * longest + pull**2
    risk = square / (2 * modulus * query.n_rows**2)
    return min(plan.excess_risk, risk + _hidden(query, mechanism) + query.loss.smoothing_error)


def _hidden(query: Minimum, mechanism: ObjectivePerturbation) -> float:
    """What the noise costs that hides the error of the computed minimum."""
    moved = mechanism.hiding_scale(query) * math.sqrt(2 * query.size) + mechanism.radius(query)
    return query.slope_bound * query.row_length * moved


def _excess_risk(query: Minimum, mechanism: ObjectivePerturbation) -> float:
    """(2 E||b||_C* + lambda ||C||^2 / 2) / n (Theorem 16.9), and what hiding and smoothing cost."""
    pull = mechanism.expected_length(query) * _width(query) / expected_l2(query.size)
    risk = (2 * pull + mechanism.regularisation * _radius(query) ** 2 / 2) / query.n_rows
    return risk + _hidden(query, mechanism) + query.loss.smoothing_error


def _tail(query: Minimum, mechanism: ObjectivePerturbation) -> ObjectiveTail:
    """How rarely it is more."""
    radius, steep = _radius(query), query.slope_bound * query.row_length
    known = mechanism.regularisation * radius**2 / (2 * query.n_rows)
    known += steep * mechanism.radius(query) + query.loss.smoothing_error
    return ObjectiveTail(
        known, mechanism.scale(query) / query.n_rows, _width(query), radius, query.size,
        steep * mechanism.hiding_scale(query), isinstance(mechanism, GammaObjective),
    )  # fmt: skip


def _width(query: Minimum) -> float:
    """The Gaussian width of the set, the intercept's interval included."""
    return query.set.gaussian_width().value + query.offset_bound * math.sqrt(2 / math.pi)


def _radius(query: Minimum) -> float:
    """The largest length of a point of the set, the intercept included."""
    return math.hypot(query.set.radius_in("l2"), query.offset_bound)
