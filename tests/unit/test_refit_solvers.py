"""Greedy selection, refitted Frank-Wolfe and sufficient statistics: they run on whatever comes.

On degenerate rows, for every loss, pure and not, at every budget; dense and sparse rows give the
same bits; a filter is never asked for more than was paid; and a run knows the rows through
releases alone.
"""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from riata.bounds import Bounds
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import Incompatible
from riata.losses import Huber, Logistic, OneAgainstRest, SmoothedHinge, Squared
from riata.mechanisms.noise import Noise
from riata.privacy import Budget
from riata.privacy.accountants import PureAccountant, ZcdpAccountant
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.problem import Problem
from riata.sets import GroupL1Ball, L1Ball, L2Ball, Simplex, SparseBall
from riata.solvers import PrivateGreedy, RefittedFrankWolfe, SufficientStatistics, defaults

pytestmark = pytest.mark.matrix(one_in=5)

SOLVERS = [PrivateGreedy, RefittedFrankWolfe, SufficientStatistics]
LOSSES = [
    Squared(), Huber(0.5), OneAgainstRest(Logistic(), 1), OneAgainstRest(SmoothedHinge(), 1),
]  # fmt: skip
every_solver = pytest.mark.parametrize("kind", SOLVERS)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
#: Half of all combinations of delta, intercept and adjacency, each pair of options among them.
OPTIONS = [
    (0.0, True, REPLACE_ONE), (0.0, False, ADD_REMOVE), (1e-6, True, ADD_REMOVE),
    (1e-6, False, REPLACE_ONE),
]  # fmt: skip


def degenerate():
    rng = np.random.default_rng(1)
    normal = rng.standard_normal((60, 9))
    target = normal[:, 0] - normal[:, 4]
    yield "zeros", np.zeros((60, 9)), np.zeros(60)
    yield "constant target", normal, np.ones(60)
    yield "constant columns", np.ones((60, 9)), target
    yield "one row", normal[:1], target[:1]
    yield "one column", normal[:, :1], target
    yield "more columns than rows", rng.standard_normal((20, 90)), target[:20]
    yield "huge", 1e300 * normal, 1e300 * target
    yield "missing", np.full((60, 9), np.nan), np.full(60, np.nan)
    yield "infinite", np.where(normal > 0, np.inf, -np.inf), np.where(target > 0, np.inf, -np.inf)
    yield "tiny", 1e-300 * normal, 1e-300 * target
    yield "mixed", rng.choice([0.0, 1e300, -np.inf, np.nan, 1e-9, 0.5], (60, 9)), target


CASES = {name: (x, y) for name, x, y in degenerate()}


def problem_of(loss, x, adjacency=REPLACE_ONE, intercept=True, constraint=None, bounds=None):
    bounds = bounds or Bounds(1.0, 2.0 if loss.classifies else 1.5)
    constraint = constraint or L1Ball(20.0)
    return Problem(loss, constraint, bounds, *x.shape, adjacency, fit_intercept=intercept)


def opened(plan, x, y, seed):
    return Curator.open(
        plan.event, read=lambda: plan.engine(LocalEngine, x, y), noise=Noise(seed),
        adjacency=plan.problem.adjacency, adaptive=plan.adaptive,
    )  # fmt: skip


def bits(solution):
    parts = [
        solution.theta.dense(), [solution.theta.offset, solution.steps],
        [] if solution.errors is None else solution.errors,
        [] if solution.offset_error is None else [solution.offset_error],
        [] if solution.fit is None else [solution.fit.gain, solution.fit.error],
    ]  # fmt: skip
    return b"|".join(np.asarray(part, dtype=np.float64).tobytes() for part in parts)


@every_solver
@every_loss
@pytest.mark.parametrize("name", CASES)
def test_degenerate_rows_are_fitted_alike_dense_and_sparse(kind, loss, name):
    x, y = CASES[name]
    if loss.classifies:
        y = (np.nan_to_num(y) > 0).astype(float)
    for seed, (delta, intercept, adjacency) in enumerate(OPTIONS):
        problem = problem_of(loss, x, adjacency, intercept)
        epsilon = [1.0, 30.0, 0.1, 1e3][seed]
        plan = kind().plan(problem, Budget(epsilon, delta, adjacency))
        found = []
        for layout in (np.asarray, sparse.csr_array):
            solution = kind().run(plan, problem, opened(plan, layout(x), y, seed))
            theta = solution.theta
            assert np.isfinite(theta.values).all()
            assert abs(theta.offset) <= problem.offset_bound
            assert np.abs(theta.values).sum() <= 20.0 * (1 + 1e-9)
            for numbers in (solution.errors, solution.offset_error):
                assert numbers is None or np.isfinite(numbers).all()
            assert solution.errors is None or len(solution.errors) == len(theta.values)
            found.append(bits(solution))
        assert found[0] == found[1]


@every_solver
@pytest.mark.parametrize("norm", ["inf", "l2"])
@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_bounds_at_the_ends_of_their_range_are_borne(kind, norm, scale):
    rng = np.random.default_rng(2)
    x, y = scale * rng.standard_normal((80, 6)), rng.standard_normal(80)
    for loss, y_bound in itertools.product((Squared(), Huber(1e-60)), (1e-60, 1e60)):
        bounds = Bounds(scale, y_bound, norm=norm)
        problem = problem_of(loss, x, bounds=bounds, constraint=L1Ball(1.0))
        for delta, epsilon in ((0.0, 0.5), (1e-6, 50.0)):
            plan = kind().plan(problem, Budget(epsilon, delta))
            solution = kind().run(plan, problem, opened(plan, x, y_bound * y, 3))
            assert np.isfinite(solution.theta.values).all()


def informative(n=400, p=25):
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (n, p))
    return x, np.clip(x[:, :4] @ [1.0, -0.8, 0.6, 0.5], -1.5, 1.5)


@every_solver
@pytest.mark.parametrize("epsilon", [1e-4, 1e-2, 0.3, 3.0, 30.0, 1e3, 1e6])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("fits", [1, 5])
def test_no_release_is_refused_at_any_budget_and_nearly_all_is_spent(kind, epsilon, delta, fits):
    x, y = informative()
    problem = problem_of(Squared(), x)
    plan = kind().plan(problem, Budget(epsilon, delta), fits)
    assert plan.adaptive
    assert plan.spent.epsilon <= epsilon
    curator = opened(plan, x, y, 4)
    whole, found = curator._paid_for[0]._left, []
    for _ in range(fits):
        found.append(kind().run(plan, problem, curator))
        left = curator._paid_for[0]._left
        assert left >= whole * (1 - Fraction(len(found), fits))  # no fit eats into the others'
    if all(len(solution.theta.values) for solution in found):
        assert left <= whole * Fraction(1, 10**6)


@every_solver
@pytest.mark.parametrize("steps", [1, 2, 3, 17, 300])
def test_any_number_of_selections_can_be_asked_for(kind, steps):
    x, y = informative()
    problem = problem_of(Squared(), x)
    for delta, epsilon in ((0.0, 5.0), (1e-6, 500.0)):
        plan = kind(steps).plan(problem, Budget(epsilon, delta))
        solution = kind(steps).run(plan, problem, opened(plan, x, y, 5))
        assert solution.steps <= max(steps, defaults.MOST_SELECTIONS)


@every_solver
def test_what_is_charged_is_the_pool_and_nothing_that_the_run_decides(kind):
    x, _ = informative()
    problem = problem_of(Squared(), x)
    for delta, exactly in ((0.0, PureAccountant().exactly), (1e-6, ZcdpAccountant().exactly)):
        plan = kind().plan(problem, Budget(1.0, delta), fits=3)
        assert exactly(plan.event) == 3 * exactly(plan.adaptive_budget)
        assert plan.mechanisms == {}
        assert all(str(line) for line in plan.releases)


def test_the_shares_of_a_run_do_not_exceed_the_whole():
    # Whatever they are tuned to: a filter would refuse a release in the middle of a run.
    fixed = defaults.SCALES + defaults.INTERCEPT + defaults.SEARCH + defaults.CHECK
    assert 0 < fixed < 1
    assert defaults.CHECK > 0
    assert 0 < defaults.MEASURED < 1
    assert defaults.DEARER >= 1
    for newton in (*defaults.REFITS, *defaults.FITS_OF_ALL):
        assert 0 < newton.share <= 1
        assert newton.curvature + newton.scales < 1
        assert sum(newton.steps) <= 1 + 1e-12


# A run knows the rows through releases alone


class Recording(Curator):
    def release(self, query, mechanism, part=0):
        answer = super().release(query, mechanism, part)
        self.__dict__.setdefault("answers", []).append((mechanism.event, answer))
        return answer


class Replaying:
    """A curator without rows, which repeats what another one released."""

    def __init__(self, answers):
        self.answers = iter(answers)

    def release(self, query, mechanism, part=0):
        event, answer = next(self.answers)
        assert event == mechanism.event
        return answer


@every_solver
@every_loss
@pytest.mark.parametrize(("delta", "epsilon"), [(0.0, 20.0), (1e-6, 5.0), (1e-6, 200.0)])
def test_a_run_can_be_repeated_from_its_releases_without_the_rows(kind, loss, delta, epsilon):
    x, y = informative()
    y = (y > 0).astype(float) if loss.classifies else y
    problem = problem_of(loss, x)
    plan = kind().plan(problem, Budget(epsilon, delta))
    engine = plan.engine(LocalEngine, x, y)
    curator = Recording(engine, plan.event, Noise(6), adaptive=True)
    told, again = [], []
    first = kind().run(plan, problem, curator, told.append)
    replayed = Replaying(curator.answers)
    second = kind().run(plan, problem, replayed, again.append)
    assert bits(first) == bits(second)
    assert told == again
    assert next(replayed.answers, None) is None


@every_solver
@pytest.mark.parametrize("epsilon", [0.5, 5.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("loss", [LOSSES[0], LOSSES[2]], ids=lambda loss: loss.name)
def test_so_can_one_with_unpenalized_columns(kind, loss, delta, epsilon):
    x, y = informative()
    y = (y > 0).astype(float) if loss.classifies else y
    problem = replace(problem_of(loss, x), unpenalized=(0, 2))
    plan = kind().plan(problem, Budget(epsilon, delta))
    curator = Recording(plan.engine(LocalEngine, x, y), plan.event, Noise(6), adaptive=True)
    first = kind().run(plan, problem, curator)
    replayed = Replaying(curator.answers)
    assert bits(first) == bits(kind().run(plan, problem, replayed))
    assert next(replayed.answers, None) is None
    assert {0, 2} <= set(first.theta.support.tolist())
    assert not {0, 2} & set(first.selected)


# Sets


@pytest.mark.parametrize("constraint", [L1Ball(0.3), L2Ball(0.3), SparseBall(2, 0.5)], ids=str)
@pytest.mark.parametrize("kind", [PrivateGreedy, SufficientStatistics])
def test_a_solution_lies_in_the_set(kind, constraint):
    x, y = informative()
    problem = problem_of(Squared(), x, constraint=constraint)
    plan = kind().plan(problem, Budget(100.0, 1e-6))
    theta = kind().run(plan, problem, opened(plan, x, y, 7)).theta.dense()
    np.testing.assert_allclose(problem.set.project(theta), theta, atol=1e-9)
    assert np.any(theta)


@every_solver
def test_sets_that_columns_do_not_suit_are_refused(kind):
    x, _ = informative(p=24)
    for constraint in (Simplex(1.0), GroupL1Ball(3, 1.0)):
        with pytest.raises(Incompatible):
            kind().plan(problem_of(Squared(), x, constraint=constraint), Budget(1.0, 1e-6))
    with pytest.raises(Incompatible, match="inf"):
        kind().plan(problem_of(Squared(), x), Budget(float("inf"), 1e-6))
