"""Private counts of missing and impossible cells: what is said, kept and charged."""

import warnings

import numpy as np
import polars as pl
import pytest

import riata
from riata import (
    Bounds,
    Budget,
    Ledger,
    PrivateLasso,
    PrivateLogisticRegression,
    PrivateSearch,
    read,
)
from riata.data import Schema
from riata.data.columns import Texts
from riata.errors import DataQualityWarning, InvalidArgument
from riata.fitting.data_quality import DataQuality

N = 6_000
TABLE = {
    "features": [
        {"name": "age", "kind": "number", "bounds": [0, 100]},
        {"name": "ward", "kind": "choice", "choices": ["a", "b"]},
    ],
    "target": {"name": "y", "classes": ["no", "yes"]},
}


def rows(n=N, *, labels=("no", "yes"), missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(n) < missing, None, rng.uniform(0, 100, n))
    return pl.DataFrame(
        {"age": age.tolist(), "ward": rng.choice(["a", "b"], n), "y": rng.choice(labels, n)}
    )


def fitted(frame, table=TABLE, **how):
    model = PrivateLogisticRegression(1.0, 1e-6, data_quality=True, random_state=5, **how)
    return model.fit(read(frame, table))


def test_misspelt_classes_are_not_silent():
    with pytest.warns(
        DataQualityWarning, match="About [0-9]+% of 'y' is none of the classes: check"
    ):
        model = fitted(rows(labels=("No", "Yes")))
    assert abs(model.data_quality_.target_outside - 1) < 6 * model.data_quality_.target_error


def test_missing_cells_and_other_units_are_told():
    frame = rows(missing=0.4).with_columns(age=pl.col("age") * 365)
    with pytest.warns(DataQualityWarning) as said:
        found = fitted(frame).data_quality_
    missing, outside = (str(each.message) for each in said)
    assert missing.endswith("% of 'age' is missing or cannot be read.")
    assert "of 'age' is outside of its bounds: check the units" in outside
    assert found.columns == ("age", "ward")
    assert abs(found.missing[0] - 0.4) < 6 * found.error + 0.03
    assert abs(found.outside[1]) < 6 * found.error
    assert str(found).endswith("for the target).")


def test_a_sign_for_nothing_is_missing_where_it_is_no_choice():
    frame = rows().with_columns(
        ward=pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("?")).otherwise(pl.col("ward"))
    )
    with pytest.warns(DataQualityWarning, match="'ward' is missing or cannot be read"):
        found = fitted(frame).data_quality_
    assert abs(found.missing[1] - 0.5) < 6 * found.error + 0.03
    assert abs(found.outside[1]) < 6 * found.error
    choice = {"name": "ward", "kind": "choice", "choices": ["a", "?"]}
    (listed,) = Schema.from_table({"features": [choice]}).features
    assert listed.cells(Texts.of(["a", "?", "NA", "c", None])).tolist() == [0, 0, 1, 2, 1]


def test_good_rows_are_not_warned_about():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(rows())
    assert model.data_quality_.sentences == ()
    assert str(model.data_quality_).startswith("Nothing stands out.")
    assert any(line.startswith("data quality: ") for line in model.privacy_.releases)
    assert model.privacy_.epsilon <= 1.0


def test_numbers_are_measured_by_their_bounds():
    table = {**TABLE, "target": {"name": "y", "bounds": [0, 1]}}
    frame = rows().with_columns(y=pl.lit(7.0))
    with pytest.warns(DataQualityWarning, match="'y' is outside of the bounds: check the units"):
        PrivateLasso(1.0, 1e-6, data_quality=True, random_state=1).fit(read(frame, table))


def test_without_the_wish_nothing_is_counted():
    model = PrivateLogisticRegression(1.0, 1e-6).fit(read(rows(500), TABLE))
    assert not hasattr(model, "data_quality_")
    assert not any("data quality" in line for line in model.privacy_.releases)


def test_a_model_keeps_its_counts_until_the_next_fit(tmp_path):
    model = fitted(rows())
    riata.save(model, tmp_path / "m")
    assert riata.load(tmp_path / "m").data_quality_ == model.data_quality_
    model.set_params(data_quality=False).fit(read(rows(500), TABLE))
    assert not hasattr(model, "data_quality_")


@pytest.mark.filterwarnings("ignore::riata.errors.DataQualityWarning")  # no seed beside a ledger
def test_the_ledger_is_charged_for_the_counts_once():
    ledger = Ledger.create(":memory:", dataset="d", ceiling=Budget(3.0, 1e-5))
    model = PrivateLogisticRegression(1.0, 1e-6, data_quality=True, ledger=ledger)
    model.fit(read(rows(), TABLE))
    (charge,) = ledger.charges
    assert any("data quality" in line for line in charge.summary["releases"])
    assert ledger.spent.epsilon <= 1.0 + 1e-9


def test_a_stopped_fit_goes_on_with_the_counts_that_it_made(tmp_path):
    source = read(rows(), TABLE)
    how = {"data_quality": True, "random_state": 3}
    first = PrivateLogisticRegression(1.0, 1e-6, **how).fit(source, checkpoint=tmp_path / "c")
    again = PrivateLogisticRegression(1.0, 1e-6, **how).fit(source, checkpoint=tmp_path / "c")
    assert again.data_quality_ == first.data_quality_


def test_rows_of_people_are_counted_as_they_are_drawn():
    table = {**TABLE, "person": "id", "rows_of_a_person": 2}
    frame = rows().with_columns(id=pl.arange(N) % 3000)
    found = fitted(frame, table).data_quality_
    assert found.sentences == ()
    assert found.columns == ("age", "ward")


@pytest.mark.parametrize("engine", ["scan", "disk"])
def test_every_engine_releases_the_same(engine):
    assert fitted(rows(), engine=engine).data_quality_ == fitted(rows()).data_quality_


def test_it_takes_a_source_with_names():
    wide = {"features": {"count": 2}, "target": {"classes": [0, 1]}}
    model = PrivateLasso(1.0, data_quality=True, bounds=Bounds(1.0, 1.0))
    with pytest.raises(InvalidArgument, match="needs a source"):
        model.fit(np.zeros((10, 2)), np.zeros(10))
    with pytest.raises(InvalidArgument, match="True or False"):
        model.set_params(data_quality="yes").fit(np.zeros((10, 2)), np.zeros(10))
    assert riata.Schema.from_table(wide).unnamed
    tried = PrivateLasso(None, data_quality=True, bounds=Bounds(1.0, 1.0))
    with pytest.raises(InvalidArgument, match="data_quality=False"):
        PrivateSearch(tried, {"radius": [1.0]}, 1.0).fit(np.zeros((10, 2)), np.zeros(10))


@pytest.mark.parametrize(
    "wrong", [{"error": "x"}, {"missing": ()}, {"target": 1}, {"classifies": 1}]
)
def test_counts_that_are_none_are_refused(wrong):
    good = {
        "columns": ("a",), "missing": (0.0,), "outside": (0.0,), "error": 0.1, "target": "y",
        "target_missing": 0.0, "target_outside": 0.0, "target_error": 0.1, "classifies": True,
    }  # fmt: skip
    assert DataQuality(**good).sentences == ()
    with pytest.raises(InvalidArgument):
        DataQuality(**(good | wrong))


def test_noise_alone_is_rarely_told_however_many_columns_there_are():
    """One fit in 500 at most. The noise of the target is counted with that of a column."""
    rng, told = np.random.default_rng(0), 0
    for _ in range(1000):
        noise = rng.normal(0, 0.1, (2, 200))
        target = rng.normal(0, 0.03, 2)
        found = DataQuality(
            tuple(f"c{k}" for k in range(200)), tuple(noise[0].tolist()), tuple(noise[1].tolist()),
            0.1, "y", *target.tolist(), 0.03, True,
        )  # fmt: skip
        told += bool(found.sentences)
    assert told <= 14  # 2 are expected, and more than 14 have a probability below 1e-7


def counted(kinds, missing, outside=None, **target):
    names = tuple(f"c{k}" for k in range(len(kinds)))
    target = {"target_missing": 0.0, "target_outside": 0.0} | target
    return DataQuality(
        names, tuple(missing), tuple(outside or [0.0] * len(kinds)), 0.01, "y",
        target_error=0.01, classifies=False, kinds=tuple(kinds), **target,
    )  # fmt: skip


def test_each_kind_of_column_has_its_own_words():
    found = counted(["number", "choice", "yes-no"], [0.5, 0.5, 0.0], [0.0, 0.4, 0.0])
    assert found.hint == (
        "If the cells are there, they have to be written otherwise: numbers as 1234.5, without a "
        "decimal comma, a sign between thousands, a percent sign or a unit."
    )
    assert "'c1' is none of its choices" in found.sentences[2]
    assert counted(["choice"], [0.5]).hint == ""
    assert "yes and no as" in counted(["yes-no", "date"], [0.5, 0.9]).hint
    assert "numbers as" in counted(["choice"], [0.0], target_missing=0.7).hint


def test_rows_that_are_blank_are_told_once():
    found = counted(["number", "choice", "date"], [0.9, 0.91, 0.89], target_missing=0.9)
    assert sum("missing or cannot" in each for each in found.sentences) == 1  # the target
    assert "About 89% of the rows are blank in every column" in found.sentences[1]


def test_counts_of_earlier_models_have_no_kinds():
    found = DataQuality(("a",), (0.0,), (0.5,), 0.01, "y", 0.0, 0.0, 0.01, False)
    assert found.sentences == ("About 50% of 'a' is outside of its bounds: check the units.",)
    with pytest.raises(InvalidArgument):
        DataQuality(("a",), (0.0,), (0.5,), 0.01, "y", 0.0, 0.0, 0.01, False, ("number", "date"))
