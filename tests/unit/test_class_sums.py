"""Class sums: what is planned and spent, what is refused, and what becomes of degenerate data."""

import numpy as np
import pytest
from scipy import sparse

from riata import Bounds, PrivateErm, PrivateLinearSVC, PrivateLogisticRegression
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import BudgetExceeded, Incompatible
from riata.losses import Huber, Logistic, Squared
from riata.mechanisms.noise import Noise
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE, Budget
from riata.privacy.events import leaves
from riata.problem import Problem
from riata.queries import SumsByClass
from riata.sets import GroupL1Ball, L1Ball, L2Ball, Simplex, SparseBall
from riata.solvers import SOLVERS, ClassSums
from riata.solvers.class_sums import fitted_line, log_odds

pytestmark = pytest.mark.matrix(one_in=11)

UNIT = Bounds(x=1.0, norm="l2")
every_adjacency = pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
every_step = pytest.mark.parametrize("steps", [1, 4])


def texts(n=6_000, p=300, words=12, seed=0, classes=2):
    """Rows of length 1 whose words tell the classes apart."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    odds = rng.standard_normal((classes, p))
    frequency = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    word = np.vstack([rng.choice(p, words, p=frequency[k]) for k in y])
    x = sparse.csr_array(
        (np.ones(n * words), (np.repeat(np.arange(n), words), word.ravel())), (n, p)
    )
    x.sum_duplicates()
    return sparse.csr_array(sparse.diags_array(1 / np.sqrt(x.power(2).sum(axis=1))) @ x), y


def model(epsilon=2.0, kind=PrivateLogisticRegression, classes=(0, 1), solver="class-sums", **more):
    options = {"delta": 1e-6, "bounds": UNIT, "random_state": 0, **more}
    return kind(epsilon, classes=list(classes), solver=solver, **options)


# The plan


@every_adjacency
@pytest.mark.parametrize("steps", ["auto", 1, 2, 9])
@pytest.mark.parametrize("fits", [1, 3])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 20.0])
def test_a_plan_spends_the_budget_and_never_more(adjacency, steps, fits, epsilon):
    problem = Problem(Logistic(), L2Ball(9.0), UNIT.with_y(1.0), 9_000, 50, adjacency)
    plan = ClassSums(steps).plan(problem, Budget(epsilon, 1e-6, adjacency), fits)
    assert epsilon * (1 - 1e-8) <= plan.spent.epsilon <= epsilon
    releases = sum(leaves(plan.event).values())
    assert releases == fits * (3 if plan.steps == 1 else 3 + plan.steps)


@every_adjacency
@every_step
def test_a_run_makes_the_releases_of_its_plan_and_no_other(adjacency, steps):
    x, y = texts()
    labels = np.where(y == 1, 1.0, -1.0)
    problem = Problem(Logistic(), L2Ball(800.0), UNIT.with_y(1.0), *x.shape, adjacency, True)
    solver = ClassSums(steps)
    plan = solver.plan(problem, Budget(2.0, 1e-6, adjacency))
    engine = LocalEngine(x, labels, problem.bounds)
    curator = Curator.open(plan.event, read=lambda: engine, noise=Noise(0), adjacency=adjacency)
    assert solver.run(plan, problem, curator).steps == steps
    assert repr(curator) == "<Curator with 0 releases left>"
    with pytest.raises(BudgetExceeded):
        curator.release(SumsByClass(problem, 0.1), plan["class sums"])


def test_corrections_follow_from_public_facts_alone():
    def steps(epsilon, n, p=100):
        return model(epsilon).plan(n, p).steps

    assert steps(1.0, 10_000) == steps(1.0, 10_000, 10**6) == 1
    assert steps(10.0, 10_000) == steps(1.0, 10**6) == 9
    assert "correction" in str(model(10.0).plan(10_000, 100))


def test_what_does_not_classify_or_has_no_delta_is_refused():
    for loss in (Squared(), Huber(0.5)):
        estimator = PrivateErm(
            loss, L2Ball(1.0), 1.0, 1e-6, bounds=UNIT.with_y(1.0), solver="class-sums"
        )
        with pytest.raises(Incompatible, match=r"this loss has none.*Use "):
            estimator.plan(100, 5)
    simplex = PrivateErm(
        Logistic(), Simplex(1.0), 1.0, 1e-6, bounds=UNIT.with_y(1.0), solver="class-sums"
    )
    with pytest.raises(Incompatible, match="0 is not in the set"):
        simplex.plan(100, 5)
    with pytest.raises(Incompatible, match="delta=0"):
        model(delta=0.0).plan(100, 5)
    with pytest.raises(Incompatible, match="epsilon=inf"):
        model(np.inf).plan(100, 5)
    assert SOLVERS["class-sums"] is ClassSums


# What is found


@every_adjacency
@every_step
@pytest.mark.parametrize("kind", [PrivateLogisticRegression, PrivateLinearSVC])
def test_texts_are_told_apart(adjacency, steps, kind):
    x, y = texts()
    fitted = model(kind=kind, steps=steps, adjacency=adjacency).fit(x[:4500], y[:4500])
    assert fitted.score(x[4500:], y[4500:]) > 0.9
    assert 0.3 < fitted.training_fit_[0] <= 1
    assert fitted.privacy_.epsilon <= 2.0


def test_an_intercept_makes_up_for_classes_that_are_not_equally_many():
    x, y = texts(12_000)
    kept = (y == 0) | (np.arange(len(y)) % 6 == 0)
    x, y = x[kept], y[kept]
    fitted = model(4.0).fit(x, y)
    assert fitted.score(x, y) > max(np.mean(y == 0), 0.93)
    flat = model(4.0, fit_intercept=False).fit(x, y)
    assert np.all(flat.intercept_ == 0)


def test_three_classes_share_the_budget():
    x, y = texts(9_000, classes=3)
    fitted = model(6.0, classes=(0, 1, 2)).fit(x[:7000], y[:7000])
    assert fitted.score(x[7000:], y[7000:]) > 0.8
    assert fitted.privacy_.epsilon <= 6.0


def test_dense_and_sparse_rows_give_the_same_model_bit_for_bit():
    x, y = texts(600, 40)
    x = 0.99 * x
    for steps in (1, 3):
        one, other = (model(8.0, steps=steps).fit(rows, y) for rows in (x, x.toarray()))
        np.testing.assert_array_equal(one.coef_, other.coef_)
        np.testing.assert_array_equal(one.intercept_, other.intercept_)


@pytest.mark.parametrize("constraint", [L1Ball(3.0), SparseBall(5, 2.0),
                                        GroupL1Ball(np.arange(40) // 2, 2.0)])  # fmt: skip
def test_the_model_lies_in_the_set(constraint):
    x, y = texts(2_000, 40)
    labels = np.where(y == 1, 1.0, -1.0)
    for steps in (1, 3):
        fitted = PrivateErm(
            Logistic(), constraint, 8.0, 1e-6, bounds=UNIT.with_y(1.0), solver=ClassSums(steps),
            random_state=1,
        ).fit(x, labels)  # fmt: skip
        inside = constraint.sized(40).project(fitted.coef_)
        np.testing.assert_allclose(inside, fitted.coef_, atol=1e-9)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_labels_that_rows_say_nothing_about_give_a_constant(steps, seed):
    x, _ = texts()
    y = (np.random.default_rng(seed).random(x.shape[0]) < 0.9).astype(int)
    fitted = model(1.0, steps=steps, random_state=seed).fit(x, y)
    odds = fitted.decision_function(x)
    assert odds.std() < 0.3  # at most 0.02 was measured
    assert 1 / (1 + np.exp(-odds.mean())) == pytest.approx(y.mean(), abs=0.1)
    assert 1.7 < fitted.intercept_[0] < 2.8


DEGENERATE = {
    "zeros": np.zeros((30, 4)),
    "negative": np.full((30, 4), -1.0),
    "missing": np.full((30, 4), np.nan),
    "infinite": np.full((30, 4), np.inf),
    "huge": np.full((30, 4), -1e300),
    "one column": np.ones((30, 1)),
    "one row": np.ones((1, 4)),
}


@every_adjacency
@every_step
@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("labels", ["same", "none", "mixed"])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_degenerate_data_gives_a_finite_model(adjacency, steps, name, labels, epsilon):
    x = DEGENERATE[name]
    y = {"same": np.ones(len(x)), "none": np.full(len(x), np.nan), "mixed": np.arange(len(x)) % 2}
    fitted = model(epsilon, adjacency=adjacency, steps=steps).fit(x, y[labels])
    assert np.all(np.isfinite(fitted.coef_))
    assert np.all(np.isfinite(fitted.intercept_))


# Its parts


def test_the_mean_scores_of_the_classes_are_estimated_without_the_bias_of_the_noise():
    rng = np.random.default_rng(3)
    p, rows, noise = 4_000, np.array([3_000.0, 9_000.0]), 6.0
    sums = (
        900
        / (np.arange(p) + 3.0)
        * np.array([[1.0], [3.0]])
        * np.exp(0.4 * rng.standard_normal((2, p)))
    )
    errors = []
    for _ in range(30):
        found = log_odds(sums + noise * rng.standard_normal((2, p)), rows, noise)
        means = sums @ found.weights / rows
        plain = found.half - (means[0] - means[1]) / 2
        errors.append((found.centre - means.mean(), plain))
    mean, error = np.mean(errors, axis=0), np.std(errors, axis=0) / np.sqrt(len(errors))
    assert np.all(np.abs(mean) < 5 * error + 1e-3)


def test_rare_columns_weigh_nothing_and_common_ones_their_log_odds():
    sums = np.zeros((2, 100))
    sums[:, :20] = [[3_000.0], [1_000.0]]
    found = log_odds(sums, np.array([5_000.0, 5_000.0]), 1.0)
    np.testing.assert_allclose(found.weights[:20], np.log(3), rtol=0.01)
    assert np.all(found.weights[20:] == 0)


def test_a_line_is_fitted_to_counts():
    problem = Problem(Logistic(), L2Ball(1.0), UNIT.with_y(1.0), 1_000, 5, fit_intercept=True)
    scores = np.linspace(-3, 3, 25)
    positive = 1 / (1 + np.exp(-(2 * scores - 1)))
    line = fitted_line(problem, np.array([positive, 1 - positive]) / 25, 1e-9, scores)
    assert (line.scale, line.offset) == pytest.approx((2.0, -1.0), abs=0.01)
    assert line.sure
    nothing = fitted_line(problem, np.full((2, 25), 1 / 50), 1e-4, scores)
    assert not nothing.sure
