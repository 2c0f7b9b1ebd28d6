"""Peeling: which entries are selected, the noise of their values, and the parts of the rows.

Seeds are fixed. Over the choice of a seed, each statistical test fails with probability below 1e-9.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chisquare, kstest

from riata.bounds import Bounds
from riata.curator import ROWS, Curator
from riata.engines import LocalEngine
from riata.errors import BudgetExceeded
from riata.losses import Squared
from riata.mechanisms import GaussianMechanism, LaplaceMechanism, Peeling, TopK
from riata.mechanisms.noise import Noise
from riata.mechanisms.noisy_max import Candidates, Gumbel, Scale, largest
from riata.privacy.budget import REPLACE_ONE, Budget
from riata.privacy.events import compose, leaves
from riata.problem import Problem
from riata.queries import Gradient, GradientStep
from riata.sets import SparseBall
from riata.solvers import PrivatePeeling
from riata.vectors import Vector

FALSE_ALARM = 1e-9


def rounds_of_the_exponential_mechanism(weights, k):
    """The probability of each ordered choice of k candidates, one round after the other."""
    out = {}
    for chosen in itertools.permutations(range(len(weights)), k):
        rest, probability = sum(weights), 1.0
        for i in chosen:
            probability *= weights[i] / rest
            rest -= weights[i]
        out[chosen] = probability
    return out


def assert_same_law(drawn, expected):
    choices = sorted(expected)
    assert math.fsum(expected.values()) == pytest.approx(1.0)
    counts = dict.fromkeys(choices, 0)
    for choice in drawn:
        counts[choice] += 1  # a choice that cannot be is a KeyError
    found = np.array([counts[choice] for choice in choices])
    wanted = np.array([expected[choice] for choice in choices]) * len(drawn)
    rare = wanted < 10  # put together, or chi-square is not what its name says
    if rare.any():
        found = np.append(found[~rare], found[rare].sum())
        wanted = np.append(wanted[~rare], wanted[rare].sum())
    assert chisquare(found, wanted * (found.sum() / wanted.sum())).pvalue > FALSE_ALARM


@pytest.mark.matrix(one_in=3)
@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("values", [[0.0, 1.0, 2.5, 1.0, 0.3], [3.0, 3.0, 3.0, 2.9]])
def test_one_draw_has_the_law_of_rounds_of_the_exponential_mechanism(values, k):
    noise, scale = Noise(seed=60), Scale(1.3, 0.8)
    candidates = Candidates(np.array(values), scale)
    drawn = [tuple(largest(candidates, Gumbel(), noise, k)) for _ in range(12_000)]
    weights = [math.exp(1.3 * v / (2 * 0.8)) for v in values]
    assert_same_law(drawn, rounds_of_the_exponential_mechanism(weights, k))


def step_query(p, sparsity, rows=3, rate=0.4):
    problem = Problem(Squared(), SparseBall(sparsity, 1.0), Bounds(1.0, 1.0), rows, p)
    theta = Vector.of(np.linspace(-0.4, 0.4, p)).with_offset(0.1)
    rng = np.random.default_rng(61)
    engine = LocalEngine(rng.uniform(-1, 1, (rows, p)), rng.uniform(-1, 1, rows), problem.bounds)
    return GradientStep(problem, theta, rate), engine


def test_peeling_selects_by_the_size_of_the_entries():
    query, engine = step_query(4, 2)
    peel = Peeling(TopK(3.0, 2), GaussianMechanism(1.0))
    sizes = np.abs(query.from_total(engine.total(query)))
    assert len(set(sizes)) == 4
    weights = np.exp(3.0 * sizes / (2 * query.sensitivity("linf")))
    ordered = rounds_of_the_exponential_mechanism(weights, 2)
    expected = {}
    for chosen, probability in ordered.items():
        key = tuple(sorted(chosen))
        expected[key] = expected.get(key, 0.0) + probability
    noise = Noise(seed=62)
    drawn = [tuple(peel.release(query, engine, noise).support) for _ in range(6_000)]
    assert_same_law(drawn, expected)


@pytest.mark.matrix(one_in=3)
@pytest.mark.parametrize("sparsity", [1, 3])
@pytest.mark.parametrize(
    ("values", "norm", "law"),
    [(GaussianMechanism(1.5), "l2", "norm"), (LaplaceMechanism(0.7), "l1", "laplace")],
)
def test_peeled_values_carry_noise_for_all_selected_entries(values, norm, law, sparsity):
    query, engine = step_query(6, sparsity)
    peel = Peeling(TopK(1e6, sparsity), values)  # the largest entries, nearly surely
    exact = query.from_total(engine.total(query))
    columns = np.sort(np.argsort(-np.abs(exact))[:sparsity])
    noise = Noise(seed=63)
    released = [peel.release(query, engine, noise) for _ in range(2_000)]
    for vector in released:
        np.testing.assert_array_equal(vector.support, columns)
    # One row changes each entry of the gradient by at most 2 * slope * bound / rows.
    entry = 2 * query.gradient.slope_bound() / query.n_rows
    length = entry * (sparsity if norm == "l1" else math.sqrt(sparsity))
    scale = query.rate * length * (1.5 if law == "norm" else 1 / 0.7)
    residuals = np.array([vector.values - exact[columns] for vector in released]) / scale
    assert kstest(residuals.ravel(), law).pvalue > FALSE_ALARM
    for one, other in itertools.combinations(residuals.T, 2):  # no noise is shared
        assert abs(np.corrcoef(one, other)[0, 1]) <= 6.2 / math.sqrt(len(released)) * 2


def test_the_event_of_peeling_is_the_composition_of_its_two_releases():
    select, values = TopK(0.3, 4), GaussianMechanism(2.0)
    assert leaves(Peeling(select, values).event) == (leaves(select.event) + leaves(values.event))
    assert leaves(select.event).total() == 4


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("split", [False, True])
def test_a_plan_spends_its_budget_on_each_part_once(split, delta):
    problem = Problem(Squared(), SparseBall(3, 1.0), Bounds(1.0, 1.0), 100, 20, fit_intercept=True)
    plan = PrivatePeeling(5, split=split).plan(problem, Budget(1.0, delta))
    assert plan.parts == (5 if split else 1)
    assert 1 - 1e-6 <= plan.spent.epsilon <= 1.0
    times = 1 if split else 5
    expected = compose(*((m.event, times) for m in plan.mechanisms.values()))
    assert leaves(plan.event) == leaves(expected)


# Parts of the rows


def split_plan(n_rows=17, parts=4, p=5):
    problem = Problem(Squared(), SparseBall(2, 1.0), Bounds(1.0, 1.0), n_rows, p)
    return problem, PrivatePeeling(parts, split=True).plan(problem, Budget(1.0, 1e-6))


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("n", "parts"), [(17, 4), (8, 8), (9, 2), (5, 1)])
def test_every_row_is_in_exactly_one_part(layout, n, parts):
    problem = Problem(Squared(), SparseBall(1, 1.0), Bounds(1.0, 1.0), n, n)
    engine = LocalEngine(layout(np.eye(n)), np.ones(n), problem.bounds, block_rows=3)
    query = Gradient(problem, Vector.zero(n))
    whole = engine.total(query)
    assert np.all(whole != 0)  # row i, and no other, speaks of column i
    for part in range(parts):
        seen = np.flatnonzero(engine.part(part, parts).total(query))
        np.testing.assert_array_equal(seen, np.arange(part, n, parts))
    totals = [engine.part(part, parts).total(query) for part in range(parts)]
    np.testing.assert_array_equal(sum(totals), whole)


def test_replacing_a_row_changes_its_own_part_only():
    problem, plan = split_plan()
    rng = np.random.default_rng(64)
    x, y = rng.uniform(-1, 1, (17, 5)), rng.uniform(-1, 1, 17)
    engine = LocalEngine(x, y, problem.bounds)
    query = Gradient(problem, Vector.of(np.full(5, 0.2)))
    for row in range(17):
        their_x, their_y = x.copy(), y.copy()
        their_x[row], their_y[row] = 1e300, -np.inf
        neighbour = LocalEngine(their_x, their_y, problem.bounds)
        for part in range(plan.parts):
            ours, theirs = (e.part(part, plan.parts).total(query) for e in (engine, neighbour))
            assert np.array_equal(ours, theirs) == (part != row % plan.parts)


def test_each_part_is_charged_by_itself_and_only_once():
    problem, plan = split_plan()
    rng = np.random.default_rng(65)
    curator = Curator.open(
        plan.event,
        read=lambda: LocalEngine(rng.uniform(-1, 1, (17, 5)), np.ones(17), problem.bounds),
        noise=Noise(seed=66),
        adjacency=REPLACE_ONE,
        parts=plan.parts,
    )
    step = GradientStep(problem, Vector.zero(5), 0.1)
    for part in (2, 0, 3, 1):
        curator.release(step, plan["peel"], part)
        with pytest.raises(BudgetExceeded):
            curator.release(step, plan["peel"], part)
    assert "0 releases left" in repr(curator)
    with pytest.raises(ValueError, match="no part"):
        curator.release(step, plan["peel"], plan.parts)


def test_a_curator_without_parts_reads_all_rows():
    problem = Problem(Squared(), SparseBall(1, 1.0), Bounds(1.0, 1.0), 3, 3)
    query, asked = Gradient(problem, Vector.zero(3)), []

    class Watching(LocalEngine):
        def total(self, query):
            asked.append(len(self._blocks[0].y))
            return super().total(query)

    mechanism = GaussianMechanism(1.0)
    curator = Curator.open(
        mechanism.event,
        read=lambda: Watching(np.eye(3), np.ones(3), problem.bounds),
        noise=Noise(seed=67),
        adjacency=REPLACE_ONE,
    )
    curator.release(query, mechanism)
    assert asked == [3]


def test_a_split_fit_counts_the_rows_of_its_parts():
    # The sensitivity of a mean over a part is that of its own number of rows.
    problem, plan = split_plan(n_rows=11, parts=4)
    engine = LocalEngine(np.ones((11, 5)), np.ones(11), problem.bounds)
    asked = []

    class Watching(Curator):
        def release(self, query, mechanism, part=0):
            asked.append((part, query.n_rows, len(self._engine(ROWS, part)._blocks[0].y)))
            return super().release(query, mechanism, part)

    watching = Watching(engine, plan.event, Noise(seed=68), plan.parts)
    PrivatePeeling(4, split=True).run(plan, problem, watching)
    assert asked == [(0, 3, 3), (1, 3, 3), (2, 3, 3), (3, 2, 2)]
