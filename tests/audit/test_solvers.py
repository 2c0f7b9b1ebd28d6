"""Audits of the later solvers: replays in exact arithmetic, black boxes, and broken twins.

Replays are exact. A black-box audit accuses a sound mechanism with probability at most 1e-9 over
the choice of its seed; seeds are fixed.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from riata import (
    Bounds,
    HeavyTailedRegression,
    PrivateErm,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSparseRegression,
    ProjectedRegression,
    audit,
)
from riata.audit import replay
from riata.audit.witness import Trial
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.losses import (
    Absolute,
    Cox,
    Gamma,
    Hinge,
    Huber,
    Logistic,
    OrderedLogistic,
    Poisson,
    Squared,
    WeightedRows,
)
from riata.losses.weighted_rows import CODES
from riata.mechanisms import (
    GammaObjective,
    GaussianMechanism,
    GaussianObjective,
    LaplaceMechanism,
    Mechanism,
    Peeling,
    SampledGaussianMechanism,
    TopK,
)
from riata.mechanisms.noise import Noise
from riata.privacy import Budget, calibrate
from riata.privacy.accountants import spent
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.privacy.events import (
    Gaussian,
    ObjectivePerturbed,
    SampledGaussian,
    compose,
    leaves,
)
from riata.problem import Problem
from riata.queries import Gradient, GradientEntries, GradientStep, Minimum, Query, whitening
from riata.sets import L1Ball, L2Ball, LpBall, Polytope, SparseBall
from riata.solvers import (
    AveragedGradient,
    NoisyGradient,
    PerturbedObjective,
    PrivateHardThresholding,
    PrivatePeeling,
    ProfileGradient,
    Projected,
    WhitenedGradient,
)
from riata.vectors import Vector

from replaying import (
    ENTRIES,
    LENGTH,
    N_COLUMNS,
    N_ROWS,
    erm,
    every_adjacency,
    hostile_replays,
    worst_replay,
    worst_rows,
)

pytestmark = pytest.mark.matrix(one_in=11)

PAIRS = 25
SPARSE = SparseBall(3, 1.0)

#: Every solver by its name, and with the options that change what is released.
MODELS = {
    "noisy-gradient": erm(Squared(), L2Ball(1.0), LENGTH, "noisy-gradient", steps=4),
    "noisy-gradient, samples": erm(Squared(), L2Ball(1.0), LENGTH, NoisyGradient(4, sampling=0.3)),
    "noisy-gradient, clipped": erm(Squared(), L1Ball(1.0), ENTRIES, NoisyGradient(4, clip=0.05)),
    "noisy-gradient, not clipped": erm(
        Logistic(), L1Ball(1.0), ENTRIES, NoisyGradient(4, clip=None)
    ),
    "noisy-gradient, pure": erm(Absolute(), LpBall(1.5, 1.0), ENTRIES, NoisyGradient(4), 0.0),
    "whitened-gradient": erm(Squared(), L2Ball(1.0), LENGTH, "whitened-gradient", steps=4),
    "whitened-gradient, entries": erm(Squared(), L1Ball(1.0), ENTRIES, WhitenedGradient(3)),
    "whitened-gradient, counts": erm(Poisson(1.5), L1Ball(1.0), ENTRIES, WhitenedGradient(3)),
    "profile-gradient, durations": erm(
        Cox((0.5, 1.5)), L1Ball(1.0), ENTRIES, ProfileGradient(3)
    ),
    "averaged-gradient": erm(Squared(), L2Ball(1.0), LENGTH, "averaged-gradient", steps=4),
    "averaged-gradient, labels": erm(Logistic(), L1Ball(1.0), ENTRIES, AveragedGradient(3)),
    "hard-thresholding": erm(Squared(), SPARSE, ENTRIES, "hard-thresholding", steps=4),
    "hard-thresholding, length": erm(Logistic(), SPARSE, LENGTH, PrivateHardThresholding(4)),
    "peeling": erm(Squared(), SPARSE, ENTRIES, PrivatePeeling(4, split=False)),
    "peeling, pure": erm(Squared(), SPARSE, ENTRIES, PrivatePeeling(4, split=False), 0.0),
    "peeling, length": erm(Logistic(), SPARSE, LENGTH, "peeling", steps=3),
    "projected": erm(Squared(), L1Ball(1.0), ENTRIES, Projected(3, dimension=3)),
    "PrivateSparseRegression": lambda adjacency: PrivateSparseRegression(
        1.0, 1e-6, bounds=ENTRIES, sparsity=2, steps=3, adjacency=adjacency
    ),
    "HeavyTailedRegression": lambda adjacency: HeavyTailedRegression(
        1.0, 1e-6, sparsity=2, steps=3, adjacency=adjacency
    ),
    "ProjectedRegression": lambda adjacency: ProjectedRegression(
        1.0, 1e-6, bounds=ENTRIES, dimension=3, steps=4, adjacency=adjacency
    ),
    "PrivateLinearSVC": lambda adjacency: PrivateLinearSVC(
        1.0, 1e-6, bounds=LENGTH, classes=[0, 1], steps=3, adjacency=adjacency
    ),
    "PrivateLinearSVC, three classes": lambda adjacency: PrivateLinearSVC(
        1.0, 1e-6, bounds=ENTRIES, classes=["a", "b", "c"], steps=3, adjacency=adjacency
    ),
}  # fmt: skip

#: Slopes of which one sign is far smaller than the other, and codes as targets: the pairs of the
#: search, whose targets are as far out as they can be, are not the worst.
FAMILIES = {
    "ordered classes": erm(
        OrderedLogistic(3), L2Ball(1.0), LENGTH, ProfileGradient(3)
    ),
    "amounts": erm(Gamma(0.2), L2Ball(1.0), LENGTH, WhitenedGradient(3)),
    "weighted rows": erm(
        WeightedRows(Squared(), 1.5, 3.0), L2Ball(1.0), LENGTH.with_y(CODES),
        NoisyGradient(4, clip=None),
    ),
    "exposed rows": erm(
        WeightedRows(Poisson(4.0), 1.5, 2.0, 2.0), L1Ball(1.0), ENTRIES.with_y(CODES),
        WhitenedGradient(3),
    ),
}  # fmt: skip

#: One release, at a point that the rows themselves decide: the worst pair is not known in advance.
OBJECTIVES = {
    "objective-perturbation": erm(Squared(), L2Ball(1.0), LENGTH, "objective-perturbation"),
    "objective-perturbation, pure": erm(
        Logistic(), L1Ball(1.0), ENTRIES, "objective-perturbation", 0.0
    ),
    "projected objective": erm(Logistic(), L1Ball(1.0), ENTRIES, Projected(dimension=3), 0.0),
    "rounded corner, pure": erm(Hinge(), LpBall(1.5, 1.0), LENGTH, "objective-perturbation", 0.0),
    "rounded corner": erm(Absolute(), L2Ball(1.0), LENGTH, "objective-perturbation"),
    "polytope, pure": erm(
        Huber(0.5),
        Polytope(np.vstack([np.eye(N_COLUMNS), -np.eye(N_COLUMNS)])),
        ENTRIES,
        "objective-perturbation",
        0.0,
    ),
    "projected corner": erm(Hinge(), L1Ball(1.0), ENTRIES, Projected(dimension=3), 0.0),
}
every_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
every_objective = pytest.mark.parametrize("make", OBJECTIVES.values(), ids=OBJECTIVES)


@every_model
@every_adjacency
def test_no_release_of_a_fit_exceeds_its_claim_and_a_worst_pair_reaches_it(make, adjacency):
    model = make(adjacency)
    found = hostile_replays(model, PAIRS, seed=1)
    assert all(each.sound for each in found)
    assert all(each.realised.epsilon <= each.claimed.epsilon for each in found)
    assert max(each.worst for each in found) >= 0.3
    worst = worst_replay(model, seed=2)
    assert worst.sound
    assert worst.worst >= 0.95


@every_objective
@every_adjacency
def test_no_perturbed_objective_exceeds_its_claim(make, adjacency):
    model = make(adjacency)
    found = hostile_replays(model, PAIRS // 3, seed=3)
    assert all(each.sound for each in found)
    assert max(each.worst for each in found) >= 0.2


def test_a_split_fit_shows_a_replaced_row_in_its_own_part_only():
    model = erm(Squared(), SPARSE, ENTRIES, PrivatePeeling(4, split=True))(REPLACE_ONE)
    for each in hostile_replays(model, PAIRS, seed=4):
        assert each.sound
        assert each.realised.epsilon <= each.claimed.epsilon
        # Two looks a step and two mechanisms of the intercept's kind; the pairs differ in row 0.
        per_step = len(each.releases) // 4
        assert all(release.ratio == 0 for release in each.releases[per_step:])
        assert any(release.ratio > 0 for release in each.releases[:per_step])


def three_classes(solver):
    return lambda adjacency: PrivateLogisticRegression(
        1.0, 1e-6, bounds=LENGTH, classes=["a", "b", "c"], solver=solver, adjacency=adjacency
    )


@every_adjacency
@pytest.mark.parametrize("solver", ["joint-class-sums", "softmax-gradient"])
def test_no_release_of_all_classes_exceeds_its_claim(solver, adjacency):
    model = three_classes(solver)(adjacency)
    found = hostile_replays(model, PAIRS, seed=1)
    assert all(each.sound for each in found)
    assert all(each.realised.epsilon <= each.claimed.epsilon for each in found)
    assert max(each.worst for each in found) >= 0.9


@every_adjacency
@pytest.mark.parametrize("solver", ["joint-class-sums", "softmax-gradient"])
def test_a_third_of_the_sensitivity_of_all_classes_is_accused(monkeypatch, solver, adjacency):
    # As if the budget were divided by the number of classes and spent on each of them.
    model = three_classes(solver)(adjacency)
    honest = Query.sensitivity
    monkeypatch.setattr(Query, "sensitivity", lambda self, norm: honest(self, norm) / 3)
    assert not all(each.sound for each in hostile_replays(model, PAIRS, seed=1))


@every_adjacency
@pytest.mark.parametrize("make", FAMILIES.values(), ids=FAMILIES)
def test_no_release_of_a_family_exceeds_its_claim(make, adjacency):
    model = make(adjacency)
    found = hostile_replays(model, PAIRS, seed=1)
    assert all(each.sound for each in found)
    assert all(each.realised.epsilon <= each.claimed.epsilon for each in found)
    assert max(each.worst for each in found) >= 0.3


@every_adjacency
def test_weighted_rows_reach_their_claim_and_a_bound_without_weights_is_accused(
    monkeypatch, adjacency
):
    model = FAMILIES["weighted rows"](adjacency)
    x = np.zeros((N_ROWS, N_COLUMNS))
    x[0, 0] = 1.3
    y = model.loss.encode(np.r_[1.5, np.zeros(N_ROWS - 1)], np.full(N_ROWS, 3.0))
    other = y.copy()
    weight = 3.0 if adjacency == REPLACE_ONE else 0.0  # a row without weight adds nothing
    other[0] = model.loss.encode(np.array([-1.5]), np.array([weight]))[0]
    pair = ((x, y), (x, other))
    honest = replay(model, *pair, seed=2)
    assert honest.sound
    assert honest.worst >= 0.95
    # As if weights were at most 2: what is summed stays as it is, and the noise is less.
    sensitivity = Query.sensitivity
    monkeypatch.setattr(Query, "sensitivity", lambda self, norm: sensitivity(self, norm) * 2 / 3)
    assert not replay(model, *pair, seed=2).sound


# Broken twins that a replay catches


def caught(model, seed=5):
    return not worst_replay(model, seed).sound


@every_adjacency
@pytest.mark.parametrize(
    "name",
    ["noisy-gradient", "noisy-gradient, pure", "noisy-gradient, samples", "noisy-gradient, clipped",
     "hard-thresholding", "peeling", "peeling, pure", "projected", "PrivateSparseRegression",
     "whitened-gradient", "whitened-gradient, entries", "whitened-gradient, counts",
     "averaged-gradient", "averaged-gradient, labels",
     "profile-gradient, durations"],
)  # fmt: skip
def test_half_the_sensitivity_is_accused(monkeypatch, name, adjacency):
    model = MODELS[name](adjacency)
    assert not caught(model)
    honest = Query.sensitivity
    monkeypatch.setattr(Query, "sensitivity", lambda self, norm: honest(self, norm) / 2)
    assert caught(model)


@pytest.mark.parametrize("name", ["peeling", "peeling, pure"])
def test_values_with_the_noise_of_one_entry_are_accused(monkeypatch, name):
    model = MODELS[name](REPLACE_ONE)
    monkeypatch.setattr(
        GradientEntries,
        "row_bound",
        lambda self, norm: self.slope_bound() * float(np.max(self.bounds.of_columns(self.columns))),
    )
    assert caught(model)


@pytest.mark.parametrize("name", ["noisy-gradient, clipped"])
def test_a_clip_that_is_only_claimed_is_accused(monkeypatch, name):
    from riata.queries import ClippedGradient, Gradient

    model = MODELS[name](ADD_REMOVE)
    monkeypatch.setattr(ClippedGradient, "block_sum", Gradient.block_sum)
    assert caught(model)


@pytest.mark.parametrize(
    "name", ["whitened-gradient", "whitened-gradient, entries", "averaged-gradient"]
)
def test_whitened_rows_that_are_shortened_to_twice_their_length_are_accused(monkeypatch, name):
    model = MODELS[name](ADD_REMOVE)
    assert not caught(model)
    monkeypatch.setattr(whitening, "ROUNDED_DOWN", 2.0)
    assert caught(model)


def test_parts_that_overlap_spend_more_than_they_claim(monkeypatch):
    model = erm(Squared(), SPARSE, ENTRIES, PrivatePeeling(4, split=True))(REPLACE_ONE)

    def overspent():
        found = worst_replay(model, seed=6)
        return found.realised.epsilon > found.claimed.epsilon

    assert not overspent()

    def overlapping(self, part, parts):
        (block,) = self._blocks
        x, y = block.rows, block.y
        rows = np.unique([*range(part, len(y), parts), 0])  # row 0 is in all of them
        return LocalEngine(x[rows], y[rows], None, kernels="numpy")

    monkeypatch.setattr(LocalEngine, "part", overlapping)
    assert overspent()


def test_a_sensitivity_of_the_objective_that_forgets_the_intercept_is_accused(monkeypatch):
    # Rows so short that the intercept's column is nearly all of their length.
    model = PrivateErm(
        Squared(), L2Ball(1.0), 1.0, 0.0, bounds=Bounds(0.1, 1.0, norm="l2"),
        solver="objective-perturbation",
    )  # fmt: skip
    x, y = np.full((6, 1), 0.1), np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    neighbour = y.copy()
    neighbour[0] = -1.0
    assert replay(model, (x, y), (x, neighbour), seed=7).sound
    from riata.queries import Minimum

    monkeypatch.setattr(Minimum, "row_length", property(lambda self: self.bounds.row_norm("l2", 1)))
    assert not replay(model, (x, y), (x, neighbour), seed=7).sound


# Black boxes

FAILURE = 1e-9
DELTA = 0.01


def epsilon_lower_bound(ours, theirs, delta=0.0):
    return audit.epsilon_lower_bound(np.array(ours), np.array(theirs), delta, failure=FAILURE)


@dataclass(frozen=True)
class Twin(Mechanism):
    """Claims the cost of one mechanism and releases through another."""

    claimed: Mechanism
    actual: Any

    @property
    def event(self):
        return self.claimed.event

    def release(self, query, engine, noise):
        return self.actual(query, engine, noise)

    def describe(self, times):
        return self.claimed.describe(times)


def releases(mechanism, query, engine, draws, seed, adjacency=REPLACE_ONE):
    curator = Curator.open(
        compose((mechanism.event, draws)),
        read=lambda: engine,
        noise=Noise(seed),
        adjacency=adjacency,
    )
    return [curator.release(query, mechanism) for _ in range(draws)]


def objective_bound(epsilon, draws, factor=1.0, loss=Squared(), C=L2Ball(0.1)):  # noqa: B008
    """One column, one row more or less: the pair that loses the whole of a pure claim."""
    bounds = Bounds(1.0, 1.0, norm="l2")
    problem = Problem(loss, C, bounds, 1, 1, ADD_REMOVE)
    regularisation = "auto" if isinstance(loss, Squared) else 20.0
    solver = PerturbedObjective(regularisation=regularisation)
    plan = solver.plan(problem, Budget(epsilon, 0.0, ADD_REMOVE))
    honest = plan["minimise"]
    broken = replace(honest, epsilon=honest.epsilon * factor)
    mechanism = Twin(honest, broken.release)
    outputs = []
    for seed, rows in enumerate(([[1.0]], np.zeros((1, 1)))):
        engine = LocalEngine(np.array(rows), np.array([1.0]), bounds)
        query = Minimum(problem, honest.smoothing)
        drawn = releases(mechanism, query, engine, draws, 80 + seed, ADD_REMOVE)
        outputs.append([float(theta.dense()[0]) for theta in drawn])
    return epsilon_lower_bound(*outputs)


def test_a_perturbed_objective_is_not_accused_and_an_eighth_of_its_noise_is():
    assert 0.4 <= objective_bound(2.0, 1_200) <= 2.0
    assert objective_bound(1.0, 1_200, factor=8.0) > 1.0


@pytest.mark.long
@pytest.mark.parametrize(
    ("loss", "C"),
    [(Hinge(), L2Ball(0.1)), (Absolute(), Polytope([[-0.1], [0.1]])), (Huber(0.5), LpBall(3, 0.1))],
    ids=repr,
)
def test_a_rounded_corner_is_not_accused_and_an_eighth_of_its_noise_is(loss, C):
    """False alarms: below 1e-8, as the lower bounds hold with probability 1 - 1e-9 each."""
    assert 0.4 <= objective_bound(2.0, 1_200, loss=loss, C=C) <= 2.0
    assert objective_bound(1.0, 1_200, 8.0, loss, C) > 1.0


@pytest.mark.slow
def test_a_perturbed_objective_is_not_accused_in_a_long_audit():
    assert 0.5 <= objective_bound(1.0, 30_000) <= 1.0


def peeling_bound(draws, values, claimed_values):
    """Two columns of which one is selected, and its value: one step on a pair of opposite rows."""
    problem = Problem(Squared(), SparseBall(1, 1.0), Bounds(1.0, 1.0), 2, 2)
    query = GradientStep(problem, Vector.zero(2), 1.0)
    honest = Peeling(TopK(0.5, 1), claimed_values)
    mechanism = Twin(honest, Peeling(TopK(0.5, 1), values).release)
    outputs = []
    for seed, x in enumerate(([1.0, 1.0], [-1.0, -1.0])):
        engine = LocalEngine(np.array([x, [1.0, 1.0]]), np.ones(2), problem.bounds)
        drawn = releases(mechanism, query, engine, draws, 90 + seed)
        outputs.append([float(theta.values[0]) for theta in drawn])
    return epsilon_lower_bound(*outputs), spent(honest.event, 0.0).epsilon


def test_a_step_of_peeling_is_not_accused_and_less_noise_on_its_values_is():
    laplace = LaplaceMechanism(1.0)
    found, claimed = peeling_bound(2_500, laplace, laplace)
    assert 0.2 <= found <= claimed == 1.5
    found, claimed = peeling_bound(2_500, LaplaceMechanism(8.0), laplace)
    assert found > claimed


def sampled_bound(draws, public=False):
    """One release on samples of 20 rows, of which one is replaced by its opposite."""
    n, rate, epsilon = 20, 0.05, 1.0
    z = 1 / calibrate(lambda s: SampledGaussian(1 / s, rate), Budget(epsilon, DELTA))
    bounds = Bounds(1.0, 1.0)
    problem = Problem(Squared(), L2Ball(1.0), bounds, n, 1)
    query = Gradient(problem, Vector.zero(1))
    honest = SampledGaussianMechanism(z, rate)

    def first_rows(query, engine, noise):
        """The same rows are in every sample, and everybody knows which."""
        known = LocalEngine(x[: int(rate * n)], np.ones(int(rate * n)), bounds)
        return GaussianMechanism(z).release(query, known, noise) / rate

    mechanism = Twin(honest, first_rows if public else honest.release)
    outputs = []
    for seed, first in enumerate((1.0, -1.0)):
        x = np.ones((n, 1)) * np.tile([1.0, -1.0], n // 2)[:, None]
        x[0] = first
        engine = LocalEngine(x, np.ones(n), bounds)
        drawn = releases(mechanism, query, engine, draws, 95 + seed)
        outputs.append([float(answer[0]) for answer in drawn])
    return epsilon_lower_bound(*outputs, DELTA)


def test_a_secret_sample_is_not_accused_and_a_public_one_is():
    assert sampled_bound(4_000) <= 1.0
    assert sampled_bound(4_000, public=True) > 1.0


def test_a_trial_runs_every_solver_on_both_sides():
    # What black-box audits of whole estimators rest on.
    for name in ("noisy-gradient, samples", "peeling", "projected"):
        model = MODELS[name](REPLACE_ONE)
        trial = Trial(model, *worst_rows(model))
        for swapped in (False, True):
            assert len(trial.run(Noise(seed=99), swapped=swapped)) >= trial.plan.steps


def test_the_event_of_a_perturbed_objective_counts_its_parts():
    pure = GammaObjective(1.0, 0.25, 0.5, 0.01)
    assert spent(pure.event, 0.0).epsilon == pytest.approx(0.76)
    gaussian = GaussianObjective(1.0, 0.25, 3.0, 90.0)
    assert leaves(gaussian.event) == {ObjectivePerturbed(3.0, 0.25): 1, Gaussian(90.0): 1}


def test_the_noise_of_a_pure_objective_is_scaled_to_its_epsilon():
    problem = Problem(Squared(), L2Ball(1.0), Bounds(1.0, 1.0, norm="l2"), 5, 3)
    plan = PerturbedObjective().plan(problem, Budget(1.0))
    mechanism = plan["minimise"]
    assert isinstance(mechanism, GammaObjective)
    scale = mechanism.scale(Minimum(problem))
    assert scale == pytest.approx(Minimum(problem).sensitivity("l2") / mechanism.epsilon)
    parts = mechanism.epsilon + mechanism.stretch + mechanism.hiding_epsilon
    assert 0.999 <= parts <= 1.0
