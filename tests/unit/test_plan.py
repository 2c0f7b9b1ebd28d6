"""Plans: everything fixed from public facts, and the whole budget spent."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest

from riata import (
    Bounds,
    Budget,
    HeavyTailedRegression,
    Ledger,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSparseRegression,
    ProjectedClassifier,
    ProjectedRegression,
)
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import BudgetExceeded, Incompatible, InvalidArgument
from riata.estimators.classifier import L1_RADIUS, L2_RADIUS
from riata.losses import (
    Huber,
    Logistic,
    OneAgainstRest,
    SmoothedHinge,
    Softmax,
    Squared,
    Weighted,
)
from riata.mechanisms import (
    Exact,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
)
from riata.mechanisms.noise import Noise
from riata.privacy.accountants import ZcdpAccountant, spent
from riata.privacy.calibrate import calibrate
from riata.privacy.events import ZeroConcentrated, leaves
from riata.problem import Problem
from riata.projections import GivenProjection
from riata.queries import VertexUtilities
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, Simplex, SparseBall
from riata.solvers import (
    SOLVERS,
    AveragedGradient,
    ClassSums,
    FrankWolfe,
    GaussianFrankWolfe,
    HardThresholding,
    NoisyGradient,
    PerturbedObjective,
    PosteriorSampling,
    PrivateFrankWolfe,
    PrivateGreedy,
    PrivateHardThresholding,
    PrivatePeeling,
    Projected,
    ScaledGradient,
    SufficientStatistics,
    WhitenedGradient,
    choose_solver,
)
from riata.solvers.projected import MOST_NUMBERS, theorem_dimension
from riata.solvers.step_count import MOST_STEPS, STEPS_BELOW_BOUND, zero_risk

pytestmark = pytest.mark.matrix(one_in=13)

UNIT = Bounds(x=1.0, y=1.0)
LENGTH = Bounds(x=1.0, y=1.0, norm="l2")
INF = float("inf")
WORDS = Bounds(1.0, 1.0, norm="l2", nonnegative=True)
FLAGS = Bounds(1.0, 1.0, nonnegative=True)


def unit_lasso(n=10_000, p=1_000, intercept=False, **changes):
    facts = {"loss": Squared(), "set": L1Ball(1.0), "bounds": UNIT, "n_rows": n, "n_features": p}
    return Problem(**(facts | changes), fit_intercept=intercept)


# the problem's public facts


def test_the_curvature_of_the_unit_lasso_is_8():
    assert unit_lasso().curvature == 8.0
    # Attained: X all ones, y = 0. The risk is (sum theta)^2 and its curvature between two
    # opposite vertices is 2 * (1 - (-1))^2.
    assert unit_lasso(set=L1Ball(3.0)).curvature == 8.0 * 9


def test_the_worst_sensitivity_of_the_unit_lasso_is_8_over_n():
    problem = unit_lasso(n=500)
    assert problem.slope_bound == 4.0
    assert problem.worst_sensitivity(problem.set.reach(UNIT)) == pytest.approx(8 / 500, rel=1e-15)
    one_sided = unit_lasso(n=500, adjacency="add-remove")
    assert one_sided.worst_sensitivity(1.0) == pytest.approx(4 / 500, rel=1e-15)


@pytest.mark.parametrize(
    ("loss", "risk"),
    [
        (Squared(), 1.0),
        (Logistic(), math.log(2)),
        (Weighted(OneAgainstRest(Logistic(), 1), (0.5, 0.2, 7.0)), 7 * math.log(2)),
        (Softmax(5), math.log(5)),
        (Weighted(Softmax(3), (2.0, 1.0, 0.5)), 2 * math.log(3)),
    ],
    ids=repr,
)
def test_the_risk_of_the_zero_model_is_that_of_the_worst_rows(loss, risk):
    """Each class and both signs of y count: the largest weight need not be the first one's."""
    assert zero_risk(unit_lasso(loss=loss, set=L2Ball(100.0))) == pytest.approx(risk, rel=1e-12)
    narrow = unit_lasso(loss=loss, set=L1Ball(1e-6))
    assert zero_risk(narrow) == narrow.worst_excess_risk < risk


@pytest.mark.parametrize("solver", ["greedy", "refitted-frank-wolfe", "sufficient-statistics"])
def test_the_risk_of_a_refit_does_not_depend_on_the_order_of_the_classes(solver):
    def risk(weights):
        model = PrivateLogisticRegression(
            1.0, 1e-6, bounds=UNIT, classes=[0, 1], class_weight=weights, solver=solver
        )
        return model.plan(n_rows=10_000, n_features=20).excess_risk

    assert risk({0: 1, 1: 20}) == risk({0: 20, 1: 1}) > 1


def test_the_worst_sensitivity_is_attained_by_an_explicit_pair():
    # At theta = e_1 the rows (1, 1) and (1, -1), both with y = -1, have slope 4: the score of the
    # second vertex is 4/n for one and -4/n for the other.
    n = 50
    problem = unit_lasso(n=n, p=2)
    vertex = problem.set.vertex(0)
    query = VertexUtilities(problem, vertex)
    rows = np.zeros((n, 2))
    rows[0] = [1.0, 1.0]
    neighbour = rows.copy()
    neighbour[0] = [1.0, -1.0]
    targets = np.zeros(n)
    targets[0] = -1.0
    ours, theirs = (
        query.from_total(LocalEngine(x, targets, UNIT).total(query)) for x in (rows, neighbour)
    )
    assert np.abs(ours - theirs).max() == pytest.approx(8 / n, rel=1e-12)
    assert query.sensitivity("linf") == pytest.approx(8 / n, rel=1e-12)


def test_an_intercept_widens_the_margins_that_sensitivity_counts_with():
    without, with_it = unit_lasso(), unit_lasso(intercept=True)
    assert without.margin_bound == 1.0
    assert with_it.margin_bound == 2.0
    assert with_it.slope_bound == 6.0


@pytest.mark.parametrize(("n", "p"), [(0, 5), (-1, 5), (5, 0)])
def test_a_problem_needs_rows_and_columns(n, p):
    with pytest.raises(InvalidArgument, match="at least 1"):
        unit_lasso(n=n, p=p)


def test_a_problem_needs_a_bound_on_y_and_a_known_adjacency():
    with pytest.raises(InvalidArgument, match="y"):
        unit_lasso(bounds=Bounds(1.0))
    with pytest.raises(InvalidArgument, match="adjacency"):
        unit_lasso(adjacency="swap")
    with pytest.raises(InvalidArgument, match="columns"):
        unit_lasso(p=3, bounds=Bounds([1.0, 1.0], 1.0))
    with pytest.raises(InvalidArgument, match="columns"):
        unit_lasso(p=3, set=L1Ball(1.0, 4))


# planning spends exactly the budget

PROBLEMS = {
    "unit lasso": unit_lasso(),
    "lasso with intercept": unit_lasso(intercept=True),
    "small": unit_lasso(n=50, p=3, intercept=True),
    "one column": unit_lasso(n=1_000, p=1),
    "huber over the simplex": unit_lasso(loss=Huber(0.2), set=Simplex(2.0)),
    "logistic": unit_lasso(loss=Logistic(), intercept=True),
    "hinge over a polytope": unit_lasso(p=2, loss=SmoothedHinge(), set=Polytope(np.eye(2))),
    "l2 rows": unit_lasso(bounds=Bounds(1.0, 1.0, norm="l2"), set=L2Ball(1.0), intercept=True),
    "groups": unit_lasso(p=30, set=GroupL1Ball(3, 1.0)),
    "add-remove": unit_lasso(adjacency="add-remove"),
}


def solvers_for(problem, delta):
    vertices = hasattr(problem.set, "n_vertices")
    if vertices:
        yield PrivateFrankWolfe()
        yield PrivateFrankWolfe(steps=7)
        yield PrivateFrankWolfe(steps=7, selection="laplace")
        yield PrivateFrankWolfe(steps=7, selection="permute-and-flip")
        yield PrivateFrankWolfe(steps=7, selection="exponential")
    if delta > 0:
        yield GaussianFrankWolfe()
        yield GaussianFrankWolfe(steps=7)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS.keys())
def test_a_plan_spends_the_whole_budget_and_not_more(problem, delta):
    for solver in solvers_for(problem, delta):
        plan = solver.plan(problem, Budget(0.7, delta, problem.adjacency))
        assert 0.7 * (1 - 1e-9) <= plan.spent.epsilon <= 0.7
        assert plan.spent == spent(plan.event, delta)
        assert plan.spent.delta == delta


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0, 1e4])
def test_a_plan_spends_small_and_large_budgets(epsilon):
    for problem in (unit_lasso(), unit_lasso(intercept=True)):
        plan = PrivateFrankWolfe().plan(problem, Budget(epsilon, 1e-6))
        assert epsilon * (1 - 1e-9) <= plan.spent.epsilon <= epsilon


@pytest.mark.parametrize("solver", [PrivateFrankWolfe(steps=9), GaussianFrankWolfe(steps=9)])
def test_several_fits_share_one_budget(solver):
    problem, budget = unit_lasso(intercept=True), Budget(1.0, 1e-6)
    one, five = solver.plan(problem, budget), solver.plan(problem, budget, fits=5)
    assert sum(leaves(one.event).values()) == 2 * 9
    assert sum(leaves(five.event).values()) == 5 * 2 * 9
    assert five.steps == 9
    for plan in (one, five):
        assert 1 - 1e-9 <= plan.spent.epsilon <= 1
    # Five fits compose like one fit of five times the steps.
    longer = type(solver)(steps=45).plan(problem, budget)
    assert leaves(longer.event) == leaves(five.event)


def test_classes_beyond_two_are_fits_that_share_the_budget():
    model = PrivateLogisticRegression(
        1.0, 1e-6, bounds=Bounds(1.0), classes=list("abcd"), solver="frank-wolfe", steps=6
    )
    plan = model.plan(1_000, 10)
    assert plan.fits == 4
    assert 1 - 1e-9 <= plan.spent.epsilon <= 1
    assert isinstance(plan.problem.loss, OneAgainstRest)
    two = PrivateLogisticRegression(1.0, 1e-6, bounds=Bounds(1.0), classes=[0, 1], steps=6)
    assert two.plan(1_000, 10).fits == 1


def test_the_intercept_gets_a_tenth_of_the_budget():
    plan = PrivateFrankWolfe(steps=20).plan(unit_lasso(intercept=True), Budget(1.0, 1e-6))
    rho = {role: ZcdpAccountant().rho(m.event) for role, m in plan.mechanisms.items()}
    assert rho["intercept"] / (rho["intercept"] + rho["select"]) == pytest.approx(0.1)
    assert isinstance(plan["intercept"], GaussianMechanism)
    pure = PrivateFrankWolfe(steps=20).plan(unit_lasso(intercept=True), Budget(1.0, 0.0))
    assert isinstance(pure["intercept"], LaplaceMechanism)
    assert pure["intercept"].epsilon == pytest.approx(0.1 / 20, rel=1e-9)
    assert pure["select"].epsilon == pytest.approx(0.9 / 20, rel=1e-9)


# steps


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("p", [20, 1_000, 50_000])
@pytest.mark.parametrize("n", [3_000, 100_000, 3_000_000])
def test_auto_steps_follow_the_explicit_rule(n, p, epsilon):
    budget = Budget(epsilon, 1e-6)
    steps = PrivateFrankWolfe().plan(unit_lasso(n=n, p=p), budget).steps
    rho = calibrate(ZeroConcentrated, budget)
    rule = (n * math.sqrt(8 * rho) / (4 * math.log(2 * p))) ** (2 / 3)
    # The bound's own minimum is 4 times the rule; the plan declares by how much it stays below it.
    declared = rule * 4 / STEPS_BELOW_BOUND
    assert declared / 1.5 <= steps <= declared * 1.5 + 1
    assert rule / 2.5 <= steps <= rule * 1.5 + 1


def test_auto_steps_grow_with_rows_and_budget_and_shrink_with_columns():
    def steps(n=10_000, p=1_000, epsilon=1.0, delta=1e-6):
        return PrivateFrankWolfe().plan(unit_lasso(n=n, p=p), Budget(epsilon, delta)).steps

    assert steps(n=1_000) < steps() < steps(n=100_000)
    assert steps(p=100_000) < steps() < steps(p=10)
    assert steps(epsilon=0.1) < steps() < steps(epsilon=10.0)
    assert steps(delta=0.0) < steps()


def test_auto_steps_have_a_floor_and_a_ceiling():
    assert PrivateFrankWolfe().plan(unit_lasso(n=2), Budget(0.01, 1e-6)).steps == 1
    most = PrivateFrankWolfe().plan(unit_lasso(n=10**9, p=2), Budget(10.0, 1e-6))
    assert most.steps == MOST_STEPS


@pytest.mark.parametrize("steps", [1, 3, 250, 10.0, np.int64(40), np.float64(40.0)])
def test_explicit_steps_are_respected(steps):
    for solver in (PrivateFrankWolfe(steps), GaussianFrankWolfe(steps)):
        plan = solver.plan(unit_lasso(), Budget(1.0, 1e-6))
        assert plan.steps == steps
        assert type(plan.steps) is int
    assert FrankWolfe(steps).plan(unit_lasso(), Budget(INF, 1e-6)).steps == steps


@pytest.mark.parametrize("steps", [0, -1, 2.5, "many", None, True, INF, float("nan"), [3]])
@pytest.mark.parametrize("solver", [PrivateFrankWolfe, GaussianFrankWolfe, FrankWolfe])
def test_bad_steps_are_refused(solver, steps):
    with pytest.raises(InvalidArgument, match="steps"):
        solver(steps=steps)


# which mechanism


def test_pure_budgets_select_by_permute_and_flip():
    plan = PrivateFrankWolfe(steps=10).plan(unit_lasso(), Budget(1.0, 0.0))
    assert isinstance(plan["select"], PermuteAndFlip)
    assert plan["select"].epsilon == pytest.approx(0.1, rel=1e-9)
    assert plan.spent.accountant == "pure composition"


def test_approximate_budgets_select_by_the_exponential_mechanism():
    plan = PrivateFrankWolfe(steps=10).plan(unit_lasso(), Budget(1.0, 1e-6))
    assert isinstance(plan["select"], ExponentialMechanism)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("exponential", ExponentialMechanism),
        ("permute-and-flip", PermuteAndFlip),
        ("laplace", ReportNoisyMax),
    ],
)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("intercept", [False, True])
def test_a_named_selection_is_used_whatever_the_delta(name, kind, delta, intercept):
    problem = unit_lasso(intercept=intercept)
    plan = PrivateFrankWolfe(steps=10, selection=name).plan(problem, Budget(1.0, delta))
    assert isinstance(plan["select"], kind)
    assert 1 - 1e-9 <= plan.spent.epsilon <= 1


def test_the_exponential_mechanism_is_stronger_than_the_others_in_the_same_budget():
    strength = {
        name: PrivateFrankWolfe(steps=100, selection=name)
        .plan(unit_lasso(), Budget(1.0, 1e-6))["select"]
        .epsilon
        for name in ("exponential", "laplace", "permute-and-flip")
    }
    assert 1.4 > strength["exponential"] / strength["laplace"] > 1.25
    assert strength["exponential"] > 1.9 * strength["permute-and-flip"]


def test_an_unknown_selection_is_refused():
    with pytest.raises(InvalidArgument, match="selection"):
        PrivateFrankWolfe(selection="best")


@pytest.mark.parametrize(
    ("problem", "epsilon", "kind"),
    [
        (unit_lasso(), 1.0, PrivateGreedy),
        (unit_lasso(p=100), 1.0, WhitenedGradient),  # a hundredth of 10,000
        (unit_lasso(p=33), 0.25, PrivateGreedy),
        (unit_lasso(p=33, loss=Logistic()), 0.3, AveragedGradient),
        (unit_lasso(p=33, loss=Logistic()), 4.0, WhitenedGradient),
        (unit_lasso(p=100, n=7_900), 0.1, AveragedGradient),  # less than 8 a column
        (unit_lasso(p=100, n=8_000), 0.1, PrivateGreedy),
        (unit_lasso(p=101), 1.0, PrivateGreedy),
        (unit_lasso(p=128), 4.0, WhitenedGradient),
        (unit_lasso(p=129), 4.0, PrivateGreedy),
        (unit_lasso(p=32), 0.25, WhitenedGradient),
        (unit_lasso(p=100, set=L2Ball(1.0)), 1.0, WhitenedGradient),
        (unit_lasso(p=100, set=Simplex(1.0)), 1.0, PrivateFrankWolfe),
        (unit_lasso(p=5, n=800), 1.0, WhitenedGradient),
        (unit_lasso(p=5, n=700), 1.0, AveragedGradient),
        (unit_lasso(p=5, n=800, loss=Logistic()), 1.0, AveragedGradient),
        (unit_lasso(bounds=FLAGS, n=3_000, loss=Logistic()), 1.0, ScaledGradient),
        (unit_lasso(bounds=FLAGS, n=4_000, loss=Logistic()), 1.0, PrivateGreedy),
        (unit_lasso(bounds=FLAGS, n=3_000), 1.0, PrivateGreedy),
        (unit_lasso(set=Simplex(1.0)), 1.0, PrivateFrankWolfe),
        (unit_lasso(set=L2Ball(1.0)), 1.0, PrivateGreedy),
        (unit_lasso(set=LpBall(1.3, 1.0)), 1.0, GaussianFrankWolfe),
        (unit_lasso(), INF, FrankWolfe),
        (unit_lasso(set=L2Ball(1.0)), INF, FrankWolfe),
        (unit_lasso(set=SparseBall(3)), 1.0, PrivateGreedy),
        (unit_lasso(set=SparseBall(3)), INF, HardThresholding),
        (unit_lasso(bounds=LENGTH), 1.0, ScaledGradient),
        (unit_lasso(bounds=LENGTH, p=512), 1.0, WhitenedGradient),
        (unit_lasso(bounds=LENGTH, p=513), 0.1, ScaledGradient),
        (unit_lasso(bounds=LENGTH, p=512), 0.1, AveragedGradient),
        (unit_lasso(bounds=LENGTH, p=334, n=1_000), 0.1, AveragedGradient),
        (unit_lasso(bounds=LENGTH, p=3_333), 1.0, ScaledGradient),
        (unit_lasso(bounds=LENGTH, p=3_334), 1.0, ScaledGradient),
        (unit_lasso(bounds=WORDS, p=3_334), 1.0, ScaledGradient),
        (unit_lasso(bounds=LENGTH, p=3_334, loss=SmoothedHinge(0.3)), 1.0, NoisyGradient),
        (unit_lasso(bounds=WORDS, p=3_334, loss=Logistic()), 1.0, ClassSums),
        (unit_lasso(bounds=WORDS, p=3_333, loss=Logistic()), 1.0, ScaledGradient),
        (unit_lasso(bounds=LENGTH, p=3_334, loss=Logistic()), 1.0, NoisyGradient),
        (unit_lasso(bounds=LENGTH, set=Simplex(1.0)), 1.0, NoisyGradient),
        (unit_lasso(bounds=LENGTH, set=L2Ball(1.0)), 1.0, ScaledGradient),
        (unit_lasso(bounds=LENGTH, set=LpBall(3, 1.0)), 1.0, NoisyGradient),
        (unit_lasso(bounds=LENGTH, set=SparseBall(3)), 1.0, PrivateGreedy),
        (unit_lasso(bounds=LENGTH, set=SparseBall(3)), INF, HardThresholding),
        (unit_lasso(bounds=LENGTH), INF, FrankWolfe),
        (unit_lasso(bounds=Bounds(np.ones(1_000), 1.0)), 1.0, PrivateGreedy),
    ],
)
def test_auto_chooses_the_solver_from_public_facts(problem, epsilon, kind):
    solver = choose_solver("auto", problem, Budget(epsilon, 1e-6), "auto")
    assert type(solver) is kind
    assert choose_solver("auto", problem, Budget(epsilon, 1e-6), 7).steps == 7


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (unit_lasso(), PrivateGreedy),
        (unit_lasso(p=13), SufficientStatistics),  # .13 times the root of 10,000
        (unit_lasso(p=14), AveragedGradient),
        (unit_lasso(p=6, loss=Logistic()), SufficientStatistics),
        (unit_lasso(p=7, loss=Logistic()), AveragedGradient),
        (unit_lasso(p=33), AveragedGradient),  # more than 100 rows times epsilon for a column
        (unit_lasso(p=100), AveragedGradient),
        (unit_lasso(p=101), PrivateGreedy),
        (unit_lasso(p=128, bounds=LENGTH), AveragedGradient),
        (unit_lasso(p=129, bounds=LENGTH), PrivateGreedy),
        (unit_lasso(bounds=LENGTH), PrivateGreedy),
        (unit_lasso(bounds=LENGTH, set=Simplex(1.0)), PrivateFrankWolfe),
        (unit_lasso(set=SparseBall(3)), PrivateGreedy),
        (unit_lasso(bounds=LENGTH, set=SparseBall(3)), PrivateGreedy),
        (unit_lasso(bounds=LENGTH, set=L2Ball(1.0)), PrivateGreedy),
        (unit_lasso(bounds=LENGTH, set=LpBall(1.3, 1.0)), PerturbedObjective),
    ],
)
def test_auto_under_pure_differential_privacy(problem, kind):
    assert type(choose_solver("auto", problem, Budget(1.0, 0.0), "auto")) is kind


def test_estimators_choose_by_themselves():
    def solver(model, p=30):
        return model.plan(1_000, p).solver

    common = {"epsilon": 1.0, "classes": [0, 1]}
    strong = common | {"epsilon": 10.0}
    for kind in (PrivateLogisticRegression, PrivateLinearSVC):
        assert solver(kind(**common, bounds=Bounds(1.0)), 200) == "greedy"
        assert solver(kind(**common, bounds=Bounds(1.0))) == "averaged-gradient"
        assert solver(kind(**strong, bounds=Bounds(1.0)), 3) == "whitened-gradient"
        assert solver(kind(**common, bounds=Bounds(1.0), delta=0.0), 5) == "averaged-gradient"
        assert solver(kind(**common, bounds=Bounds(1.0), delta=0.0), 2) == "sufficient-statistics"
        assert solver(kind(**strong, bounds=LENGTH), 3) == "whitened-gradient"
        assert solver(kind(**common, bounds=LENGTH), 500) == "averaged-gradient"
        assert solver(kind(**common, bounds=LENGTH), 600) == "noisy-gradient"
        words = Bounds(1.0, norm="l2", nonnegative=True)
        assert solver(kind(**common, bounds=words), 500) == "class-sums"
        assert solver(kind(**common, bounds=LENGTH, delta=0.0, penalty="l1"), 200) == "greedy"
    assert solver(PrivateSparseRegression(1.0, bounds=UNIT)) == "greedy"
    assert solver(PrivateSparseRegression(1.0, bounds=LENGTH)) == "greedy"
    assert solver(PrivateSparseRegression(1.0, 0.0, bounds=LENGTH)) == "greedy"
    assert solver(HeavyTailedRegression(1.0)) == "peeling"
    names = {
        (ProjectedRegression, 1e-6): "projected to 5 dimensions, noisy-gradient",
        (ProjectedRegression, 0.0): "projected to 5 dimensions, posterior-sampling",
        (ProjectedClassifier, 1e-6): "projected to 5 dimensions, noisy-gradient",
        (ProjectedClassifier, 0.0): "projected to 5 dimensions, objective-perturbation",
    }
    for (kind, delta), name in names.items():
        given = {"classes": [0, 1]} if kind is ProjectedClassifier else {}
        assert solver(kind(1.0, delta, bounds=LENGTH, dimension=5, **given)) == name


@pytest.mark.parametrize(
    ("bounds", "penalty", "radius", "expected"),
    [
        (Bounds(2.0), "auto", "auto", L1Ball(L1_RADIUS["wide"])),
        (Bounds(2.0, norm="l2"), "auto", "auto", L2Ball(L2_RADIUS["open"] / 2)),
        (Bounds(2.0, norm="l2"), "l1", "auto", L1Ball(L1_RADIUS["open"])),
        (Bounds(2.0), "auto", 3.0, L1Ball(3.0)),
        (Bounds(2.0), "l2", 3.0, L2Ball(3.0)),
        (Bounds(2.0, norm="l2"), "auto", 3.0, L2Ball(3.0)),
    ],
)
def test_penalty_and_radius_follow_from_the_bounds_alone(bounds, penalty, radius, expected):
    for kind in (PrivateLogisticRegression, PrivateLinearSVC):
        model = kind(1.0, bounds=bounds, classes=[0, 1], penalty=penalty, radius=radius)
        assert model.plan(400, 200).problem.set == expected.sized(200)


def test_solvers_can_be_asked_for_by_name_or_given():
    problem, budget = unit_lasso(), Budget(1.0, 1e-6)
    for name, kind in SOLVERS.items():
        steps = (
            1 if name in ("objective-perturbation", "posterior-sampling", "public-design") else 12
        )
        solver = choose_solver(name, problem, budget, steps)
        assert type(solver) is kind
        assert solver.steps == steps
    mine = PrivateFrankWolfe(steps=3)
    assert choose_solver(mine, problem, budget, "auto") is mine
    with pytest.raises(InvalidArgument, match="given twice"):
        choose_solver(mine, problem, budget, 5)
    with pytest.raises(InvalidArgument, match="frank-wolfe"):
        choose_solver("newton", problem, budget, "auto")


# what does not fit together

EXPLAINED = r"^Cannot use .+ with .+\. This is because .+\. (Use|Pass) .+\.$"


@pytest.mark.parametrize(
    ("solver", "problem", "budget", "names"),
    [
        (PrivateFrankWolfe(), unit_lasso(set=L2Ball(1.0)), Budget(1.0, 1e-6), ("L2Ball",)),
        (PrivateFrankWolfe(), unit_lasso(set=LpBall(3, 1.0)), Budget(1.0, 1e-6), ("LpBall",)),
        (PrivateFrankWolfe(), unit_lasso(set=GroupL1Ball(5)), Budget(1.0, 1e-6), ("GroupL1Ball",)),
        (GaussianFrankWolfe(), unit_lasso(), Budget(1.0, 0.0), ("gaussian-frank-wolfe", "delta=0")),
        (PrivateFrankWolfe(), unit_lasso(), Budget(INF, 1e-6), ("frank-wolfe", "epsilon=inf")),
        (GaussianFrankWolfe(), unit_lasso(), Budget(INF, 1e-6), ("epsilon=inf",)),
        (FrankWolfe(), unit_lasso(), Budget(1.0, 1e-6), ("FrankWolfe", "epsilon=1")),
    ],
)
def test_incompatible_pieces_say_why_and_what_to_do(solver, problem, budget, names):
    with pytest.raises(Incompatible, match=EXPLAINED):
        solver.plan(problem, budget)
    with pytest.raises(Incompatible) as caught:
        solver.plan(problem, budget)
    assert all(name in str(caught.value) for name in names)


def test_an_incompatibility_is_found_before_a_row_is_read_and_before_a_charge():
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(5.0, 1e-6))
    model = PrivateErm(
        Squared(), L2Ball(1.0), 1.0, 1e-6, bounds=UNIT, solver="frank-wolfe", ledger=ledger
    )
    with pytest.raises(Incompatible, match="Cannot use"):
        model.fit(np.zeros((5, 2)), np.zeros(5))
    assert ledger.charges == []


# plans and data


def test_planning_reads_no_data_and_charges_nothing(monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a plan touched rows or noise")

    for owner, name in [
        (LocalEngine, "__init__"),
        (LocalEngine, "total"),
        (Curator, "__init__"),
        (Noise, "__init__"),
        (Bounds, "clip_x"),
        (Bounds, "grid_x"),
        (Bounds, "grid_rows"),
        (Bounds, "clip_y"),
    ]:
        monkeypatch.setattr(owner, name, forbidden)
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(5.0, 1e-6))
    models = [
        PrivateLasso(1.0, 1e-6, bounds=UNIT, ledger=ledger),
        PrivateLogisticRegression(1.0, bounds=UNIT, classes=[0, 1, 2], ledger=ledger),
        PrivateErm(Huber(), L2Ball(), 1.0, 1e-6, bounds=UNIT, ledger=ledger),
        PrivateErm(
            Squared(), L2Ball(), 1.0, bounds=LENGTH, ledger=ledger, solver="posterior-sampling"
        ),
        PrivateErm(
            Logistic(), L1Ball(), 1.0, 0.0, bounds=UNIT, ledger=ledger,
            solver="objective-perturbation",
        ),
        PrivateLinearSVC(1.0, bounds=LENGTH, classes=[0, 1, 2], ledger=ledger),
        PrivateSparseRegression(1.0, bounds=UNIT, ledger=ledger),
        PrivateSparseRegression(1.0, bounds=LENGTH, ledger=ledger),
        HeavyTailedRegression(1.0, ledger=ledger),
        ProjectedRegression(1.0, bounds=LENGTH, dimension=4, ledger=ledger),
        ProjectedRegression(
            1.0, bounds=LENGTH, projection=np.ones((20, 30)), compressed=True, ledger=ledger
        ),
        ProjectedClassifier(1.0, bounds=UNIT, dimension=4, classes=[0, 1], ledger=ledger),
    ]  # fmt: skip
    for model in models:
        model.plan(n_rows=1_000, n_features=20)
        assert not hasattr(model, "privacy_")
    assert ledger.charges == []
    with pytest.raises(AssertionError, match="touched"):
        models[0].fit(np.zeros((5, 2)), np.zeros(5))


def test_the_fit_does_what_the_plan_says():
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(5.0, 1e-6))
    model = PrivateLasso(1.0, 1e-6, bounds=UNIT, ledger=ledger)
    plan = model.plan(300, 4)
    model.fit(np.zeros((300, 4)), np.zeros(300))
    assert leaves(ledger.charges[0].event) == leaves(plan.event)
    assert ledger.spent.epsilon == plan.spent.epsilon
    assert model.n_iter_ == plan.steps == model.privacy_.steps
    assert model.privacy_.epsilon == plan.spent.epsilon
    assert model.privacy_.releases == plan.releases


def test_the_plan_does_not_depend_on_the_data():
    rng = np.random.default_rng(0)
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(9.0, 1e-6))
    for X, y in [
        (np.zeros((300, 4)), np.zeros(300)),
        (rng.standard_normal((300, 4)) * 1e9, rng.standard_normal(300)),
        (np.full((300, 4), np.nan), np.full(300, np.inf)),
    ]:
        PrivateLasso(1.0, 1e-6, bounds=UNIT, ledger=ledger).fit(X, y)
    one, *others = ledger.charges
    assert all(leaves(c.event) == leaves(one.event) for c in others)
    assert all(c.summary == one.summary for c in others)


def test_a_curator_releases_what_was_planned_and_not_once_more():
    problem = unit_lasso(n=20, p=3)
    solver = PrivateFrankWolfe(steps=4)
    plan = solver.plan(problem, Budget(1.0, 1e-6))
    curator = Curator.open(
        plan.event,
        read=lambda: LocalEngine(np.zeros((20, 3)), np.zeros(20), UNIT),
        noise=Noise(1),
        adjacency="replace-one",
    )
    solution = solver.run(plan, plan.problem, curator)
    assert solution.steps == 4
    with pytest.raises(BudgetExceeded, match="outside what was charged"):
        solver.run(plan, plan.problem, curator)


def test_a_default_delta_follows_from_the_number_of_rows():
    small = PrivateLasso(1.0, bounds=UNIT).plan(1_000, 5)
    large = PrivateLasso(1.0, bounds=UNIT).plan(10**7, 5)
    assert small.budget.delta == 1e-6
    assert large.budget.delta == 1e-8


# words


def test_a_printed_plan_says_everything_that_matters():
    plan = PrivateLasso(
        0.5, 1e-7, bounds=Bounds(2.0, 3.0), steps=25, radius=1.0, solver="frank-wolfe"
    ).plan(100_000, 5_000)
    text = str(plan)
    for fact in (
        "epsilon=0.5",
        "delta=1e-07",
        "replace-one",
        "nothing is charged",
        "no row is read",
        "100,000 rows",
        "5,000 columns",
        "Bounds(x=2.0, y=3.0, norm='inf')",
        "squared loss",
        "L1Ball",
        "radius=1.0",
        "with intercept",
        "frank-wolfe, 25 steps",
        "exponential mechanism",
        "Gaussian mechanism",
        "epsilon 0.5",
        "at delta 1e-07",
        plan.spent.accountant,
        "excess risk",
    ):
        assert fact in text, fact
    assert repr(plan) == text


def test_a_printed_plan_counts_fits_and_leaves_out_what_is_not_there():
    single = str(PrivateLasso(1.0, bounds=UNIT, fit_intercept=False, steps=5).plan(100, 5))
    assert "intercept" not in single
    assert "fits" not in single
    model = PrivateLogisticRegression(1.0, bounds=UNIT, classes=[0, 1, 2], solver="greedy", steps=5)
    assert "5 steps, 3 fits" in str(model.plan(100, 5))
    assert "fits" not in str(model.set_params(solver="auto").plan(100, 5))


def test_a_plan_without_privacy_says_so():
    plan = FrankWolfe(steps=3).plan(unit_lasso(intercept=True), Budget(INF, 1e-6))
    assert plan.spent.epsilon == INF
    assert "not protected" in str(plan)
    assert "no noise" in str(plan)
    assert all(isinstance(m, Exact) for m in plan.mechanisms.values())


def test_the_summary_for_the_ledger_holds_public_facts_as_plain_json():
    plan = PrivateLasso(1.0, 1e-6, bounds=UNIT, steps=5, solver="frank-wolfe").plan(100, 7)
    summary = json.loads(json.dumps(plan.summary()))
    for key, value in {
        "solver": "frank-wolfe",
        "loss": "squared",
        "n_rows": 100,
        "n_features": 7,
        "steps": 5,
        "fits": 1,
        "epsilon": 1.0,
        "delta": 1e-6,
    }.items():
        assert summary[key] == value
    assert len(summary["releases"]) == 2


def test_the_summary_of_an_adaptive_budget_says_what_it_is_for():
    for delta, amount in ((1e-6, "rho"), (0.0, "epsilon = 1")):
        plan = PrivateLasso(1.0, delta, bounds=UNIT, solver="greedy").plan(100, 70)
        summary = json.loads(json.dumps(plan.summary()))
        assert summary["solver"] == "greedy"
        assert any(amount in line for line in summary["releases"])
        assert plan.because in str(plan)


# the promised excess risk


def test_the_excess_risk_bound_shrinks_with_budget_and_rows_and_never_beats_zero_noise():
    def risk(n=100_000, epsilon=1.0):
        return PrivateFrankWolfe().plan(unit_lasso(n=n), Budget(epsilon, 1e-6)).excess_risk

    assert risk(n=10_000_000) < risk(n=1_000_000) < risk()
    assert risk(epsilon=100.0) < risk(epsilon=10.0) < risk()
    noiseless = FrankWolfe(steps=500).plan(unit_lasso(), Budget(INF)).excess_risk
    assert PrivateFrankWolfe(500).plan(unit_lasso(), Budget(9.0, 1e-6)).excess_risk > noiseless
    assert noiseless <= 2 * 8 / 500  # Jaggi (2013): 2 * curvature / (T + 2)


def test_the_excess_risk_bound_never_exceeds_what_doing_nothing_risks():
    problem = unit_lasso(n=10)
    plan = PrivateFrankWolfe(steps=50).plan(problem, Budget(0.01, 1e-6))
    assert plan.excess_risk <= 2 * problem.slope_bound * problem.margin_bound


#: Each solver with a problem that it can solve: the loss, the set and the bounds.
EVERY_SOLVER = {
    "frank-wolfe": (PrivateFrankWolfe(), {}, 0.0),
    "gaussian-frank-wolfe": (GaussianFrankWolfe(), {}, 1e-6),
    "noisy-gradient": (NoisyGradient(), {}, 1e-6),
    "noisy-gradient, no clip": (NoisyGradient(clip=None), {"loss": Logistic()}, 1e-6),
    "noisy-gradient, samples": (NoisyGradient(8, sampling=0.2), {}, 1e-6),
    "objective-perturbation": (PerturbedObjective(), {}, 0.0),
    "objective-perturbation, labels": (PerturbedObjective(), {"loss": Logistic()}, 0.0),
    "objective-perturbation, approximate": (PerturbedObjective(1, 10.0), {}, 1e-6),
    "hard-thresholding": (PrivateHardThresholding(), {"set": SparseBall(3)}, 1e-6),
    "peeling": (PrivatePeeling(), {"set": SparseBall(3), "bounds": UNIT}, 1e-6),
    "peeling, pure": (PrivatePeeling(), {"set": SparseBall(3), "bounds": UNIT}, 0.0),
    "peeling, split": (PrivatePeeling(split=True), {"set": SparseBall(3), "bounds": UNIT}, 1e-6),
    "posterior-sampling": (PosteriorSampling(), {"set": L2Ball(1.0)}, 0.0),
    "projected": (Projected(dimension=30), {}, 1e-6),
    "projected, pure": (Projected(dimension=30), {}, 0.0),
    "projected, labels": (Projected(dimension=30), {"loss": Logistic()}, 0.0),
}
every_solver = pytest.mark.parametrize("case", EVERY_SOLVER)


def expected_of(case, n=10_000, epsilon=1.0, intercept=False):
    solver, facts, delta = EVERY_SOLVER[case]
    problem = unit_lasso(n=n, p=40, intercept=intercept, **({"bounds": LENGTH} | facts))
    return solver.plan(problem, Budget(epsilon, delta))


def falls(risks):
    """Whether the numbers never grow, up to rounding."""
    return all(b <= a * (1 + 1e-9) for a, b in pairwise(risks))


@every_solver
@pytest.mark.parametrize("intercept", [False, True])
def test_every_solver_promises_a_finite_positive_risk_and_spends_its_budget(case, intercept):
    plan = expected_of(case, intercept=intercept)
    worst = 2 * plan.problem.slope_bound * plan.problem.margin_bound
    assert 0 < plan.excess_risk <= worst * (1 + 1e-12)
    assert 1 - 1e-6 <= plan.spent.epsilon <= 1
    assert plan.spent == spent(plan.event, plan.budget.delta)
    assert (len(plan.mechanisms) == 2) is (intercept and plan.steps > 1)


@every_solver
def test_more_budget_never_promises_a_larger_risk(case):
    risks = [expected_of(case, epsilon=e).excess_risk for e in (0.03, 0.3, 1.0, 5.0, 50.0)]
    assert falls(risks)
    assert risks[-1] < risks[0] or case.startswith("projected")  # there distortion is all there is


@every_solver
def test_more_rows_never_promise_a_larger_risk(case):
    risks = [expected_of(case, n=n).excess_risk for n in (50, 500, 5_000, 50_000)]
    assert falls(risks)


def test_noise_in_few_dimensions_is_counted_beside_the_distortion():
    problem = unit_lasso(n=200, p=40, bounds=LENGTH, set=L1Ball(1e-3))
    few = Projected(dimension=20).plan(problem, Budget(1.0, 1e-6))
    inside = NoisyGradient().plan(few.compressed, Budget(1.0, 1e-6))
    worst = 2 * problem.slope_bound * problem.margin_bound
    assert inside.excess_risk < few.excess_risk <= worst


@every_solver
def test_a_printed_plan_says_what_its_promise_assumes(case):
    plan = expected_of(case, intercept=True)
    text = str(plan)
    assert f"excess risk at most {plan.excess_risk:.3g}" in text
    where = f"if {plan.assumes}" if plan.assumes else "on the worst data"
    assert f"{where}, the intercept's part not counted" in text
    kind = case.split(",")[0]
    expected = {
        "hard-thresholding": "columns are nearly uncorrelated",
        "peeling": "columns are nearly uncorrelated",
        "noisy-gradient": "few gradients are clipped",
    }
    if kind in expected:
        assert expected[kind] in plan.assumes
        assert bool(plan.assumes) is bool(expected[kind])
    if kind in ("frank-wolfe", "gaussian-frank-wolfe", "objective-perturbation"):
        assert plan.assumes == ""
    assert ("split into" in text) is (plan.parts > 1)


def test_references_promise_what_they_assume():
    problem = unit_lasso(set=SparseBall(3))
    plan = HardThresholding().plan(problem, Budget(INF))
    assert plan.excess_risk == 0.0
    assert "at most 0 if it converges" in str(plan)
    assert plan.spent.epsilon == INF


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("n", [100, 1_000, 30_000, 10**6])
def test_steps_read_all_rows_at_usual_budgets(n, epsilon, delta):
    for sparsity, p in ((2, 50), (10, 5_000)):
        problem = unit_lasso(n=n, p=p, set=SparseBall(sparsity))
        plan = PrivatePeeling().plan(problem, Budget(epsilon, delta))
        split = PrivatePeeling(split=True).plan(problem, Budget(epsilon, delta))
        assert plan.parts == 1
        assert split.parts == split.steps == plan.steps
        assert plan.excess_risk <= split.excess_risk * (1 + 1e-9)


def test_a_split_plan_costs_what_one_part_costs():
    problem, budget = (
        unit_lasso(n=1_003, p=30, set=SparseBall(2), intercept=True),
        Budget(1.0, 1e-6),
    )
    whole = PrivatePeeling(7, split=False).plan(problem, budget)
    split = PrivatePeeling(7, split=True).plan(problem, budget)
    assert (whole.parts, split.parts) == (1, 7)
    many, few = (sum(leaves(plan.event).values()) for plan in (whole, split))
    assert many == 7 * few
    for plan in (whole, split):
        assert 1 - 1e-9 <= plan.spent.epsilon <= 1
        assert plan.steps == 7
    assert split["peel"].select.epsilon > 2 * whole["peel"].select.epsilon
    three = PrivatePeeling(7, split=True).plan(problem, budget, fits=3)
    assert sum(leaves(three.event).values()) == 3 * few
    assert split.releases[-1] == "the rows are split into 7 parts, and each step reads its own"
    assert "split" in json.dumps(split.summary())


def test_a_projected_plan_knows_both_problems():
    problem, budget = unit_lasso(n=500, p=40, bounds=UNIT, intercept=True), Budget(1.0, 1e-6)
    plan = Projected(dimension=8, clip=0.5).plan(problem, budget)
    assert plan.problem == problem
    assert plan.projection.dimension == plan.compressed.n_features == 8
    assert plan.compressed.bounds.x == 0.5
    assert plan.compressed.bounds.norm == "l2"
    assert plan.compressed.n_rows == 500
    assert plan.compressed.fit_intercept
    image = np.linalg.norm(plan.projection.matrix(), axis=0).max()
    assert plan.compressed.set.radius == pytest.approx(image, rel=1e-12)
    assert plan.solver.startswith("projected to 8 dimensions, noisy-gradient")
    auto = Projected(dimension=8).plan(problem, budget)
    assert auto.compressed.bounds.x == pytest.approx(math.sqrt(40))  # the longest row before
    given = GivenProjection(plan.projection.matrix())
    compressed = Projected(projection=given, compressed=True).plan(
        unit_lasso(n=500, p=40, bounds=LENGTH), budget
    )
    assert compressed.projection is None
    assert compressed.compressed.n_features == 8


def test_dimensions_follow_from_public_facts():
    def dimension(n=1_000, p=5_000, epsilon=0.1, delta=1e-6):
        model = ProjectedRegression(epsilon, delta, bounds=LENGTH, projection="structured")
        return model.plan(n, p).projection.dimension

    assert dimension(p=3) == 3
    assert dimension(n=10**6) == MOST_NUMBERS // 10**6
    assert dimension(n=10**6, delta=0.0) == 256
    assert dimension(n=50) < dimension(n=200) < dimension(n=1_000)
    assert dimension(epsilon=0.01, n=200) < dimension(epsilon=0.1, n=200)
    assert dimension(n=1, epsilon=1e-3) >= 1


def wide(n, epsilon=3.0, delta=1e-6, p=100_000):
    problem = unit_lasso(n=n, p=p, bounds=LENGTH, set=L1Ball(1.0))
    return Projected(projection="structured").plan(problem, Budget(epsilon, delta))


def test_the_dimension_is_the_theorems_and_the_bound_falls_as_it_says():
    plans = [wide(n) for n in (2_000, 4_000, 8_000)]
    for plan in plans:
        asked = theorem_dimension(plan.problem, plan.budget)
        assert plan.projection.dimension == asked > 256
        assert "asks for" not in plan.solver
    # Theorem 3.11, part 1: the root of 1 / n, and what momentum costs, which falls like 1 / n
    slopes = [math.log2(a.excess_risk / b.excess_risk) for a, b in pairwise(plans)]
    assert all(0.48 < slope < 0.65 for slope in slopes)
    facts = plans[0].compressed, plans[0].budget
    noise = NoisyGradient().with_proven_steps(*facts).plan(*facts).excess_risk
    distortion = plans[0].excess_risk - noise
    assert 0.2 < noise / distortion < 5


@pytest.mark.not_quick
def test_a_plan_says_when_it_cannot_take_the_theorems_dimension():
    few = wide(30_000)
    asked = theorem_dimension(few.problem, few.budget)
    assert few.projection.dimension == MOST_NUMBERS // 30_000 < asked
    assert f"of the {asked:,} that Theorem 3.11 asks for" in str(few)
    drawn = Projected(inner="posterior-sampling").plan(few.problem, Budget(3.0, 0.0))
    assert drawn.projection.dimension == 256
    assert "of the" in drawn.solver
    pure = wide(30_000, delta=0.0)
    assert pure.projection.dimension == theorem_dimension(pure.problem, pure.budget) > 256
    assert pure.excess_risk < drawn.excess_risk
    narrow = wide(30_000, p=50)
    assert "as many as there are columns" in narrow.solver
