"""Forecasts: they cost nothing, read nothing, say what they assume, and know when to give up."""

import dataclasses

import numpy as np
import pytest

from riata import (
    Bounds,
    Budget,
    HeavyTailedRegression,
    Ledger,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSparseRegression,
    ProjectedRegression,
    forecast,
    forecast_curve,
)
from riata.errors import InvalidArgument
from riata.forecasting import cost_of
from riata.losses import Huber, Logistic, Squared
from riata.sets import L1Ball, L2Ball, SparseBall
from riata.simulation import Guess, PartialGuess, SimulatedColumns, World
from riata.simulation.world import auc
from riata.solvers import SOLVERS

BOUNDS = Bounds(x=1.0, y=1.0)


def lasso(epsilon=2.0, **options):
    return PrivateLasso(epsilon, 1e-6, **{"bounds": BOUNDS, **options})


@pytest.mark.not_quick
def test_a_forecast_is_near_the_best_model_if_there_is_much_to_learn_from():
    known = {"design": "uniform", "correlation": 0.0}
    found = forecast(lasso(4.0), 4_000, 100, relevant=3, signal=0.7, repeats=4, **known)
    assert 0.65 < found.low_score <= found.score < 0.705
    assert found.interval[0] < found.score < found.interval[1]
    assert found.best_score == pytest.approx(0.7)
    assert found.zero_score == 0.0
    assert 0 < found.excess_part < 0.05
    assert found.bound == found.plan.excess_risk
    assert found.nothing == 0
    assert "Expect R2 0." in str(found)
    assert "Expect R2 0." in found._repr_html_()


def test_it_says_so_if_nothing_can_be_learned():
    found = forecast(lasso(0.01), 1_000, 100, repeats=4)
    assert found.nothing == 1
    assert found.sentence.startswith("Nothing can be learned at epsilon 0.01")


def test_the_same_seed_gives_the_same_forecast_and_another_does_not():
    one, same, other = (
        forecast(lasso(), 1_000, 60, relevant=3, repeats=2, seed=seed).scores for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_nothing_is_charged():
    ledger = Ledger.create(":memory:", dataset="people", ceiling=Budget(3.0, 1e-5))
    model = lasso(1.0, ledger=ledger)
    found = forecast(model, 1_000, 60, relevant=3, repeats=2)
    assert ledger.charges == []
    assert found.estimator.ledger is None
    assert model.ledger is ledger


@pytest.mark.parametrize(
    "solver", sorted(k for k, v in SOLVERS.items() if not (v.joint or v.fits_nuisance))
)
def test_every_solver_can_be_forecast(solver):
    ball = {"hard-thresholding": SparseBall(5, 2.0), "peeling": SparseBall(5, 2.0)}
    bounds = Bounds(x=1.0, y=1.0, norm="l2") if solver == "posterior-sampling" else BOUNDS
    if solver == "posterior-sampling":
        ball[solver] = L2Ball(1.0)
    loss = Logistic() if solver == "class-sums" else Squared()
    adjacency = "replace-label" if solver == "public-design" else "replace-one"
    model = PrivateErm(
        loss, ball.get(solver, L1Ball(2.0)), 2.0, 1e-6, bounds=bounds, solver=solver,
        adjacency=adjacency,
    )  # fmt: skip
    found = forecast(model, 500, 30, relevant=3, signal=0.7, repeats=2)
    assert found.plan.solver.startswith(solver)
    assert np.isfinite(found.excess_risk)


@pytest.mark.parametrize(
    "model",
    [
        PrivateSparseRegression(2.0, bounds=BOUNDS, sparsity=5),
        HeavyTailedRegression(2.0, sparsity=5),
        ProjectedRegression(2.0, bounds=Bounds(x=1.0, y=1.0, norm="l2"), dimension=10),
        PrivateErm(Huber(0.5), L1Ball(1.0), 2.0, bounds=BOUNDS),
        PrivateErm(Logistic(), L1Ball(5.0), 2.0, bounds=BOUNDS),
        PrivateLinearSVC(2.0, bounds=BOUNDS, classes=[0, 1]),
        PrivateLogisticRegression(2.0, bounds=BOUNDS, classes=["no", "yes"]),
        PrivateLogisticRegression(2.0, bounds=BOUNDS, classes=[0, 1], class_weight="balanced"),
        PrivateLogisticRegression(2.0, bounds=BOUNDS, classes=[0, 1], class_weight={1: 3.0}),
        PrivateLogisticRegression(
            2.0, bounds=Bounds(x=1.0, norm="l2", nonnegative=True), classes=[0, 1]
        ),
        PrivateLogisticRegression(2.0, bounds=Bounds(x=1.0, norm="l2"), classes=[0, 1]),
        lasso(bounds=Bounds(x=np.linspace(1, 9, 40), y=1.0)),
        lasso(float("inf"), steps=20),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_kind_of_estimator_can_be_forecast(model):
    found = forecast(model, 600, 40, relevant=5, signal=0.7, repeats=2, nonzeros=10)
    assert np.isfinite(found.score)
    assert (found.metric == "AUC") == found.plan.problem.loss.classifies
    assert np.isfinite(found.accuracy) == (found.metric == "AUC")


@pytest.mark.not_quick
def test_sparse_rows_of_bounded_length_are_learned():
    model = PrivateLogisticRegression(
        8.0, bounds=Bounds(x=1.0, norm="l2"), classes=[0, 1], steps=60
    )
    found = forecast(
        model, 3_000, 100, relevant=20, signal=0.85, design="binary", nonzeros=15, repeats=2
    )
    assert 0.7 < found.score < 0.86
    assert found.nothing == 0


@pytest.mark.parametrize("over", [{"epsilons": [0.05, 4.0]}, {}])
def test_a_curve_rises(over):
    rows = 2_000 if over else [300, 4_000]
    model = lasso() if over else lasso(1.0)
    curve = forecast_curve(model, rows, 60, relevant=3, repeats=2, **over)
    first, last = curve.forecasts
    assert first.score < last.score
    assert len(str(curve).splitlines()) == 3
    pytest.importorskip("matplotlib")
    axes = curve.plot()
    assert axes.get_ylabel() == "R2"
    assert axes.get_xlabel() == curve.over


def test_a_forecast_plots_its_curve():
    pytest.importorskip("matplotlib")
    found = forecast(lasso(), 500, 60, relevant=2, repeats=2)
    assert found.plot(epsilons=[1.0, 2.0]).get_xlabel() == "epsilon"


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"relevant": 0}, "relevant"),
        ({"relevant": 1.5}, "relevant"),
        ({"signal": 1.0}, "signal"),
        ({"design": "odd"}, "design"),
        ({"spread": 0.0}, "spread"),
        ({"density": 2.0}, "density"),
        ({"correlation": 1.0}, "correlation"),
        ({"positives": 0}, "positives"),
        ({"repeats": 1}, "repeats"),
    ],
)
def test_an_impossible_guess_is_refused(wrong, word):
    with pytest.raises(InvalidArgument, match=word):
        forecast(lasso(), 500, 30, **wrong)


def test_what_cannot_be_forecast_is_refused():
    with pytest.raises(InvalidArgument, match="estimator of riata"):
        forecast(object(), 500, 30)
    three = PrivateLogisticRegression(1.0, bounds=BOUNDS, classes=[0, 1, 2])
    with pytest.raises(InvalidArgument, match="two classes"):
        forecast(three, 500, 30, signal=0.8)
    two = PrivateLogisticRegression(1.0, bounds=BOUNDS, classes=[0, 1])
    with pytest.raises(InvalidArgument, match="AUC"):
        forecast(two, 500, 30, signal=0.4)
    with pytest.raises(InvalidArgument, match="one thing"):
        forecast_curve(lasso(), 500, 30)
    with pytest.raises(InvalidArgument, match="made-up"):
        forecast(lasso(solver="noisy-gradient"), 100_000, 1_000, repeats=2)


def test_a_forecast_cannot_be_changed():
    found = forecast(lasso(), 500, 60, relevant=2, repeats=2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.score = 1.0


@pytest.mark.parametrize("design", ["uniform", "signs", "normal", "binary"])
@pytest.mark.parametrize("group", [None, 5, 100])
def test_columns_that_are_drawn_late_agree_with_what_was_told(design, group):
    rng = np.random.default_rng(3)
    guess = Guess(design=design, correlation=0.5 if group else 0.0, group=group)
    x = SimulatedColumns(guess, 4_000, 200, rng)
    directions = [rng.standard_normal(4_000) for _ in range(3)]
    told = np.array([x.sums(v, 2**15) for v in directions])
    column = int(np.argmax(np.abs(told[0])))
    entries = np.clip(x[:, [column]][:, 0], -(2**15), 2**15)
    deviation = np.array([each.std() for each in told])
    assert np.all(np.abs([v @ entries for v in directions] - told[:, column]) < 0.6 * deviation)
    again = x.sums(directions[0], 2**15)
    others = np.arange(200) // 5 != column // 5
    assert np.allclose(again[others], told[0][others], rtol=1e-4, atol=1e-3 * deviation[0])


def test_the_area_counts_ties_as_half():
    assert auc(np.array([0.0, 0.0]), np.array([0.0, 1.0])) == 0.5
    assert auc(np.array([0.0, 1.0]), np.array([0.0, 1.0])) == 1.0


def test_what_is_stated_holds_in_every_simulated_fit_and_what_is_not_differs():
    problem = lasso().plan(1_000, 50).problem
    stated = PartialGuess({"relevant": 7, "correlation": 0.1, "design": None})
    guesses = [stated.complete(problem, number) for number in range(30)]
    assert {(each.relevant, each.correlation, each.signal) for each in guesses} == {(7, 0.1, 0.5)}
    assert {each.design for each in guesses} == {"uniform", "normal", "binary"}
    assert len({each.alignment for each in guesses}) > 10
    said = dict(stated.rows(problem))
    assert "7 columns matter" in said["guess"]
    assert "uniform, normal or binary entries" in said["varied"]
    assert "correlation" not in said["varied"]


def test_nothing_varies_if_all_is_stated():
    problem = lasso().plan(1_000, 50).problem
    known = {"relevant": 5, "design": "normal", "correlation": 0.0, "alignment": 0.0}
    whole = PartialGuess(known)
    assert len({whole.complete(problem, number) for number in range(5)}) == 1
    assert [name for name, _ in whole.rows(problem)] == ["guess"]


def test_the_bounds_say_how_many_entries_are_not_0():
    model = PrivateLasso(1.0, 1e-6, bounds=Bounds(x=1.0, y=1.0, nonzeros=6))
    guess = PartialGuess({}).complete(model.plan(1_000, 200).problem, 0)
    assert guess.nonzeros == 6
    counts = PartialGuess({"nonzeros": 4}).complete(lasso().plan(1_000, 200).problem, 0)
    assert (counts.design, counts.density) == ("binary", 0.02)


def test_what_is_open_makes_the_interval_wider():
    known = {"relevant": 5, "design": "uniform", "correlation": 0.0, "alignment": 0.0}
    narrow, wide = (forecast(lasso(1.0), 2_000, 60, repeats=8, **facts) for facts in (known, {}))
    assert np.ptp(wide.interval) > np.ptp(narrow.interval)


def test_rows_that_share_a_factor_have_the_columns_that_go_with_it():
    bounds = Bounds(x=1.0, norm="l2", nonnegative=True)
    model = PrivateLogisticRegression(1.0, 1e-6, bounds=bounds, classes=[0, 1])
    problem = model.plan(2_000, 500).problem
    facts = {"relevant": 500, "signal": 0.95, "nonzeros": 20, "alignment": 1.0}
    spread = []
    for r in (0.0, 0.6):
        guess = PartialGuess(facts | {"correlation": r}).complete(problem, 0)
        x, y = World(guess, problem, np.random.default_rng(0)).draw()
        by_class = [np.asarray(x[y == side].mean(axis=0)) for side in np.unique(y)]
        spread.append(np.linalg.norm(by_class[1] - by_class[0]))
    assert spread[1] > 2 * spread[0]


def test_too_few_relevant_columns_become_more_unless_they_are_stated():
    bounds = Bounds(x=1.0, norm="l2", nonnegative=True)
    model = PrivateLogisticRegression(1.0, 1e-6, bounds=bounds, classes=[0, 1])
    facts = {"signal": 0.99, "nonzeros": 5, "repeats": 2}
    with pytest.raises(InvalidArgument, match="reaches signal"):
        forecast(model, 500, 5_000, relevant=1, **facts)
    assert forecast(model, 500, 5_000, **facts).best_score > 0.8


def test_arrays_cost_less_than_sparse_rows_of_as_many_entries():
    plan = lasso(1.0).plan(10_000, 1_000)
    assert cost_of(plan).bytes < cost_of(plan, 0.4 * 10**7).bytes
    assert (
        cost_of(plan, steps=plan.steps).seconds
        > cost_of(plan).seconds
        > cost_of(plan, steps=2).seconds
    )
