"""The algorithms, one file each, and their names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from riata.errors import Incompatible, InvalidArgument
from riata.losses import NuisanceLoss, Weighted
from riata.privacy.budget import REPLACE_LABEL, Budget
from riata.problem import Problem
from riata.registry import Registry
from riata.sets import PolytopeSet
from riata.solvers.averaged_gradient import AveragedGradient
from riata.solvers.class_sums import ClassSums
from riata.solvers.defaults import (
    ALL_COLUMNS,
    COLUMNS_OF_A_CLASS,
    FEW_COLUMNS,
    FEW_ROWS,
    FEW_ROWS_MEASURED,
    FEW_ROWS_OF_CLASSES,
    FEW_ROWS_OF_CLASSES_MEASURED,
    MANY_COLUMNS,
    PURE_COLUMNS,
    SEARCHED,
    UNSEARCHABLE,
    WHITENED_COLUMNS,
    WHITENED_ENTRIES,
)
from riata.solvers.frank_wolfe import FrankWolfe
from riata.solvers.gaussian_frank_wolfe import GaussianFrankWolfe
from riata.solvers.greedy import PrivateGreedy
from riata.solvers.hard_thresholding import HardThresholding, PrivateHardThresholding
from riata.solvers.joint_class_sums import JointClassSums
from riata.solvers.noisy_gradient import NoisyGradient
from riata.solvers.objective_perturbation import PerturbedObjective
from riata.solvers.peeling import PrivatePeeling
from riata.solvers.plan import Plan, Solver
from riata.solvers.posterior_sampling import PosteriorSampling
from riata.solvers.private_frank_wolfe import PrivateFrankWolfe
from riata.solvers.profile_gradient import ProfileGradient
from riata.solvers.projected import Projected
from riata.solvers.public_design import PublicDesign
from riata.solvers.refitted_frank_wolfe import RefittedFrankWolfe
from riata.solvers.scaled_gradient import ScaledGradient
from riata.solvers.softmax_gradient import SoftmaxDescent
from riata.solvers.solution import Callback, Fit, Solution, Step
from riata.solvers.sufficient_statistics import SufficientStatistics
from riata.solvers.whitened_gradient import WhitenedGradient
from riata.solvers.whitened_shares import whole_strength
from riata.wording import did_you_mean


@dataclass(frozen=True)
class Rule:
    """A line of the table in docs/choose.md: when a solver is taken, and why."""

    solver: type[Solver]
    when: Callable[[Problem, Budget], bool]
    because: str


def _without_privacy(problem: Problem, budget: Budget) -> bool:
    return budget.epsilon == float("inf")


def _in_l2(problem: Problem, budget: Budget) -> bool:
    return problem.gradient_bounds.favours_gradients and budget.delta > 0


def _sparse(problem: Problem, budget: Budget) -> bool:
    return problem.set.max_nonzeros is not None


def _ball(problem: Problem) -> bool:
    return problem.set.supports_refit and problem.set.convex


def _many_columns(problem: Problem) -> bool:
    return problem.n_features > MANY_COLUMNS * problem.n_rows


def _few_columns(problem: Problem, budget: Budget) -> bool:
    return (
        problem.n_features <= FEW_COLUMNS * (problem.n_rows * min(budget.row_epsilon, 1.0)) ** 0.5
    )


def _few_for_classes(problem: Problem) -> bool:
    return problem.n_features <= COLUMNS_OF_A_CLASS * problem.loss.n_margins


def _takes_all(problem: Problem, budget: Budget) -> bool:
    """Whether all columns are fitted by Gaussian releases, whatever bounds rows have."""
    p = problem.n_features
    private = not _without_privacy(problem, budget) and budget.delta > 0
    if not (private and _ball(problem)) or isinstance(problem.loss, Weighted):
        return False  # clipping would make the slopes of weighted classes alike
    if _in_l2(problem, budget):
        return p <= WHITENED_COLUMNS
    return p <= WHITENED_ENTRIES and not _searched(problem, budget)


def _searched(problem: Problem, budget: Budget) -> bool:
    """Whether rows are so many that a search finds columns, and so few that it does better."""
    p, rows, (least, most) = problem.n_features, problem.n_rows * budget.row_epsilon, SEARCHED
    return p > ALL_COLUMNS and not problem.loss.classifies and least * p <= rows < most * p


def _by_pure_gradients(problem: Problem, budget: Budget) -> bool:
    """Whether gradients with Laplace noise beat second moments and searches with it."""
    p, short = problem.n_features, problem.gradient_bounds.favours_gradients
    if budget.delta > 0 or not _ball(problem) or isinstance(problem.loss, Weighted):
        return False
    if p > WHITENED_ENTRIES or (not short and _searched(problem, budget)):
        return False
    measured = p * (1 + problem.loss.classifies)  # whose curvature is measured again and again
    return measured > PURE_COLUMNS * (problem.n_rows * budget.row_epsilon) ** 0.5


def _few_rows(problem: Problem, budget: Budget) -> bool:
    numbers, classes = FEW_ROWS, FEW_ROWS_OF_CLASSES
    if problem.loss.measured_curvature:
        numbers, classes = FEW_ROWS_MEASURED, FEW_ROWS_OF_CLASSES_MEASURED
    least = classes if problem.loss.classifies else numbers
    return whole_strength(problem, budget) < least * problem.n_features**0.5


def _few_nonnegative(problem: Problem, budget: Budget) -> bool:
    """Whether labels' rows, with entries that may often be 0, are too few for a search."""
    labelled = problem.bounds.nonnegative and problem.loss.classifies
    if _without_privacy(problem, budget) or budget.delta == 0 or not labelled:
        return False
    few = whole_strength(problem, budget) < UNSEARCHABLE * problem.n_features**0.5
    return _ball(problem) and few


#: The same where rows are public and targets secret. If no line applies, `RULES` do.
LABEL_RULES = (
    Rule(
        PublicDesign,
        lambda p, b: p.adjacency == REPLACE_LABEL and not _without_privacy(p, b),
        "rows are public, and targets are read by one sum of rows times targets",
    ),
)

#: What "auto" stands for: the first line that applies. From public facts alone.
RULES = (
    Rule(
        HardThresholding, lambda p, b: _without_privacy(p, b) and _sparse(p, b),
        "epsilon is infinite, so nothing is protected",
    ),
    Rule(FrankWolfe, _without_privacy, "epsilon is infinite, so nothing is protected"),
    Rule(
        PrivateGreedy, lambda p, b: _sparse(p, b) and _in_l2(p, b),
        "the number of coefficients is given: that many columns are selected and refitted",
    ),
    Rule(
        ClassSums,
        lambda p, b: (
            _in_l2(p, b) and _ball(p) and _many_columns(p)
            and p.bounds.nonnegative and p.loss.classifies
        ),
        "rows are not negative and have a bound on their length, and columns are too many to be "
        "measured one by one, as words are",
    ),
    Rule(
        AveragedGradient,
        lambda p, b: _in_l2(p, b) and _takes_all(p, b) and _few_rows(p, b),
        "the rows have a bound on their length and are so few for the columns and the budget that "
        "noise hides correlations, and gradients are all that is measured",
    ),
    Rule(
        WhitenedGradient, lambda p, b: _in_l2(p, b) and _takes_all(p, b),
        "the rows have a bound on their length and so few columns that their correlations are "
        "measured first",
    ),
    Rule(
        ScaledGradient,
        lambda p, b: (
            _in_l2(p, b) and _ball(p) and not (p.loss.classifies and _many_columns(p))
        ),
        "the rows have a bound on their length, and columns that stand out are measured and scaled "
        "first",
    ),
    Rule(
        NoisyGradient, _in_l2,
        "the rows have a bound on their length, so noise on whole gradients is short",
    ),
    Rule(
        AveragedGradient, lambda p, b: _takes_all(p, b) and _few_rows(p, b),
        "there are so few columns that all of them are fitted, and so few rows that noise hides "
        "correlations, and gradients are all that is measured",
    ),
    Rule(
        WhitenedGradient, _takes_all,
        "there are so few columns that all of them are fitted, and their correlations are measured "
        "first",
    ),
    Rule(
        ScaledGradient, _few_nonnegative,
        "the rows are not negative and so few that a search finds no columns, and how long they "
        "are is measured",
    ),
    Rule(
        AveragedGradient, _by_pure_gradients,
        "delta is 0, and the columns are so few that all of them are fitted, and too many for "
        "second moments with Laplace noise",
    ),
    Rule(
        SufficientStatistics,
        lambda p, b: _ball(p) and _few_columns(p, b),
        "there are so few columns for this number of rows that all of them can be fitted",
    ),
    Rule(
        PrivateGreedy, lambda p, b: p.set.supports_refit,
        "a few columns are found one by one and fitted well, with noise that hardly grows with "
        "the number of all columns",
    ),
    Rule(
        PrivateFrankWolfe, lambda p, b: isinstance(p.set, PolytopeSet),
        "the set has vertices, and one is selected at a time",
    ),
    Rule(
        GaussianFrankWolfe, lambda p, b: b.delta > 0,
        "the set has no vertices, and noise is added to gradients",
    ),
    Rule(
        PerturbedObjective, lambda p, b: True,
        "the set has no vertices and delta is 0",
    ),
)  # fmt: skip

#: The same for three classes or more, fitted together. If no line applies, each class is fitted
#: against the rest, by `RULES`.
JOINT_RULES = (
    Rule(
        JointClassSums,
        lambda p, b: _in_l2(p, b) and _ball(p) and _many_columns(p) and p.bounds.nonnegative,
        "rows are not negative and have a bound on their length, and columns are too many to be "
        "measured one by one, as words are; the sums of all classes are one release",
    ),
    Rule(
        SoftmaxDescent,
        lambda p, b: b.delta > 0 and _ball(p) and (_in_l2(p, b) or _few_for_classes(p)),
        "the gradients of all classes are one release, on columns that are measured and scaled "
        "first",
    ),
)  # fmt: skip


def joint_rule_for(problem: Problem, budget: Budget) -> Rule | None:
    """The line of `JOINT_RULES` that applies, if one does."""
    for rule in JOINT_RULES:
        if rule.when(problem, budget) and _accepts(rule.solver(), problem, budget):
            return rule
    return None


#: For losses and sets that say so little about themselves that no line above accepts them.
FALLBACK = Rule(NoisyGradient, lambda p, b: p.set.convex, "it asks nothing of a loss and a set")


#: For losses with nuisance parameters, which no line above fits.
NUISANCE = Rule(
    ProfileGradient, lambda p, b: isinstance(p.loss, NuisanceLoss),
    "the loss has parameters beside the model, which follow from tables of their own",
)  # fmt: skip


def rule_for(problem: Problem, budget: Budget) -> Rule:
    """The line of the table that "auto" goes by: the first whose solver accepts the problem."""
    if NUISANCE.when(problem, budget):
        return NUISANCE
    for rule in LABEL_RULES:
        if rule.when(problem, budget) and _accepts(rule.solver(), problem, budget):
            return rule
    apply = [rule for rule in (*RULES, FALLBACK) if rule.when(problem, budget)]
    accepted = (rule for rule in apply if _accepts(rule.solver(), problem, budget))
    return next(accepted, apply[0])  # if there is none, the first says why it refuses


def _accepts(solver: Solver, problem: Problem, budget: Budget) -> bool:
    try:
        solver.check(problem, budget)
    except Incompatible:
        return False
    return True


def choose_solver(
    solver: str | Solver, problem: Problem, budget: Budget, steps: int | str
) -> Solver:
    """The solver object that a name stands for; "auto" decides by `RULES`."""
    if isinstance(solver, Solver):
        if steps != "auto":
            raise InvalidArgument(
                f"steps={steps!r} is given twice: a solver object has its own. "
                f"Write {type(solver).__name__}(steps=...) and leave steps out."
            )
        return solver
    if solver == "auto":
        return rule_for(problem, budget).solver(steps=steps)
    if solver not in SOLVERS:
        raise InvalidArgument(
            f"solver={solver!r} is not known.{did_you_mean(solver, SOLVERS)} Use one of "
            f"{', '.join(['auto', *SOLVERS])}; in Python also a solver object."
        )
    return SOLVERS[solver](steps=steps)


__all__ = [
    "JOINT_RULES",
    "LABEL_RULES",
    "RULES",
    "SOLVERS",
    "AveragedGradient",
    "Callback",
    "ClassSums",
    "Fit",
    "FrankWolfe",
    "GaussianFrankWolfe",
    "HardThresholding",
    "JointClassSums",
    "NoisyGradient",
    "PerturbedObjective",
    "Plan",
    "PosteriorSampling",
    "PrivateFrankWolfe",
    "PrivateGreedy",
    "PrivateHardThresholding",
    "PrivatePeeling",
    "ProfileGradient",
    "Projected",
    "PublicDesign",
    "RefittedFrankWolfe",
    "Rule",
    "ScaledGradient",
    "SoftmaxDescent",
    "Solution",
    "Solver",
    "Step",
    "SufficientStatistics",
    "WhitenedGradient",
    "choose_solver",
    "joint_rule_for",
    "rule_for",
]

#: All of them, for whoever needs a list.
REGISTRY: Registry[Solver] = Registry(Solver, __name__)

#: The solvers that can be asked for by name.
SOLVERS: dict[str, type[Solver]] = {kind.name: kind for kind in REGISTRY.values() if kind.private}
