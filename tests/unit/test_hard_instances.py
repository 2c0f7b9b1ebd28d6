"""Hard instances: the construction, its lemmas by brute force, and the optimum against cvxpy."""

import math

import cvxpy as cp
import numpy as np
import pytest

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.hard_instances import HardInstance

SMALL = HardInstance(code_rows=6, n_features=48, repeats=2, code_share=0.25, seed=3)
THICK = HardInstance(code_rows=4, n_features=32, repeats=1, code_share=0.8, seed=1)
#: tau below the share that no consensus column has: the l1 ball cuts the ridge solution off.
TIGHT = HardInstance(code_rows=40, n_features=16, repeats=1, code_share=0.9, seed=2)

every_instance = pytest.mark.parametrize(
    "one", [SMALL, THICK, TIGHT], ids=["small", "thick", "tight"]
)


def in_ball(theta):
    return theta / max(1.0, np.abs(theta).sum())


def candidates(one, i, rng, count=300):
    """Models of the ball from all over: sparse, dense, and near the best with signs flipped."""
    best = one.minimiser(i)
    for _ in range(count):
        yield in_ball(rng.standard_normal(one.n_features) * rng.exponential() / one.n_features)
        yield in_ball(np.eye(one.n_features)[rng.integers(one.n_features)] * rng.uniform(-1, 1))
        flipped = rng.random(one.n_features) < rng.uniform(0, 0.6)
        yield in_ball(best * np.where(flipped, rng.uniform(-1, 1), 1) * rng.uniform(0.5, 1.5))


@every_instance
def test_the_orthogonal_block_is_orthogonal_and_rows_are_within_bounds(one):
    Y = one.orthogonal
    assert Y.shape == (one.orthogonal_rows, one.n_features)
    np.testing.assert_array_equal(Y.T @ Y, one.orthogonal_rows * np.eye(one.n_features))
    X, y = one.data(1)
    bounds = Bounds(x=1.0, y=1.0)
    assert X.shape == (one.n_rows, one.n_features)
    assert set(np.unique(X)) == {-1.0, 1.0}
    np.testing.assert_array_equal(bounds.clip_x(X), X)
    np.testing.assert_array_equal(y, [1.0] * one.code_rows + [0.0] * one.orthogonal_rows)
    assert one.tau == one.orthogonal_rows / (one.code_rows * one.n_features)


@every_instance
def test_databases_leave_one_row_out_and_neighbours_differ_in_one(one):
    for i in (0, one.code_rows):
        code = one.data(i)[0][: one.code_rows]
        np.testing.assert_array_equal(code, np.delete(one.code, i, axis=0))
    (X, y), (other, labels) = one.neighbours(0, 2)
    np.testing.assert_array_equal(X[1:], other[1:])
    np.testing.assert_array_equal(y, labels)
    np.testing.assert_array_equal(X[0], one.code[2])
    np.testing.assert_array_equal(other[0], one.code[0])
    np.testing.assert_array_equal(np.sort(X, axis=0), np.sort(one.data(0)[0], axis=0))


def test_instances_are_reproducible_and_differ_by_seed():
    np.testing.assert_array_equal(SMALL.code, HardInstance(6, 48, 2, 0.25, 3).code)
    assert not np.array_equal(SMALL.code, HardInstance(6, 48, 2, 0.25, 4).code)


def test_make_takes_the_nearest_tau():
    one = HardInstance.make(code_rows=20, n_features=64, tau=0.23)
    assert one.repeats == 5
    assert one.tau == 0.25
    assert HardInstance.make(code_rows=2, n_features=64, tau=0.001).repeats == 1
    assert HardInstance(3, 5).orthogonal_rows == 8


def test_shares_of_consensus_columns_and_signs():
    """False alarms: below 1e-8 for each comparison, six standard errors."""
    one = HardInstance(code_rows=7, n_features=20_000, code_share=0.3, seed=5)
    for i in (0, 7):
        columns, signs = one.consensus(i)
        rows = np.delete(one.code, i, axis=0)
        np.testing.assert_array_equal(rows[:, columns], np.tile(signs, (7, 1)))
        share = len(columns) / one.n_features
        m = one.consensus_share
        assert abs(share - m) < 6 * math.sqrt(m * (1 - m) / one.n_features)
        assert abs(signs.mean()) < 6 / math.sqrt(len(columns))
    others = np.delete(rows, columns, axis=1)
    assert (np.abs(others.mean(axis=0)) < 1).all()
    assert one.agreement(np.where(np.isin(np.arange(20_000), columns), 1.0, 0.0), 7) == np.mean(
        signs == 1
    )
    assert abs(one.from_code.mean() - 0.3) < 6 * math.sqrt(0.21 / 20_000)


@every_instance
def test_risk_is_the_mean_squared_loss_of_the_rows(one):
    rng = np.random.default_rng(0)
    X, y = one.data(2)
    for theta in rng.standard_normal((5, one.n_features)):
        assert one.risk(theta, 2) == pytest.approx(np.mean((X @ theta - y) ** 2), rel=1e-12)


@every_instance
def test_optimum_is_cvxpys(one):
    for i in (0, 3):
        X, y = one.data(i)
        theta = cp.Variable(one.n_features)
        risk = cp.sum_squares(X @ theta - y) / len(y)
        cp.Problem(cp.Minimize(risk), [cp.norm1(theta) <= 1]).solve(
            cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
        )
        assert one.optimum(i) == pytest.approx(float(risk.value), rel=1e-7)
        assert np.abs(one.minimiser(i)).sum() <= 1 + 1e-12
        np.testing.assert_allclose(one.minimiser(i), theta.value, atol=1e-4)


def test_the_tight_instance_needs_the_ball():
    assert np.abs(TIGHT.minimiser(0)).sum() == pytest.approx(1, abs=1e-12)
    assert np.abs(SMALL.minimiser(0)).sum() < 1


@every_instance
def test_lemma_holds_for_every_model(one):
    rng = np.random.default_rng(1)
    for i in (0, one.code_rows):
        optimum = one.optimum(i)
        for theta in candidates(one, i, rng):
            least = one.least_risk(one.agreement(theta, i), i)
            assert one.risk(theta, i) >= least * (1 - 1e-12)
            assert one.risk(theta, i) >= optimum - 1e-12


def test_lemma_is_attained_where_no_column_is_mixed():
    one = next(
        each
        for each in (HardInstance(3, 16, 1, 0.05, seed) for seed in range(50))
        if len(each.consensus(0).columns) == 16
    )
    signs = one.consensus(0).signs
    for agreed in (4, 12, 16):
        share = agreed / 16
        theta = np.where(np.arange(16) < agreed, signs, 0.0) / (16 * (one.tau + share))
        assert one.agreement(theta, 0) == share
        assert one.risk(theta, 0) == pytest.approx(one.least_risk(share, 0), rel=1e-12)


def test_low_risk_means_three_quarters_agreement():
    """Lemma 3.3: models near the optimum have the signs, and some with fewer signs come close."""
    one, rng = HardInstance(6, 256, 1, 0.12, 7), np.random.default_rng(2)
    threshold = one.least_risk(0.75, 0)
    assert one.optimum(0) < threshold
    best, low = one.minimiser(0), 0
    for _ in range(2000):
        flipped = rng.random(256) < rng.uniform(0, 0.4)
        theta = in_ball(np.where(flipped, 0.0, best) * rng.uniform(0.8, 1.3))
        if one.risk(theta, 0) < threshold:
            low += 1
            assert one.agreement(theta, 0) >= 0.75
    assert low > 200
    columns, signs = one.consensus(0)
    kept = columns[: int(0.74 * len(columns))]
    theta = np.zeros(256)
    theta[kept] = signs[: len(kept)]
    theta /= len(kept)
    assert one.risk(theta, 0) > threshold


def test_scores_of_members_sum_to_what_the_proof_says():
    """Lemma 2 of the page for the ridge solution. False alarms: below 1e-8, six errors."""
    lhs, rhs = [], []
    for seed in range(600):
        one = HardInstance(4, 64, 2, 0.4, seed)
        theta, (columns, signs) = one.minimiser(0), one.consensus(0)
        length = np.linalg.norm(theta[one.from_code])
        lhs.append(one.trace(theta, 0).members.sum() * length)
        rhs.append(2 * 0.4 / (math.pi * one.consensus_share) * (signs @ theta[columns]))
    difference = np.array(lhs) - np.array(rhs)
    assert abs(difference.mean()) < 6 * difference.std() / math.sqrt(600)
    assert np.mean(rhs) > 20 * difference.std() / math.sqrt(600)


def test_the_optimum_is_traced_and_the_model_0_is_not():
    one = HardInstance(code_rows=2, n_features=1024, repeats=1, code_share=0.48)
    found = one.trace(one.minimiser(1), 1, outsiders=400)
    assert found.members.shape == (2,)
    assert found.outsiders.shape == (400,)
    assert (found.members > 4).all()
    assert abs(found.outsiders.mean()) < 6 / math.sqrt(400)
    assert found.outsiders.std() == pytest.approx(1, abs=0.3)
    assert not np.any(one.trace(np.zeros(1024), 1).members)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_lower_bound_is_below_what_no_data_achieves(epsilon):
    """The model 0 reads nothing, so the bound holds for it at every epsilon."""
    one = HardInstance.hardest(1100, epsilon, 1e-6)
    assert one.n_rows <= 1100
    bound = one.lower_bound(epsilon, 1e-6)
    zero = np.mean(
        [
            each.excess_risk(np.zeros(one.n_features), 0)
            for each in (
                HardInstance(one.code_rows, one.n_features, one.repeats, one.code_share, seed)
                for seed in range(5)
            )
        ]
    )
    assert 0.2 * zero < bound < zero


def test_lower_bound_falls_with_the_budget():
    one = HardInstance.hardest(2100, 0.1, 1e-6)
    bounds = [one.lower_bound(epsilon, 1e-6) for epsilon in (0.01, 0.1, 0.3, 3.0, 50.0, 1e6)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == one.lower_bound(float("inf"), 1e-6) == 0
    deltas = [one.lower_bound(0.1, delta) for delta in (0.0, 1e-6, 1e-4, 1e-2)]
    assert deltas == sorted(deltas, reverse=True)
    assert deltas[-1] == 0


def test_the_rate_is_two_thirds():
    """The bound times (n sinh(epsilon))^(2/3), without delta: it falls to 0.0399 and no further."""
    constants = [
        HardInstance.hardest(2**k, 0.1).lower_bound(0.1) * (2**k * math.sinh(0.1)) ** (2 / 3)
        for k in (16, 20, 24)
    ]
    assert min(constants) > 0.0399
    assert max(constants) < 0.07


BAD = {
    "no rows": (lambda: HardInstance(0, 8), "code_rows=0"),
    "half a column": (lambda: HardInstance(3, 8.5), "n_features=8.5"),
    "a flag": (lambda: HardInstance(True, 8), "code_rows=True"),
    "no repeats": (lambda: HardInstance(3, 8, repeats=0), "repeats=0"),
    "negative seed": (lambda: HardInstance(3, 8, seed=-1), "seed=-1"),
    "no code": (lambda: HardInstance(3, 8, code_share=0.0), "code_share=0.0"),
    "too much code": (lambda: HardInstance(3, 8, code_share=1.1), "code_share=1.1"),
    "not a number": (lambda: HardInstance(3, 8, code_share="all"), "code_share"),
    "tau 0": (lambda: HardInstance.make(3, 8, tau=0.0), "tau=0.0"),
    "tau nan": (lambda: HardInstance.make(3, 8, tau=float("nan")), "tau=nan"),
    "few rows": (lambda: HardInstance.hardest(3, 0.1), "n_rows=3"),
    "bad epsilon": (lambda: SMALL.lower_bound(-1.0), "epsilon"),
    "bad delta": (lambda: SMALL.lower_bound(1.0, 2.0), "delta"),
    "no such database": (lambda: SMALL.data(7), "i=7"),
    "negative database": (lambda: SMALL.consensus(-1), "i=-1"),
    "one database": (lambda: SMALL.neighbours(2, 2), "i=2 and j=2"),
    "short model": (lambda: SMALL.risk(np.zeros(47), 0), "48 columns"),
    "model as a row": (lambda: SMALL.trace(np.zeros((1, 48)), 0), "48 columns"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_say_what_to_do(case):
    call, text = BAD[case]
    with pytest.raises(InvalidArgument, match=r"Pass |Use |Common choices") as caught:
        call()
    assert text in str(caught.value)
