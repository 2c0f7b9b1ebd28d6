"""Schemas: what they say, what they refuse, and that a file of one reads back as the same."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from riata import Bounds, Schema
from riata.data.columns import Cells, Numbers, Texts, as_number, as_text, from_objects
from riata.data.schema.features import Choice, YesNo
from riata.data.schema.hashed import Text
from riata.data.schema.number import Number
from riata.errors import InvalidArgument, SchemaError
from riata.grid import X_STEPS

pytestmark = pytest.mark.matrix(one_in=11)

TABLE = {
    "person": "patient",
    "rows_of_a_person": 3,
    "people": 50,
    "ignore": ["note"],
    "features": [
        {"name": "age", "kind": "number", "bounds": [0, 120]},
        {"name": "visits", "kind": "number", "bounds": [0, 40], "center": 0},
        {"name": "smokes", "kind": "yes-no"},
        {"name": "ward", "kind": "choice", "choices": ["north", "south", 3]},
        {"name": "town", "kind": "choice", "choices": ["a", "b"], "other": False},
        {"name": "complaint", "kind": "text", "buckets": 16},
    ],
    "target": {"name": "days", "bounds": [0, 14]},
}
WIDE = {
    "rows": 100,
    "features": {"count": 30, "bound": 2.5, "nonnegative": True, "first_index": 0},
    "target": {"classes": [-1, 1]},
}
CLASSES = {
    "ignore_others": True,
    "separator": ";",
    "unpenalized": ['odd "name" \u007f\n#é'],
    "features": [{"name": 'odd "name" \u007f\n#é', "kind": "yes-no"}],
    "target": {"name": "y", "classes": ["no", "yes", "perhaps"]},
}


def changed(table, **changes):
    table = copy.deepcopy(table)
    for path, value in changes.items():
        at = table
        *way, last = path.split("__")
        for step in way:
            at = at[int(step) if step.isdigit() else step]
        if value is ...:
            del at[last]
        else:
            at[last] = value
    return table


def test_public_facts():
    schema = Schema.from_table(TABLE)
    assert schema.feature_names[:9] == [
        "age", "visits", "smokes", "ward=north", "ward=south", "ward=3", "ward=(other)",
        "town=a", "town=b",
    ]  # fmt: skip
    assert schema.n_features == len(schema.feature_names) == 9 + 16
    assert (schema.target_centre, schema.bounds.x, schema.bounds.y) == (7.0, 1.0, 7.0)
    assert not schema.bounds.nonnegative
    assert schema.classes is None
    assert Schema.from_table(changed(TABLE, features__0__center=0)).bounds.nonnegative


def test_classes_come_in_the_order_of_the_estimators():
    schema = Schema.from_table(CLASSES)
    assert schema.classes.tolist() == ["no", "perhaps", "yes"]
    assert schema.bounds.y is None
    assert schema.target_centre == 0.0
    codes = schema.target.encode(Texts.of(["yes", "no", "", "else"]))
    assert codes.tolist() == [2, 0, -1, -1]


@pytest.mark.parametrize(
    ("classes", "values", "codes"),
    [
        ([-1, 1], ["+1", "-1.0", "0", "x", "nan"], [1, 0, -1, -1, -1]),
        ([2.5, 1], ["2.5", "1", "9", "-9", ""], [1, 0, -1, -1, -1]),
        ([True, False], ["yes", "False", "1", "0.0", "2"], [1, 0, 1, 0, -1]),
    ],
)
def test_labels_of_every_type(classes, values, codes):
    target = Schema.from_table(changed(WIDE, target__classes=classes)).target
    assert target.encode(Texts.of(values)).tolist() == codes


@pytest.mark.parametrize("table", [TABLE, WIDE, CLASSES], ids=["columns", "wide", "classes"])
def test_a_file_reads_back_as_the_same(table, tmp_path):
    schema = Schema.from_table(table)
    schema.save(tmp_path / "schema.toml")
    assert Schema.load(tmp_path / "schema.toml") == schema
    assert Schema.read(schema.toml().encode()) == schema


@given(st.text(), st.lists(st.text(), min_size=1, unique=True), st.floats(), st.floats())
def test_any_schema_that_is_accepted_reads_back(name, choices, low, high):
    table = {
        "features": [
            {"name": name, "kind": "number", "bounds": [low, high]},
            {"name": "c", "kind": "choice", "choices": choices},
        ]
    }
    try:
        schema = Schema.from_table(table)
    except SchemaError:
        return
    assert Schema.read(schema.toml()) == schema


def test_every_line_of_a_file_that_is_not_plain_is_explained():
    lines = Schema.from_table(TABLE).toml().splitlines()
    plain = ("[", "#", "name", "kind")
    assert all("#" in line for line in lines if line and not line.startswith(plain))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"features": ...}, "features is missing"),
        ({"features": []}, "features"),
        ({"features__0__kind": "numbr"}, "did you mean 'number'"),
        ({"features__0__bounds": ...}, r"features\[0\].bounds is missing"),
        ({"features__0__bounds": [3, 1]}, r"features\[0\].bounds"),
        ({"features__0__bounds": [0, float("nan")]}, r"features\[0\].bounds"),
        ({"features__0__bounds": [0, float("inf")]}, r"features\[0\].bounds"),
        ({"features__0__center": 121}, r"features\[0\].center"),
        ({"features__0__colour": 1}, r"features\[0\].colour is unknown"),
        ({"features__1__name": "age"}, "'age' stands twice"),
        ({"features__1__name": " visits"}, r"features\[1\].name"),
        ({"features__3__choices": []}, r"features\[3\].choices"),
        ({"features__3__choices": ["a", "a"]}, "stands twice"),
        ({"features__3__choices": ["3", 3]}, "stands twice"),
        ({"features__3__choices": ["a "]}, "without spaces"),
        ({"features__3__choices": [""]}, "without spaces"),
        ({"features__3__choices": ["(other)"]}, r"ward=\(other\)"),
        ({"features__5__buckets": 0}, r"features\[5\].buckets"),
        ({"features__5__buckets": 2**31}, r"features\[5\].buckets"),
        ({"target__bounds": ...}, "target.bounds or target.classes"),
        ({"target__classes": [1, 2]}, "and not both"),
        ({"target__name": "age"}, "'age' stands twice"),
        ({"target__name": ...}, "target.name is missing"),
        ({"target": {"name": "d", "classes": ["a"]}}, "at least two"),
        ({"target": {"name": "d", "classes": ["a", 1]}}, "one type"),
        ({"target": {"name": "d", "classes": [True, 1]}}, "one type"),
        ({"rows_of_a_person": ...}, "rows_of_a_person is missing"),
        ({"rows_of_a_person": 0}, "rows_of_a_person"),
        ({"person": ...}, "no person column"),
        ({"rows": 5}, "people = ..."),
        ({"people": 0}, "people"),
        ({"ignore": "note"}, "ignore"),
        ({"ignore": ["age"]}, "'age' stands twice"),
        ({"ignore_others": 1}, "ignore_others"),
        ({"unpenalized": ["nobody"]}, "unpenalized"),
        ({"unpenalized": "age"}, "unpenalized"),
        ({"separator": "x"}, "separator"),
        ({"epsilon": 1.0}, "epsilon is unknown"),
    ],
)
def test_every_mistake_is_an_error_that_names_the_field(changes, said):
    with pytest.raises(SchemaError, match=said):
        Schema.from_table(changed(TABLE, **changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"features__count": 0}, "features.count"),
        ({"features__bound": -1}, "features.bound"),
        ({"features__first_index": 2}, "features.first_index"),
        ({"target__name": "y"}, "target.name"),
        ({"person": "id"}, "no column for it"),
    ],
)
def test_every_mistake_in_a_block_of_columns_is_an_error(changes, said):
    with pytest.raises(SchemaError, match=said):
        Schema.from_table(changed(WIDE, **changes))


def named(*features):
    return Schema.from_table({"features": list(features)})


TEXT = {"name": "t", "kind": "text", "buckets": 4}


@pytest.mark.parametrize("name", ["t[0]", "t[3]"])
def test_a_column_that_is_called_like_a_bucket_is_refused(name):
    with pytest.raises(SchemaError, match="Two encoded columns"):
        named(TEXT, {"name": name, "kind": "yes-no"})
    with pytest.raises(SchemaError, match="Two encoded columns"):
        named({"name": name, "kind": "yes-no"}, TEXT)
    choice = {"name": "a", "kind": "choice", "choices": [f"b={name}"]}
    with pytest.raises(SchemaError, match="Two encoded columns"):
        named(choice, {**TEXT, "name": "a=b=t"})


@pytest.mark.parametrize("name", ["t[4]", "t[03]", "t[-1]", "t[]", "t[0", "t [0]", "T[0]", "[0]"])
def test_a_column_that_is_almost_called_like_a_bucket_is_a_column(name):
    schema = named(TEXT, {"name": name, "kind": "yes-no"})
    assert len(set(schema.feature_names)) == schema.n_features == 5


def test_choices_that_are_called_alike_are_refused():
    other = {"name": "a", "kind": "choice", "choices": ["(other)", "b"]}
    with pytest.raises(SchemaError, match=r"a=\(other\)"):
        named(other)
    assert named({**other, "other": False}).n_features == 2
    with pytest.raises(SchemaError, match="a=b=c"):
        named(
            {"name": "a", "kind": "choice", "choices": ["b=c"]},
            {"name": "a=b", "kind": "choice", "choices": ["c"]},
        )


@pytest.mark.parametrize("label", [10**400, -(10**70), 1e300, float("inf"), float("nan")])
def test_labels_beyond_all_numbers_are_refused(label):
    table = {"features": [TEXT], "target": {"name": "y", "classes": [1, label]}}
    with pytest.raises(SchemaError, match=r"target\.classes"):
        Schema.from_table(table)


def test_files_that_are_none(tmp_path):
    with pytest.raises(SchemaError, match="Cannot read"):
        Schema.load(tmp_path / "none.toml")
    for text in ("a = ", b"\xff", "[" * 10_000):
        with pytest.raises(SchemaError, match="not TOML"):
            Schema.read(text)
    with pytest.raises(InvalidArgument, match="table"):
        Schema.from_table([1])


def encoded(feature, values):
    rows, columns, entries = feature.encode(values)
    found = np.zeros((len(values), feature.n_columns))
    found[rows, columns] = entries
    return found


def test_numbers_are_clipped_moved_and_scaled():
    values = ["0", "120", "60", "-1", "1e999", "-inf", "nan", "", "x", "१२", "1_0", "0x1", " 90 "]
    found = encoded(Number("age", (0.0, 120.0), 60.0), Texts.of(values))[:, 0]
    assert found.tolist() == [-1, 1, 0, -1, 1, -1, 0, 0, 0, 0, 0, 0, 0.5]
    away = encoded(Number("n", (0.0, 40.0), 10.0), Numbers(np.array([40, 10, 0])))[:, 0]
    assert away.tolist() == [1, 0, -1 / 3]


def test_words_for_yes():
    values = ["yes", "NO", "True", "false", "1", "0", "1.0", "", "perhaps", "2"]
    assert encoded(YesNo("s"), Texts.of(values))[:, 0].tolist() == [1, 0, 1, 0, 1, 0, 1, 0, 0, 0]
    numbers = Numbers(np.array([1.0, 0.0, np.nan, 2.0]))
    assert encoded(YesNo("s"), numbers)[:, 0].tolist() == [1, 0, 0, 0]


def test_choices_and_all_else():
    values = Texts.of(["a", "b", "c", "", " a "])
    with_other = encoded(Choice("c", ("a", "b")), values)
    assert with_other.argmax(axis=1).tolist() == [0, 1, 2, 2, 0]
    assert with_other.sum(axis=1).tolist() == [1] * 5
    assert encoded(Choice("c", ("a", "b"), False), values).sum(axis=1).tolist() == [1, 1, 0, 0, 1]
    numbers = Numbers(np.array([6.0, 7.0, np.nan]))
    assert encoded(Choice("c", ("6",)), numbers).tolist() == [[1, 0], [0, 1], [0, 1]]


def test_words_of_a_text_are_logarithms_of_counts_with_length_1():
    texts = ["pain pain head", "", "head pain", "head pain " * 3]
    found = encoded(Text("t", 64), Texts.of(texts))
    counts = np.sort(found[0][found[0] > 0])
    np.testing.assert_allclose(counts[1] / counts[0], 1 + np.log(2), rtol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), [1, 0, 1, 1], rtol=1e-15)
    np.testing.assert_array_equal(found[2], found[3])


def test_no_rows_and_missing_texts_have_no_entries():
    for column in (Texts.of([]), Texts.of([None, ""])):
        found = Text("t", 8).encode(column)
        assert len(found.rows) == len(found.columns) == len(found.values) == 0


def test_a_text_is_encoded_alike_beside_any_others():
    rng = np.random.default_rng(3)
    words = [f"w{i}" for i in range(500)]
    texts = [" ".join(rng.choice(words, rng.integers(1, 300))) for _ in range(40)]
    together = encoded(Text("t", 256), Texts.of(texts))
    for i in range(0, 40, 3):
        np.testing.assert_array_equal(encoded(Text("t", 256), Texts.of(texts[i:]))[0], together[i])


def test_a_schema_knows_how_long_its_rows_are():
    table = {
        "features": [
            {"name": "age", "kind": "number", "bounds": [0, 120]},
            {"name": "ward", "kind": "choice", "choices": list("abcdefghij")},
            {"name": "note", "kind": "text", "buckets": 2048},
        ],
    }
    schema = Schema.from_table(table)
    bounds = schema.bounds
    assert (bounds.x, bounds.nonzeros) == (1.0, 66)
    assert bounds.max_length == pytest.approx(np.sqrt(3), rel=2e-3)
    rng = np.random.default_rng(4)
    rows = schema.features.encode(
        {
            "age": Numbers(np.array([120.0, 0.0, np.inf])),
            "ward": Texts.of(["a", "zz", "b"]),
            "note": Texts.of([" ".join(f"w{i}" for i in rng.integers(0, 999, 900))] * 3),
        },
        3,
    )
    steps = bounds.grid_x(rows)  # no row of a schema is shortened
    np.testing.assert_array_equal(steps.data, np.rint(rows.tocsr().data * X_STEPS))
    full = Schema.from_table({"features": table["features"][:1]})
    assert full.bounds.max_length is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (6, "6"), (6.0, "6"), (6.5, "6.5"), (True, "true"), (None, None), (float("nan"), None),
        (" a ", "a"), ("  ", None), (b"\xffa", "\ufffda"), ("\ud800", "?"), (2**60, str(2**60)),
        ([1], None), (np.float32(2), "2"), (1e300, "1e+300"),
    ],
)  # fmt: skip
def test_any_value_as_text(value, said):
    assert as_text(value) == said


def test_whole_numbers_with_too_many_digits():
    assert (as_text(10**5000), as_text(-(10**5000))) == ("inf", "-inf")


@given(st.one_of(st.text(), st.floats().map(repr), st.integers().map(str)))
def test_reading_a_number_never_raises(text):
    assert isinstance(as_number(text), float)


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=6),
            st.text(alphabet="0123456789.eE+-_ \x1c\u00a0\x00naif१", max_size=6).map(str.encode),
            st.floats().map(lambda value: repr(value).encode()),
        )
    )
)
def test_numbers_of_a_file_are_the_same_at_once_and_one_by_one(cells):
    wanted = [as_number(as_text(cell)) for cell in cells]
    np.testing.assert_array_equal(Cells(cells).numbers(), np.array(wanted, dtype=np.float64))


def test_objects_of_different_types_stay_different():
    found = from_objects([True, 1, 1.0, "1", None])
    assert [found.words[code] for code in found.codes] == ["true", "1", "1", "1", None]


def test_bounds_of_a_schema_are_those_of_bounds():
    assert repr(Schema.from_table(WIDE).bounds) == repr(Bounds(1.0, nonnegative=True))
