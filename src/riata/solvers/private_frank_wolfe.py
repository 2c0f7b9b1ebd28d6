"""Algorithm 2 of Talwar, Thakurta and Zhang (2015): private Frank-Wolfe over a polytope."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.special import lambertw

from riata.curator import Curator
from riata.errors import InvalidArgument
from riata.mechanisms import (
    CompiledSelections,
    ExponentialMechanism,
    Mechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    Selection,
)
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.queries import FrankWolfePath, vertex_utilities
from riata.sets import PolytopeSet
from riata.solvers.intercept import Intercept
from riata.solvers.noisy_frank_wolfe import NoisyFrankWolfe
from riata.solvers.plan import Plan, count_steps
from riata.solvers.requirements import vertices
from riata.solvers.solution import Callback, Solution, Step
from riata.solvers.step_count import step_size
from riata.vectors import Vector

#: Compiled code tells its progress after steps that touch about this many rows, and so often.
_ROWS_AT_ONCE, _MOST_PIECES = 2**27, 16

SELECTIONS: dict[str, type[Selection]] = {
    "exponential": ExponentialMechanism,
    "permute-and-flip": PermuteAndFlip,
    "laplace": ReportNoisyMax,
}


@dataclass(frozen=True)
class PrivateFrankWolfe(NoisyFrankWolfe):
    """Private Frank-Wolfe over a polytope.

    Each step selects one vertex of the set privately and moves towards it, so over the l1 ball the
    model has at most as many non-zeros as steps, and the error grows with the logarithm of the
    number of vertices.

    Parameters
    ----------
    steps : int or "auto", default="auto"
        "auto" takes the number that an explicit bound recommends. Public either way.
    selection : {"auto", "exponential", "permute-and-flip", "laplace"}, default="auto"
        How a vertex is selected. "auto" is the exponential mechanism where delta is positive and
        permute-and-flip under pure differential privacy.

    Notes
    -----
    *Privacy.* The rows are read once a step, by the selection, and once more if there is an
    intercept, by one noisy number. The selection's noise is scaled to what one row can change at
    the current, already public iterate.

    *Differences from the paper.* The exponential mechanism in place of Laplace noise: it
    composes better. The noise of the whole run comes from the accountant: of the printed Laplace
    scale it is proven that it costs at most 1.09 where 1 is claimed (T = 464, delta = 1e-6). The
    sensitivity is 2 L_1 ||C||_1 / n, with L_1 taken at the iterate. The number of steps is
    explicit, and far smaller than the printed order of magnitude. A straight loss takes steps of
    1, which leave nothing on the start.

    References
    ----------
    Talwar, Thakurta, Zhang (2015). Nearly-optimal private LASSO. Algorithm 2, Theorem 2.5.
    """

    selection: str = "auto"

    name = "frank-wolfe"
    role = "select"
    requirements = (vertices,)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.selection not in ("auto", *SELECTIONS):
            raise InvalidArgument(
                f"selection={self.selection!r} is not known. Use one of {['auto', *SELECTIONS]}."
            )

    def oracle(self, strength: float, budget: Budget) -> Mechanism:
        default = "exponential" if budget.delta > 0 else "permute-and-flip"
        return SELECTIONS[default if self.selection == "auto" else self.selection](strength)

    def oracle_error(self, problem: Problem, mechanism: Mechanism) -> float:
        assert isinstance(problem.set, PolytopeSet)
        assert isinstance(mechanism, Selection)
        sensitivity = problem.worst_sensitivity(problem.set.reach(problem.gradient_bounds))
        tail = math.log(problem.set.n_vertices) + isinstance(mechanism, ReportNoisyMax)
        return 2 * sensitivity / mechanism.epsilon * max(tail, math.log(2))

    def error_tail(self, problem: Problem, mechanism: Mechanism) -> tuple[float, float, bool]:
        assert isinstance(problem.set, PolytopeSet)
        assert isinstance(mechanism, Selection)
        sensitivity = problem.worst_sensitivity(problem.set.reach(problem.bounds))
        scale = 2 * sensitivity / mechanism.epsilon
        if isinstance(mechanism, ReportNoisyMax):  # noise on both sides
            scale *= 2
        return scale * math.log(problem.set.n_vertices), scale, True

    def least_oracle_error(self, problem: Problem, mechanism: Mechanism) -> float:
        """The exponential mechanism's largest expected error, which equal gaps attain."""
        assert isinstance(problem.set, PolytopeSet)
        error = self.oracle_error(problem, mechanism)
        if isinstance(mechanism, ReportNoisyMax):
            return error
        k = max(problem.set.n_vertices, 2)
        return error * float(lambertw((k - 1) / math.e).real) / math.log(k)

    def run(
        self, plan: Plan, problem: Problem, curator: Curator, callback: Callback | None = None
    ) -> Solution:
        """Algorithm 2, line by line, or all of it in compiled code where that is quicker."""
        path = self._path(plan, problem, curator)
        if path is not None:
            return self._compiled(path, plan, curator, callback)
        C, theta = cast(PolytopeSet, problem.set), problem.set.start()  # line 1
        intercept, taken = Intercept(plan, problem, curator), []
        for t in count_steps(plan.steps, callback):  # line 2
            scores = vertex_utilities(problem, theta)  # line 3: -<s, grad L(theta_t)>, unevaluated
            s = C.vertex(curator.release(scores, plan["select"]))  # lines 3-4: the one data access
            taken.append(s)
            b = intercept.descend(theta, intercept.slope(theta), t)
            theta = theta.toward(s, step_size(problem, t)).with_offset(b)  # line 5
        theta = theta.with_offset(intercept.average)
        return Solution(theta, plan.steps, selected=_columns(taken))  # line 6

    def _path(self, plan: Plan, problem: Problem, curator: Curator) -> FrankWolfePath | None:
        """The loop as one query, if it is to be taken at once."""
        select = plan["select"]
        if problem.fit_intercept or not isinstance(select, ExponentialMechanism):
            return None
        if step_size(problem, 1) == 1:  # the path is that of steps 2 / (t + 2)
            return None
        if not cast(PolytopeSet, problem.set).by_column or problem.loss.gradient_bounds is not None:
            return None
        path = FrankWolfePath(problem, plan.steps)
        return path if curator.compiles(path, select.epsilon) else None

    def _compiled(
        self, path: FrankWolfePath, plan: Plan, curator: Curator, callback: Callback | None
    ) -> Solution:
        """The same loop: lines 2 to 5 for several steps at a time."""
        select = cast(ExponentialMechanism, plan["select"])
        at_once = max(1, _ROWS_AT_ONCE // path.n_rows, plan.steps // _MOST_PIECES)
        chosen = np.empty(0, dtype=np.int64)
        while len(chosen) < plan.steps:
            some = CompiledSelections(select, min(at_once, plan.steps - len(chosen)), chosen)
            chosen = np.append(chosen, curator.release(path, some))
            if callback is not None:
                for t in range(len(chosen) - some.steps, len(chosen)):
                    callback(Step(t + 1, plan.steps))
        columns = (chosen % path.polytope.required_size()).tolist()
        return Solution(path.theta(chosen), plan.steps, selected=tuple(dict.fromkeys(columns)))


def _columns(vertices: list[Vector]) -> tuple[int, ...]:
    """The columns of vertices that have one each, in order; nothing if some have more."""
    if any(len(vertex.support) != 1 for vertex in vertices):
        return ()
    return tuple(dict.fromkeys(int(vertex.support[0]) for vertex in vertices))
