"""Private sparse regression by peeling, on all rows or on disjoint parts of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from riata.curator import Curator
from riata.errors import Incompatible, InvalidArgument
from riata.mechanisms import Additive, GaussianMechanism, LaplaceMechanism, Mechanism, Peeling, TopK
from riata.privacy.budget import REPLACE_LABEL, REPLACE_ONE, Budget
from riata.privacy.calibrate import bounded_range_at, noise_multiplier_at, pure_at
from riata.problem import Problem
from riata.queries import GradientStep
from riata.sets import L2Ball
from riata.solvers.intercept import Intercept
from riata.solvers.plan import Plan, count_steps
from riata.solvers.solution import Callback, Solution
from riata.solvers.sparse_descent import SparseDescent, sparse_rate, sparsity_of
from riata.vectors import Vector

#: The part of a step's budget that goes to finding the columns; the rest goes to their values.
SELECTION_SHARE = 0.5

#: Parts must beat all rows by more than rounding: with a pure budget the two are equally noisy.
NEARLY = 0.999


@dataclass(frozen=True)
class PrivatePeeling(SparseDescent):
    """Gradient steps of which only the largest entries are ever seen.

    Each step selects `sparsity` entries of theta - rate * gradient privately, releases their
    values with noise and projects them onto the Euclidean ball. The noise does not grow with the
    number of columns, only its logarithm does: the choice for rows bounded entry by entry.

    Parameters
    ----------
    steps : int or "auto", default="auto"
    step_size : float or "auto", default="auto"
        How far a step follows the gradient. "auto" is right for columns that are nearly
        uncorrelated; halve it where many columns move together.
    split : bool or "auto", default="auto"
        Whether each step reads a part of the rows of its own, with the whole budget, or all rows
        with a part of it. "auto" takes what gives the smaller noise, from public facts.
    values : {"auto", "gaussian", "laplace"}, default="auto"
        The noise on the values. "auto" is Gaussian where delta is positive.

    Notes
    -----
    *Privacy.* The rows are read twice a step, by the selection and by the noisy values, and once
    more if there is an intercept.

    *Differences from the paper.* One draw of Gumbel noise in place of rounds of Laplace noise: the
    same selection costs half the noise. The sensitivity is 2 rate K^2 (sqrt(s) C + 1) / m, and not
    2 rate K^2 C (sqrt(s) + 1) / m, which is too small for C < 1. All rows with a part of the
    budget nearly always beat parts of the rows with all of it: the noise of a step then grows with
    the root of the number of steps, and not with the number.

    References
    ----------
    Cai, Wang, Zhang (2019). The cost of privacy. Algorithms 1 and 4.
    Hu, Ni, Xiao, Wang (2022). High dimensional differentially private stochastic optimization
    with heavy-tailed data.
    """

    split: bool | str = "auto"
    values: str = "auto"

    name = "peeling"
    role = "peel"

    def __post_init__(self) -> None:
        super().__post_init__()
        named = isinstance(self.split, str) and self.split == "auto"
        if not named and not isinstance(self.split, bool | np.bool_):
            raise InvalidArgument(f'split={self.split!r} must be True, False or "auto".')
        if self.values not in ("auto", "gaussian", "laplace"):
            raise InvalidArgument(
                f"values={self.values!r} is not known. Use one of ['auto', 'gaussian', 'laplace']."
            )

    def check(self, problem: Problem, budget: Budget) -> None:
        super().check(problem, budget)
        if self.values == "gaussian" and budget.delta == 0:
            raise Incompatible(
                'values="gaussian"', "delta=0", because="Gaussian noise has no pure guarantee",
                instead='Use values="laplace", or pass a positive delta',
            )  # fmt: skip

    def mechanism(self, problem: Problem, budget: Budget, strength: float) -> Mechanism:
        return peeling_at(strength, budget, sparsity_of(problem), self.values == "laplace")

    def noise_length(self, problem: Problem, mechanism: Mechanism) -> float:
        """A wrong column loses what it hides from the right one; then the noise of the values."""
        assert isinstance(mechanism, Peeling)
        sparsity = sparsity_of(problem)
        entry = problem.worst_sensitivity(problem.bounds.row_norm("linf", problem.n_features))
        missed = 2 * entry / mechanism.select.epsilon * math.log(max(problem.n_features, 2))
        if isinstance(mechanism.values, GaussianMechanism):
            each = mechanism.values.noise_multiplier * entry * math.sqrt(sparsity)
        else:
            assert isinstance(mechanism.values, LaplaceMechanism)
            each = math.sqrt(2) * entry * sparsity / mechanism.values.epsilon
        return math.sqrt(sparsity) * (missed + each)

    def plan(self, problem: Problem, budget: Budget, fits: int = 1) -> Plan:
        whole = super().plan(problem, budget, fits)
        steps, free = whole.steps, isinstance(self.split, str)
        alone = problem.adjacency in (REPLACE_ONE, REPLACE_LABEL)
        if not self.split or (free and not (alone and 1 < steps <= problem.n_rows)):
            return whole
        if not alone:
            raise Incompatible(
                "split=True", f'adjacency="{problem.adjacency}"',
                because="a row that is taken away moves all later ones to other parts",
                instead='Use split=False, or adjacency="replace-one"',
            )  # fmt: skip
        if steps > problem.n_rows:
            raise Incompatible(
                f"steps={steps}", f"{problem.n_rows} rows",
                because="each step reads a part of the rows of its own, and a part needs a row",
                instead="Use fewer steps, or split=False",
            )  # fmt: skip
        split = self._split(problem, budget, fits, steps)
        better = split.excess_risk < NEARLY * whole.excess_risk
        return split if better or not free else whole

    def _split(self, problem: Problem, budget: Budget, fits: int, steps: int) -> Plan:
        """The plan in which step t reads part t: one part's cost is the cost of the whole."""
        part = replace(problem, n_rows=_part_rows(problem, steps - 1, steps))
        one = super().planned(part, budget, fits, 1)
        noise = self.noise_length(part, one[self.role])
        distance = self.distance(problem, steps, noise)
        return replace(
            one, problem=problem, steps=steps, excess_risk=self.excess_risk(problem, distance),
            parts=steps, distance=min(distance, 2 * problem.set.radius_in("l2")),
        )  # fmt: skip

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        """Algorithm 6, line by line, on rows that the bounds have truncated at K."""
        theta, rate = problem.set.start(), sparse_rate(problem, self.step_size)
        ball = L2Ball(problem.set.radius_in("l2"), problem.n_features)
        intercept = Intercept(plan, problem, curator)
        for t in count_steps(plan.steps, callback):  # line 2
            part, seen = 0, problem
            if plan.parts > 1:  # line 1
                part = t - 1
                seen = replace(problem, n_rows=_part_rows(problem, part, plan.parts))
            peeled = curator.release(
                GradientStep(seen, theta, rate), plan["peel"], part
            )  # lines 3-4
            b = intercept.descend(theta, intercept.slope(theta, seen, part), t)
            theta = Vector.of(ball.project(peeled.dense())).with_offset(b)  # line 5
        return Solution(theta.with_offset(intercept.average), plan.steps)  # line 7


def peeling_at(strength: float, budget: Budget, sparsity: int, laplace: bool) -> Peeling:
    """Peeling of so many entries; a larger strength is more accurate and costs more."""
    if budget.delta == 0:  # epsilons add up
        select = strength * SELECTION_SHARE / sparsity
        values: Additive = LaplaceMechanism(strength * (1 - SELECTION_SHARE))
    else:  # rhos do
        select = bounded_range_at(strength**2 * SELECTION_SHARE / sparsity)
        rest = strength**2 * (1 - SELECTION_SHARE)
        values = GaussianMechanism(noise_multiplier_at(rest))
        if laplace:
            values = LaplaceMechanism(pure_at(rest))
    return Peeling(TopK(select, sparsity), values)


def _part_rows(problem: Problem, part: int, parts: int) -> int:
    """How many rows have a number that leaves the rest `part` when divided by `parts`."""
    return (problem.n_rows - part + parts - 1) // parts
