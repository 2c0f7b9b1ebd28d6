"""Attacks on whole searches, and on searches that are broken.

The runs are hostile: a thousand rows agree, so that scores are nearly exact, and one row decides how
often a run finds the best model, the second and the worst.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from riata import Bounds, PrivateErm, PrivateSearch
from riata.audit import epsilon_lower_bound
from riata.losses import Squared
from riata.mechanisms import Exact, LaplaceMechanism
from riata.mechanisms.chance import happens
from riata.mechanisms.noise import Noise
from riata.privacy.accountants import spent
from riata.privacy.events import Pure, RandomlyRepeated, compose
from riata.sets import L1Ball
from riata.tuning import planning

BEST, SECOND, WORST = 0.95, 0.6, 0.0
TOP, MIDDLE = 0.1, 0.2
ROWS, EXPECTED = 1_000, 10.0
X, Y = np.ones((ROWS, 1)), np.ones(ROWS)
OTHER = np.append(-1.0, Y[1:])


class Hostile(PrivateErm):
    """A fit with a pure guarantee that spends all of it on the sign of the first row."""

    def plan(self, n_rows, n_features):
        given = PrivateErm(
            Squared(), L1Ball(1.0), self.epsilon, 0.0, bounds=self.bounds,
            solver="frank-wolfe", steps=1, fit_intercept=False,
        )  # fmt: skip
        found = given.plan(n_rows, n_features)
        return replace(found, mechanisms={"model": LaplaceMechanism(self.epsilon)})

    def fit(self, X, y):
        noise, e = Noise(self.random_state), math.exp(self.epsilon)
        top, middle = (TOP / e, MIDDLE) if y[0] > 0 else (TOP, MIDDLE / e)
        found = WORST
        if happens(top, noise):
            found = BEST
        elif happens(middle / (1 - top), noise):
            found = SECOND
        self._job(X, y)
        self.coef_, self.intercept_ = np.array([found]), 0.0
        return self


def search(epsilon=1.0):
    erm = Hostile(Squared(), L1Ball(1.0), None, bounds=Bounds(1.0, 1.0), fit_intercept=False)
    return PrivateSearch(erm, {}, epsilon, 0.0, expected=EXPECTED)


def found(searched, plan, y, noise, draws, value):
    return np.array([value(searched._best(plan, X, y, noise)) for _ in range(draws)])


def attacked(searched, plan, draws, value):
    """A lower bound on epsilon. False-alarm rate 1e-7."""
    noise = Noise(11)
    sides = [found(searched, plan, y, noise, draws, value) for y in (Y, OTHER)]
    return epsilon_lower_bound(*sides, failure=1e-7)


def model(best):
    return int(100 * best[0].coef_[0])


def test_a_hostile_search_stays_within_its_claim_and_comes_near():
    """False-alarm rate 1e-7."""
    searched = search(epsilon=3.0)
    plan = searched.plan(ROWS, 1)
    assert plan.spent.epsilon == pytest.approx(3.0, rel=1e-6)
    assert 0.35 * 3.0 < attacked(searched, plan, 500, model) <= 3.0


def test_a_search_that_charges_only_the_winner_is_caught(monkeypatch):
    """False-alarm rate 1e-7, for a search of no more than epsilon 1."""

    def only_the_winner(plans, score, expected):
        run = spent(compose((plans[0].event, 1), (score.event, 1)), 0.0).epsilon
        return RandomlyRepeated((compose((Pure(run), 1)),), 1.0, 1.0)

    monkeypatch.setattr(planning, "_event", only_the_winner)
    searched = search(epsilon=1.0)
    plan = searched.plan(ROWS, 1)
    assert plan.spent.epsilon == pytest.approx(1.0, rel=1e-6)
    assert attacked(searched, plan, 1_500, model) > 1.0


class Unscored(PrivateSearch):
    """Compares the candidates by their exact scores."""

    def _scored(self, plan, number, model, X, y, noise):
        return super()._scored(replace(plan, score=Exact()), number, model, X, y, noise)


def test_a_search_by_exact_scores_is_caught():
    """False-alarm rate 1e-7, for a search of no more than epsilon 1."""
    searched = Unscored(search().estimator, {}, 1.0, 0.0, expected=EXPECTED)
    plan = searched.plan(ROWS, 1)
    assert attacked(searched, plan, 150, lambda best: int(round(1e6 * best[1]))) > 1.0
