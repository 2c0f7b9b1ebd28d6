"""Class weights, calibrated probabilities, and one budget for all that a classifier releases."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import balanced_accuracy_score, log_loss

from riata import (
    Bounds,
    Budget,
    Ledger,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    ProjectedClassifier,
    load,
    save,
)
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import BudgetExceeded, Incompatible, InvalidArgument
from riata.fitting.class_releases import (
    LARGEST_WEIGHT,
    _Table,
    balanced_weights,
    calibrated_line,
)
from riata.fitting.extra_planning import (
    CLASS_COUNTS,
    MARGIN_COUNTS,
    MARGIN_SLOPES,
    plan_with_extra_releases,
)
from riata.losses import Logistic, OneAgainstRest, SmoothedHinge, Weighted
from riata.mechanisms.noise import Noise
from riata.privacy.accountants import spent
from riata.privacy.events import compose
from riata.problem import Problem
from riata.queries import ClassCounts
from riata.sets import L1Ball
from riata.solvers import FrankWolfe, NoisyGradient, PrivateFrankWolfe
from riata.vectors import Vector

pytestmark = pytest.mark.matrix(one_in=11)

ENTRIES, LENGTH = Bounds(1.0), Bounds(1.0, norm="l2")
CODES = np.array([-1.0, 0.0, 1.0, 2.0, 0.5, np.nan, 7.0])


def logistic(**c):
    given = {"epsilon": 1.0, "delta": 1e-6, "bounds": ENTRIES, "classes": [0, 1]}
    return PrivateLogisticRegression(**given | c)


# Weights


@pytest.mark.parametrize("loss", [Logistic(), SmoothedHinge(0.5)], ids=repr)
def test_a_weight_multiplies_all_that_a_loss_says(loss):
    plain, weighted = OneAgainstRest(loss, 1), Weighted(OneAgainstRest(loss, 1), (0.5, 3.0, 1.0))
    expected = np.array([0.5, 0.5, 3.0, 1.0, 0.5, 0.5, 0.5])  # no class: the smallest weight
    np.testing.assert_array_equal(weighted.of_rows(CODES), expected)
    margins = np.linspace(-2, 2, len(CODES))
    for name in ("value", "slope", "curvature"):
        ours, theirs = (getattr(each, name)(margins, CODES) for each in (weighted, plain))
        np.testing.assert_array_equal(ours, expected * theirs)
    assert weighted.slope_bound(2.0, 3.0) == 3 * plain.slope_bound(2.0, 3.0)
    assert weighted.curvature_bound(3.0) == 3 * plain.curvature_bound(3.0)
    assert weighted.offset_bound(3.0) == plain.offset_bound(3.0)
    assert weighted.twice_differentiable == loss.twice_differentiable


def test_given_weights_are_public_and_normalised():
    x, y = np.zeros((40, 3)), np.arange(40) % 3
    model = logistic(classes=[0, 1, 2], class_weight={1: 4.0}, steps=2, random_state=0).fit(x, y)
    np.testing.assert_allclose(model.class_weight_, np.array([1, 4, 1]) / 2)
    assert CLASS_COUNTS not in str(model.privacy_)
    assert "Public class weights: 0.5, 2, 0.5." in model.privacy_.notes
    assert model.privacy_.public["loss"] == "weighted softmax"
    alone = logistic(classes=[0, 1, 2], class_weight={1: 4.0}, solver="greedy", random_state=0)
    assert alone.fit(x, y).privacy_.public["loss"] == "weighted logistic"
    plain = logistic(classes=[0, 1, 2], steps=2, random_state=0).fit(x, y)
    np.testing.assert_array_equal(plain.class_weight_, np.ones(3))


@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateLinearSVC])
@pytest.mark.parametrize("weight", [{5: 1.0}, {0: 0.0}, {0: -1}, {0: "many"}, "even", 3, [1, 2]])
def test_odd_weights_are_refused(kind, weight):
    model = kind(1.0, bounds=ENTRIES, classes=[0, 1], class_weight=weight)
    with pytest.raises(InvalidArgument, match="class_weight"):
        model.plan(100, 3)


def run_extra(y, n_classes, times, budget, solver=None, x=None, seed=0, use=balanced_weights):
    x = np.zeros((len(y), 2)) if x is None else x
    bounds = Bounds(1.0, float(n_classes))
    loss = OneAgainstRest(Logistic(), 1)
    problem = Problem(loss, L1Ball(1.0), bounds, len(y), x.shape[1])
    plan = plan_with_extra_releases(solver or PrivateFrankWolfe(2), problem, budget, 1, times)
    curator = Curator(LocalEngine(x, y, bounds), plan.event, Noise(seed))
    return use(plan, problem, curator, n_classes)


def test_balanced_weights_follow_from_the_counts():
    y = np.repeat([0.0, 1.0, 2.0], [70_000, 20_000, 10_000])
    weights = run_extra(y, 3, {CLASS_COUNTS: 1}, Budget(5.0, 1e-6))
    np.testing.assert_allclose(weights, 1 / (3 * np.array([0.7, 0.2, 0.1])), rtol=0.02)
    pure = run_extra(y, 3, {CLASS_COUNTS: 1}, Budget(5.0, 0.0))
    np.testing.assert_allclose(pure, weights, rtol=0.02)


def test_a_class_that_nobody_has_gets_no_infinite_weight():
    y = np.zeros(1_000)
    for epsilon in (1e-3, 1.0, math.inf):
        solver = None if epsilon < math.inf else _reference()
        weights = run_extra(y, 4, {CLASS_COUNTS: 1}, Budget(epsilon, 1e-6), solver)
        assert 0 < max(weights) <= 1.001 * LARGEST_WEIGHT
        assert min(weights) > 0


def _reference():
    return FrankWolfe(5)


def test_objective_perturbation_is_handed_weights_that_its_plan_covers():
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (500, 3))
    y = (x[:, 0] > 0.8).astype(int)
    model = logistic(
        class_weight="balanced", solver="objective-perturbation", radius=1.0, random_state=0
    ).fit(x, y)
    assert model.class_weight_.max() == 1.0


def three_classes(seed, n=12_000, shares=(0.9, 0.07, 0.03)):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=shares)
    centres = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 0.5]])
    x = np.zeros((n, 6))
    x[:, :2] = centres[y]
    return np.clip(x + 0.25 * rng.standard_normal(x.shape), -1, 1), y


@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateLinearSVC])
def test_balanced_weights_raise_the_balanced_accuracy(kind):
    scores = []
    for weight in (None, "balanced"):
        x, y = three_classes(3)
        model = kind(
            4.0, 1e-6, bounds=ENTRIES, classes=[0, 1, 2], class_weight=weight, random_state=5
        ).fit(x, y)
        scores.append(balanced_accuracy_score(y, model.predict(x)))
    assert scores[1] > scores[0] + 0.05


# Calibration


def shrunk(seed, n=20_000):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 10))
    y = rng.random(n) < expit(x[:, :4] @ [4, -3, 2, 2] - 0.5)
    return x, y.astype(int)


def calibration_error(y, p, n_bins=10):
    bins = np.minimum((p * n_bins).astype(int), n_bins - 1)
    gaps = [abs((y - p)[bins == k].sum()) for k in range(n_bins)]
    return sum(gaps) / len(y)


def test_probabilities_of_a_shrunk_model_are_calibrated():
    (x, y), (held_x, held_y) = shrunk(0), shrunk(1)
    models = [
        logistic(radius=1.0, calibration=c, random_state=2).fit(x, y) for c in (False, "auto")
    ]
    bare, model = [log_loss(held_y, m.predict_proba(held_x)) for m in models]
    assert model < 0.95 * bare
    bare, model = (calibration_error(held_y, m.predict_proba(held_x)[:, 1]) for m in models)
    assert model < 0.5 * bare
    assert models[1].calibration_[0, 0] > 1.5
    assert np.abs(models[1].coef_).sum() <= 1.0 + 1e-9  # the coefficients stay inside the radius


@pytest.mark.parametrize("delta", [1e-6, 0.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_calibration_is_never_worse_at_a_tiny_epsilon(epsilon, delta, scale):
    x, y = shrunk(7, 3_000)
    theta = Vector.of(scale * np.array([4.0, -3, 2, 2, 0, 0, 0, 0, 0, 0])).with_offset(-0.3)
    margins = x @ theta.dense() + theta.offset
    before = log_loss(y, expit(margins))
    solver = PrivateFrankWolfe(2)
    for seed in range(12):
        a, b = run_extra(
            y.astype(float), 2, {MARGIN_COUNTS: 1, MARGIN_SLOPES: 1}, Budget(epsilon, delta),
            solver, x, seed, lambda plan, problem, curator, _: calibrated_line(
                plan, problem, curator, theta
            ),
        )  # fmt: skip
        assert a > 0
        assert log_loss(y, expit(a * margins + b)) <= 1.05 * before


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 3.0, 10.0])
def test_a_line_is_found_wherever_it_lies(scale):
    x, y = shrunk(8)
    theta = Vector.of(scale * np.array([4.0, -3, 2, 2, 0, 0, 0, 0, 0, 0])).with_offset(0.0)
    line = run_extra(
        y.astype(float), 2, {MARGIN_COUNTS: 1, MARGIN_SLOPES: 1}, Budget(20.0, 1e-6),
        PrivateFrankWolfe(2), x, 0, lambda plan, problem, curator, _: calibrated_line(
            plan, problem, curator, theta
        ),
    )  # fmt: skip
    np.testing.assert_allclose(line, [1 / scale, -0.5], rtol=0.1, atol=0.1)


@pytest.mark.parametrize("theta", [Vector.zero(2), Vector.zero(2).with_offset(-2.0)])
def test_a_constant_model_gets_the_share_of_its_class(theta):
    y = (np.arange(20_000) % 10 == 0).astype(float)
    a, b = run_extra(
        y, 2, {MARGIN_COUNTS: 1, MARGIN_SLOPES: 1}, Budget(5.0, 1e-6), None, None, 0,
        lambda plan, problem, curator, _: calibrated_line(plan, problem, curator, theta),
    )  # fmt: skip
    assert expit(a * theta.offset + b) == pytest.approx(0.1, abs=0.03)


@pytest.mark.parametrize(
    ("margins", "totals", "positive", "limit", "noise", "gradient"),
    [
        # Noise hides the slope, and the level is clear: both were left as they were.
        ([0.57, 0.85], [0.09, 0.89], [0.0, 0.34], 1.2, (0.015, 0.022), [-0.02, 0.013]),
        ([1.23, 1.85], [0.35, 0.68], [0.15, 0.28], 2.6, (0.015, 0.019), [0.002, 0.049]),
        # The step turns the slope around, and it is clipped: the offset was left at 50.
        ([3.92, 5.23], [0.02, 0.98], [0.0, 0.39], 7.4, (0.0018, 0.0029), [0.087, 0.113]),
    ],
)
def test_the_level_of_margins_that_are_nearly_alike_is_mended(
    margins, totals, positive, limit, noise, gradient
):
    rows = np.column_stack([np.array(margins) / limit, np.ones(2)])
    table = _Table(rows, np.array(totals), np.array(positive), limit, noise[0])
    a, b = table.improved(table.fitted(), np.array(gradient), noise[1], 9_000)
    # The gradient says by how much the line through the middles of the bins is too high.
    share = sum(positive) / sum(totals) - gradient[1]
    assert expit(a * margins[1] + b) == pytest.approx(share, abs=0.06)


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_predictions_decisions_and_probabilities_agree(classes):
    x, y = three_classes(4, 4_000, (0.5, 0.3, 0.2))
    model = logistic(epsilon=20.0, classes=classes, random_state=0).fit(
        x, np.minimum(y, len(classes) - 1)
    )
    odds, p = model.decision_function(x), model.predict_proba(x)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(x), np.asarray(classes)[p.argmax(axis=1)])
    margins = x @ model.coef_.T + model.intercept_
    lines = margins * model.calibration_[:, 0] + model.calibration_[:, 1]
    np.testing.assert_allclose(odds, lines[:, 0] if len(classes) == 2 else lines, atol=1e-6)
    assert model.calibration_.shape == (1 if len(classes) == 2 else 3, 2)


def test_calibration_off_and_impossible():
    x, y = shrunk(0, 200)
    off = logistic(calibration=False, random_state=0).fit(x, y)
    np.testing.assert_array_equal(off.calibration_, [[1.0, 0.0]])
    assert MARGIN_COUNTS not in str(off.privacy_)
    free = logistic(epsilon=math.inf, steps=5, random_state=0).fit(x, y)
    np.testing.assert_array_equal(free.calibration_, [[1.0, 0.0]])
    exact = logistic(epsilon=math.inf, steps=5, calibration=True, radius=0.5).fit(x, y)
    assert exact.calibration_[0, 0] > 1
    with pytest.raises(InvalidArgument, match="calibration"):
        logistic(calibration="yes").plan(100, 3)
    projected = logistic(solver="projected", bounds=LENGTH, penalty="l1", radius=1.0)
    assert not projected.plan(100, 5).extra_releases
    with pytest.raises(Incompatible, match="calibration=True"):
        projected.set_params(calibration=True).plan(100, 5)


def test_a_saved_model_keeps_weights_and_calibration(tmp_path):
    x, y = shrunk(0)
    model = logistic(radius=1.0, class_weight="balanced", random_state=2).fit(x, y)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.calibration_, model.calibration_)
    np.testing.assert_array_equal(again.class_weight_, model.class_weight_)
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))
    projected = ProjectedClassifier(1.0, bounds=LENGTH, classes=[0, 1], dimension=3, steps=2)
    projected.fit(x, y)
    np.testing.assert_array_equal(projected.calibration_, [[1.0, 0.0]])


# One budget

SOLVERS = {
    "greedy": (ENTRIES, "l1"),
    "refitted-frank-wolfe": (ENTRIES, "l1"),
    "sufficient-statistics": (ENTRIES, "l1"),
    "frank-wolfe": (ENTRIES, "l1"),
    "gaussian-frank-wolfe": (LENGTH, "l2"),
    "noisy-gradient": (LENGTH, "l2"),
    "objective-perturbation": (LENGTH, "l2"),
    "projected": (LENGTH, "l1"),
    "auto": (ENTRIES, "auto"),
}
NEED_DELTA = {"gaussian-frank-wolfe", "noisy-gradient"}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_everything_together_spends_the_budget(solver, delta, k, epsilon):
    if delta == 0 and solver in NEED_DELTA:
        pytest.skip("it needs a positive delta")
    bounds, penalty = SOLVERS[solver]
    c = {
        "epsilon": epsilon, "delta": delta, "bounds": bounds, "penalty": penalty, "radius": 2.0,
        "classes": list(range(k)), "solver": solver, "class_weight": "balanced",
    }  # fmt: skip
    plan = PrivateLogisticRegression(**c).plan(2_000, 8)
    fits, together = 1 if k == 2 else k, plan.problem.loss.n_margins > 1
    assert together == (solver == "auto" and k > 2 and delta > 0)
    calibrated = {MARGIN_COUNTS: fits, MARGIN_SLOPES: fits}
    calibrated = {} if solver == "projected" or together else calibrated
    assert {role: each.times for role, each in plan.extra_releases.items()} == {
        CLASS_COUNTS: 1
    } | calibrated
    total = spent(plan.event, delta).epsilon
    assert epsilon * (1 - 1e-6) <= total <= epsilon
    alone = spent(replace(plan, extra_releases={}).event, delta).epsilon
    assert 0.8 * epsilon < alone < 0.995 * epsilon
    extra = spent(compose(*(each.cost for each in plan.extra_releases.values())), delta).epsilon
    assert extra > 0.01 * epsilon  # the noise of extra releases is not out of all proportion
    for role in plan.extra_releases:
        assert any(line.startswith(role) for line in plan.releases)
    if solver != "objective-perturbation" and (solver, delta) != ("projected", 0.0):
        svm = PrivateLinearSVC(**c).plan(2_000, 8)
        assert list(svm.extra_releases) == [CLASS_COUNTS]
        assert epsilon * (1 - 1e-6) <= spent(svm.event, delta).epsilon <= epsilon


def test_sampled_gradients_share_their_budget():
    model = logistic(solver=NoisyGradient(4, sampling=0.2), bounds=LENGTH, penalty="l2", radius=1.0)
    assert model.plan(1_000, 5).spent.epsilon == pytest.approx(1.0, rel=1e-6)


def test_the_ledger_is_charged_for_all_of_it(tmp_path):
    x, y = three_classes(4, 600)
    ledger = Ledger.create(tmp_path / "ledger", dataset="classes", ceiling=Budget(3.0, 1e-5))
    model = logistic(
        classes=[0, 1, 2], class_weight="balanced", ledger=ledger, solver="greedy"
    ).fit(x, y)
    (charge,) = ledger.charges
    text = str(charge)
    for role in (CLASS_COUNTS, MARGIN_COUNTS, MARGIN_SLOPES):
        assert role in text
        assert role in str(model.privacy_)


@pytest.mark.parametrize("role", [CLASS_COUNTS, MARGIN_COUNTS])
def test_no_extra_release_can_be_made_twice(role):
    def twice(plan, problem, curator, _):
        mechanism = plan.extra_releases[role].mechanism
        for _ in range(2):
            curator.release(ClassCounts(problem, 2), mechanism)

    with pytest.raises(BudgetExceeded):
        run_extra(np.zeros(50), 2, {role: 1}, Budget(1.0, 1e-6), use=twice)
