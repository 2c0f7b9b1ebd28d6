"""`peel`: the largest entries of any bounded mean over rows, charged and with a Statement."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chisquare

from riata import Bounds, Budget, BudgetExceeded, Ledger, peel
from riata.audit import on_release
from riata.engines import LocalEngine
from riata.errors import InvalidArgument
from riata.mechanisms import TopK
from riata.mechanisms.noise import Noise
from riata.privacy.accountants import spent
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.queries import MeanVector

BOUNDS = [
    Bounds(1.4), Bounds([0.3, 1.0, 2.5, 1e-3]), Bounds(1.4, norm="l2"),
    Bounds(1.4, nonnegative=True),
]  # fmt: skip
P = 4


def some_rows(seed=0):
    rng = np.random.default_rng(seed)
    rubbish = [0.0, 1e300, -1e300, np.inf, -np.inf, np.nan, 0.7, -0.7, 9.0, -9.0]
    return np.vstack([rng.choice(rubbish, (60, P)), 9 * np.eye(P), -9 * np.eye(P)])


def size(vector, norm):
    if norm == "l2":
        return sum(v * v for v in vector)
    return (sum if norm == "l1" else max)([abs(v) for v in vector]) ** 2


@pytest.mark.parametrize("bounds", BOUNDS, ids=repr)
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("columns", [None, [2], [3, 0, 1]])
def test_no_neighbour_moves_the_mean_by_more_than_its_sensitivity(bounds, adjacency, columns):
    x = some_rows()
    query = MeanVector(bounds, P, len(x), adjacency)
    query = query if columns is None else query.entries(np.array(columns))
    alone = [LocalEngine(x[[i]], np.zeros(1), bounds).total(query) for i in range(len(x))]
    total = LocalEngine(sparse.csr_array(x), np.zeros(len(x)), bounds).total(query)
    assert np.array_equal(np.sum(alone, axis=0), total)
    units = np.broadcast_to(query.unit, total.shape)
    exact = [[int(t) * Fraction(float(u)) for t, u in zip(one, units, strict=True)]
             for one in alone]  # fmt: skip
    for norm in ("l1", "l2", "linf"):
        allowed, most = Fraction(query.sensitivity(norm)) ** 2, Fraction(0)
        exact.sort(key=lambda one: size(one, norm))
        for one, other in itertools.combinations(exact[-20:], 2):
            change = [a - b for a, b in zip(one, other, strict=True)]
            most = max(most, size(one if adjacency == ADD_REMOVE else change, norm))
        assert most <= allowed
        if norm == "linf" and columns is None and not bounds.nonnegative:
            assert most >= Fraction(0.999) * allowed


def test_the_selection_has_the_law_of_the_exponential_mechanism():
    """Over the choice of a seed this fails with probability below 1e-9."""
    x = np.repeat([[0.9, -0.4, 0.0, 0.2]], 10, axis=0)
    bounds = Bounds(1.0)
    query, mechanism, noise = MeanVector(bounds, P, 10, REPLACE_ONE), TopK(3.0, 1), Noise(5)
    engine = LocalEngine(x, np.zeros(10), bounds)
    drawn = [int(mechanism.release(query, engine, noise)[0]) for _ in range(4000)]
    weights = np.exp(3.0 * np.abs(x[0]) / (2 * 2 / 10))
    expected = 4000 * weights / weights.sum()
    assert chisquare(np.bincount(drawn, minlength=P), expected).pvalue > 1e-9
    # A twin whose noise is for half the sensitivity is far from it.
    twin = np.exp(6.0 * np.abs(x[0]) / (2 * 2 / 10))
    assert chisquare(np.bincount(drawn, minlength=P), 4000 * twin / twin.sum()).pvalue < 1e-9


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csc_array, list])
@pytest.mark.parametrize("engine", ["auto", "scan", "disk"])
def test_large_entries_are_found_in_every_container(container, engine):
    x = np.zeros((3_000, 50))
    x[:, 3], x[:, 30] = 0.9, -0.6
    x[0] = np.nan
    rows = x.tolist() if container is list else container(x)
    found = peel(rows, 2, 2.0, 1e-6, bounds=Bounds(1.0), engine=engine, random_state=0)
    assert found.indices.tolist() == [3, 30]
    np.testing.assert_allclose(found.values, [0.9, -0.6], atol=0.05)
    assert np.count_nonzero(found.vector.dense()) == 2
    assert found.statement.seeded


@pytest.mark.parametrize(("delta", "values"), [(1e-6, "auto"), (1e-6, "laplace"), (0.0, "auto")])
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_it_is_charged_and_stated_and_spends_what_was_asked(tmp_path, delta, values, adjacency):
    ledger = Ledger.create(
        tmp_path / "ledger.db", dataset="rows", ceiling=Budget(1.1, 1e-5, adjacency)
    )
    seen = []
    with on_release(seen.append):
        found = peel(np.ones((500, 9)), 3, 1.0, delta, bounds=Bounds(1.0), values=values,
                     adjacency=adjacency, ledger=ledger)  # fmt: skip
    statement = found.statement
    assert statement.private
    assert statement.delta == delta
    assert 1 - 1e-8 <= statement.epsilon <= 1
    assert statement.public["sparsity"] == 3
    assert statement.releases[0].startswith("peeling")
    (charge,) = ledger.charges
    assert charge.summary["request"] == statement.request
    assert spent(charge.event, delta).epsilon == statement.epsilon
    which, how_much = seen
    assert which.mechanism.name == "TopK"
    assert np.array_equal(which.value, found.indices)
    assert np.array_equal(how_much.value, found.values)
    with pytest.raises(BudgetExceeded):
        peel(np.ones((500, 9)), 3, 1.0, delta, bounds=Bounds(1.0), adjacency=adjacency,
             ledger=ledger)  # fmt: skip


def test_wrong_arguments_are_named():
    x = np.ones((10, 3))
    for change, why in [
        ({"sparsity": 0}, "sparsity"), ({"sparsity": 4}, "sparsity"), ({"sparsity": 1.5}, "whole"),
        ({"values": "normal"}, "values"), ({"values": "gaussian", "delta": 0}, "pure"),
        ({"epsilon": float("inf")}, "finite"), ({"bounds": 1.0}, "bounds"),
        ({"bounds": Bounds([1.0, 2.0])}, "2 entries"), ({"engine": "fast"}, "engine"),
    ]:  # fmt: skip
        arguments = {"sparsity": 2, "epsilon": 1.0, "delta": 1e-6, "bounds": Bounds(1.0)} | change
        with pytest.raises(InvalidArgument, match=why):
            peel(x, **arguments)
    assert "delta was not given" in str(peel(x, 1, 1.0, bounds=Bounds(1.0)).statement)
