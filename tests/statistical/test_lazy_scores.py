"""Selections from bounds on scores have exactly the exponential mechanism's law.

Seeds are fixed. Each test would reject a correct draw with probability at most `FALSE_ALARM` over
the choice of its seed; the whole file, with fewer than 60 of them, with less than 6e-8. Broken
twins show that the same tests notice what goes wrong.
"""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp

from riata import Bounds
from riata.engines import LocalEngine, local, scores
from riata.engines.scores import LazyScores
from riata.losses import Logistic, Squared
from riata.mechanisms import ExponentialMechanism, rejection
from riata.mechanisms.noise import Noise
from riata.mechanisms.noisy_max import Scale
from riata.mechanisms.rejection import draw
from riata.problem import Problem
from riata.queries import VertexUtilities
from riata.sets import L1Ball, Simplex

from goodness_of_fit import pvalue

pytestmark = pytest.mark.matrix(one_in=11)

FALSE_ALARM = 1e-9

#: What scores know when they are drawn from: bounds of groups alone, of single columns as well, or
#: whatever they do by themselves, which for rows as few as here is a snapshot at every rejection.
MODES = {
    "groups": {"_WASTE": np.inf, "_LOOSE": np.inf},
    "singles": {"_WASTE": np.inf, "_LOOSE": 0.0, "_LOOKS": 1},
    "snapshots": {},
}


def law_of(query, engine, epsilon):
    """The exponential mechanism's probabilities, from all utilities."""
    values = (
        query.from_total(engine.total(query)) * Scale(epsilon, query.sensitivity("linf")).factor
    )
    values = np.concatenate([values, -values]) if query.symmetric else values
    return np.exp(values - logsumexp(values))


class Case:
    """Rows, a walk of theta along some vertices, and scores that drifted on the way."""

    def __init__(self, body, sparse_rows, epsilon, loss=None, n=300, p=7, intercept=0.0):
        rng = np.random.default_rng(70)
        x = rng.uniform(-1, 1, (n, p)) * (rng.random((n, p)) < (0.3 if sparse_rows else 1.0))
        x[:, p - 1] = 0.0  # a column of zeros is a candidate like any other
        y = np.where(x[:, 0] - 0.5 * x[:, 1] + rng.normal(0, 0.3, n) > 0, 1.0, -1.0)
        self.problem = Problem(loss or Logistic(), body, Bounds(1.0, 1.0), n, p)
        rows = sparse.csr_array(x) if sparse_rows else x
        self.engine = LocalEngine(rows, y, self.problem.bounds)
        self.plain = LocalEngine(rows, y, self.problem.bounds)
        self.epsilon, self.intercept = epsilon, intercept

    def query(self, theta):
        return VertexUtilities(self.problem, theta)

    def drifted(self, moves=6):
        """Scores after some moves, the snapshot before them."""
        theta = self.problem.set.start()
        for t in range(4, 4 + moves):
            known = self.engine.scores(self.query(theta), self.scale(theta).factor)
            vertex = self.problem.set.vertex(t % self.problem.n_features)
            theta = theta.toward(vertex, 1 / (t + 2)).with_offset(self.intercept * t)
        known = self.engine.scores(self.query(theta), self.scale(theta).factor)
        assert known is not None
        return known, theta

    def scale(self, theta):
        return Scale(self.epsilon, self.query(theta).sensitivity("linf"))

    def counts(self, draws, seed):
        known, theta = self.drifted()
        law = law_of(self.query(theta), self.plain, self.epsilon)
        size, noise, scale = self.problem.n_features, Noise(seed), self.scale(theta)
        found = np.zeros(len(law), dtype=int)
        for _ in range(draws):
            column, positive = draw(known, scale, noise)
            found[column if positive else column + size] += 1
        return found, law


@pytest.fixture
def mode(request, monkeypatch):
    monkeypatch.setattr(local, "FEW_ENTRIES", 0)
    for name, value in MODES[getattr(request, "param", "groups")].items():
        monkeypatch.setattr(scores, name, value)


every_mode = pytest.mark.parametrize("mode", MODES, indirect=True)

#: From flat to peaked.
EPSILONS = [0.002, 0.1, 0.4]

FEW = [
    ("groups", L1Ball(2.0), False, 0.2),
    ("groups", Simplex(2.0), True, 0.3),
    ("singles", L1Ball(2.0), True, 0.3),
    ("singles", Simplex(2.0), False, 0.1),
    ("snapshots", L1Ball(2.0), True, 0.01),
]


@pytest.mark.parametrize(("mode", "body", "sparse_rows", "epsilon"), FEW, indirect=["mode"])
def test_a_selection_has_the_mechanisms_law(mode, body, sparse_rows, epsilon):
    assert pvalue(*Case(body, sparse_rows, epsilon).counts(20_000, seed=71)) >= FALSE_ALARM


@pytest.mark.slow
@every_mode
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=["squared", "logistic"])
@pytest.mark.parametrize("body", [L1Ball(2.0), Simplex(2.0)], ids=["ball", "simplex"])
def test_every_selection_has_the_mechanisms_law(mode, body, epsilon, loss):
    case = Case(body, True, epsilon, loss, n=120, p=20, intercept=0.01)
    assert pvalue(*case.counts(60_000, seed=72)) >= FALSE_ALARM


def paths(case, steps):
    """The probability of every sequence of selections, and where it leads."""
    body, found = case.problem.set, {(): (1.0, case.problem.set.start())}
    for t in range(steps):
        longer = {}
        for path, (chance, theta) in found.items():
            law = law_of(case.query(theta), case.plain, case.epsilon)
            for vertex, each in enumerate(law):
                there = theta.toward(body.vertex(vertex), 1 / (t + 2))
                longer[(*path, vertex)] = (chance * each, there)
        found = longer
    return {path: chance for path, (chance, _) in found.items()}


def followed(case, runs, steps, seed):
    """How often each sequence of selections is made, one after the other on one engine."""
    noise, mechanism, body = Noise(seed), ExponentialMechanism(case.epsilon), case.problem.set
    counts = dict.fromkeys(itertools.product(range(body.n_vertices), repeat=steps), 0)
    for _ in range(runs):
        theta, path = body.start(), ()
        for t in range(steps):
            chosen = mechanism.release(case.query(theta), case.engine, noise)
            theta = theta.toward(body.vertex(chosen), 1 / (t + 2))
            path += (chosen,)
        counts[path] += 1
    return counts


@pytest.mark.parametrize("mode", ["singles", "snapshots"], indirect=True)
@pytest.mark.parametrize(
    ("body", "p", "steps"), [(Simplex(2.0), 3, 3), (L1Ball(2.0), 3, 2)], ids=["simplex", "ball"]
)
def test_consecutive_selections_have_their_joint_law(mode, body, p, steps):
    case = Case(body, True, 1.0, n=60, p=p)
    law, counts = paths(case, steps), followed(case, 1_500, steps, seed=73)
    assert pvalue([counts[path] for path in law], list(law.values())) >= FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["singles", "snapshots"], indirect=True)
@pytest.mark.parametrize("body", [Simplex(2.0), L1Ball(2.0)], ids=["simplex", "ball"])
def test_many_consecutive_selections_have_their_joint_law(mode, body):
    case = Case(body, True, 1.0, n=60, p=3)
    steps = 2 if body.symmetric else 3
    law, counts = paths(case, steps), followed(case, 20_000, steps, seed=76)
    assert pvalue([counts[path] for path in law], list(law.values())) >= FALSE_ALARM


@every_mode
def test_the_law_is_the_same_when_every_coin_needs_more_bits(mode, monkeypatch):
    monkeypatch.setattr(rejection, "band", lambda value: 2.0)
    assert pvalue(*Case(L1Ball(2.0), False, 0.1).counts(1_000, seed=74)) >= FALSE_ALARM


# Broken twins.


def no_drift(monkeypatch):
    monkeypatch.setattr(LazyScores, "_norms", lambda self, room: (0.0, 0.0))


def no_swap(monkeypatch):
    learn = LazyScores._learn

    def dropped(self, look):
        order = self._order.copy()
        learn(self, look)
        self._order = order  # the last of the group is lost, and the candidate there twice

    monkeypatch.setattr(LazyScores, "_learn", dropped)


def stale_snapshot(monkeypatch):
    at = LazyScores.at

    def moved(self, *given):
        at(self, *given)
        self._snapshots[-1] = self._snapshots[-1]._replace(slopes=self._slopes)
        self._set_rest(self._grouped)  # as if the scores were those of the present slopes

    monkeypatch.setattr(LazyScores, "at", moved)


def low_envelope(monkeypatch):
    groups = LazyScores.groups

    def lower(self):
        counts, bounds = groups(self)
        return counts, bounds - scores._WIDTH / self._factor

    monkeypatch.setattr(LazyScores, "groups", lower)


def no_sign(monkeypatch):
    monkeypatch.setattr(rejection, "_settled_sign", lambda *args: True)


def first_bits_only(monkeypatch):
    monkeypatch.setattr(rejection, "_accepted", lambda coin, *args: True)


#: How each is broken, which bounds are used, epsilon, and as many draws as it takes.
TWINS = {
    "drift of 0": (no_drift, "groups", 0.2, 20_000),
    "dropped swap": (no_swap, "singles", 0.1, 8_000),
    "stale snapshot": (stale_snapshot, "groups", 0.2, 20_000),
    "envelope that is too low": (low_envelope, "groups", 0.1, 8_000),
    "one sign": (no_sign, "snapshots", 0.1, 4_000),
    "everything accepted that is evaluated": (first_bits_only, "groups", 0.2, 8_000),
}


@pytest.mark.parametrize("name", TWINS)
def test_broken_twins_have_another_law(name, monkeypatch):
    break_it, how, epsilon, draws = TWINS[name]
    monkeypatch.setattr(local, "FEW_ENTRIES", 0)
    for setting, value in MODES[how].items():
        monkeypatch.setattr(scores, setting, value)
    break_it(monkeypatch)
    case = Case(L1Ball(2.0), False, epsilon)
    assert pvalue(*case.counts(draws, seed=75)) < FALSE_ALARM
