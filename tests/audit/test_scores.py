"""`scores` and `search_pair`: what a judge is given, and the pairs that show a whole fit.

The judge here is `epsilon_lower_bound`, at a false-alarm rate of 1e-9 for each audit over the
choice of its seed; seeds are fixed. Broken twins are caught by it, and by exact replays of searched
pairs.
Judges of other projects are run too where they are installed.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from riata import Bounds, PrivateErm, PrivateLasso, PrivateLogisticRegression
from riata.audit import (
    Neighbours,
    epsilon_lower_bound,
    lower_bound,
    replay,
    scores,
    search_pair,
    standard,
    worst_pair,
)
from riata.audit.distances import realised_by_pairs
from riata.audit.grey_box import measured
from riata.audit.log_ratio import log_ratio
from riata.audit.witness import Trial
from riata.engines import LocalEngine
from riata.errors import InvalidArgument
from riata.losses import Squared
from riata.mechanisms import ExponentialMechanism, GaussianMechanism, LaplaceMechanism
from riata.mechanisms.noise import Noise
from riata.privacy.accountants import spent
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.queries import SumsByClass
from riata.sets import L1Ball, L2Ball, SparseBall
from riata.solvers import ClassSums, PrivatePeeling

pytestmark = pytest.mark.matrix(one_in=11)

UNIT, LENGTH = Bounds(1.0, 1.0), Bounds(1.0, 1.0, norm="l2")
FALSE_ALARM = 1e-9


def erm(solver, delta=1e-3, epsilon=1.0, constraint=None, **options):
    return PrivateErm(
        Squared(), constraint or L1Ball(1.0), epsilon, delta, bounds=UNIT, solver=solver,
        fit_intercept=False, **options,
    )  # fmt: skip


def class_sums(steps=3):
    return PrivateLogisticRegression(
        1.0, 1e-6, bounds=LENGTH, solver=ClassSums(steps), classes=[0, 1]
    )


def shown(model, draws, seed=0):
    """A lower bound on epsilon, and the claim."""
    pair = worst_pair(model, 2, 1)
    found = scores(model, pair.data, pair.neighbour, draws=draws, seed=seed)
    judged = epsilon_lower_bound(
        found.in_scores, found.out_scores, found.delta, failure=FALSE_ALARM, ordered=True
    )
    return judged, found.epsilon


MECHANISMS = {
    "Gaussian": (erm("noisy-gradient", constraint=L2Ball(1.0), steps=1), GaussianMechanism),
    "Laplace": (
        erm(PrivatePeeling(1, split=False), 0.0, constraint=SparseBall(1)),
        LaplaceMechanism,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "mechanism"), MECHANISMS.values(), ids=MECHANISMS)
def test_a_sound_fit_stays_within_its_claim_and_a_twin_with_little_noise_does_not(
    model, mechanism, monkeypatch
):
    judged, claimed = shown(model, 400)
    assert judged <= claimed
    honest = mechanism.scale
    monkeypatch.setattr(mechanism, "scale", lambda self, query: honest(self, query) / 8)
    judged, claimed = shown(model, 400)
    assert judged > claimed


def test_a_selection_that_is_too_sure_is_caught(monkeypatch):
    model = erm("frank-wolfe", steps=1)
    judged, claimed = shown(model, 400)
    assert judged <= claimed
    honest = ExponentialMechanism.release

    def sure(self, query, engine, noise):
        return honest(ExponentialMechanism(8 * self.epsilon), query, engine, noise)

    monkeypatch.setattr(ExponentialMechanism, "release", sure)
    judged, claimed = shown(model, 400)
    assert judged > claimed


def test_larger_scores_speak_for_the_data():
    model = erm("gaussian-frank-wolfe", epsilon=8.0, steps=3)
    pair = worst_pair(model, 2, 1)
    found = scores(model, pair.data, pair.neighbour, draws=60, seed=1)
    turned = scores(model, pair.neighbour, pair.data, draws=60, seed=1)
    for each in (found, turned):
        assert np.median(each.in_scores) > np.median(each.out_scores)
    assert found.in_scores.mean() > 0 > found.out_scores.mean()


def test_each_side_is_fitted_on_its_own_rows():
    model = erm("gaussian-frank-wolfe", epsilon=1e4, steps=1)
    pair = worst_pair(model, 2, 1)
    found = scores(model, pair.data, pair.neighbour, draws=5, releases=True, seed=1)
    ours, theirs = found.in_releases[:, 0], found.out_releases[:, 0]
    assert ours.max() < theirs.min() or theirs.max() < ours.min()


def test_scores_are_exact_log_ratios_of_gaussian_releases():
    model = erm("gaussian-frank-wolfe", epsilon=1.0, steps=1)
    pair = worst_pair(model, 2, 1)
    found = scores(model, pair.data, pair.neighbour, draws=2_000, seed=2)
    # Normal with mean m and variance 2m, m = (change / noise)^2 / 2. Each mean is within six
    # standard errors, and the variance within 25% (eight standard errors): false alarm below 1e-8.
    z = replay(model, pair.data, pair.neighbour, seed=0).releases[0]
    m = (z.ratio / z.event.noise_multiplier) ** 2 / 2
    error = 6 * np.sqrt(2 * m / 2_000)
    assert found.in_scores.mean() == pytest.approx(m, abs=error)
    assert found.out_scores.mean() == pytest.approx(-m, abs=error)
    assert found.in_scores.var() == pytest.approx(2 * m, rel=0.25)


@pytest.mark.parametrize("name", [*standard.ESTIMATORS, *standard.ONE_STEP, *standard.CURVES])
def test_scores_do_not_know_from_which_side_a_release_comes(name):
    """With the sides exchanged, the same release has minus the score, up to rounding."""
    single = standard.ONE_STEP.get(name, (None,))[0]
    model = single or standard.CURVES.get(name) or standard.ESTIMATORS[name]
    size = (standard.ROWS, standard.COLUMNS) if name in standard.ESTIMATORS else (4, 1)
    pair = worst_pair(model, *size)
    trial = Trial(model, pair.data, pair.neighbour)
    for swapped in (False, True):
        for release in trial.run(Noise(seed=0), swapped=swapped):
            exchanged = replace(release, ours=release.theirs, theirs=release.ours)
            assert log_ratio(exchanged) == pytest.approx(-log_ratio(release), rel=1e-6, abs=1e-9)


def test_scores_follow_from_the_seed_and_leave_the_model_alone():
    model = PrivateLasso(1.0, 1e-3, bounds=UNIT, steps=2)
    pair = worst_pair(model, 6, 3)
    one, two = (
        scores(model, pair.data, pair.neighbour, draws=4, releases=True, seed=3) for _ in range(2)
    )
    for name in ("in_scores", "out_scores", "in_releases", "out_releases"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.in_scores.shape == one.out_scores.shape == (4,)
    assert len(one.in_releases) == len(one.out_releases) == 4
    assert one.in_releases.shape[1] == one.out_releases.shape[1]
    assert not hasattr(model, "coef_")
    plan = model.plan(6, 3)
    assert (one.epsilon, one.delta) == (plan.spent.epsilon, plan.spent.delta)
    assert one.claimed(1e-2) < one.epsilon
    assert scores(model, pair.data, pair.neighbour, draws=1).in_releases is None


def test_a_curve_is_made_from_scores():
    model = erm("gaussian-frank-wolfe", epsilon=4.0, steps=2)
    pair = worst_pair(model, 2, 1)
    ticks = []
    curve = lower_bound(
        model, pair.data, pair.neighbour, draws=200, seed=4, failure=1e-3, progress=ticks.append
    )
    found = scores(model, pair.data, pair.neighbour, draws=200, seed=4)
    assert curve.lower == (
        epsilon_lower_bound(
            found.in_scores, found.out_scores, found.delta, failure=1e-3, ordered=True
        ),
    )
    assert curve.claimed == (found.epsilon,)
    assert ticks == list(range(1, 201))


@pytest.mark.parametrize("draws", [0, -1, 1.5, True, "10", None])
def test_a_number_of_draws_that_is_none_is_refused(draws):
    with pytest.raises(InvalidArgument, match="draws="):
        scores(None, None, None, draws=draws)


# Searched pairs


@pytest.mark.parametrize(
    ("n_rows", "tries", "runs", "least"),
    [(300, 14, 1, 0.85), pytest.param(1_000, 60, 3, 0.95, marks=pytest.mark.slow)],
)
def test_class_sums_realise_their_claim_on_a_searched_pair(n_rows, tries, runs, least):
    found = search_pair(class_sums(), n_rows, 4, tries=tries, runs=runs)
    assert found.sound
    assert least < found.share <= 1
    assert found.first_share < 0.7
    assert found.ratio <= 1


@pytest.mark.parametrize(
    "name", [n for n in standard.ESTIMATORS if n != "ProjectedRegression, pure"]
)
def test_what_a_search_goes_by_agrees_with_an_exact_replay(name):
    model = standard.ESTIMATORS[name]
    pair = worst_pair(model, 12, 8)
    trial = Trial(model, pair.data, pair.neighbour)
    run, plan = trial.run(Noise(6)), trial.plan
    pure = plan.budget.delta == 0
    expected = sum(
        spent(each.event, plan.budget.delta).epsilon ** (1 if pure else 2)
        * each.ratio ** (1 if pure else 2)
        for each in measured(run, plan).releases
    )
    (x, y), (their_x, their_y) = pair.data, pair.neighbour
    last = slice(0) if plan.budget.adjacency == ADD_REMOVE else slice(1)
    sides = [
        model.request(x[:1], y[:1])[1].load(),
        model.request(their_x[:1], their_y[:1])[1].load(),
    ]
    sides[1] = tuple(part[last] for part in sides[1])
    engines = [plan.engine(LocalEngine, *side) for side in sides]
    found = realised_by_pairs([run], plan, engines)
    assert found[0, 1] == pytest.approx(expected, rel=1e-9)
    assert found[0, 1] == found[1, 0] > 0
    assert found[0, 0] == found[1, 1] == 0


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("bounds", [UNIT, LENGTH], ids=["entries", "length"])
def test_a_searched_pair_is_a_pair_of_neighbours_inside_the_bounds(adjacency, bounds):
    model = PrivateLasso(1.0, 1e-6, bounds=bounds, steps=2, adjacency=adjacency)
    ticks = []
    pair = search_pair(model, 40, 3, tries=4, runs=1, progress=ticks.append)
    (x, y), (their_x, their_y) = pair.data, pair.neighbour
    assert isinstance(pair, Neighbours)
    assert ticks[-1] <= 4
    assert x.shape == (40, 3)
    assert len(their_x) == 40 - (adjacency == ADD_REMOVE)
    same = slice(1, None) if adjacency == REPLACE_ONE else slice(None)
    np.testing.assert_array_equal(x[1:], their_x[same])
    np.testing.assert_array_equal(y[1:], their_y[same])
    norm = np.inf if bounds is UNIT else 2
    assert np.linalg.norm(x, norm, axis=1).max() <= 1 + 1e-9
    assert np.abs(y).max() <= 1
    assert 0 < pair.share <= 1
    again = search_pair(model, 40, 3, tries=4, runs=1)
    np.testing.assert_array_equal(again.data[0], x)
    assert again.share == pair.share


def test_a_search_catches_a_hole_that_the_pair_of_the_first_gradient_misses(monkeypatch):
    """The sums of the classes have half of their noise."""
    model = class_sums(1)
    honest = SumsByClass.row_bound
    monkeypatch.setattr(SumsByClass, "row_bound", lambda self, norm: honest(self, norm) / 2)
    pair = worst_pair(model, 300, 4)
    assert replay(model, pair.data, pair.neighbour, seed=1).sound
    assert not search_pair(model, 300, 4, tries=4, runs=1).sound


@pytest.mark.parametrize(
    ("name", "value"), [("tries", 0), ("tries", 1.5), ("runs", 0), ("runs", True), ("n_rows", 1)]
)
def test_a_search_refuses_numbers_that_are_none(name, value):
    numbers = {"n_rows": 10, "n_features": 2, "tries": 2, "runs": 1} | {name: value}
    with pytest.raises(InvalidArgument, match=f"{name}="):
        search_pair(class_sums(), **numbers)


# Judges of other projects


def jax_privacy(found, failure):
    judge = pytest.importorskip("jax_privacy.auditing").CanaryScoreAuditor
    return judge(found.in_scores, found.out_scores).epsilon_clopper_pearson(failure, found.delta)


def privacy_estimates(found, failure):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its docstrings have escapes that Python warns of
        judge = pytest.importorskip("privacy_estimates")
    half = len(found.in_scores) // 2

    def judged(at, draws):
        hits = [int((side[draws] > at).sum()) for side in (found.in_scores, found.out_scores)]
        count = judge.AttackResults(TP=hits[0], FN=half - hits[0], FP=hits[1], TN=half - hits[1])
        return judge.compute_eps_lo(count=count, delta=found.delta, alpha=failure, method="beta")

    first, second = slice(half), slice(half, 2 * half)  # one chooses a threshold, one is counted
    places = np.quantile(found.out_scores[first], np.linspace(0.5, 1, 51))
    return judged(max(places, key=lambda at: judged(at, first)), second)


@pytest.mark.slow
@pytest.mark.parametrize("judge", [jax_privacy, privacy_estimates])
def test_a_judge_of_another_project_agrees_and_catches_a_twin(judge, monkeypatch):
    """False-alarm rate 1e-8 for each of the two audits."""
    model = erm("gaussian-frank-wolfe", epsilon=2.0, steps=5)
    pair = search_pair(model, 200, 4, tries=10)
    found = scores(model, pair.data, pair.neighbour, draws=4_000, seed=0)
    assert 0 < judge(found, 1e-8) <= found.epsilon
    honest = GaussianMechanism.scale
    monkeypatch.setattr(GaussianMechanism, "scale", lambda self, query: honest(self, query) / 4)
    broken = scores(model, pair.data, pair.neighbour, draws=4_000, seed=0)
    assert broken.epsilon == found.epsilon
    assert judge(broken, 1e-8) > broken.epsilon
