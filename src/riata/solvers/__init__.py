"""The algorithms, one file each, and their names."""

from __future__ import annotations

from riata.errors import InvalidArgument
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.sets import PolytopeSet
from riata.solvers.frank_wolfe import FrankWolfe
from riata.solvers.gaussian_frank_wolfe import GaussianFrankWolfe
from riata.solvers.plan import Callback, Plan, Solution, Solver, Step
from riata.solvers.private_frank_wolfe import PrivateFrankWolfe

#: The solvers that can be asked for by name.
SOLVERS: dict[str, type[Solver]] = {
    PrivateFrankWolfe.name: PrivateFrankWolfe,
    GaussianFrankWolfe.name: GaussianFrankWolfe,
}


def choose_solver(
    solver: str | Solver, problem: Problem, budget: Budget, steps: int | str
) -> Solver:
    """The solver object that a name stands for; "auto" decides from public facts alone."""
    if isinstance(solver, Solver):
        if steps != "auto":
            raise InvalidArgument(
                f"steps={steps!r} is given twice: a solver object has its own. "
                f"Write {type(solver).__name__}(steps=...) and leave steps out."
            )
        return solver
    if solver == "auto":
        if budget.epsilon == float("inf"):
            return FrankWolfe(steps)
        solver = "frank-wolfe" if isinstance(problem.set, PolytopeSet) else "gaussian-frank-wolfe"
    if solver not in SOLVERS:
        raise InvalidArgument(
            f"solver={solver!r} is not known. Use one of {['auto', *SOLVERS]} or a solver object."
        )
    return SOLVERS[solver](steps)  # type: ignore[call-arg]


__all__ = [
    "SOLVERS",
    "Callback",
    "FrankWolfe",
    "GaussianFrankWolfe",
    "Plan",
    "PrivateFrankWolfe",
    "Solution",
    "Solver",
    "Step",
    "choose_solver",
]
