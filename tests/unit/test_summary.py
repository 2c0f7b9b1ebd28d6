"""`model.summary()`: numbers that follow from the model, in the units of the file."""

import copy
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError

import riata
from riata import (
    Bounds,
    LocalKernelRidge,
    LocalSparseMean,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSparseRegression,
    read,
)
from riata.data import Schema, SchemaEncoder
from riata.data.schema.kinds import KINDS
from riata.errors import InvalidArgument
from riata.estimators.coefficients import INTERCEPT
from riata.estimators.summary import summarize
from riata.estimators.summary_text import summary_text
from riata.losses import Squared
from riata.sets import L1Ball
from riata.solvers.empirical_bayes import covariances, known_errors

SCHEMA = {
    "features": [
        {"name": "age", "kind": "number", "bounds": [0, 110], "knots": 0},
        {"name": "visits", "kind": "number", "bounds": [0, 10], "center": 0, "knots": 0},
        {"name": "smoker", "kind": "yes-no"},
        {"name": "ward", "kind": "choice", "choices": ["a", "b"]},
    ],
    "target": {"name": "cost", "bounds": [0, 20000]},
}


def claims(n=3000):
    rng = np.random.default_rng(0)
    age, visits, smokes = rng.integers(18, 95, n), rng.integers(0, 7, n), rng.random(n) < 0.3
    cost = 60 * age + 700 * visits + 2000 * smokes + rng.normal(0, 800, n)
    return pd.DataFrame(
        {
            "age": age, "visits": visits, "smoker": np.where(smokes, "yes", "no"),
            "ward": rng.choice(["a", "b"], n), "cost": cost,
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def by_schema():
    return PrivateLasso(2.0, 1e-6, random_state=1).fit(read(claims(), SCHEMA))


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(1)
    x = pd.DataFrame(rng.uniform(-1, 1, (6000, 4)), columns=["dose", "<b>", "none", "zero"])
    y = rng.random(6000) < 1 / (1 + np.exp(-2 * x["dose"] + x["<b>"]))
    model = PrivateLogisticRegression(3.0, 1e-6, bounds=Bounds(x=1.0), random_state=1)
    return model.fit(x, y.to_numpy())


def by_name(summary):
    return {term.name: term for term in summary.functions[0].terms}


def test_coefficients_are_in_the_units_of_the_file(by_schema):
    terms, coef = by_name(by_schema.summary()), by_schema.coef_
    assert terms["age"].estimate == pytest.approx(coef[0] / 55)
    assert terms["visits"].estimate == pytest.approx(coef[1] / 10)
    assert terms["smoker"].estimate == pytest.approx(coef[2])
    assert terms["age"].error == pytest.approx(by_schema.coef_error_[0] / 55)
    assert terms["age"].estimate == pytest.approx(60, abs=6)


def test_estimates_and_intercept_predict_what_the_model_predicts(by_schema):
    """A person who multiplies numbers of the file gets the predictions."""
    rows = claims(50)
    terms = {name: term.estimate for name, term in by_name(by_schema.summary()).items()}
    by_hand = terms[INTERCEPT] + terms["age"] * rows["age"] + terms["visits"] * rows["visits"]
    by_hand = by_hand + terms.get("smoker", 0.0) * (rows["smoker"] == "yes")
    for ward in ("a", "b"):
        by_hand = by_hand + terms.get(f"ward={ward}", 0.0) * (rows["ward"] == ward)
    np.testing.assert_allclose(by_hand, by_schema.predict(rows), rtol=1e-9)


def test_the_intercept_has_an_error_only_where_it_is_known(by_schema):
    summary = by_schema.summary()
    assert math.isnan(by_name(summary)[INTERCEPT].error)  # of a point far from the centres
    said = next(note for note in summary.notes if "centres" in note)
    assert "age 55" in said
    assert f"± {by_schema.intercept_error_:.2g}" in said
    plain = PrivateLasso(2.0, bounds=Bounds(x=1.0, y=1.0), random_state=0)
    x = np.random.default_rng(0).uniform(-1, 1, (3000, 3))
    plain.fit(x, x @ [0.5, 0.3, 0])
    term = by_name(plain.summary())[INTERCEPT]
    assert (term.estimate, term.error) == (plain.intercept_, plain.intercept_error_)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_intervals_z_and_p_are_those_of_the_normal_distribution(labelled, level):
    reach = stats.norm.ppf((1 + level) / 2)
    for term in labelled.summary(level, correction=None).functions[0].terms:
        assert term.high - term.low == pytest.approx(2 * reach * term.error)
        assert term.z == pytest.approx(term.estimate / term.error)
        assert term.p == pytest.approx(2 * stats.norm.sf(abs(term.z)), abs=1e-300)
    ends = labelled.conf_int(level, correction=None)
    assert ends.shape == (*labelled.coef_.shape, 2)
    np.testing.assert_allclose(ends.mean(axis=-1)[0, 0], labelled.coef_[0, 0])
    np.testing.assert_allclose(np.diff(ends)[0, 0, 0], 2 * reach * labelled.coef_error_[0, 0])


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, True, "0.9", math.nan])
def test_a_level_is_a_probability(labelled, level):
    with pytest.raises(InvalidArgument, match="level"):
        labelled.summary(level)
    with pytest.raises(InvalidArgument, match="level"):
        labelled.conf_int(level)


def test_odds_ratios_are_what_probabilities_say(labelled):
    """The odds of a row change by the ratio if the column grows by 1."""
    slope = labelled.calibration_[0, 0]
    assert labelled.summary().ratio == "odds"
    for term in labelled.summary().functions[0].terms[1:]:
        assert term.ratio == pytest.approx(math.exp(slope * term.estimate))
        assert term.ratio_low < term.ratio < term.ratio_high
    rows = np.zeros((2, 4))
    rows[1, 0] = 1.0
    chances = labelled.predict_proba(pd.DataFrame(rows, columns=labelled.feature_names_in_))[:, 1]
    odds = chances / (1 - chances)
    assert odds[1] / odds[0] == pytest.approx(by_name(labelled.summary())["dose"].ratio)


def test_odds_ratios_include_a_calibration_and_say_so(labelled):
    labelled.calibration_ = np.array([[-0.5, 0.1]])
    try:
        summary = labelled.summary()
        term = by_name(summary)["dose"]
        assert term.ratio == pytest.approx(math.exp(-0.5 * term.estimate))
        assert term.ratio_low < term.ratio < term.ratio_high
        assert any("slope -0.5" in note for note in summary.notes)
    finally:
        labelled.calibration_ = np.array([[1.0, 0.0]])


def test_what_nobody_knows_is_blank_and_said():
    x = np.random.default_rng(0).uniform(-1, 1, (500, 3))
    model = PrivateLasso(1.0, bounds=Bounds(x=1.0, y=1.0), solver="frank-wolfe", random_state=0)
    model.fit(x, x @ [0.5, 0.3, 0])
    summary = model.summary()
    assert not summary.functions[0].has_errors
    assert np.isnan(model.conf_int()).all()
    assert "nan" not in str(summary)
    assert "interval" not in str(summary).split("- ")[0]
    assert "none is known" in str(summary)
    frame = summary.to_frame()
    assert frame["std.error"].isna().all()
    assert frame["p.value"].isna().all()


@pytest.mark.parametrize(
    ("solver", "said"),
    [
        ("class-sums", "naive Bayes"), ("joint-class-sums", "naive Bayes"),
        ("scaled-gradient", "a descent that ends early"),
        ("softmax-gradient", "a descent that ends early"), ("frank-wolfe", ""),
    ],
)  # fmt: skip
def test_a_solver_says_why_it_has_no_errors_and_what_has(solver, said):
    rng = np.random.default_rng(0)
    several = 3 if solver in ("joint-class-sums", "softmax-gradient") else 2
    x = rng.uniform(0, 1, (2_000, 3))
    model = PrivateLogisticRegression(
        5.0, 1e-6, bounds=Bounds(1.0), classes=[*range(several)], solver=solver, random_state=0
    ).fit(x, (several * x[:, 0]).astype(int))
    words = " ".join(str(model.summary()).split())
    assert np.isnan(model.coef_error_).all()
    assert "no interval is shown because none is known" in words
    assert said in words
    assert ('solver="whitened-gradient"' in words) is bool(said)


def test_a_table_with_some_errors_has_blanks_for_the_others(labelled):
    kept = labelled.coef_error_.copy()
    labelled.coef_error_[0, 0] = math.nan
    try:
        line = next(one for one in str(labelled.summary()).splitlines() if one.startswith("dose"))
        assert len(line.split()) == 3  # name, estimate, odds ratio
        assert "where the table is blank" in str(labelled.summary())
    finally:
        labelled.coef_error_ = kept


def test_the_header_says_what_is_public(by_schema):
    text = str(by_schema.summary())
    assert text.startswith("PrivateLasso\n")
    for part in ("SEEDED: NOT PRIVATE", "3,000", "cost", by_schema.privacy_.solver, "fit"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 120
    assert repr(by_schema.summary()) == text


def test_frames_have_the_names_of_broom(by_schema, labelled):
    frame = by_schema.summary().to_frame()
    assert list(frame.columns) == [
        "term", "estimate", "std.error", "statistic", "p.value", "p.adjusted", "conf.low",
        "conf.high",
    ]  # fmt: skip
    assert frame["term"][0] == INTERCEPT
    assert len(frame) == 1 + np.count_nonzero(by_schema.coef_)
    (glance,) = by_schema.summary().to_frame("glance").to_dict("records")
    assert glance["nobs"] == 3000
    assert glance["epsilon"] == by_schema.privacy_.epsilon
    assert glance["r.squared"] == by_schema.training_fit_
    assert glance["private"] is False
    assert "odds.ratio" in labelled.summary().to_frame().columns
    with pytest.raises(InvalidArgument, match="tidy"):
        by_schema.summary().to_frame("augment")


def test_a_notebook_begins_with_the_coefficients(labelled):
    page = labelled._repr_html_()
    assert page.index("odds ratio") < page.index("guarantee") < page.index("accounting")
    assert "&lt;b&gt;" in page
    assert "<b>PrivateLogisticRegression</b>" in page
    assert page.count("<b>") == 1


def test_names_cannot_steer_a_terminal():
    x = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (3000, 1)), columns=["a\x1b[31m\n"])
    model = PrivateLasso(5.0, bounds=Bounds(x=1.0, y=1.0)).fit(x, x.iloc[:, 0])
    assert "\x1b" not in str(model.summary())


def test_repr_and_unfitted_models_are_as_in_scikit_learn(labelled):
    assert repr(labelled).startswith("PrivateLogisticRegression(")
    model = PrivateLasso(1.0, bounds=Bounds(x=1.0, y=1.0))
    with pytest.raises(NotFittedError):
        model.summary()
    with pytest.raises(NotFittedError):
        model.conf_int()


def test_large_models_show_their_largest_terms():
    model = PrivateLasso(5.0, bounds=Bounds(x=1.0, y=1.0), solver="frank-wolfe", steps=1)
    model.fit(np.zeros((20, 300)), np.zeros(20))
    model.coef_ = np.arange(300.0)
    model.coef_error_ = np.full(300, 0.5)
    text = str(model.summary())
    assert "299 of 300 columns are not 0, the 20 largest here" in text
    assert "x[299]" in text
    assert "x[279]" not in text
    assert len(model.summary().to_frame()) == 300
    assert len(model.summary().functions[0].terms) == 300
    assert len(summarize(model, most=5).functions[0].terms) == 6


def test_every_kind_of_model_has_one():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (300, 4))
    bounds = Bounds(x=1.0, y=1.0)
    labels = rng.integers(0, 3, 300)
    models = [
        PrivateSparseRegression(1.0, bounds=bounds, sparsity=2).fit(x, x[:, 0]),
        PrivateErm(Squared(), L1Ball(1.0), epsilon=1.0, bounds=bounds).fit(x, x[:, 0]),
        PrivateLinearSVC(1.0, bounds=Bounds(x=1.0), classes=[0, 1]).fit(x, labels % 2),
        PrivateLogisticRegression(1.0, bounds=Bounds(x=1.0), classes=[0, 1, 2]).fit(x, labels),
        LocalSparseMean(1.0, bounds=Bounds(x=1.0)).fit(x),
        LocalKernelRidge(1.0, bounds=bounds).fit(x, x[:, 0]),
    ]
    for model in models:
        text = str(model.summary())
        assert type(model).__name__ in text
        assert "nan" not in text.replace("finance", "")
        assert model.privacy_.sentence.split(",")[0] in " ".join(text.split())
    assert not models[2].summary().ratio  # margins of a support vector machine are no log-odds
    joint = models[3]
    assert bool(joint.summary().ratio) is not joint.multinomial
    assert len(joint.summary().functions) == 3
    assert "no coefficients" in str(models[5].summary())
    means = models[4].summary().functions[0].terms
    assert all(math.isnan(term.p) for term in means)  # nobody asks whether a mean is 0


def test_a_summary_survives_the_model_file(by_schema, tmp_path):
    riata.save(by_schema, tmp_path / "m.riata")
    assert str(riata.load(tmp_path / "m.riata").summary()) == str(by_schema.summary())


def test_a_summary_reads_no_row_and_charges_nothing():
    ledger = riata.Ledger.create(":memory:", dataset="d", ceiling=riata.Budget(5.0, 1e-6))
    x = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    model = PrivateLasso(1.0, bounds=Bounds(x=1.0, y=1.0), ledger=ledger).fit(x, x[:, 0])
    model.summary(), model.conf_int(), model._repr_html_(), model.summary().to_frame()
    assert len(ledger.charges) == 1


def test_units_of_files_without_names():
    schema = Schema.from_table({"features": {"count": 3, "bound": 5.0}})
    scales, centres = schema.features.units
    assert scales.tolist() == [5.0] * 3
    assert centres.tolist() == [0.0] * 3


def test_columns_without_variation_have_no_error():
    """A category that never occurs has no standard error: nothing pulls its noise back."""
    matrix = np.diag([1.0, 2.0, 30.0])
    errors = known_errors(covariances(0.1 * matrix, np.array([False, False, True])))
    assert errors[:2].tolist() == pytest.approx([0.1, 0.2])
    assert math.isnan(errors[2])
    model = PrivateLasso(2.0, 1e-6, random_state=0).fit(read(claims(), SCHEMA))
    absent = list(model.feature_names_in_).index("ward=(other)")
    assert model.privacy_.solver == "whitened-gradient"
    assert math.isnan(model.coef_error_[absent])
    assert math.isfinite(model.coef_error_[0])


@pytest.mark.parametrize("other", [False, True])
def test_the_unit_of_an_ordered_choice_is_a_step(other):
    """Its coefficient is what the step adds to a prediction, however many steps there are."""
    choices = ["none", "some", "much", "most"]
    pain = {"name": "pain", "kind": "choice", "choices": choices, "ordered": True, "other": other}
    schema = Schema.from_table({"features": [pain]})
    scales, centres = schema.features.units
    rows = SchemaEncoder(schema).transform(pd.DataFrame({"pain": [*choices, "else"]})).toarray()
    coef = np.arange(1.0, schema.n_features + 1)
    steps = np.diff((rows @ coef)[:4])
    np.testing.assert_allclose((coef / scales)[:3], steps, rtol=1e-12)
    assert not centres.any()
    if other:
        assert (rows @ coef)[4] == pytest.approx((coef / scales)[3])


UNITS = {
    "features": [
        {"name": "age", "kind": "number", "bounds": [10, 110], "center": 40, "knots": 0},
        {"name": "dose", "kind": "number", "bounds": [2, 6], "knots": 0},
        {"name": "visits", "kind": "count", "most": 50, "knots": 0},
        {"name": "ward", "kind": "choice", "choices": ["a", "b"], "other": False},
        {"name": "day", "kind": "date", "bounds": ["2020-01-01", "2023-12-31"], "parts": ["trend"],
         "cycles": []},
        {"kind": "interaction", "of": ["age", "dose"]},
        {"kind": "interaction", "of": ["visits", "ward"]},
    ],
    "target": {"name": "cost", "bounds": [0, 100]},
}  # fmt: skip


def in_units(seed=0):
    """A model with coefficients of all kinds, without a fit: units do not depend on them."""
    schema = Schema.from_table(UNITS)
    coef = np.random.default_rng(seed).normal(0, 1, schema.n_features)
    scales, centres = schema.features.units
    terms = dict(zip(schema.feature_names, coef / scales, strict=True))
    terms[INTERCEPT] = -float((coef * centres / scales).sum())

    def encoded(**values):
        return (SchemaEncoder(schema).transform(pd.DataFrame([values])).toarray() @ coef)[0]

    return terms, encoded


ROW = {"age": 40, "dose": 4, "visits": 0, "ward": "else", "day": "2022-01-01"}


def test_the_units_of_counts_dates_and_references():
    """One unit more in the file changes the encoded row's prediction by the coefficient."""
    terms, predicts = in_units()
    more = predicts(**ROW | {"visits": 19}) - predicts(**ROW)
    assert more == pytest.approx(terms["visits"] * math.log(20))
    assert predicts(**ROW | {"ward": "b"}) - predicts(**ROW) == pytest.approx(terms["ward=b"])
    day = predicts(**ROW | {"day": "2022-01-02"}) - predicts(**ROW)
    assert day == pytest.approx(terms["day trend"], rel=1e-6)


def test_a_product_counts_numbers_from_their_centres():
    terms, predicts = in_units()
    assert predicts(**ROW | {"age": 41}) - predicts(**ROW) == pytest.approx(terms["age"])
    both = predicts(**ROW | {"age": 50, "dose": 5}) - predicts(**ROW)
    expected = 10 * terms["age"] + terms["dose"] + 10 * terms["age * dose"]
    assert both == pytest.approx(expected)
    # The intercept is where all numbers are 0, products included; bounds clip no number here.
    schema = Schema.from_table(UNITS)
    age, dose = schema.features.each[0], schema.features.each[1]
    at_zero = (
        -terms["age"] * age.center - terms["dose"] * dose.center
        + terms["age * dose"] * age.center * dose.center
    )  # fmt: skip
    assert terms[INTERCEPT] == pytest.approx(at_zero)


def test_a_note_says_what_coefficients_of_each_kind_mean():
    rng = np.random.default_rng(0)
    n = 4000
    rows = pd.DataFrame(
        {
            "age": rng.integers(18, 95, n), "dose": rng.uniform(2, 6, n),
            "visits": rng.poisson(3, n), "ward": rng.choice(["a", "b", "c"], n),
            "day": "2022-01-01",
        }
    )  # fmt: skip
    rows["cost"] = rows["age"] / 2 + 10 * np.log1p(rows["visits"]) + 9 * (rows["ward"] == "a")
    model = PrivateLasso(3.0, 1e-6, random_state=0).fit(read(rows, UNITS))
    (note,) = (note for note in model.summary().notes if note.startswith("A coefficient is"))
    assert "of a number, the change for one unit of the column in the file" in note
    assert "of a count, the change for 1 more of log(1 + count)" in note
    assert "without (other), the difference from the reference" in note
    assert "with (other)" not in note
    assert by_name(model.summary())["visits"].estimate == pytest.approx(10, abs=3)


def test_every_kind_of_column_tells_the_meaning_of_its_coefficients():
    kinds = {
        "number": {"bounds": [0, 1], "knots": 3}, "count": {"most": 5}, "yes-no": {},
        "choice": {"choices": ["a", "b"], "ordered": True}, "text": {"buckets": 8},
        "hash": {"buckets": 8}, "date": {"bounds": ["2020-01-01", "2020-12-31"]},
        "interaction": {"of": ["number", "count"]},
    }  # fmt: skip
    assert set(kinds) == set(KINDS)
    features = [{"name": kind, "kind": kind, **fields} for kind, fields in kinds.items()]
    for feature in Schema.from_table({"features": features}).features:
        assert feature.meanings, feature.kind
        assert [len(each) for each in feature.units] == [feature.n_columns] * 2


def test_a_path_draws_columns_in_the_order_of_selection():
    pytest.importorskip("matplotlib")
    x = np.random.default_rng(0).uniform(-1, 1, (4000, 30))
    y = x[:, 3] * 0.6 - 0.3 * x[:, 7]
    bounds = Bounds(x=1.0, y=1.0)
    model = PrivateLasso(3.0, 1e-6, bounds=bounds, solver="greedy", random_state=0).fit(x, y)
    ax = model.plot_path()
    order = np.argsort(model.selection_order_)[-np.count_nonzero(model.selection_order_) :]
    assert [label.get_text() for label in ax.get_xticklabels()] == [f"x[{j}]" for j in order]
    points = ax.lines[0].get_ydata()
    np.testing.assert_array_equal(points, model.coef_[order])
    assert "order of selection" in ax.get_xlabel()
    assert model.plot_path(ax=ax) is ax


def test_a_path_of_classes_without_an_order_says_so(labelled):
    pytest.importorskip("matplotlib")
    assert not labelled.selection_order_.any()
    ax = labelled.plot_path(level=0.5)
    assert "no order known" in ax.get_xlabel()
    assert len(ax.get_xticklabels()) == np.count_nonzero(labelled.coef_)
    sizes = np.abs(ax.lines[0].get_ydata())
    assert (np.diff(sizes) <= 0).all()


def test_a_path_of_nothing_is_refused(labelled):
    nothing = copy.copy(labelled)
    nothing.coef_ = np.zeros_like(labelled.coef_)
    with pytest.raises(InvalidArgument, match="All coefficients are 0"):
        nothing.plot_path()
    with pytest.raises(NotFittedError):
        PrivateLasso(1.0, bounds=Bounds(1.0, 1.0)).plot_path()


def test_a_narrow_terminal_gets_a_narrow_table(labelled):
    """What follows from other numbers is left out, and a name at last."""
    found = summarize(labelled)
    wide, narrow = summary_text(found), summary_text(found, 80)
    assert max(map(len, wide.splitlines())) > 80 >= max(map(len, narrow.splitlines()))
    head = next(line for line in narrow.splitlines() if "estimate" in line)
    assert "adj. p" in head
    assert "odds ratio" in head
    assert " p " not in head.replace("adj. p", "")
    assert summary_text(found, 400) == wide


def test_a_fit_that_is_too_good_is_doubted(labelled):
    model = copy.deepcopy(labelled)
    model.training_fit_, model.training_fit_error_ = np.array([1.01]), np.array([0.02])
    assert "another form of the target: look at dose first" in " ".join(
        str(model.summary()).split()
    )
    model.training_fit_ = np.array([0.9])
    assert "another form of the target" not in str(model.summary())


def test_an_error_of_the_intercept_alone_makes_no_columns(labelled):
    model = copy.deepcopy(labelled)
    model.coef_error_ = np.full_like(model.coef_error_, np.nan)
    said = str(model.summary())
    assert "std. error" not in said
    assert "no interval is shown" in said
