"""Hostile files: no row stops a read, quotes itself in an error, or moves another row."""

import gzip

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from riata import Schema, read
from riata.errors import DataError, RiataError

pytestmark = pytest.mark.matrix(one_in=11)

SECRET = "sesame"
SCHEMA = Schema.from_table(
    {
        "features": [
            {"name": "a", "kind": "number", "bounds": [0, 10]},
            {"name": "b", "kind": "choice", "choices": ["x", "y"]},
            {"name": "c", "kind": "yes-no"},
            {"name": "d", "kind": "text", "buckets": 4},
        ],
        "target": {"name": "y", "classes": ["0", "1"]},
    }
)
HEADER = b"a,b,c,d,y\n"
LINES = [b"1,x,yes,open,0", b"5,y,no,shut,1", b'9,"x",1,"half, open",0', b"2,x,0,,1"]
HOSTILE = [
    b"", b",", b",,,,,,,,,,", b'"', b'1,"x,yes,open,0', b'1,x,yes,"open', b'"""', b"\x00\x00",
    b"1,x,yes,\x00,0", b"\xff\xfe,\xc3\x28,\xed\xa0\x80,a,1", "१२,x,yes,open,1".encode(),
    b"1e999,x,yes,open,1", b"nan,nan,nan,nan,nan", b"9" * 5000 + b",x,yes,open,1",
    b"1,x,yes,open\r,0", b"1,x\ry,yes,open,0", b'"1\r2",x,yes,open,0', b"a,b,c,d,y",
    b'1,x,yes,"' + b"long " * 50_000 + b'",1', b"1,x,yes,sesame", b"1;x;yes;open;0", b"\x1a",
    "\u2028,\u0085,\u000b,\u001c,\u001d".encode(), b'=1+1,@x,"a"b"c,d,1',
]  # fmt: skip


def of_lines(path, lines):
    path.write_bytes(HEADER + b"".join(line + b"\n" for line in lines))
    return read(path, SCHEMA).load()


def one_row_changed(path, line, place):
    """Replacing one line changes that row and no other."""
    x, y = of_lines(path, LINES)
    lines = [*LINES[:place], line, *LINES[place + 1 :]]
    again, labels = of_lines(path, lines)
    assert again.shape == x.shape
    others = np.arange(len(LINES)) != place
    np.testing.assert_array_equal(again.toarray()[others], x.toarray()[others])
    np.testing.assert_array_equal(labels[others], y[others])
    assert np.abs(again.toarray()).max() <= 1.0
    assert set(labels) <= {-1.0, 0.0, 1.0}


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_hostile_line_is_one_row(tmp_path, line, place):
    one_row_changed(tmp_path / "t.csv", line, place)


@pytest.mark.not_quick
@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.binary().map(lambda line: line.replace(b"\n", b" ")),
        st.text(alphabet="\",;\t\r\x00'\\ axy019.eé-", max_size=30).map(str.encode),
    ),
    st.integers(0, 3),
)
@example(b'"1', 1)
def test_any_line_is_one_row(tmp_path_factory, line, place):
    one_row_changed(tmp_path_factory.getbasetemp() / "any.csv", line, place)


def test_a_line_with_another_number_of_fields_is_blank(tmp_path):
    x, y = of_lines(tmp_path / "t.csv", [b"1,x,yes,open", b"1,x,yes,open,0,7", b"", LINES[0]])
    blank, nothing = SCHEMA.blank(3)
    np.testing.assert_array_equal(x.toarray()[:3], blank.toarray())
    assert y.tolist() == [*nothing, 0.0]


WIDE = Schema.from_table({"features": {"count": 5}, "target": {"bounds": [-1, 1]}})
WIDE_LINES = [b"1 1:0.5 2:-0.25", b"-1 5:1", b"0.5"]
TOKENS = [
    b"", b"#", b"1", b"x", b"1:1", b"6:1", b"0:1", b"-1:1", b"1:", b":1", b":", b"1:1:1", b"1:x",
    b"1:nan", b"1:1e999", b"99999999999999999999:1", b"1_0:1", b"2:1_0", "१:१".encode(), b"\xff:1",
    b"\x00", b"qid:3", b"2:1 2:1", b"3:1#4:1", b"1.0:1",
]  # fmt: skip


@pytest.mark.not_quick
@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=6).map(b" ".join), st.integers(0, 2))
def test_any_line_of_svmlight_is_one_row(tmp_path_factory, line, place):
    path = tmp_path_factory.getbasetemp() / "any.svmlight"

    def rows(lines):
        path.write_bytes(b"\n".join(lines))
        return read(path, WIDE).load()

    x, y = rows([*WIDE_LINES, b"end"])
    again, targets = rows([*WIDE_LINES[:place], line, *WIDE_LINES[place + 1 :], b"end"])
    others = np.arange(4) != place
    np.testing.assert_array_equal(again.toarray()[others], x.toarray()[others])
    np.testing.assert_array_equal(targets[others], y[others])
    assert np.abs(again.toarray()).max() <= 1.0
    assert np.abs(targets).max() <= 1.0


def test_rubbish_tokens_are_left_out(tmp_path):
    (tmp_path / "t.svm").write_bytes(b"1 1:0.5 6:1 x 2:y 3:0.25 0:1 # 4:1\nx 4:1\n5:1\n")
    x, y = read(tmp_path / "t.svm", WIDE).load()
    assert x.toarray().tolist() == [[0.5, 0, 0.25, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]]
    assert y.tolist() == [1, 0, 0]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_frame_of_texts_is_read_as_leniently(make, tmp_path):
    fields = [line.decode("utf-8", "replace").split(",") for line in HOSTILE]
    fields = [f for f in fields if len(f) == 5 and not any('"' in one for one in f)]
    columns = {name: [f[i] for f in fields] for i, name in enumerate("abcdy")}
    path = tmp_path / "t.csv"
    path.write_bytes(HEADER + b"".join(",".join(f).encode() + b"\n" for f in fields))
    x, y = read(make(columns), SCHEMA).load()
    wanted, labels = read(path, SCHEMA).load()
    np.testing.assert_array_equal(x.toarray(), wanted.toarray())
    np.testing.assert_array_equal(y, labels)


def test_objects_of_any_type_are_missing_or_read():
    odd = [10**5000, -(10**5000), [1], {"a": SECRET}, None, float("nan"), "\ud800", b"\xff", 3, "4"]
    frame = pd.DataFrame({name: pd.Series(odd, dtype=object) for name in "abcdy"})
    x, _ = read(frame, SCHEMA).load()
    assert x.toarray()[:, 0].tolist() == [1, -1, 0, 0, 0, 0, 0, 0, -0.4, -0.2]


def test_texts_in_parquet_that_are_no_utf8(tmp_path):
    bad = pa.array([b"\xff\xfe", b"x"]).cast(pa.binary())
    broken = pa.StringArray.from_buffers(2, bad.buffers()[1], bad.buffers()[2])
    columns = dict.fromkeys("abcdy", broken)
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    x, y = read(tmp_path / "t.parquet", SCHEMA).load()
    assert x.toarray()[:, 1:4].tolist() == [[0, 0, 1], [1, 0, 0]]
    assert y.tolist() == [-1, -1]


def secrets(n=400):
    return pl.DataFrame(
        {
            "a": np.arange(n) % 11,
            "b": [f"{SECRET}{i}" for i in range(n)],
            "c": [i % 2 == 0 for i in range(n)],
            "d": [f"{SECRET} {i * 7919 % 1000}" for i in range(n)],
            "y": ["0", "1"] * (n // 2),
        }
    )


def told(run):
    """What an error says, with the chain of errors behind it. None if there is none."""
    try:
        run()
    except RiataError as found:
        problem = found
    else:
        return None
    assert problem.__suppress_context__ or problem.__context__ is None
    assert SECRET not in str(problem)
    return str(problem)


def test_parquet_that_is_cut_off_is_refused_before_a_row_is_read(tmp_path):
    path = tmp_path / "t.parquet"
    secrets().write_parquet(path, row_group_size=100)
    whole = path.read_bytes()
    for size in [*range(0, 12), *range(12, len(whole), 97), len(whole) - 1]:
        path.write_bytes(whole[:size])
        assert "damaged, truncated" in told(lambda: read(path, SCHEMA)), size


def test_parquet_with_wrong_bytes_says_nothing_about_them(tmp_path):
    path = tmp_path / "t.parquet"
    secrets().write_parquet(path, row_group_size=100)
    whole = path.read_bytes()
    for at in range(4, len(whole) // 2, 101):
        path.write_bytes(whole[:at] + bytes(b ^ 0x55 for b in whole[at : at + 8]) + whole[at + 8 :])
        told(lambda: read(path, SCHEMA).load())


def test_gzip_that_is_cut_off_is_found_by_counting(tmp_path):
    path = tmp_path / "t.csv.gz"
    secrets().write_csv(tmp_path / "t.csv")
    whole = gzip.compress((tmp_path / "t.csv").read_bytes())
    for size in [*range(1, 30), *range(30, len(whole), 61), len(whole) - 1]:
        path.write_bytes(whole[:size])

        def count():
            return read(path, SCHEMA).n_rows

        assert "damaged, truncated" in told(count), size
    path.write_bytes(b"no gzip")
    assert "damaged, truncated" in told(lambda: read(path, SCHEMA))


def test_gzip_that_is_cut_off_after_the_public_count_quotes_nothing(tmp_path):
    path = tmp_path / "t.csv.gz"
    secrets().write_csv(tmp_path / "t.csv")
    path.write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes())[:1000])
    schema = Schema.read("rows = 400\n" + SCHEMA.toml())
    source = read(path, schema)
    assert source.n_rows == 400
    assert "damaged" in told(source.load)


@pytest.mark.parametrize("name", ["x.npz", "x.npy"])
def test_arrays_that_are_cut_off(tmp_path, name):
    path = tmp_path / name
    x = np.arange(600.0).reshape(100, 6)
    np.savez_compressed(path, x=x[:, :5], y=x[:, 5]) if name == "x.npz" else np.save(path, x)
    whole = path.read_bytes()
    for size in [*range(0, 20), *range(20, len(whole), 37)]:
        path.write_bytes(whole[:size])
        assert "damaged" in told(lambda: read(path, WIDE).load()), size


def test_arrays_of_the_wrong_form(tmp_path):
    def stored(**arrays):
        np.savez(tmp_path / "t.npz", **arrays)
        return told(lambda: read(tmp_path / "t.npz", WIDE).load())

    x, y = np.zeros((3, 5)), np.zeros(3)
    sparse = {"data": y, "indices": np.array([0, 9, -1]), "indptr": np.array([0, 1, 2, 3])}
    assert stored(x=x, y=y) is None
    assert stored(**sparse, y=y) is None
    assert "neither the sparse arrays" in stored(z=x)
    assert "6 columns" in stored(x=np.zeros((3, 6)), y=y)
    assert "the shape (4,)" in stored(x=x, y=np.zeros(4))
    assert "1 dimensions" in stored(x=y, y=y)
    assert "the type" in stored(x=x.astype(str), y=y)
    assert "damaged" in stored(**sparse | {"indptr": np.array([0, 2, 1, 3])}, y=y)
    assert "damaged" in stored(**sparse | {"indptr": np.array([0, 1, 2, 7])}, y=y)
    assert "type object" in stored(x=x, y=np.array([SECRET, 1, 2], dtype=object))
    assert "damaged" in stored(**sparse, shape=(9, 5), y=y)
    assert "damaged" in stored(**sparse, shape=(3,), y=y)
    assert "4 columns" in stored(**sparse, shape=(3, 4), y=y)
    assert "sparse columns" in stored(**sparse, shape=(3, 5), format=b"csc", y=y)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.drop("b"), "no column 'b'"),
        (lambda f: f.with_columns(extra=pl.lit(SECRET)), "columns 'extra', which the schema does"),
        (
            lambda f: f.with_columns(b=pl.col("c")),
            "type 'yes-no', which cannot be read as 'choice'",
        ),
        (lambda f: f.with_columns(d=pl.col("a")), "'number', which cannot be read as 'text'"),
        (lambda f: f.with_columns(a=pl.lit(0).cast(pl.Date)), "'a' of"),
        (lambda f: f.with_columns(a=pl.concat_list("a", "a")), "'a' of"),
    ],
)
@pytest.mark.parametrize("kind", ["polars", "pandas", "parquet"])
def test_a_schema_that_disagrees_is_told_by_names_and_types(change, said, kind, tmp_path):
    frame = change(secrets())
    if kind == "pandas":
        frame = frame.to_pandas(use_pyarrow_extension_array=True)
    if kind == "parquet":
        frame.write_parquet(tmp_path / "t.parquet")
        frame = tmp_path / "t.parquet"
    assert said in told(lambda: read(frame, SCHEMA))


def test_headers_that_are_none(tmp_path):
    path, cells = tmp_path / "t.csv", SECRET.encode()
    for text, said in [
        (b"", "no header"),
        (b"\n\n", "no header"),
        (b"a,b,c,d\n", "no column 'y'"),
        (b"a,a,b,c,d,y\n", "several columns called 'a'"),
        (b"1,%s,yes,%s,0\n" % (cells, cells), "first line must name the columns"),
        (b"a,b,c,d,y\r1,%s,yes,open,0\r" % cells, "no column 'y'"),
    ]:
        path.write_bytes(text)
        assert said in told(lambda: read(path, SCHEMA))


def test_files_that_are_not_there_or_unknown(tmp_path):
    (tmp_path / "t.xlsx").touch()
    (tmp_path / "t.parquet.gz").touch()
    (tmp_path / "empty").mkdir()
    for name, said in [
        ("none.csv", "There is no file"),
        ("t.xlsx", "'.xlsx'"),
        ("t.parquet.gz", "Unpack"),
        ("empty", "neither Parquet"),
    ]:
        assert said in told(lambda name=name: read(tmp_path / name, SCHEMA))


def test_a_directory_whose_files_disagree(tmp_path):
    secrets().write_parquet(tmp_path / "1.parquet")
    secrets().with_columns(a=pl.col("b")).write_parquet(tmp_path / "2.parquet")
    assert "must agree" in told(lambda: read(tmp_path, SCHEMA))


def test_files_with_and_without_names_do_not_mix(tmp_path):
    secrets().write_parquet(tmp_path / "t.parquet")
    assert "has named columns" in told(lambda: read(tmp_path / "t.parquet", WIDE))
    np.save(tmp_path / "t.npy", np.zeros((2, 6)))
    assert "no named columns" in told(lambda: read(tmp_path / "t.npy", SCHEMA))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_names_of_frames_that_were_read_without_a_header_are_not_quoted(make):
    frame = make({SECRET: ["1"], "b": ["x"], "c": ["no"], "d": [""], "y": ["1"]})
    assert "no column 'a'" in told(lambda: read(frame, SCHEMA))


def test_frames_with_repeated_names():
    frame = pd.DataFrame([["1", "2", "x", "no", "", "1"]], columns=list("aabcdy"))
    assert "several columns of one name" in told(lambda: read(frame, SCHEMA))
    table = pa.Table.from_arrays([pa.array(["1"])] * 6, names=list("aabcdy"))
    assert "several columns called 'a'" in told(lambda: read(table, SCHEMA))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", None, "x"], pa.string_view()),
        (["1", None, "x"], pa.large_string()),
        ([1, None, 7], pa.decimal128(20, 3)),
        ([1, None, 7], pa.decimal256(50, 3)),
        ([1, None, 7], pa.float16()),
        ([1, None, 7], pa.uint64()),
        ([1, None, 7], pa.int8()),
        ([None, None, None], pa.null()),
    ],
    ids=str,
)
def test_columns_of_every_type_that_is_a_number_or_a_text(values, kind, tmp_path):
    numbers = pa.array(values, pa.string()).cast(kind) if kind == pa.string_view() else None
    numbers = pa.array(values, kind) if numbers is None else numbers
    table = pa.table({"a": numbers, "b": numbers, "c": numbers, "d": ["", "", ""], "y": numbers})
    wanted = [-1.0, 0.0, 0.4] if 7 in values else [-1.0, 0.0, 0.0]
    wanted = [0.0, 0.0, 0.0] if values[0] is None else [-0.8, *wanted[1:]]
    x, _ = read(table, SCHEMA).load()
    assert x.toarray()[:, 0].round(12).tolist() == wanted
    if kind not in (pa.float16(), pa.string_view()):
        pq.write_table(table, tmp_path / "t.parquet")
        again, _ = read(tmp_path / "t.parquet", SCHEMA).load()
        np.testing.assert_array_equal(again.toarray(), x.toarray())
    if kind not in (pa.float16(), pa.string_view(), pa.decimal256(50, 3)):
        again, _ = read(pl.from_arrow(table), SCHEMA).load()
        np.testing.assert_array_equal(again.toarray(), x.toarray())


def test_blocks_have_at_least_a_row(tmp_path):
    source = read(pd.DataFrame({name: ["1"] for name in "abcdy"}), SCHEMA)
    assert "at least 1" in told(lambda: list(source.blocks(rows=0)))


def test_errors_are_of_the_right_kind(tmp_path):
    with pytest.raises(DataError):
        read(tmp_path / "none.csv", SCHEMA)
