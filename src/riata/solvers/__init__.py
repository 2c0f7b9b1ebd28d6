"""The algorithms, one file each, and their names."""

from __future__ import annotations

from riata.errors import InvalidArgument
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.sets import PolytopeSet, SparseBall
from riata.solvers.frank_wolfe import FrankWolfe
from riata.solvers.gaussian_frank_wolfe import GaussianFrankWolfe
from riata.solvers.hard_thresholding import HardThresholding, PrivateHardThresholding
from riata.solvers.noisy_gradient import NoisyGradient
from riata.solvers.objective_perturbation import PerturbedObjective
from riata.solvers.peeling import PrivatePeeling
from riata.solvers.plan import Callback, Plan, Solution, Solver, Step
from riata.solvers.posterior_sampling import PosteriorSampling
from riata.solvers.private_frank_wolfe import PrivateFrankWolfe
from riata.solvers.projected import Projected

#: The solvers that can be asked for by name.
SOLVERS: dict[str, type[Solver]] = {
    kind.name: kind
    for kind in (
        PrivateFrankWolfe,
        GaussianFrankWolfe,
        NoisyGradient,
        PerturbedObjective,
        PrivateHardThresholding,
        PrivatePeeling,
        Projected,
        PosteriorSampling,
    )
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
        return _automatic(problem, budget)(steps)  # type: ignore[call-arg]
    if solver not in SOLVERS:
        raise InvalidArgument(
            f"solver={solver!r} is not known. Use one of {['auto', *SOLVERS]} or a solver object."
        )
    return SOLVERS[solver](steps)  # type: ignore[call-arg]


def _automatic(problem: Problem, budget: Budget) -> type[Solver]:
    """What docs/choose.md recommends, from the set, the norm of the bounds and the budget."""
    sparse, in_l2 = isinstance(problem.set, SparseBall), problem.bounds.norm == "l2"
    if budget.epsilon == float("inf"):
        return HardThresholding if sparse else FrankWolfe
    if sparse:
        return PrivateHardThresholding if in_l2 and budget.delta > 0 else PrivatePeeling
    if in_l2 and budget.delta > 0:
        return NoisyGradient
    if isinstance(problem.set, PolytopeSet):
        return PrivateFrankWolfe
    return GaussianFrankWolfe if budget.delta > 0 else PerturbedObjective


__all__ = [
    "SOLVERS",
    "Callback",
    "FrankWolfe",
    "GaussianFrankWolfe",
    "HardThresholding",
    "NoisyGradient",
    "PerturbedObjective",
    "Plan",
    "PosteriorSampling",
    "PrivateFrankWolfe",
    "PrivateHardThresholding",
    "PrivatePeeling",
    "Projected",
    "Solution",
    "Solver",
    "Step",
    "choose_solver",
]
