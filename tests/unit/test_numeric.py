"""Reading of containers: declared types decide what happens to a column, and no value of it."""

import datetime
import math
import re
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from riata import Bounds, LocalLasso, PrivateLasso, PrivateLogisticRegression
from riata.data.arrays import labels_as_codes
from riata.data.partitions import PartitionReader
from riata.errors import InvalidArgument
from riata.grid import X_STEPS
from riata.local.paper import PaperL1Regression
from riata.numeric import as_labels, as_numbers, as_targets, number

pytestmark = pytest.mark.matrix(one_in=11)

BOUNDS = Bounds(1.0, 1.0)
SIGNALLING = np.array([0x7FF0000000000001], dtype=np.uint64).view(np.float64)[0]


def _id(value):
    """A name that is the same in every process."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(value))


NUMBERS = [
    (0.5, 0.5),
    (True, 1.0),
    (np.bool_(True), 1.0),
    (3, 3.0),
    (10**400, math.inf),
    (-(10**400), -math.inf),
    (np.float16(0.5), 0.5),
    (np.int8(-3), -3.0),
    (np.uint64(2**64 - 1), 2.0**64),
    (np.longdouble("1e4000"), math.inf),
    (np.longdouble("-1e4000"), -math.inf),
    (Decimal("0.25"), 0.25),
    (Decimal("1e400"), math.inf),
    (Decimal("-Infinity"), -math.inf),
    (Fraction(1, 4), 0.25),
    (Fraction(-(10**400), 3), -math.inf),
    ("0.5", 0.5),
    (" 0.5\n", 0.5),
    ("1e999", math.inf),
    ("-inf", -math.inf),
    (b"0.5", 0.5),
    (np.str_("0.5"), 0.5),
]
NO_NUMBERS = [
    None, math.nan, SIGNALLING, pd.NA, pd.NaT, Decimal("NaN"), Decimal("sNaN"), "", "canary", "1_0",
    "٣", "\0", "\ud800", b"\xff", "0x10", 1j, np.complex64(1), [1.0], (), {}, set(), object(), len,
    np.zeros(1), np.array(0.5), datetime.date(2001, 1, 1), datetime.datetime(2001, 1, 1),
    datetime.timedelta(1), datetime.time(1), np.datetime64("2001-01-01"), np.timedelta64(1, "D"),
    pd.Timestamp("2001-01-01"), pd.Timedelta(1), pd.Period("2001"), pd.Interval(0, 1), range(3),
    float, Ellipsis,
]  # fmt: skip


def column_of(*values):
    found = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        found[i] = value
    return found


@pytest.mark.parametrize(("value", "wanted"), NUMBERS)
def test_a_number_of_any_type_is_its_number(value, wanted):
    assert as_numbers(column_of(value, 0.25), "X").tolist() == [wanted, 0.25]
    assert number(value) == wanted


@pytest.mark.parametrize("value", NO_NUMBERS, ids=_id)
def test_what_is_no_number_is_missing_and_disturbs_nothing(value):
    for found in (
        as_numbers(column_of(value, 0.25), "X"),
        as_numbers([[value], [0.25]], "X")[:, 0],
        as_numbers(pd.Series(column_of(value, 0.25), dtype=object), "X"),
        as_numbers(pl.Series("a", [value, 0.25], dtype=pl.Object), "X"),
        as_targets([[value, 0.25], 0.25]),
    ):
        assert np.isnan(found[0])
        assert found[1] == 0.25


@pytest.mark.parametrize("value", [*NO_NUMBERS, *(value for value, _ in NUMBERS)], ids=_id)
@pytest.mark.parametrize("place", ["X", "y", "labels", "rows to predict"])
def test_no_object_stops_a_fit_or_a_prediction(value, place):
    x, y = np.zeros((20, 2), dtype=object), np.zeros(20, dtype=object)
    odd, odd_y = x.copy(), y.copy()
    odd[3, 1], odd_y[3] = value, value
    make = {"bounds": BOUNDS, "solver": "frank-wolfe", "steps": 1}
    if place == "labels":
        PrivateLogisticRegression(1.0, 0.0, classes=[0, 1], **make).fit(x, odd_y)
    elif place == "rows to predict":
        model = PrivateLasso(1.0, 0.0, **make).fit(x, y)
        assert np.isfinite(model.predict(odd)).all()
        assert np.isfinite(model.predict(pd.DataFrame(odd, dtype=object))).all()
    else:
        PrivateLasso(1.0, 0.0, **make).fit(*((odd, y) if place == "X" else (x, odd_y)))


@pytest.mark.parametrize(
    "kind", ["float64", "float32", "int8", "int32", "int64", "uint16", "uint64"]
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_ordinary_arrays_pass_without_a_copy(kind, order):
    x = np.zeros((4, 3), dtype=kind, order=order)
    found = as_numbers(x, "X")
    assert np.shares_memory(found, x)
    assert found.dtype == x.dtype
    assert found.flags == x.flags
    every_other = np.zeros((8, 3), dtype=kind, order=order)[::2]
    assert np.shares_memory(as_numbers(every_other, "X"), every_other)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_sparse_rows_pass_without_a_copy(make):
    x = make(np.eye(3))
    assert as_numbers(x, "X") is x
    flags = make(np.eye(3, dtype=bool))
    found = as_numbers(flags, "X")
    assert found.dtype == np.uint8
    assert np.shares_memory(found.data, flags.data)
    assert type(found) is type(flags)


@pytest.mark.parametrize("package", [pd.DataFrame, pl.DataFrame])
def test_a_frame_of_floats_is_not_copied(package):
    # Of polars only where its columns lie side by side, which is how it makes them from an array.
    x = np.asfortranarray(np.random.default_rng(0).uniform(size=(5, 3)))
    frame = pd.DataFrame(x) if package is pd.DataFrame else pl.DataFrame(x, schema=list("abc"))
    found = as_numbers(frame, "X")
    np.testing.assert_array_equal(found, x)
    if package is pd.DataFrame:
        assert np.shares_memory(found, frame.to_numpy())


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (np.float16, np.float32),
        (np.longdouble, np.float64),
        (bool, np.uint8),
        (">f8", np.float64),
        (">i4", np.int32),
        (object, np.float64),
    ],
)
def test_other_types_become_ordinary_ones(given, wanted):
    x = np.eye(3).astype(given)
    assert as_numbers(x, "X").dtype == np.dtype(wanted)
    assert as_numbers(x, "X").dtype.isnative
    np.testing.assert_array_equal(as_numbers(x, "X"), np.eye(3))
    if given in (np.longdouble, bool):
        assert as_numbers(sparse.csr_array(x), "X").dtype == np.dtype(wanted)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("make", [sparse.coo_array, sparse.coo_matrix])
def test_sparse_rows_become_rows_or_columns(format, make):
    x = make(np.array([[0.0, 1.0], [-2.0, 0.0]], dtype=np.longdouble)).asformat(format)
    found = as_numbers(x, "X")
    assert found.format in ("csr", "csc")
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found.toarray(), [[0, 1], [-2, 0]])


def test_numbers_out_of_range_are_infinite_and_nobody_is_told():
    x = np.full((3, 2), np.longdouble("1e4000"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isinf(as_numbers(x, "X")).all()
        assert np.isinf(as_numbers(sparse.csr_array(x), "X").data).all()
        assert np.isinf(as_numbers(pd.DataFrame(x), "X")).all()
        as_numbers(np.array([0x7F800001], dtype=np.uint32).view(np.float32).astype(object), "X")


MISSING = {
    "masked": np.ma.MaskedArray([[7], [1]], [[True], [False]]),
    "pandas Int64": pd.DataFrame({"a": pd.array([None, 1], "Int64")}),
    "pandas Float32": pd.DataFrame({"a": pd.array([None, 1], "Float32")}),
    "pandas boolean": pd.DataFrame({"a": pd.array([None, True], "boolean")}),
    "Arrow integers": pd.DataFrame({"a": pd.array([None, 1], "int64[pyarrow]")}),
    "Arrow truth values": pd.DataFrame({"a": pd.array([None, True], "bool[pyarrow]")}),
    "Arrow decimals": pd.DataFrame(
        {"a": pd.array([None, Decimal(1)], pd.ArrowDtype(pa.decimal128(5, 2)))}
    ),
    "polars integers": pl.DataFrame({"a": pl.Series([None, 1], dtype=pl.Int64)}),
    "polars truth values": pl.DataFrame({"a": [None, True]}),
    "polars decimals": pl.DataFrame({"a": pl.Series([None, Decimal(1)])}),
    "an Arrow table": pa.table({"a": pa.array([None, 1], pa.int64())}),
    "an Arrow table of truth": pa.table({"a": [None, True]}),
    "an Arrow table of decimals": pa.table({"a": [None, Decimal(1)]}),
    "sparse columns": pd.DataFrame({"a": [math.nan, 1.0]}).astype("Sparse[float]"),
}


@pytest.mark.parametrize("kind", MISSING)
def test_a_missing_value_is_missing_and_changes_no_type(kind):
    found = as_numbers(MISSING[kind], "X")
    assert np.isnan(found[0, 0])
    assert found[1, 0] == 1.0
    assert found.dtype == np.float64


def test_nothing_missing_is_no_other_type():
    for kind in ("Int64", "boolean", "int64[pyarrow]"):
        assert as_numbers(pd.DataFrame({"a": pd.array([0, 1], kind)}), "X").dtype == np.float64
    assert as_numbers(np.ma.MaskedArray([[1], [2]]), "X").dtype == np.float64
    assert as_numbers(pl.DataFrame({"a": [0, 1]}), "X").dtype == np.float64


@pytest.mark.parametrize("first", [None, 1])
def test_a_missing_label_does_not_round_the_others(first):
    classes = np.array([2**53, 2**53 + 1])
    for labels in (
        pl.Series([first, *classes.tolist()], dtype=pl.Int64),
        pd.array([first, *classes.tolist()], dtype="Int64"),
        pd.array([first, *classes.tolist()], dtype="int64[pyarrow]"),
        pa.array([first, *classes.tolist()]),
        np.ma.MaskedArray([1, *classes], [first is None, False, False]),
    ):
        assert labels_as_codes(as_labels(labels), classes).tolist() == [-1, 0, 1]


DATES = pd.date_range("2001-01-01", periods=2)
REFUSED = {
    "dates": pd.DataFrame({"b": [1, 2], "when": DATES}),
    "dates with a zone": pd.DataFrame({"when": DATES.tz_localize("UTC")}),
    "durations": pd.DataFrame({"when": DATES - DATES[0]}),
    "periods": pd.DataFrame({"when": DATES.to_period("D")}),
    "categories": pd.DataFrame({"when": pd.Categorical([1, 2])}),
    "texts": pd.DataFrame({"when": pd.array(["1", "2"], dtype="string")}),
    "Arrow dates": pd.DataFrame({"when": pd.array(DATES.date, dtype="date32[pyarrow]")}),
    "Arrow texts": pd.DataFrame({"when": pd.array(["1", "2"], dtype="string[pyarrow]")}),
    "complex": pd.DataFrame({"when": [1j, 2.0]}),
    "polars dates": pl.DataFrame({"b": [1, 2], "when": list(DATES.date)}),
    "polars times": pl.DataFrame({"when": DATES}),
    "polars texts": pl.DataFrame({"when": ["1", "2"]}),
    "polars categories": pl.DataFrame({"when": pl.Series(["1", "2"], dtype=pl.Categorical)}),
    "polars lists": pl.DataFrame({"when": [[1], [2]]}),
    "an Arrow table of dates": pa.table({"when": pa.array(DATES.date)}),
    "an Arrow table of texts": pa.table({"when": ["1", "2"]}),
    "an Arrow table of words": pa.table({"when": pa.array(["1", "2"]).dictionary_encode()}),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_column_of_another_type_is_refused_by_its_name(kind):
    with pytest.raises(InvalidArgument, match="'when'") as caught:
        as_numbers(REFUSED[kind], "X")
    assert "2001" not in str(caught.value)
    with pytest.raises(InvalidArgument, match="'when'"):
        PrivateLasso(1.0, bounds=BOUNDS).fit(REFUSED[kind], [0, 1])
    with pytest.raises(InvalidArgument, match="'when'"):
        LocalLasso(1.0, bounds=BOUNDS).fit(REFUSED[kind], [0, 1])


@pytest.mark.parametrize(
    "x",
    [
        np.array([["1"]]),
        np.array([[b"1"]]),
        np.array([["1"]], dtype=np.dtypes.StringDType()),
        np.array([[1j]]),
        np.array([["2001-01-01"]], dtype="M8[D]"),
        np.array([[1]], dtype="m8[D]"),
        np.zeros((1, 1), dtype=[("a", float)]),
        sparse.csr_array([[1j]]),
        "text",
        {"a": [1]},
        {1, 2},
        None,
        iter([1]),
        3.0,
    ],
    ids=_id,
)
def test_other_types_are_refused(x):
    with pytest.raises(InvalidArgument, match=r"not numeric|not supported"):
        as_numbers(x, "X")


def test_categories_of_a_refused_column_are_not_quoted():
    for x in (
        pd.DataFrame({"a": pd.Categorical(["canary", "b"])}),
        pl.DataFrame({"a": pl.Series(["canary"], dtype=pl.Enum(["canary"]))}),
        pa.table({"a": pa.array(["canary"]).dictionary_encode()}),
    ):
        with pytest.raises(InvalidArgument) as caught:
            as_numbers(x, "X")
        assert "canary" not in str(caught.value)


def test_the_shape_of_a_list_is_that_of_its_rows():
    assert as_numbers([[1, None], ["2", [3]]], "X").shape == (2, 2)
    assert as_numbers([np.ones(3), np.zeros(3)], "X").shape == (2, 3)
    assert as_numbers((range(3), (1, 2, 3)), "X").shape == (2, 3)
    with pytest.raises(InvalidArgument, match="different lengths"):
        as_numbers([[1, 2], [3]], "X")
    with pytest.raises(InvalidArgument, match="2D array"):
        as_numbers([1, 2], "X")
    with pytest.raises(InvalidArgument, match="2D array"):
        as_numbers([], "X")


def test_targets_in_a_list_may_stand_in_brackets():
    assert as_targets([[1.0], [2.0]]).tolist() == [1.0, 2.0]
    assert np.isnan(as_targets([[1.0], [1.0, 2.0]])[1])
    assert as_labels([["a"], "b", ["c", "d"]]).tolist() == ["a", "b", ["c", "d"]]
    for read in (as_targets, as_labels):
        with pytest.raises(InvalidArgument, match="1d array"):
            read([[1, 2], [3, 4]])


LABELS = {
    "texts": np.array(["no", "odd", "yes"]),
    "texts of any length": np.array(["no", "odd", "yes"], dtype=np.dtypes.StringDType()),
    "texts, one missing": np.array(
        ["no", pd.NA, "yes"], dtype=np.dtypes.StringDType(na_object=pd.NA)
    ),
    "masked": np.ma.MaskedArray(["no", "yes", "yes"], [False, True, False]),
    "objects": column_of("no", Decimal("sNaN"), "yes"),
    "a list": ["no", ["yes", "no"], "yes"],
    "halves of pairs": ["no", "\ud800", "yes"],
    "unhashable": ["no", {}, "yes"],
    "arrays": ["no", np.array(["yes", "no"]), "yes"],
    "NaN": column_of("no", math.nan, "yes"),
    "pandas": pd.Series(["no", None, "yes"]),
    "categories": pd.Categorical(["no", None, "yes"]),
    "a frame": pd.DataFrame({"y": ["no", None, "yes"]}),
    "polars": pl.Series(["no", None, "yes"]),
    "polars categories": pl.Series(["no", None, "yes"], dtype=pl.Categorical),
    "Arrow": pa.array(["no", None, "yes"]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_an_odd_label_is_no_class_and_changes_no_other(kind):
    labels = as_labels(LABELS[kind]).reshape(-1)
    assert labels_as_codes(labels, np.array(["no", "yes"])).tolist() == [0, -1, 1]


class Hostile:
    """Neither hashes nor compares as it should."""

    def __init__(self, error):
        self.error = error

    def __hash__(self):
        raise self.error


@pytest.mark.parametrize("error", [TypeError, ValueError, RecursionError, KeyError])
def test_a_label_that_cannot_be_compared_is_no_class(error):
    codes = labels_as_codes(
        column_of("no", Hostile(error("canary")), "yes"), np.array(["no", "yes"])
    )
    assert codes.tolist() == [0, -1, 1]


@pytest.mark.parametrize("value", [pd.NA, "canary", np.longdouble("1e4000"), 10**400])
def test_the_papers_learners_read_rows_like_all_others(value):
    x = np.zeros((20, 2), dtype=object)
    x[3, 1] = value
    model = PaperL1Regression(epsilon=1.0, delta=1e-5, random_state=0)
    assert np.isfinite(model.fit(x, x[:, 1]).coef_).all()


@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="no such type")
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, sparse.coo_array])
def test_numbers_beyond_float64_warn_in_no_partition_and_in_no_engine(layout):
    """Warnings are errors here. An overflow in a cast would tell of one value."""
    x, y = np.ones((4, 2), np.longdouble), np.ones(4, np.longdouble)
    x[1, 0], y[2] = np.longdouble("1e4000"), np.longdouble("-1e4000")
    rows, targets = PartitionReader((4, 2))(layout(x), y)
    assert rows.dtype == targets.dtype == np.float64
    expected = np.full((4, 2), float(X_STEPS))
    for given in (rows, layout(x)):
        steps = BOUNDS.grid_x(given)
        found = steps.toarray() if sparse.issparse(steps) else steps
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(BOUNDS.clip_y(targets), [1.0, 1.0, -1.0, 1.0])


@pytest.mark.parametrize("kind", [np.int8, np.bool_, np.float32])
def test_entries_at_one_place_are_added_alike_in_every_container(kind):
    """In their own type small numbers would wrap around, and truth values add up to one."""
    data = np.array([100, 100, 1], kind)
    row, column, ends = np.array([0, 0, 1]), np.array([0, 0, 1]), np.array([0, 2, 3])
    rows = [
        sparse.coo_array((data, (row, column)), shape=(2, 2)),
        sparse.csr_array((data, column, ends), shape=(2, 2)),
        sparse.csc_array((data, row, ends), shape=(2, 2)),
    ]
    expected = np.diag([float(data[0]) + float(data[1]), 1.0]) * (X_STEPS / 256)
    for given in rows:
        partition, _ = PartitionReader((2, 2))(given, np.zeros(2))
        for read in (as_numbers(given, "X"), partition):
            found = Bounds(256.0).grid_x(read).toarray()
            np.testing.assert_array_equal(found, expected)
