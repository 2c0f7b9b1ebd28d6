"""Curves, counts, dates, ordered choices, hashes, interactions and runs of words."""

import math
import warnings
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import riata
from riata import PrivateLasso, PrivateLogisticRegression, Schema, read
from riata.data.columns import Numbers, Texts
from riata.data.schema.automatic import KNOTS, MOST_ENCODED
from riata.data.schema.features import Cell
from riata.data.schema.hashed import Text
from riata.data.schema.kinds import KINDS
from riata.data.schema.number import Count
from riata.errors import DataError, InvalidArgument, SchemaError
from riata.grid import X_STEPS

YEAR = ["2013-01-01", "2013-12-31"]
FEATURES = [
    {"name": "line", "kind": "number", "bounds": [0, 10], "knots": 0},
    {"name": "curve", "kind": "number", "bounds": [0, 10], "knots": [0, 2, 10]},
    {"name": "bins", "kind": "number", "bounds": [0, 10], "bins": [2, 5]},
    {"name": "count", "kind": "count", "most": 99, "knots": 4},
    {"name": "logs", "kind": "count", "most": 99, "knots": 0},
    {"name": "flag", "kind": "yes-no"},
    {"name": "ward", "kind": "choice", "choices": ["a", "b"]},
    {"name": "size", "kind": "choice", "choices": ["S", "M", "L"], "ordered": True},
    {"name": "user", "kind": "hash", "buckets": 7},
    {"name": "day", "kind": "date", "bounds": YEAR, "parts": ["trend", "month", "weekday", "hour"],
     "cycles": ["year", "week", "day"]},
    {"name": "note", "kind": "text", "buckets": 2000, "ngrams": 3},
    {"kind": "interaction", "of": ["curve", "size"]},
    {"kind": "interaction", "of": ["line", "day"], "name": "season"},
    {"kind": "interaction", "of": ["logs", "curve"]},
]  # fmt: skip
SCHEMA = Schema.from_table({"features": FEATURES})
HOSTILE = [
    "", "nan", "inf", "-inf", "1e999", "5", "-0.0", "5e-324", "S", "M", "L", "yes", "a", "b",
    "2013-05-17", "2013-12-31T23:59", "2999-01-01", "0001-01-01T00:00:00+14:00", "2013-13-01",
    "9999-12-31T23:59:59.999999-23:59", "20130517", "2013-W20-5", "x" * 5000, "a b a c", "\0",
    "\u0662\u0660\u0661\u0663-\u0660\u0665-\u0661\u0667", "2", "99", "1e6", "-3",
]  # fmt: skip


def one(**feature):
    return Schema.from_table({"features": [{"name": "x", **feature}]}).features.each[0]


def encoded(feature, values):
    column = values if isinstance(values, Numbers) else Texts.of([str(value) for value in values])
    rows, columns, entries = feature.encode(column)
    found = np.zeros((len(column), feature.n_columns))
    found[rows, columns] = entries
    return found


def rows_of(schema, values):
    return schema.features.encode(dict.fromkeys(schema.columns, Texts.of(values)), len(values))


def test_every_kind_is_here():
    assert {feature["kind"] for feature in FEATURES} == {*KINDS}


def test_every_row_keeps_what_its_schema_promises():
    rows = rows_of(SCHEMA, HOSTILE).toarray()
    assert np.abs(rows).max() <= 1
    assert len(SCHEMA.feature_names) == SCHEMA.n_features == rows.shape[1]
    for feature, columns in zip(SCHEMA.features, SCHEMA.groups, strict=True):
        part = rows[:, columns]
        assert len(columns) == len(feature.names) == feature.n_columns
        assert np.square(part).sum(axis=1).max() <= feature.squared_length * (1 + 1e-12)
        assert np.count_nonzero(part, axis=1).max() <= max(feature.likely_entries, 1)
        assert not feature.nonnegative or part.min() >= 0
        assert np.abs(part).max() > 0  # or nothing was tested


def test_no_row_of_a_schema_is_shortened():
    bounds = SCHEMA.bounds
    assert bounds.max_length == pytest.approx(math.sqrt(10 + 7 + 1 + 7 + 1), rel=2e-3)
    rows = rows_of(SCHEMA, HOSTILE)
    np.testing.assert_array_equal(bounds.grid_x(rows).data, np.rint(rows.data * X_STEPS))


def test_a_row_is_encoded_alike_beside_any_others():
    together = rows_of(SCHEMA, HOSTILE).toarray()
    for place, value in enumerate(HOSTILE):
        np.testing.assert_array_equal(rows_of(SCHEMA, [value]).toarray()[0], together[place])


def test_a_schema_of_all_kinds_reads_back_as_the_same():
    assert Schema.read(SCHEMA.toml()) == SCHEMA
    plain = ("[", "#", "name", "kind")
    lines = SCHEMA.toml().splitlines()
    assert all("#" in line for line in lines if line and not line.startswith(plain))


def test_between_knots_entries_are_linear():
    feature = one(kind="number", bounds=[0, 10], knots=[0, 2, 10])
    found = encoded(feature, [0, 1, 2, 6, 10, 11, -1, "", "x"])
    centre = [0, 5 / 8, 3 / 8]
    assert found.tolist() == [
        [1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1], [0, 0, 1], [1, 0, 0],
        centre, centre,
    ]  # fmt: skip
    assert feature.names == ["x near 0", "x near 2", "x near 10"]


def test_numbers_in_bins():
    feature = one(kind="number", bounds=[0, 10], bins=[2, 5], center=1)
    assert encoded(feature, [0, 2, 4.9, 5, 99, ""]).argmax(axis=1).tolist() == [0, 1, 1, 2, 2, 0]
    assert feature.names == ["x in [0, 2)", "x in [2, 5)", "x in [5, 10]"]


@pytest.mark.parametrize(
    ("bounds", "points"),
    [
        ([0, 8], (0, 0.5, 2, 4.5, 8)),  # sizes
        ([-8, 0], (-8, -4.5, -2, -0.5, 0)),
        ([-4, 4], (-4, -1, 0, 1, 4)),  # around 0
        ([1000, 1008], (1000, 1002, 1004, 1006, 1008)),  # far from 0
    ],
)
def test_where_knots_lie(bounds, points):
    assert one(kind="number", bounds=bounds, knots=5).knots == points
    assert one(kind="number", bounds=bounds, bins=4).bins == points[1:-1]


@pytest.mark.parametrize("most", [1e-60, 1e-10, 0.5, 1, 3, 1e3, 1e15, 1e18, 1e60])
@pytest.mark.parametrize("knots", [2, 5, 13, 1000])
def test_counts_have_knots_that_differ_on_their_scale(most, knots):
    feature = one(kind="count", most=most, knots=knots)
    assert np.all(np.diff(feature.scaled(np.array(feature.knots))) > 0)
    values = [0.0, most, most / 2, np.nan, np.inf, -np.inf, 1e308, 5e-324, *feature.knots]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = feature.encode(Numbers(np.array(values)))
    assert np.all((found.values > 0) & (found.values <= 1))
    assert np.bincount(found.rows, found.values) == pytest.approx(1.0)


def test_bounds_with_hardly_a_number_between_them_have_fewer_knots():
    low = 1e15
    assert one(kind="number", bounds=[low, low + 0.25], knots=9).knots == (
        low, low + 0.125, low + 0.25,
    )  # fmt: skip


def test_counts_are_logarithms():
    line = Count("n", (0.0, 99.0), 0.0, ())
    found = encoded(line, [0, 9, 99, 1e9, -4, "", "x"])[:, 0]
    np.testing.assert_allclose(found, [0, 0.5, 1, 1, 0, 0, 0], rtol=1e-15)
    assert Count("n", (0.0, 99.0), 0.0).points(3) == (0, 9, 99)
    curve = Count("n", (0.0, 99.0), 0.0, (0.0, 9.0, 99.0))
    np.testing.assert_allclose(
        encoded(curve, [9, 10**0.5 - 1]), [[0, 1, 0], [0.5, 0.5, 0]], atol=1e-12
    )


def test_steps_of_ordered_choices():
    feature = one(kind="choice", choices=["S", "M", "L"], ordered=True)
    assert feature.names == ["x>=M", "x>=L", "x=(other)"]
    r = 1 / math.sqrt(2)
    assert encoded(feature, ["S", "M", "L", "", "XL"]).tolist() == [
        [0, 0, 0], [r, 0, 0], [r, r, 0], [0, 0, 1], [0, 0, 1],
    ]  # fmt: skip
    bare = one(kind="choice", choices=["S", "M"], ordered=True, other=False)
    assert encoded(bare, ["S", "M", ""]).tolist() == [[0], [1], [0]]


def test_the_same_id_has_the_same_bucket():
    feature = one(kind="hash", buckets=1000)
    found = encoded(feature, ["u1", "u2", "u1", ""])
    assert found.sum(axis=1).tolist() == [1, 1, 1, 0]
    assert found.argmax(axis=1)[0] == found.argmax(axis=1)[2] != found.argmax(axis=1)[1]
    numbers = encoded(feature, Numbers(np.array([7.0, 8.0])))
    np.testing.assert_array_equal(numbers, encoded(feature, ["7", "8"]))
    assert one(kind="hash").buckets == 1024


def test_runs_of_words():
    assert one(kind="text").buckets == 2**14
    both, single = Text("t", 997, 2), Text("t", 997)
    found = encoded(both, ["flu shot", "shot flu"])
    assert np.count_nonzero(found, axis=1).tolist() == [3, 3]
    assert not np.array_equal(found[0], found[1])
    assert np.array_equal(*encoded(single, ["flu shot", "shot flu"]))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)


def test_parts_of_a_date():
    feature = one(kind="date", bounds=["2013-01-01", "2013-01-11T00:00"], cycles=["week"])
    assert feature.names == [
        "x trend", *(f"x weekday={d}" for d in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")),
        "x week sin", "x week cos",
    ]  # fmt: skip
    monday, late, bad = encoded(feature, ["2013-01-07", "2099-01-01", "soon"])
    np.testing.assert_allclose(monday, [0.2, 1, 0, 0, 0, 0, 0, 0, 0, 1], atol=1e-12)
    assert late[0] == 1
    assert not bad.any()


def test_dates_in_a_form_of_their_own():
    feature = one(kind="date", bounds=YEAR, parts=["month"], cycles=[], format="%d/%m/%Y")
    found = encoded(feature, ["02/03/2013", "2013-03-02", "31/02/2013"])
    assert found.sum(axis=1).tolist() == [1, 0, 0]
    assert found[0].argmax() == 2


def test_dates_of_a_type_for_them():
    days = [date(2013, 5, 17), None, date(2013, 1, 1)]
    texts = pl.DataFrame({"day": ["2013-05-17", None, "2013-01-01"]})
    frames = [
        pl.DataFrame({"day": days}),
        pl.DataFrame({"day": days}).with_columns(pl.col("day").cast(pl.Datetime("us", "UTC"))),
        pd.DataFrame({"day": pd.to_datetime(days)}),
        pd.DataFrame({"day": pd.array(days, dtype=pd.ArrowDtype(pa.date32()))}),
        pd.DataFrame({"day": pd.array(days, dtype=pd.ArrowDtype(pa.timestamp("s")))}),
        pa.table({"day": pa.array(days, pa.date32())}),
        pa.table({"day": pa.array(days, pa.date32()).cast(pa.timestamp("ns"))}),
    ]
    table = {"features": [{"name": "day", "kind": "date", "bounds": YEAR}]}
    expected = read(texts, table).load()[0].toarray()
    assert np.count_nonzero(expected.any(axis=1)) == 2
    for frame in frames:
        np.testing.assert_array_equal(read(frame, table).load()[0].toarray(), expected)
    with pytest.raises(DataError, match='Use kind = "date"'):
        read(frames[0], {"features": [{"name": "day", "kind": "choice", "choices": ["a"]}]})


def test_products_of_two_features():
    names = {"name": "line", "kind": "number", "bounds": [0, 2], "knots": [0, 1, 2]}
    ward = {"name": "ward", "kind": "choice", "choices": ["a", "b"], "other": False}
    schema = Schema.from_table(
        {"features": [names, {"kind": "interaction", "of": ["line", "ward"]}, ward]}
    )
    columns = {"line": Texts.of(["0.5", "2", "1"]), "ward": Texts.of(["b", "a", "c"])}
    rows = schema.features.encode(columns, 3).toarray()
    assert rows[:, 3:9].tolist() == [[0, 0.5, 0, 0.5, 0, 0], [0, 0, 0, 0, 1, 0], [0] * 6]
    assert schema.feature_names[3:5] == ["line near 0 * ward=a", "line near 0 * ward=b"]
    assert schema.columns == ["line", "ward"]


@pytest.mark.parametrize(
    ("feature", "said"),
    [
        ({"kind": "number", "bounds": [0, 1], "knots": 1}, "at least 2 knots"),
        ({"kind": "number", "bounds": [0, 1], "knots": -1}, r"features\[0\].knots"),
        ({"kind": "number", "bounds": [0, 1], "knots": [0.5]}, "in order, at least 2"),
        ({"kind": "number", "bounds": [0, 1], "knots": [0.5, 0.1]}, "in order"),
        ({"kind": "number", "bounds": [0, 1], "knots": [0, 2]}, "from one bound"),
        ({"kind": "count", "most": 1e18, "knots": [0, 1e17, 1e17 + 16]}, "on its scale"),
        ({"kind": "count", "most": 1e18, "knots": [1e18 - 128, 1e18]}, "on its scale"),
        ({"kind": "number", "bounds": [0, 1], "knots": [0, "x"]}, "must be a number"),
        ({"kind": "number", "bounds": [0, 1], "bins": [0, 0.5]}, "between the bounds"),
        ({"kind": "number", "bounds": [0, 1], "bins": 3, "knots": 3}, "and not both"),
        ({"kind": "number", "bounds": [0, 1], "knots": 10**9}, "to 1000"),
        ({"kind": "count"}, "most is missing"),
        ({"kind": "count", "most": 0}, r"features\[0\].most"),
        ({"kind": "choice", "choices": ["a"], "ordered": True}, "has no order"),
        ({"kind": "hash", "buckets": 0}, "buckets"),
        ({"kind": "text", "ngrams": 6}, "ngrams"),
        ({"kind": "date"}, "bounds is missing"),
        ({"kind": "date", "bounds": ["2013-01-01"]}, "first and the last date"),
        ({"kind": "date", "bounds": ["2013-12-31", "2013-01-01"]}, "first and the last date"),
        ({"kind": "date", "bounds": [1, 2]}, "first and the last date"),
        ({"kind": "date", "bounds": YEAR, "parts": ["minute"]}, "some of trend"),
        ({"kind": "date", "bounds": YEAR, "parts": [], "cycles": []}, "nothing is left"),
        ({"kind": "date", "bounds": YEAR, "format": "%"}, "form of strptime"),
        ({"kind": "interaction", "of": ["x"]}, "two features"),
        ({"kind": "interaction", "of": ["x", "y"]}, "two features of the schema"),
    ],
)
def test_every_mistake_names_its_field(feature, said):
    with pytest.raises(SchemaError, match=said):
        one(**feature)


def test_interactions_of_hashed_features_are_refused():
    text = {"name": "t", "kind": "text"}
    with pytest.raises(SchemaError, match="not hashed"):
        Schema.from_table(
            {"features": [text, FEATURES[0], {"kind": "interaction", "of": ["t", "line"]}]}
        )


@pytest.mark.parametrize(
    ("feature", "values", "cells"),
    [
        ({"kind": "number", "bounds": [0, 1]}, ["", "x", "2", "-inf", "1"], [1, 1, 2, 2, 0]),
        ({"kind": "count", "most": 5}, ["", "-1", "6", "5"], [1, 2, 2, 0]),
        ({"kind": "yes-no"}, ["yes", "0", "", "perhaps"], [0, 0, 1, 1]),
        ({"kind": "choice", "choices": ["a"]}, ["a", "", "b"], [0, 1, 2]),
        ({"kind": "text", "buckets": 4}, ["a", ""], [0, 1]),
        ({"kind": "hash"}, ["a", ""], [0, 1]),
        ({"kind": "date", "bounds": YEAR}, ["2013-12-31T12:00", "", "2014-01-01"], [0, 1, 2]),
    ],
)
def test_what_may_be_wrong_with_a_cell(feature, values, cells):
    assert one(**feature).cells(Texts.of(values)).tolist() == [Cell(code) for code in cells]


# Knots by default.

WIDE = {"name": "w", "kind": "choice", "choices": [f"c{i}" for i in range(30)]}
AGE = {"name": "age", "kind": "number", "bounds": [0, 80]}
TABLE = {"features": [AGE, WIDE], "target": {"name": "y", "bounds": [-1, 1]}}


@pytest.mark.parametrize(("least", "number"), KNOTS)
def test_knots_follow_from_rows_and_epsilon(least, number):
    schema = Schema.from_table(TABLE)
    assert len(schema.for_fit(int(least), 1.0).features.each[0].knots) == number
    assert len(schema.for_fit(int(least / 4), 4.0).features.each[0].knots) == number
    fewer = schema.for_fit(int(least) - 1, 1.0).features.each[0].knots or ()
    assert len(fewer) < number
    people = TABLE | {"person": "id", "rows_of_a_person": 2}
    assert (
        len(Schema.from_table(people).for_fit(2 * int(least), 1.0).features.each[0].knots) == number
    )


def test_what_the_schema_says_of_knots_holds():
    given = [{**AGE, "name": f"a{k}", "knots": k} for k in (0, 4)] + [{**AGE, "bins": 3}]
    schema = Schema.from_table({**TABLE, "features": given})
    assert schema.for_fit(10**6, 1.0) is schema


def test_too_many_columns_have_no_knots():
    many = [{**AGE, "name": f"a{k}"} for k in range(MOST_ENCODED // 5 + 1)]
    schema = Schema.from_table({**TABLE, "features": many})
    assert schema.for_fit(10**7, 1.0) is schema
    few = Schema.from_table({**TABLE, "features": many[:30]})
    assert {len(each.knots) for each in few.for_fit(20_000, 1.0).features} == {9}
    classes = {"name": "y", "classes": list(range(10))}
    assert Schema.from_table({"features": many[:30], "target": classes}).for_fit(
        20_000, 1.0
    ).features.each[0].automatic  # fmt: skip


def test_a_knot_that_is_called_like_a_column_is_none():
    schema = Schema.from_table(
        {**TABLE, "features": [AGE, {"name": "age near 0", "kind": "yes-no"}]}
    )
    assert schema.for_fit(10**6, 1.0) is schema


def curved_rows(n=12_000, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 80, n)
    y = np.where(np.abs(age - 40) < 15, 0.8, -0.6) + 0.1 * rng.standard_normal(n)
    return pl.DataFrame({"age": age, "w": rng.choice(WIDE["choices"], n), "y": y})


@pytest.fixture(scope="module")
def curved():
    frame = curved_rows()
    return PrivateLasso(1.0, 1e-6, random_state=1).fit(read(frame, TABLE)), frame


def test_a_fit_from_a_source_is_a_curve(curved, tmp_path):
    model, _ = curved
    assert len(model.schema_.features.each[0].knots) == 9
    assert model.n_features_in_ == len(model.coef_) == 9 + 31
    held_out = curved_rows(2_000, 9)
    assert model.score(held_out) > 0.6  # a line explains nothing
    source = read(held_out, TABLE)  # whose schema says nothing about knots
    np.testing.assert_array_equal(model.predict(source), model.predict(held_out))
    riata.save(model, tmp_path / "model.riata")
    again = riata.load(tmp_path / "model.riata")
    assert again.schema_ == model.schema_
    np.testing.assert_array_equal(again.predict(source), model.predict(source))


def test_a_source_with_other_features_is_refused(curved):
    model, frame = curved
    other = {**TABLE, "features": [{**AGE, "bounds": [0, 90]}, WIDE]}
    with pytest.raises(InvalidArgument, match="another schema"):
        model.predict(read(frame, other))


@pytest.mark.parametrize(
    "named",
    [
        {"solver": "frank-wolfe", "steps": 2}, {"radius": 3.0}, {"delta": 0.0},
        {"epsilon": math.inf},
        {"bounds": riata.Bounds(2.0, norm="l2")},
    ],
)  # fmt: skip
def test_who_names_the_geometry_has_lines(named, curved):
    source = read(curved[1], TABLE)
    model = PrivateLasso(**({"epsilon": 1.0, "delta": 1e-6} | named))
    assert model.request(source)[0].schema.features.each[0].automatic
    assert not model.fits_curves


def test_a_search_has_lines(curved):
    search = riata.PrivateSearch(
        PrivateLasso(None, solver="auto"), {"fit_intercept": [True]}, 1.0, expected=1
    )
    assert search.plan_for(read(curved[1], TABLE)).plans[0].problem.n_features == 32


def test_classes_are_curves_too():
    table = {**TABLE, "target": {"name": "y", "classes": ["no", "yes"]}}
    frame = curved_rows().with_columns(
        pl.when(pl.col("y") > 0).then(pl.lit("yes")).otherwise(pl.lit("no")).alias("y")
    )
    model = PrivateLogisticRegression(1.0, 1e-6, random_state=1).fit(read(frame, table))
    assert model.score(frame) > 0.9


def test_what_was_derived_is_said():
    said = dict(Schema.from_table(TABLE).for_fit(12_000, 1.0).derived)
    assert said["columns"] == "1 number, 1 choice: 40 encoded columns"
    assert said["numbers"].startswith(
        "1 with 9 knots: 40 columns in all where straight lines take 32. On public tables"
    )
    lines = dict(Schema.from_table(TABLE).derived)["numbers"]
    assert lines.startswith("1 straight line. From 5,000 rows times epsilon on, a fit takes curves")
    stated = [{**TABLE["features"][0], "knots": 0}, *TABLE["features"][1:]]
    said_lines = dict(Schema.from_table({**TABLE, "features": stated}).derived)["numbers"]
    assert said_lines == "1 straight line"
    assert said["rows"].startswith("no longer than 1.42")
    assert said["signs"].startswith("no entry is below 0")
    assert "entry by entry 6.32 would be possible" in said["rows"]  # the root of 40
    assert "4.5 times less noise" in said["rows"]  # 6.32 / 1.42
    block = Schema.from_table({"features": {"count": 3}})
    assert dict(block.derived)["columns"] == "3 numeric columns"
    assert [group.tolist() for group in block.groups] == [[0], [1], [2]]
