"""Algorithm 7 of the lecture: objective perturbation over a convex set."""

from __future__ import annotations

import math
from collections.abc import Iterator
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
from riata.solvers.plan import (
    Callback,
    Plan,
    Solution,
    Solver,
    check_steps,
    count_steps,
)
from riata.solvers.requirements import (
    convex_set,
    enforced_curvature,
    exact_projection,
    smoothable_loss,
)

#: The stretch costs at most this part of epsilon, half of it where the user asks for a
#: regularisation, ...
MOST_SHARE = 0.8

#: ... and never more than this: so weak a regularisation could not hide any rounding.
MOST_STRETCH = 15.0

#: How many stretches "auto" tries.
CANDIDATES = 32

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
        plan = min(self._plans(problem, budget, fits), key=lambda plan: plan.excess_risk)
        return replace(plan, excess_risk=min(plan.excess_risk, problem.worst_excess_risk))

    def _plans(self, problem: Problem, budget: Budget, fits: int) -> Iterator[Plan]:
        """One plan for each share of epsilon that may pay for the stretch."""
        asked = 0.0 if self.regularisation == "auto" else float(self.regularisation)
        most = min(MOST_SHARE * budget.row_epsilon / fits, MOST_STRETCH)
        tried = np.geomspace(1e-3 * min(most, 1.0), most, CANDIDATES) if asked == 0 else [most / 2]
        at = [self._regularised(problem, stretch, asked) for stretch in map(float, tried)]
        if budget.delta == 0:
            mechanisms = [_pure(query, budget.row_epsilon / fits, each) for query, each in at]
        else:
            middle = at[len(at) // 2]
            directions = min((1, 2), key=lambda d: _noise(*middle, budget, fits, d))
            mechanisms = [_approximate(*each, budget, fits, directions) for each in at]
        for (query, _), mechanism in zip(at, mechanisms, strict=True):
            risk = _excess_risk(query, mechanism)
            yield Plan(self.name, problem, budget, 1, {"minimise": mechanism}, fits, risk)

    def _regularised(self, problem: Problem, stretch: float, asked: float) -> tuple[Minimum, float]:
        """The query, and a regularisation at which the determinant costs at most `stretch`."""
        query = Minimum(problem)
        size = math.hypot(query.set.radius_in("l2"), query.offset_bound)
        if problem.loss.curvature_bound(problem.y_bound) == math.inf:
            width = self.smoothing
            if isinstance(width, str):  # so that the two parts of the bound are equal
                one = Minimum(problem, 1.0)
                share = 2 * one.n_rows * one.loss.smoothing_error * math.expm1(stretch)
                width = size * math.sqrt(one.row_curvature / share)
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


def _excess_risk(query: Minimum, mechanism: ObjectivePerturbation) -> float:
    """(2 E||b||_C* + lambda ||C||^2 / 2) / n (Theorem 16.9), and what hiding and smoothing cost."""
    offset = query.offset_bound
    direction = query.set.gaussian_width().value + offset * math.sqrt(2 / math.pi)
    pull = mechanism.expected_length(query) * direction / expected_l2(query.size)
    size = math.hypot(query.set.radius_in("l2"), offset)
    risk = (2 * pull + mechanism.regularisation * size**2 / 2) / query.n_rows
    hidden = mechanism.hiding_scale(query) * math.sqrt(2 * query.size) + mechanism.radius(query)
    return risk + query.slope_bound * query.row_length * hidden + query.loss.smoothing_error
