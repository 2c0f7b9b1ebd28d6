"""One law of selection: Gumbel noise, rejection and compiled code draw from the same distribution.

Each draws the first two vertices of a Frank-Wolfe path, or the first two columns of a greedy
search, again and again, and the pairs are compared with their exact probabilities by Pearson's
statistic. Over other seeds a right sampler would fail a
case about once in `1 / RATE` times; the seeds are fixed.
"""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from scipy.stats import chi2

from riata import Bounds
from riata.engines import LocalEngine, local
from riata.losses import Huber, Logistic, SmoothedHinge, Squared
from riata.mechanisms import CompiledSelections, ExponentialMechanism
from riata.mechanisms.noise import Noise
from riata.problem import Problem
from riata.queries import Correlations, FrankWolfePath, VertexUtilities
from riata.sets import L1Ball, Simplex
from riata.vectors import Vector

RATE = 1e-9
EPSILON, DRAWS, N, P = 1.0, 1_500, 12, 3

CASES = {
    "squared": (Squared(), L1Ball(2.0)),
    "huber": (Huber(0.4), L1Ball(1.0)),
    "logistic": (Logistic(), L1Ball(3.0)),
    "smoothed hinge, simplex": (SmoothedHinge(0.5), Simplex(2.0)),
}


def rows(loss):
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (N, P)) * (rng.random((N, P)) < 0.8)
    return x, np.where(x[:, 0] > 0, 1.0, -1.0) if loss.classifies else 0.9 * x[:, 0]


def step_by_step(path, engine, noise):
    found = []
    for _ in range(path.steps):
        query = path.utilities(path.theta(found))
        found.append(ExponentialMechanism(EPSILON).release(query, engine, noise))
    return found


def compiled(path, engine, noise):
    return CompiledSelections(ExponentialMechanism(EPSILON), path.steps).release(
        path, engine, noise
    )


def probabilities(problem, engine):
    """Of all pairs of vertices, from exact utilities."""
    path, n = FrankWolfePath(problem, 2), problem.set.n_vertices

    def law(selected):
        query = VertexUtilities(problem, path.theta(selected))
        values = query.from_total(engine.total(query))
        values = np.concatenate([values, -values]) if query.symmetric else values
        return softmax(EPSILON * values / (2 * query.sensitivity("linf")))

    first = law([])
    return np.array([first[i] * law([i]) for i in range(n)])


def agrees(counts, exact):
    """Whether draws have these probabilities, by Pearson's statistic."""
    rare = DRAWS * exact < 5  # all of them together are one cell
    found, expected = (np.append(each[~rare], each[rare].sum()) for each in (counts, DRAWS * exact))
    found, expected = found[expected > 0], expected[expected > 0]
    statistic = ((found - expected) ** 2 / expected).sum()
    return statistic < chi2.isf(RATE, len(expected) - 1)


@pytest.mark.matrix(one_in=5)
@pytest.mark.parametrize("sampler", ["gumbel", "rejection", "compiled"])
@pytest.mark.parametrize("case", CASES)
def test_pairs_of_vertices_have_their_exact_probabilities(case, sampler, monkeypatch):
    if sampler == "compiled":
        pytest.importorskip("numba")
    loss, constraint = CASES[case]
    x, y = rows(loss)
    problem = Problem(loss, constraint, Bounds(1.0, 1.0), N, P)
    monkeypatch.setattr(local, "FEW_ENTRIES", 0 if sampler == "rejection" else 2**60)
    engine = LocalEngine(sparse.csr_array(x), y, problem.bounds, kernels="numba")
    exact = probabilities(problem, LocalEngine(x, y, problem.bounds))
    select, noise = compiled if sampler == "compiled" else step_by_step, Noise(11)
    counts = np.zeros(exact.shape)
    for _ in range(DRAWS):
        i, j = select(FrankWolfePath(problem, 2), engine, noise)
        counts[i, j] += 1
    used = (engine._scores != {}, engine._frank_wolfe is not None)
    assert used == (sampler == "rejection", sampler == "compiled")
    assert agrees(counts, exact)


def correlations(problem, selected):
    """What the greedy search selects from, after some moves."""
    theta, p = Vector.zero(problem.n_features), problem.n_features
    for index in selected:
        move = 0.3 if index < p else -0.3
        theta = theta.plus(Vector.unit(p, index % p, move))
    return Correlations(problem, theta, 0.6, 0.8)


@pytest.mark.parametrize("sampler", ["gumbel", "followed sums"])
@pytest.mark.parametrize("case", ["squared", "logistic"])
def test_pairs_of_columns_have_their_exact_probabilities(case, sampler, monkeypatch):
    loss, constraint = CASES[case]
    x, y = rows(loss)
    x = np.column_stack([x, np.arange(N) == 1])  # a column of one entry, which is in its own group
    problem = Problem(loss, constraint, Bounds(1.0, 1.0), N, P + 1)
    plain = LocalEngine(x, y, problem.bounds)

    def law(selected):
        query = correlations(problem, selected)
        values = query.from_total(plain.total(query))
        values = np.concatenate([values, -values])
        return softmax(EPSILON * values / (2 * query.sensitivity("linf")))

    first = law([])
    exact = np.array([first[i] * law([i]) for i in range(2 * (P + 1))])
    monkeypatch.setattr(local, "FEW_ENTRIES", 0 if sampler == "followed sums" else 2**60)
    engine, noise, counts = (
        LocalEngine(sparse.csr_array(x), y, problem.bounds),
        Noise(13),
        0 * exact,
    )
    mechanism = ExponentialMechanism(EPSILON)
    for _ in range(DRAWS):
        i = mechanism.release(correlations(problem, []), engine, noise)
        counts[i, mechanism.release(correlations(problem, [i]), engine, noise)] += 1
    if sampler == "followed sums":
        assert 0 < len(engine._followed._rare) < P + 1
    assert agrees(counts, exact)
