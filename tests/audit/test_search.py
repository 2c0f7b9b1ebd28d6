"""Attacks on whole searches, and on searches that are broken.

The runs are hostile: all rows but one agree, so that scores are nearly exact, and this one decides
how often a run finds the best model, the second and the worst.
"""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest

from riata import Bounds, PrivateErm, PrivateSearch
from riata.audit import epsilon_lower_bound
from riata.engines.choice import Arrays
from riata.losses import Squared
from riata.mechanisms import Exact, LaplaceMechanism
from riata.mechanisms.discrete import bernoulli
from riata.mechanisms.noise import Noise
from riata.privacy.accountants import spent
from riata.privacy.events import Pure, RandomlyRepeated, compose
from riata.sets import L1Ball
from riata.tuning import planning

BEST, SECOND, WORST = 0.95, 0.6, 0.0
TOP, MIDDLE = 0.3, 0.2
ROWS = 1_000
X, Y = np.ones((ROWS, 1)), np.ones(ROWS)
OTHER = np.append(-1.0, Y[1:])


class Hostile(PrivateErm):
    """A fit with a pure guarantee that spends all of it on the sign of the first row."""

    def __sklearn_clone__(self):
        return copy.copy(self)

    def request(self, X, y):
        return super().request_for_shape(*X.shape), Arrays(X, y)

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
        if bernoulli(top, noise):
            found = BEST
        elif bernoulli(middle / (1 - top), noise):
            found = SECOND
        self.coef_, self.intercept_ = np.array([found]), 0.0
        return self


def search(epsilon, expected, kind=PrivateSearch):
    erm = Hostile(Squared(), L1Ball(1.0), None, bounds=Bounds(1.0, 1.0), fit_intercept=False)
    return kind(erm, {}, epsilon, 0.0, expected=expected)


def attacked(searched, plan, draws, value):
    """A lower bound on epsilon from what a search returns. False-alarm rate 5e-7."""
    noise = Noise(11)
    sides = [[value(searched._best(plan, X, y, noise)) for _ in range(draws)] for y in (Y, OTHER)]
    return epsilon_lower_bound(*sides, failure=5e-7, ordered=True)


def model(best):
    """Larger for models that speak for the first data set."""
    return [BEST, WORST, SECOND].index(best[0].coef_[0])


def test_a_hostile_search_stays_within_its_claim_and_is_not_harmless():
    """False-alarm rate 5e-7."""
    searched = search(6.0, 4)
    plan = searched.plan(ROWS, 1)
    assert plan.spent.epsilon == pytest.approx(6.0, rel=1e-6)
    assert 0.1 * 6.0 < attacked(searched, plan, 400, model) <= 6.0


@pytest.mark.slow
def test_a_search_that_charges_only_the_winner_is_caught(monkeypatch):
    """False-alarm rate 5e-7, for a search of no more than epsilon 2."""

    def only_the_winner(plans, score, expected):
        run = spent(compose((plans[0].event, 1), (score.event, 1)), 0.0).epsilon
        return RandomlyRepeated((compose((Pure(run), 1)),), 1.0, 1.0)

    monkeypatch.setattr(planning, "_event", only_the_winner)
    searched = search(2.0, 10)
    plan = searched.plan(ROWS, 1)
    assert plan.spent.epsilon == pytest.approx(2.0, rel=1e-6)
    assert attacked(searched, plan, 4_000, model) > 2.0


class Unscored(PrivateSearch):
    """Compares the candidates by their exact scores."""

    def _scored(self, plan, number, model, X, y, noise):
        return super()._scored(replace(plan, score=Exact()), number, model, X, y, noise)


def test_a_search_by_exact_scores_is_caught():
    """False-alarm rate 5e-7, for a search of no more than epsilon 1."""
    searched = search(1.0, 4, Unscored)
    plan = searched.plan(ROWS, 1)
    possible = [BEST - 1, SECOND - 1, WORST - 1]  # minus the error if all rows agree
    assert (
        attacked(searched, plan, 150, lambda b: int(np.isclose(b[1], possible, 0, 5e-4).any())) > 1
    )
