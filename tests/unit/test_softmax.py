"""Three classes or more, fitted together: the loss, the plan, the models and what becomes of noise.

Models have fixed seeds, of rows and of noise, so that a test of what is found passes or fails alike
everywhere. Its limits are some ten standard deviations of such scores from what was measured, a
false-alarm rate far below one in a million for normal scores.
"""

import json
import math

import numpy as np
import pytest
from scipy import sparse
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss

from riata import (
    Bounds,
    Budget,
    PrivateErm,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    forecast,
    load,
    save,
)
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import BudgetExceeded, Incompatible, InvalidArgument
from riata.losses import Logistic, Softmax, Weighted
from riata.losses.softmax import softmax as same_bits
from riata.mechanisms.noise import Noise
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.privacy.events import leaves
from riata.problem import Problem
from riata.queries import ClassCounts
from riata.sets import L1Ball, L2Ball, Simplex
from riata.solvers import JointClassSums, NoisyGradient, SoftmaxDescent, joint_rule_for
from riata.solvers.joint import class_shares, log_priors
from riata.solvers.joint_class_sums import column_weights
from riata.solvers.softmax_gradient import smoothed

pytestmark = pytest.mark.matrix(one_in=11)

TEXT = Bounds(x=1.0, norm="l2", nonnegative=True)
SHORT = Bounds(x=1.0, norm="l2")
every_adjacency = pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
every_joint = pytest.mark.parametrize("name", ["joint-class-sums", "softmax-gradient"])


def texts(n=8_000, p=4_000, words=12, seed=0, classes=5):
    """Rows of length 1 whose words tell the classes apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    odds = rng.standard_normal((classes, p)) + 2 * rng.standard_normal(p)
    frequency = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    word = np.vstack([rng.choice(p, words, p=frequency[k]) for k in y])
    places = (np.repeat(np.arange(n), words), word.ravel())
    x = sparse.csr_array((np.ones(n * words), places), (n, p))
    x.sum_duplicates()
    return sparse.csr_array(sparse.diags_array(1 / np.sqrt(x.power(2).sum(axis=1))) @ x), y


def table(n=6_000, p=8, classes=4, seed=0, shares=(0.5, 0.3, 0.15, 0.05)):
    """Correlated columns whose means differ between classes that are not equally many."""
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, n, p=shares)
    means = rng.standard_normal((classes, p))
    mixed = rng.standard_normal((n, p)) @ (0.3 * rng.standard_normal((p, p)) + 0.6 * np.eye(p))
    return (means[y] + mixed) / 12, y


def model(epsilon=1.0, bounds=SHORT, classes=4, solver="auto", **more):
    options = {"delta": 1e-6, "random_state": 0, **more}
    return PrivateLogisticRegression(
        epsilon, bounds=bounds, classes=list(range(classes)), solver=solver, **options
    )


# The loss


@pytest.mark.parametrize("loss", [Softmax(4), Weighted(Softmax(4), (1.0, 0.5, 2.0, 3.0))], ids=repr)
def test_slopes_are_derivatives_and_within_their_bound(loss):
    rng = np.random.default_rng(1)
    margins, y = 3 * rng.standard_normal((400, 4)), rng.choice([-1.0, 0, 1, 2, 3, 0.5, np.nan], 400)
    h, slopes, bends = 1e-5, loss.slope(margins, y), loss.curvature(margins, y)
    for k, step in enumerate(h * np.eye(4)):
        above, below = loss.value(margins + step, y), loss.value(margins - step, y)
        np.testing.assert_allclose((above - below) / (2 * h), slopes[:, k], atol=1e-8)
        bent = (above - 2 * loss.value(margins, y) + below) / h**2
        np.testing.assert_allclose(bent, bends[:, k], atol=1e-3)
    assert np.linalg.norm(slopes, axis=1).max() <= loss.slope_bound(9.0, 4.0)
    none = ~np.isin(y, np.arange(4))
    assert not np.any(slopes[none])
    assert not np.any(loss.value(margins, y)[none])
    certain = loss.slope(np.array([[0.0, 900.0, 0.0, 0.0]]), np.array([3.0]))
    assert np.linalg.norm(certain) == pytest.approx(math.sqrt(2) * getattr(loss, "largest", 1.0))


def test_the_curvature_bound_is_that_of_the_whole_matrix():
    rng = np.random.default_rng(2)
    for chances in rng.dirichlet([0.3] * 5, 500):
        matrix = np.diag(chances) - np.outer(chances, chances)
        assert np.linalg.eigvalsh(matrix).max() <= Softmax(5).curvature_bound(4.0) + 1e-12
    half = np.array([0.5, 0.5])
    assert np.linalg.eigvalsh(np.diag(half) - np.outer(half, half)).max() == pytest.approx(0.5)


def test_the_same_bits_in_any_layout():
    rng = np.random.default_rng(3)
    margins = 10 * rng.standard_normal((500, 7))
    found = same_bits(margins)
    np.testing.assert_allclose(found, softmax(margins, axis=1), atol=1e-11)
    np.testing.assert_array_equal(found, same_bits(np.asfortranarray(margins)))
    np.testing.assert_array_equal(found[::3], same_bits(margins[::3]))


def test_a_softmax_of_one_class_is_refused():
    for number in (1, 0, True):
        with pytest.raises(InvalidArgument, match="n_classes"):
            Softmax(number)


# The plan


@every_adjacency
@pytest.mark.parametrize(
    "solver", [JointClassSums(), SoftmaxDescent(), SoftmaxDescent(3)], ids=repr
)
@pytest.mark.parametrize("classes", [3, 50])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_a_plan_spends_the_budget_whatever_the_classes(adjacency, solver, classes, epsilon):
    problem = Problem(
        Softmax(classes), L2Ball(9.0), SHORT.with_y(50.0), 900, 5, adjacency, fit_intercept=True
    )
    plan = solver.plan(problem, Budget(epsilon, 1e-6, adjacency))
    assert epsilon * (1 - 1e-8) <= plan.spent.epsilon <= epsilon
    assert plan.fits == 1
    releases = 9 if isinstance(solver, JointClassSums) else 12 + plan.steps
    assert sum(leaves(plan.event).values()) == releases


@every_adjacency
@every_joint
@pytest.mark.parametrize("intercept", [True, False])
def test_a_run_makes_the_releases_of_its_plan_and_no_other(adjacency, name, intercept):
    x, y = table()
    problem = Problem(Softmax(4), L2Ball(800.0), SHORT.with_y(4.0), *x.shape, adjacency, intercept)
    solver = {"joint-class-sums": JointClassSums(), "softmax-gradient": SoftmaxDescent(5)}[name]
    plan = solver.plan(problem, Budget(8.0, 1e-6, adjacency))
    engine = LocalEngine(x, y, problem.bounds)
    curator = Curator.open(plan.event, read=lambda: engine, noise=Noise(0), adjacency=adjacency)
    found = solver.run_all(plan, (problem,), curator)
    assert len(found) == 4
    assert intercept or not any(each.theta.offset for each in found) or name == "softmax-gradient"
    assert repr(curator) == "<Curator with 0 releases left>"
    with pytest.raises(BudgetExceeded):
        curator.release(ClassCounts(problem, 4), plan["line"])


@pytest.mark.parametrize("name", ["softmax-gradient", "joint-class-sums"])
def test_a_plan_bounds_the_risk_by_that_of_no_model(name):
    """Every class is as likely as any other: log 3, and not the loss of a label of no class."""
    model = PrivateLogisticRegression(
        1.0, 1e-6, bounds=Bounds(x=1.0, norm="l2"), classes=["a", "b", "c"], solver=name
    )
    assert model.plan(n_rows=5000, n_features=20).excess_risk == pytest.approx(math.log(3))


def test_auto_fits_all_classes_together_where_it_can():
    def solver(n, p, **c):
        plan = model(**c).plan(n, p)
        return plan.solver, plan.fits

    assert solver(1_000, 5_000, bounds=TEXT) == ("joint-class-sums", 1)
    assert solver(9_000, 50, bounds=TEXT) == ("softmax-gradient", 1)
    assert solver(1_000, 5_000) == ("softmax-gradient", 1)
    assert solver(1_000, 64, bounds=Bounds(1.0), classes=10) == ("softmax-gradient", 1)
    assert solver(9_000, 900, bounds=Bounds(1.0)) == ("greedy", 4)
    assert solver(9_000, 50, bounds=Bounds(1.0), delta=0.0)[1] == 4
    assert solver(9_000, 50, solver="noisy-gradient") == ("noisy-gradient", 4)
    assert solver(9_000, 50, solver=NoisyGradient(3)) == ("noisy-gradient", 4)
    assert solver(9_000, 50, classes=2)[0] == "averaged-gradient"
    assert "one release" in str(model().plan(9_000, 50))
    assert PrivateLinearSVC(1.0, 1e-6, bounds=SHORT, classes=[0, 1, 2]).plan(900, 9).fits == 3
    pure = Problem(Softmax(3), L2Ball(1.0), SHORT.with_y(3.0), 100, 5)
    assert joint_rule_for(pure, Budget(1.0, 0.0)) is None


@every_joint
def test_what_cannot_be_fitted_together_is_refused(name):
    for estimator in (
        model(classes=2, solver=name),
        PrivateLinearSVC(1.0, 1e-6, bounds=SHORT, classes=[0, 1, 2], solver=name),
        PrivateErm(Logistic(), L2Ball(1.0), 1.0, 1e-6, bounds=SHORT, solver=name),
    ):
        with pytest.raises(Incompatible, match=r"one margin.*Use "):
            estimator.plan(100, 5)
    for changes in ({"delta": 0.0}, {"epsilon": math.inf}):
        with pytest.raises(Incompatible):
            model(solver=name, **changes).plan(100, 5)
    problem = Problem(Softmax(3), Simplex(1.0), SHORT.with_y(3.0), 100, 5)
    with pytest.raises(Incompatible):
        {"joint-class-sums": JointClassSums, "softmax-gradient": SoftmaxDescent}[name]().plan(
            problem, Budget(1.0, 1e-6)
        )


def test_other_solvers_and_estimators_refuse_the_loss():
    problem = Problem(Softmax(3), L2Ball(1.0), SHORT.with_y(3.0), 100, 5)
    with pytest.raises(Incompatible, match="all classes together"):
        NoisyGradient().plan(problem, Budget(1.0, 1e-6))
    with pytest.raises(InvalidArgument, match="several classes"):
        PrivateErm(Softmax(3), L1Ball(1.0), 1.0, 1e-6, bounds=SHORT).plan(100, 5)
    with pytest.raises(InvalidArgument, match="two classes, and 4 are given"):
        forecast(model(), 500, 5)


# What is found


def excess(fitted, x, y):
    """The log-loss of the probabilities, less that of the class frequencies."""
    found, labels = fitted.predict_proba(x), np.arange(found_classes(fitted))
    shares = np.bincount(y, minlength=len(labels)) / len(y)
    constant = log_loss(y, np.tile(shares, (len(y), 1)), labels=labels)
    return log_loss(y, found, labels=labels) - constant


def found_classes(fitted):
    return len(fitted.classes_)


@every_adjacency
def test_texts_are_told_apart(adjacency):
    x, y = texts()
    fitted = model(2.0, TEXT, 5, adjacency=adjacency).fit(x[:6_000], y[:6_000])
    assert fitted.privacy_.solver == "joint-class-sums"
    assert fitted.score(x[6_000:], y[6_000:]) > 0.6
    assert excess(fitted, x[6_000:], y[6_000:]) < -0.4


@every_adjacency
def test_tables_are_told_apart(adjacency):
    x, y = table()
    fitted = model(2.0, adjacency=adjacency).fit(x[:4_500], y[:4_500])
    assert fitted.privacy_.solver == "softmax-gradient"
    assert fitted.score(x[4_500:], y[4_500:]) > 0.8
    assert excess(fitted, x[4_500:], y[4_500:]) < -0.4


def test_ten_digits_are_told_apart():
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    x, y, k = x[order] / 16, y[order], 1_348
    bounds = Bounds(x=5.0, norm="l2", nonnegative=True)
    fitted = model(3.0, bounds, 10).fit(x[:k], y[:k])
    assert fitted.score(x[k:], y[k:]) > 0.75  # 0.87 on average; each against the rest has 0.3


@pytest.mark.not_quick
@pytest.mark.parametrize("kind", ["texts", "table"])
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_labels_without_a_meaning_do_no_harm(kind, epsilon):
    found, below = [], []
    for seed in range(4):
        x, y = texts(4_000, 2_000, seed=seed) if kind == "texts" else table(seed=seed)
        y = np.random.default_rng(seed).permutation(y)
        k = len(y) // 2
        fitted = model(
            epsilon, TEXT if kind == "texts" else SHORT, len(np.unique(y)), random_state=seed
        ).fit(x[:k], y[:k])
        found.append(excess(fitted, x[k:], y[k:]))
        below.append(np.bincount(y[k:]).max() / (len(y) - k) - fitted.score(x[k:], y[k:]))
    assert np.mean(found) < 0.1  # 0.01 was measured
    assert np.mean(below) < 0.05


def test_class_weights_move_the_probabilities():
    x, y = table(12_000)
    plain, balanced, public = (
        model(20.0, class_weight=weight).fit(x, y) for weight in (None, "balanced", {3: 9.0})
    )
    rare = [each.predict_proba(x)[:, 3].mean() for each in (plain, balanced, public)]
    assert rare[1] > 1.6 * rare[0]  # 1.73 to 1.77 times with three seeds
    assert rare[2] > 2.5 * rare[0]  # 2.7 times
    assert balanced.class_weight_[3] > 2
    assert "weighted softmax" in public.privacy_.public["loss"]


@every_joint
def test_dense_and_sparse_rows_and_engines_give_the_same_models_bit_for_bit(name):
    x, y = texts(600, 40, classes=3)
    x = 0.99 * x
    found = [
        model(8.0, TEXT, 3, solver=name, engine=engine).fit(rows, y)
        for rows in (x, x.toarray())
        for engine in ("numpy", "scan", "disk")
    ]
    for each in found[1:]:
        np.testing.assert_array_equal(each.coef_, found[0].coef_)
        np.testing.assert_array_equal(each.intercept_, found[0].intercept_)


def test_probabilities_files_and_decisions_agree(tmp_path):
    x, y = table()
    fitted = model(2.0).fit(x, y)
    assert fitted.multinomial
    assert fitted.coef_.shape == (4, 8)
    assert fitted.calibration_.tolist() == [[1.0, 0.0]] * 4
    decisions = fitted.decision_function(x)
    np.testing.assert_allclose(fitted.predict_log_proba(x), log_softmax(decisions, axis=1))
    np.testing.assert_array_equal(fitted.predict(x), decisions.argmax(axis=1))
    save(fitted, tmp_path / "model.riata")
    again = load(tmp_path / "model.riata")
    np.testing.assert_array_equal(again.predict_proba(x), fitted.predict_proba(x))
    against = model(2.0, solver="scaled-gradient", steps=3).fit(x, y)
    assert not against.multinomial
    assert json.loads(json.dumps(fitted.privacy_.public))["loss"] == "softmax"


def test_an_exported_model_has_the_same_probabilities(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    from riata import export_onnx

    x, y = table(900)
    for solver in ("softmax-gradient", "joint-class-sums", "greedy"):
        fitted = model(4.0, solver=solver).fit(x, y)
        export_onnx(fitted, tmp_path / "model.onnx")
        session = ReferenceEvaluator(onnx.load(tmp_path / "model.onnx"))
        found = session.run(["probabilities"], {"X": x})[0]
        np.testing.assert_allclose(found, fitted.predict_proba(x), atol=1e-6)


def test_rows_of_no_class_and_odd_rows_change_nothing_visible():
    x, y = table(900)
    fitted = model(1.0).fit(x, np.where(np.arange(900) % 3, y, 77))
    assert np.all(np.isfinite(fitted.coef_))
    for rows in (np.zeros_like(x), np.full_like(x, np.nan), np.full_like(x, 1e300)):
        for solver in ("joint-class-sums", "softmax-gradient"):
            odd = model(1.0, solver=solver).fit(rows, y)
            assert np.all(np.isfinite(odd.predict_proba(x)))


# The pieces


def test_shares_are_alike_where_noise_explains_them():
    np.testing.assert_allclose(class_shares(np.array([90.0, 110.0, 100.0]), 50.0), 1 / 3)
    found = class_shares(np.array([9_000.0, 900.0, 100.0]), 1.0)
    np.testing.assert_allclose(found, [0.9, 0.09, 0.01], atol=1e-3)
    assert class_shares(np.array([1_000.0, -500.0]), 1.0).min() > 0
    problem = Problem(Softmax(2), L2Ball(1.0), SHORT.with_y(2.0), 10, 2, fit_intercept=True)
    np.testing.assert_allclose(np.diff(log_priors(problem, np.array([0.2, 0.8]))), math.log(4))
    flat = Problem(Softmax(2), L2Ball(1.0), SHORT.with_y(2.0), 10, 2)
    assert not log_priors(flat, np.array([0.2, 0.8])).any()


def test_columns_count_by_how_much_the_classes_differ():
    rows = np.array([1_000.0, 1_000.0, 1_000.0])
    sums = np.tile([[300.0, 30.0, 100.0], [100.0, 10.0, 100.0], [100.0, 10.0, 100.0]], 20)
    weights, kept = column_weights(sums, rows, 0.1)
    assert weights[0, 0] > 10 * -weights[1, 0] / 6 > 0
    assert weights[0, 1] > weights[0, 0]  # the same ratio, and less noise of a sample
    assert np.abs(weights[:, 2]).max() < 0.01
    assert kept.min() > 0
    np.testing.assert_allclose(weights.sum(axis=0), 0, atol=1e-12)


def test_numbers_below_their_noise_are_the_mean_of_such():
    np.testing.assert_allclose(smoothed(np.array([9.0, 0.2, 0.4]), 0.1), [9.0, 0.2, 0.4], atol=0.2)
    found = smoothed(np.array([9.0, *([0.25] * 100)]), 0.1)
    np.testing.assert_allclose(found, [9.0, *([0.25] * 100)])
    hidden = np.array([0.2, -0.2] * 10)
    assert not smoothed(hidden, 0.1).any()
