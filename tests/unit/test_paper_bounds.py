"""Bounds of the paper's local model with constants, and epsilons of people's own."""

import math

import numpy as np
import pytest

from riata.errors import InvalidArgument
from riata.local.paper import PaperL1Regression, PaperSmoothGLM, PaperSparseMean, PrivateVector
from riata.local.paper.error_bounds import mean_deviation, mean_error, projected_risk
from riata.local.paper.smooth_glm import Synopses
from riata.mechanisms.noise import Noise
from riata.sets import L1Ball


def test_means_of_reports_are_rarely_further_than_the_deviation():
    """False alarms: 400 means exceed a bound of 0.05 in more than 0.14 of cases with probability
    below 1e-9."""
    rng, vector = np.random.default_rng(0), PrivateVector.calibrated(4.0, 1e-6)
    bound = mean_deviation(vector, 50, 20, 0.05)
    rows = rng.standard_normal((400, 50, 20))
    rows /= np.linalg.norm(rows, axis=2, keepdims=True)
    noise = math.sqrt(vector.variance) * rng.standard_normal(rows.shape)
    off = np.abs((rows + noise).mean(axis=1)).sum(axis=1)
    assert np.mean(off > bound) <= 0.14
    assert off.mean() > 0.4 * bound


def test_vectors_that_agree_in_l1_after_a_projection_are_as_near_as_the_lemma_says():
    rng, p, d = np.random.default_rng(1), 200, 400
    width = L1Ball(1.0, d).gaussian_width().value
    G = rng.standard_normal((p, d)) / math.sqrt(p)
    for _ in range(200):
        one, other = (L1Ball(1.0).project(3 * rng.standard_normal(d)) for _ in range(2))
        apart = np.linalg.norm(one - other)
        slack = np.abs(G @ (one - other)).sum() / 2
        assert apart <= mean_error(p, width, 1.0, slack, 0.01)
    assert mean_error(10**8, width, 1.0, 0.0, 0.01) < 0.01


def test_the_error_of_a_mean_with_a_proven_tolerance_is_below_its_bound():
    x = np.zeros((3_000, 6))
    x[:, 0] = 0.9
    model = PaperSparseMean(
        epsilon=60.0, delta=1e-6, groups=1, tolerance="proven", random_state=0
    ).fit(x)
    bound = model.error_bound(3_000, 6)
    assert np.linalg.norm(model.mean_ - x[0]) <= bound < 1.0
    assert not model.zero_is_feasible_
    projected = PaperSparseMean(epsilon=8.0, delta=1e-6, groups=1, dimension=4)
    assert projected.error_bound(10**9, 6) <= 2.0
    few = PaperSparseMean(epsilon=8.0, delta=1e-6, groups=2)
    assert few.error_bound(10**12, 6) == 2.0  # two means have no median to rely on
    enough = PaperSparseMean(epsilon=8.0, delta=1e-6)
    assert enough.error_bound(10**12, 6) < 0.01


def test_the_risk_of_regression_is_below_its_bound_which_falls_like_the_root():
    second = np.diag([0.4, 0.3, 0.2, 0.1])
    w = np.array([0.5, -0.3, 0.1, 0.0])
    for n in (10**7, 10**9):
        bound = PaperL1Regression(epsilon=4.0, delta=1e-6, dimension=None).risk_bound(n, 4)
        for seed in range(5):
            model = PaperL1Regression(
                epsilon=4.0, delta=1e-6, dimension=None, random_state=seed
            ).fit_moments(n, second, second @ w, 0.3)
            off = model.coef_ - w
            assert off @ second @ off / 2 <= bound
    learner = PaperL1Regression(epsilon=4.0, delta=1e-6, dimension=None)
    fall = learner.risk_bound(10**8, 4) / learner.risk_bound(10**10, 4)
    assert fall == pytest.approx(10, rel=0.02)
    vectors = PrivateVector.calibrated(4.0, 1e-6), PrivateVector.calibrated(4.0, 1e-6)
    assert projected_risk(*vectors, 10**8, 4, 2.0, 0.05) > projected_risk(
        *vectors, 10**8, 4, 1.0, 0.05
    )
    projecting = PaperL1Regression(epsilon=4.0, delta=1e-6, dimension=20)
    assert projecting.risk_bound(10**9, 100) > projecting.set_params(dimension=50).risk_bound(
        10**12, 100
    )


def test_a_mean_is_learned_from_people_with_their_own_epsilons():
    rng = np.random.default_rng(2)
    x = np.tile([0.7, 0.0, 0.0, -0.4], (2_000, 1)) + 0.01 * rng.standard_normal((2_000, 4))

    def learner(epsilon):
        return PaperSparseMean(epsilon=epsilon, delta=1e-6, dimension=4, groups=1, tolerance="auto")

    noise = Noise(3)
    sent = {
        epsilon: np.array([learner(epsilon).report(row, noise=noise) for row in part])
        for epsilon, part in ((2.0, x[:1000]), (20.0, x[1000:]))
    }
    both = learner(2.0).learn_groups(sent, n_features=4)
    assert np.linalg.norm(both.mean_ - x[0]) < 0.15  # 0.5 with epsilon 2 alone
    assert both.privacy_.epsilon == 20.0
    assert "chose one of epsilon 2, 20" in both.privacy_.notes[-1]
    one = learner(20.0).learn_groups({20.0: sent[20.0]}, n_features=4)
    np.testing.assert_allclose(one.mean_, learner(20.0).learn(sent[20.0], n_features=4).mean_)
    with pytest.raises(InvalidArgument, match="as many"):
        learner(2.0).learn_groups({1.0: sent[2.0], 2.0: sent[20.0][:, :3]}, n_features=4)
    with pytest.raises(InvalidArgument):
        learner(2.0).learn_groups({}, n_features=4)


@pytest.mark.not_quick
def test_gradients_are_learned_from_people_with_their_own_epsilons():
    rng = np.random.default_rng(4)
    x = rng.standard_normal((600, 2))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = np.where(x[:, 0] > 0, 1.0, -1.0)

    def learner(epsilon):
        return PaperSmoothGLM(epsilon=epsilon, delta=1e-6, copies="needed", composition="exact")

    noise = Noise(5)
    sent = {
        epsilon: Synopses.stacked(
            [learner(epsilon).report(row, t, noise=noise) for row, t in zip(*part, strict=True)]
        )
        for epsilon, part in ((8.0, (x[:200], y[:200])), (100.0, (x[200:], y[200:])))
    }
    both = learner(8.0).learn_groups(sent)
    quiet, loud = (learner(epsilon).learn(part).gradient_sigma_ for epsilon, part in sent.items())
    mean = math.sqrt((200 * quiet**2 + 400 * loud**2) / 600)
    assert both.gradient_sigma_ == pytest.approx(mean)
    assert 0 < np.linalg.norm(both.coef_) <= 1
    assert both.privacy_.epsilon == 100.0
    assert both.n_iter_ == 600
    alone = learner(100.0).learn_groups({100.0: sent[100.0]})
    np.testing.assert_allclose(alone.coef_, learner(100.0).learn(sent[100.0]).coef_)
    with pytest.raises(InvalidArgument):
        learner(8.0).learn_groups({})
    with pytest.raises(InvalidArgument, match="copies"):
        learner(8.0).set_params(degree=3).learn_groups(sent)
