"""CSV that Arrow splits, a block at a time: every cell means what it means line by line."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from riata import Schema, read
from riata.data.columns import Cells
from riata.data.readers import csv_file
from riata.data.readers.arrow import ArrowCells, arrow
from riata.data.readers.csv_file import CsvReader
from riata.data.readers.lines import split_lines

SCHEMA = Schema.from_table(
    {
        "features": [
            {"name": "a", "kind": "number", "bounds": [-3, 1e9], "center": 0},
            {"name": "b", "kind": "choice", "choices": ["x", "y", "7", "1.5"]},
            {"name": "c", "kind": "yes-no"},
            {"name": "d", "kind": "count", "most": 100},
            {"name": "e", "kind": "hash", "buckets": 8},
        ],
        "target": {"name": "y", "classes": [0, 1]},
    }
)
NUMBERS = [
    b"1", b"-1.5", b"+2", b" 3", b"4 ", b"\t5", b"6\x0b", b"\x0c7", b"8\x1c", b"\xc2\xa09", b".5",
    b"5.", b".", b"1e5", b"1E-5", b"1e", b"1e999", b"-1e999", b"1e-999", b"5e-324", b"2.5e-324",
    b"-0", b"0x10", b"1_0", b"nan", b"NaN", b"-nan", b"nan(1)", b"inf", b"-Infinity", b"infinit",
    b"1.7976931348623159e308", b"9007199254740993", b"0.1", b"123456789012345678901234567890",
    b"9" * 400, b"0." + b"3" * 900, b"1,5", b"", b" ", b"NA", b"null", b"NULL", b"?", b"true",
    b"True", b"yes", b"1d5", b"1f", b"--1", b"+-1", b"1 2", b"\x00", b"1\x00", b"\xff",
    b"\xef\xbb\xbf1", "\u0967".encode(), "\uff11".encode(), b"1e+05", b"#",
]  # fmt: skip
plain = st.one_of(
    st.sampled_from(NUMBERS),
    st.floats().map(lambda value: repr(value).encode()),
    st.text(alphabet="0123456789.eE+-_ nainf", max_size=12).map(str.encode),
    st.binary(max_size=6),
)
cell = plain.map(lambda value: value.translate(None, b'",\n\r'))
anything = plain.map(lambda value: value.replace(b"\n", b" "))
FIELDS = 6


def same(one, other):
    """Bit for bit, the sign of 0 included; NaN is NaN."""
    for found in (one, other):
        found[np.isnan(found)] = np.nan
    np.testing.assert_array_equal(one.view(np.int64), other.view(np.int64))


@pytest.mark.not_quick
@settings(max_examples=500, deadline=None)
@given(st.lists(plain, min_size=1, max_size=6))
@example(NUMBERS)
def test_a_column_means_what_python_reads_in_it(values):
    quick, slow = ArrowCells(arrow().array(values, arrow().binary())), Cells(values)
    same(quick.numbers(), slow.numbers())
    one, other = quick.texts(), slow.texts()
    assert [one.words[i] for i in one.codes] == [other.words[i] for i in other.codes]


@pytest.mark.parametrize("value", NUMBERS, ids=range(len(NUMBERS)))
def test_a_cell_alone_means_what_python_reads_in_it(value):
    quick = ArrowCells(arrow().array([value, b"1"], arrow().binary()))
    same(quick.numbers(), Cells([value, b"1"]).numbers())


def loaded(path, text, monkeypatch, arrow_too):
    path.write_bytes(b"a,b,c,d,e,y\n" + text)
    with monkeypatch.context() as patch:
        if not arrow_too:
            patch.setattr(csv_file, "plain_fields", lambda *arguments: None)
        return read(path, SCHEMA).load()


def agree(path, text, monkeypatch):
    (x, y), (again, labels) = (loaded(path, text, monkeypatch, way) for way in (True, False))
    for one, other in ((x.indptr, again.indptr), (x.indices, again.indices)):
        np.testing.assert_array_equal(one, other)
    same(x.data, again.data)
    same(y, labels)


@pytest.mark.not_quick
@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(*[cell] * FIELDS), min_size=1, max_size=5),
    st.sampled_from([b"\n", b"\r\n"]),
    st.booleans(),
)
def test_plain_rows_are_the_same_in_both_ways(tmp_path_factory, rows, end, last):
    text = end.join(map(b",".join, rows)) + end * last
    with pytest.MonkeyPatch.context() as patch:
        agree(tmp_path_factory.getbasetemp() / "plain.csv", text, patch)


@pytest.mark.not_quick
@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(anything, max_size=7).map(b",".join), min_size=1, max_size=5))
@example([b"\xef\xbb\xbf1,x,yes,2,a,0", b"1,x,yes,2,a,1"])
@example([b"1,x,yes,2,a,0\r", b"1,x,yes,2,a,1\r\r"])
@example([b"1,x\r2,y,yes,2,a,0", b"", b"1,x,yes,2,a,1"])
@example([b'"1",x,yes,2,a,0', b"2,x,yes,2,a,1"])
def test_any_rows_are_the_same_in_both_ways(tmp_path_factory, rows):
    with pytest.MonkeyPatch.context() as patch:
        agree(tmp_path_factory.getbasetemp() / "any-rows.csv", b"\n".join(rows), patch)


@pytest.mark.parametrize("text", [b"1\n\n2\n", b"\n", b"\n\n", b"1\r\n\r\n2", b" \n1", b"1\n\n"])
def test_empty_lines_of_a_single_column_are_rows(tmp_path, monkeypatch, text):
    path = tmp_path / "one.csv"
    path.write_bytes(b"a\n" + text)
    found = []
    for way in (csv_file.plain_fields, lambda *arguments: None):
        monkeypatch.setattr(csv_file, "plain_fields", way)
        found.append([(n, c["a"].texts()) for n, c in CsvReader(path).chunks(["a"], 100)])
    (quick,), (slow,) = found
    assert quick[0] == slow[0] == len(split_lines(text))
    each = [[texts.words[i] for i in texts.codes] for _, texts in (quick, slow)]
    assert each[0] == each[1]


def test_plain_rows_take_the_quick_way_and_others_the_slow_one(tmp_path):
    """Otherwise the tests above would compare one way with itself."""
    path = tmp_path / "rows.csv"
    path.write_bytes(b'a,b\n1,x\n2,y\n3,"x"\n4,y\n5,6,7\n6,x\n7,x\r\n8,y\r\n')
    ways = [type(columns["a"]) for _, columns in CsvReader(path).chunks(["a", "b"], 2)]
    assert ways == [ArrowCells, Cells, Cells, ArrowCells]


@pytest.mark.parametrize("separator", ["¦", "::", "\x00"])
def test_separators_that_arrow_does_not_know_are_read_by_python(tmp_path, separator):
    """An error would tell whether there is a quote in a block: those are read by Python anyway."""
    path = tmp_path / "rows.csv"
    path.write_bytes("a,b\n1,x\n2,y\n".replace(",", separator).encode())
    ((n_rows, columns),) = CsvReader(path, separator).chunks(["a", "b"], 100)
    assert (n_rows, type(columns["a"])) == (2, Cells)
    assert columns["a"].numbers().tolist() == [1.0, 2.0]


def test_without_arrow_rows_are_the_same(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a,b\n1,x\n2,y\n")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    ((n_rows, columns),) = CsvReader(path).chunks(["a", "b"], 100)
    assert (n_rows, type(columns["a"])) == (2, Cells)
    assert columns["a"].numbers().tolist() == [1.0, 2.0]
