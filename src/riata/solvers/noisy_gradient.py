"""Noisy projected gradient descent (Bassily, Smith and Thakurta 2014), on all rows or samples."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from riata.curator import Curator
from riata.errors import InvalidArgument
from riata.mechanisms import (
    GaussianMechanism,
    LaplaceMechanism,
    Mechanism,
    SampledGaussianMechanism,
)
from riata.privacy.budget import CHANGED_CONTRIBUTIONS, Budget, check_number, check_scale
from riata.problem import Problem
from riata.queries import Query, risk_gradient
from riata.solvers.calibrated import calibrate_mechanisms
from riata.solvers.constant_share import constant_share
from riata.solvers.intercept import Intercept, with_intercept
from riata.solvers.plan import Plan, Solver, check_steps, count_steps
from riata.solvers.requirements import convex_set, positive_delta
from riata.solvers.solution import Callback, Solution
from riata.solvers.tails import AverageTail
from riata.solvers.whitened_shares import whole_strength
from riata.vectors import Vector, length

#: "auto" takes this many steps, times the longest gradient over the noise of a run of one step.
#: Measured on text, where half or twice as many steps score nearly the same.
STEPS_FOR_NOISE = 2.5

#: "auto" never takes more steps than this.
MOST_STEPS = 512

#: `with_proven_steps` never takes more than this.
MOST_PROVEN_STEPS = 4096

#: The intercept's part of the budget is at least this: one number, released as often as a long
#: vector, needs less.
INTERCEPT_SHARE = 0.02

_SAMPLED = positive_delta("sampling=1.0")

#: Step t counts in its average with t to this power: it must suit the last coefficients.
LATER = 8

#: That average has about twice the noise of a mean of all steps. Where the intercept gets more than
#: the least share, because noise would hide it, step t counts in proportion to t.
NOISIER, LATER_IN_NOISE = 2.0, 1

#: So much of a model is kept though noise may explain it all: where most directions are noise the
#: others still rank rows. On rows of 10 to 100 common factors in 768 and 1,500 columns models of
#: this size have an AUC of .85 to .95 and .1 to .4 nats less than a constant, and those of shuffled
#: labels .006 nats more.
LEAST_PART = 0.05


@dataclass(frozen=True)
class NoisyGradient(Solver):
    """Gradient descent whose gradients carry noise, projected onto the set.

    The noise is Gaussian, or Laplace's where delta is 0: then any loss and any convex set has a
    purely private solver, if not a precise one.

    Right for rows whose Euclidean length is bounded, such as texts: the noise of a step then does
    not grow with the number of columns. For rows bounded entry by entry it grows like its root.

    Parameters
    ----------
    steps : int or "auto", default="auto"
    step_size : float or "auto", default="auto"
        How far a step follows the gradient.
    clip : float, "auto" or None, default="auto"
        The largest Euclidean length of one row's gradient; longer ones are shortened. "auto" is
        the length that one can have at theta = 0, None the one that it can have anywhere.
    momentum : float, default=0.9
        How much of the last step's way the next one goes on. It averages the noise of the last
        1 / (1 - momentum) gradients.
    sampling : float, default=1.0
        The share of the rows that a step reads, drawn in secret. Below 1 a step is faster and
        costs less, but sees less.
    average : bool, default=False
        Whether the model is the average of all iterates in place of the last one. With clip=None
        and momentum=0.0 the plan's bound on the risk then holds for all data.

    Notes
    -----
    *Privacy.* The rows are read once a step, by the noisy gradient, and once more if there is an
    intercept. Where delta is 0 the epsilons of all steps add up. Otherwise steps on all rows
    compose to one Gaussian release, whose curve is exact; steps on samples compose by Renyi
    divergences. Momentum and projection are post-processing.

    References
    ----------
    Bassily, Smith, Thakurta (2014). Private empirical risk minimization. Algorithm 1.
    Abadi et al. (2016). Deep learning with differential privacy.
    """

    step_size: float | str = "auto"
    clip: float | str | None = "auto"
    momentum: float = 0.9
    sampling: float = 1.0
    average: bool = False

    name = "noisy-gradient"
    row_losses = None
    requirements = (convex_set,)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_step_size(self.step_size)
        if self.clip not in (None, "auto"):
            check_scale("clip", self.clip, "it is the largest length of one row's gradient.")
        if not 0 <= check_number("momentum", self.momentum) < 1:
            raise InvalidArgument(f"momentum={self.momentum!r} must lie in [0, 1).")
        if not 0 < check_number("sampling", self.sampling) <= 1:
            raise InvalidArgument(
                f"sampling={self.sampling!r} must lie in (0, 1]: it is the share of the rows that "
                "a step reads. Use 1.0 to read them all."
            )
        if not isinstance(self.average, bool | np.bool_):
            raise InvalidArgument(f"average={self.average!r} must be True or False.")

    def check(self, problem: Problem, budget: Budget) -> None:
        super().check(problem, budget)
        if self.sampling < 1:
            _SAMPLED.check(f"sampling={self.sampling}", problem, budget)

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        self.check(problem, budget)
        steps = check_steps(self.steps)
        if steps is None:
            one = self._planned(problem, budget, fits, 1)
            noise = self._noise_length(one) / self._clip(problem)
            steps = int(min(max(STEPS_FOR_NOISE / noise, 1), MOST_STEPS))
        return self._planned(problem, budget, fits, steps)

    def with_proven_steps(self, problem: Problem, budget: Budget, fits: int = 1) -> NoisyGradient:
        """The same with the number of steps at which the bound on the risk is nearly least.

        A run of T steps costs a clipped gradient over sqrt(T) beside its noise, which does not
        depend on T: so many that the two are alike. On data far fewer do (`STEPS_FOR_NOISE`).
        """
        self.check(problem, budget)
        one = self._planned(problem, budget, fits, 1)
        noise = self._noise_length(one) / self._clip(problem)
        return replace(self, steps=int(min(max(noise**-2, 1), MOST_PROVEN_STEPS)))

    def _planned(self, problem: Problem, budget: Budget, fits: int, steps: int) -> Plan:
        def at(strength: float) -> dict[str, Mechanism]:
            return self._mechanisms(problem, budget, strength)

        times = steps * fits
        mechanisms = calibrate_mechanisms(at, times, budget)
        assumes = "few gradients are clipped and the last step is as good as the average one"
        if self.average:
            assumes = "" if self.clip is None else "few gradients are clipped"
        if problem.loss.assumes:
            assumes = ", ".join(filter(None, (assumes, problem.loss.assumes)))
        plan = Plan(self.name, problem, budget, steps, mechanisms, fits, 0.0, assumes=assumes)
        return replace(plan, excess_risk=self._excess_risk(plan), tail=self._tail(plan))

    def _mechanisms(
        self, problem: Problem, budget: Budget, strength: float
    ) -> dict[str, Mechanism]:
        gradient: Mechanism = GaussianMechanism(1 / strength)
        if budget.delta == 0:
            gradient = LaplaceMechanism(strength)
        elif self.sampling < 1:
            gradient = SampledGaussianMechanism(1 / strength, self.sampling)
        return with_intercept("gradient", gradient, problem, budget, self._share(problem, budget))

    def _share(self, problem: Problem, budget: Budget) -> float:
        """The intercept's part of the budget."""
        if not self._shrinks:
            return INTERCEPT_SHARE
        pure = budget.delta == 0
        strength = problem.n_rows * budget.row_epsilon / math.sqrt(2)
        if not pure:
            strength = whole_strength(problem, budget)
        return constant_share(strength / NOISIER, INTERCEPT_SHARE, pure=pure)

    @property
    def _shrinks(self) -> bool:
        """Whether what noise explains is taken from the model: not where a bound is proven."""
        return self.sampling == 1 and not self.average

    def _clip(self, problem: Problem) -> float:
        """The largest length of one row's gradient: given, or what it can be at the start."""
        longest = problem.gradient_bounds.row_norm("l2", problem.n_features)
        if self.clip == "auto":
            return problem.loss.slope_bound(0.0, problem.y_bound) * longest
        worst = problem.slope_bound * longest
        return worst if self.clip is None else min(float(self.clip), worst)

    def _query(self, problem: Problem, theta: Vector) -> Query:
        return risk_gradient(problem, theta, None if self.clip is None else self._clip(problem))

    def _noise_length(self, plan: Plan) -> float:
        """The root mean square length of the noise of a step's gradient."""
        problem, clip = plan.problem, self._clip(plan.problem)
        gradient = plan["gradient"]
        if isinstance(gradient, LaplaceMechanism):
            scale = gradient.scale(self._query(problem, problem.set.start()))
            return scale * math.sqrt(2 * problem.n_features)
        sensitivity = CHANGED_CONTRIBUTIONS[problem.adjacency] * clip / problem.n_rows
        assert isinstance(gradient, GaussianMechanism | SampledGaussianMechanism)
        length = gradient.noise_multiplier * sensitivity / self.sampling
        return length * math.sqrt(problem.n_features)

    def _length(self, plan: Plan) -> float:
        """The root mean square length of a step's noisy gradient, or a little more."""
        clip, few = self._clip(plan.problem), self.sampling * plan.problem.n_rows
        sampled = clip / math.sqrt(few) if self.sampling < 1 else 0.0
        return math.hypot(clip, self._noise_length(plan), sampled)

    def _rate(self, plan: Plan) -> float:
        """The step that the explicit bound recommends: ||C|| / (length * sqrt(T))."""
        if not isinstance(self.step_size, str):
            return float(self.step_size)
        return plan.problem.set.radius_in("l2") / (self._length(plan) * math.sqrt(plan.steps))

    def _excess_risk(self, plan: Plan) -> float:
        """distance^2 / (2 rate T) + rate * length^2 / 2, and what momentum adds: risk at 0 / T.

        For the plain average of T steps (Yang, Lin and Li 2016, Theorem 1).
        """
        problem, rate, distance = plan.problem, self._rate(plan), _distance(plan.problem)
        at_start = problem.loss.slope_bound(0.0, problem.y_bound) * problem.margin_bound
        risk = distance**2 / (2 * rate * plan.steps) + rate * self._length(plan) ** 2 / 2
        risk += self.momentum / (1 - self.momentum) * at_start / plan.steps
        return min(risk, problem.worst_excess_risk)

    def _tail(self, plan: Plan) -> AverageTail | None:
        """For the plain average: momentum and samples have bounds in the mean only."""
        if not self.average or self.momentum > 0 or self.sampling < 1:
            return None
        p, noise = plan.problem.n_features, self._noise_length(plan)
        return AverageTail(
            _distance(plan.problem), plan.problem.set.radius_in("l2"), self._rate(plan), plan.steps,
            p, self._clip(plan.problem), noise / math.sqrt(p),
        )  # fmt: skip

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        C, theta, rate = problem.set, problem.set.start(), self._rate(plan)
        rate *= 1 - self.momentum
        hidden = self._share(problem, plan.budget) > INTERCEPT_SHARE
        intercept = Intercept(plan, problem, curator, LATER_IN_NOISE if hidden else LATER)
        move = np.zeros(problem.n_features)
        visited = np.zeros(problem.n_features)
        gradients = np.zeros(problem.n_features)
        for t in count_steps(plan.steps, callback):
            gradient = curator.release(self._query(problem, theta), plan["gradient"])
            gradients += gradient
            b = intercept.descend(theta, intercept.slope(theta), t)
            before = theta.dense()
            visited += before
            moved = C.project(before - rate * gradient + self.momentum * move)
            move = moved - before
            theta = Vector.of(moved).with_offset(b)
        if self.average:
            theta = Vector.of(C.project(visited / plan.steps))
        if not self._shrinks:
            return Solution(theta.with_offset(intercept.average), plan.steps)
        noise = self._noise_length(plan) * math.sqrt(plan.steps)
        part = max(explained_part(gradients, noise), LEAST_PART)
        start = C.start().dense()
        theta = Vector.of(start + part * (theta.dense() - start))
        return Solution(theta.with_offset(intercept.likely), plan.steps)


def explained_part(total: np.ndarray, noise: float) -> float:
    """The part of a sum of gradients that its noise, of this usual length, does not explain.

    James and Stein's: along the way from the start, so much of the distance is kept.
    """
    size = length(total)
    return max(1 - (noise / size) ** 2, 0.0) if size > noise else 0.0


def _distance(problem: Problem) -> float:
    """From the start to any point of the set."""
    return problem.set.radius_in("l2") * (1 if np.all(problem.set.start().values == 0) else 2)


def check_step_size(step_size: object) -> None:
    if not (isinstance(step_size, str) and step_size == "auto"):
        check_scale(
            "step_size", step_size, 'it is how far a step goes. Use "auto" to have it chosen.'
        )
