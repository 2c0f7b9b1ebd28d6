"""Sources: every format gives the same rows, in blocks, in pieces, or all at once."""

import gzip
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from riata import Schema, Source, read
from riata.errors import DataError, InvalidArgument

N = 237
RNG = np.random.default_rng(1)
WARDS = ["north", "south", "east", "überall"]
COLUMNS = {
    "age": RNG.integers(-5, 130, N).tolist(),
    "weight": [None if RNG.random() < 0.2 else float(w) for w in RNG.uniform(30, 200, N)],
    "smokes": RNG.choice(["yes", "no", ""], N).tolist(),
    "ward": RNG.choice(WARDS, N).tolist(),
    "unit": RNG.integers(1, 9, N).tolist(),
    "complaint": RNG.choice(["head, pain", 'a "bad" knee', "", "fever 'n chills"], N).tolist(),
    "days": RNG.integers(0, 20, N).tolist(),
    "note": ["secret"] * N,
}
SCHEMA = Schema.from_table(
    {
        "ignore": ["note"],
        "features": [
            {"name": "age", "kind": "number", "bounds": [0, 120]},
            {"name": "weight", "kind": "number", "bounds": [40, 160], "center": 75},
            {"name": "smokes", "kind": "yes-no"},
            {"name": "ward", "kind": "choice", "choices": ["north", "south", "überall"]},
            {"name": "unit", "kind": "choice", "choices": [1, 2, 3], "other": False},
            {"name": "complaint", "kind": "text", "buckets": 32},
        ],
        "target": {"name": "days", "bounds": [0, 14]},
    }
)
FRAME = pl.DataFrame(COLUMNS)
X, Y = read(FRAME, SCHEMA).load()


def same(found, wanted=(X, Y)):
    for a, b in zip(found, wanted, strict=True):
        a = a.toarray() if sparse.issparse(a) else a
        b = b.toarray() if sparse.issparse(b) else b
        np.testing.assert_array_equal(a, b)


def as_csv(folder):
    FRAME.write_csv(folder / "rows.csv")
    return folder / "rows.csv"


def as_gzip(folder):
    text = as_csv(folder).read_bytes()
    (folder / "rows.csv.gz").write_bytes(gzip.compress(text))
    return folder / "rows.csv.gz"


def as_windows_csv(folder):
    text = as_csv(folder).read_bytes()
    path = folder / "windows.csv"
    path.write_bytes(b"\xef\xbb\xbf" + text.rstrip(b"\n").replace(b"\n", b"\r\n"))
    return path


def as_quoted_tsv(folder):
    FRAME.write_csv(folder / "rows.tsv", separator="\t", quote_style="always")
    return str(folder / "rows.tsv")


def as_parquet(folder):
    FRAME.write_parquet(folder / "rows.parquet", row_group_size=50)
    return folder / "rows.parquet"


def as_parquet_directory(folder):
    for i in range(3):
        pq.write_table(FRAME.to_arrow()[i * 79 : (i + 1) * 79], folder / f"part-{i}.parquet")
    return folder


def with_categories(folder):
    return FRAME.to_arrow().set_column(
        3, "ward", FRAME.to_arrow()["ward"].cast(pa.string()).dictionary_encode()
    )


FORMATS = {
    "polars": lambda folder: FRAME,
    "polars, categories": lambda folder: FRAME.with_columns(pl.col("ward").cast(pl.Categorical)),
    "pandas": lambda folder: FRAME.to_pandas(),
    "pandas, objects": lambda folder: pd.DataFrame(COLUMNS).astype(object),
    "pandas, nullable": lambda folder: FRAME.to_pandas().convert_dtypes(),
    "Arrow": lambda folder: FRAME.to_arrow(),
    "Arrow, categories": with_categories,
    "Arrow, batch": lambda folder: FRAME.to_arrow().combine_chunks().to_batches()[0],
    "Parquet": as_parquet,
    "Parquet, directory": as_parquet_directory,
    "CSV": as_csv,
    "CSV, gzip": as_gzip,
    "CSV, Windows": as_windows_csv,
    "TSV, quoted": as_quoted_tsv,
}


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS)
def test_every_format_gives_the_same_rows(make, tmp_path):
    source = read(make(tmp_path), SCHEMA)
    assert isinstance(source, Source)
    assert source.shape == (N, SCHEMA.n_features) == X.shape
    assert source.rows_of_a_person == 1
    x, y = source.load()
    assert isinstance(x, sparse.csr_array)
    assert (x.dtype, y.dtype, x.indices.dtype) == (np.float64, np.float64, np.int32)
    same((x, y))
    blocks = list(source.blocks(rows=40))
    assert all(x.shape[0] == len(y) <= 40 for x, y in blocks)
    same((sparse.vstack([x for x, _ in blocks]), np.concatenate([y for _, y in blocks])))


def test_rows_are_what_the_schema_says():
    found = X.toarray()
    assert np.abs(found).max() <= 1.0
    age = np.clip(COLUMNS["age"], 0, 120)
    np.testing.assert_allclose(found[:, 0], age / 60 - 1)
    missing = [w is None for w in COLUMNS["weight"]]
    assert (found[missing, 1] == 0).all()
    assert (found[:, 2] == (np.array(COLUMNS["smokes"]) == "yes")).all()
    assert (
        found[:, 3:7].argmax(axis=1) == [[0, 1, 3, 2][WARDS.index(w)] for w in COLUMNS["ward"]]
    ).all()
    np.testing.assert_array_equal(Y, np.clip(COLUMNS["days"], 0, 14) - 7.0)


@pytest.mark.parametrize("make", [as_parquet, as_parquet_directory, as_csv, FORMATS["polars"]])
def test_pieces_travel_and_together_are_all_rows(make, tmp_path):
    source = read(make(tmp_path), SCHEMA)
    pieces = pickle.loads(pickle.dumps(source.pieces()))
    assert len(pieces) == {as_parquet: 5, as_parquet_directory: 3}.get(make, 1)
    found = [piece.load() for piece in pieces]
    assert [piece.n_rows for piece in pieces] == [len(y) for _, y in found]
    same((sparse.vstack([x for x, _ in found]), np.concatenate([y for _, y in found])))


@pytest.mark.parametrize("rows", [1, 100, N, N + 300])
@pytest.mark.parametrize("make", [as_parquet, as_csv, FORMATS["polars"]])
def test_a_public_number_of_rows_cuts_and_fills_up(make, rows, tmp_path):
    schema = Schema.from_table({**table_of(SCHEMA), "rows": rows})
    source = read(make(tmp_path), schema)
    assert source.n_rows == rows
    x, y = source.load()
    assert x.shape[0] == len(y) == rows
    kept = min(rows, N)
    same((x[:kept], y[:kept]), (X[:kept], Y[:kept]))
    blank, middle = schema.blank(max(rows - N, 0))
    same((x[kept:], y[kept:]), (blank, middle))
    assert sum(piece.n_rows for piece in source.pieces()) == rows


def table_of(schema):
    import tomllib

    return tomllib.loads(schema.toml())


def test_rows_to_predict_need_no_target():
    source = read(FRAME.drop("days"), SCHEMA, target=False)
    assert not source.has_target
    x, y = source.load()
    assert y is None
    same((x,), (X,))
    assert read(FRAME, SCHEMA, target=False).load()[1] is None
    with pytest.raises(DataError, match="no column 'days'"):
        read(FRAME.drop("days"), SCHEMA)


def test_reading_shows_progress_if_asked(capsys):
    read(FRAME, SCHEMA).load(progress=True)
    told = capsys.readouterr()
    assert not told.out
    assert "237/237" in told.err
    read(FRAME, SCHEMA).load()
    assert not capsys.readouterr().err


def test_a_schema_may_be_a_path_or_a_dict(tmp_path):
    SCHEMA.save(tmp_path / "s.toml")
    same(read(FRAME, tmp_path / "s.toml").load())
    same(read(FRAME, table_of(SCHEMA)).load())
    with pytest.raises(InvalidArgument, match="must be a Schema"):
        read(FRAME, 3)


def test_what_cannot_be_read():
    with pytest.raises(InvalidArgument, match="Cannot read rows from a list"):
        read([1, 2], SCHEMA)
    with pytest.raises(DataError, match="Collect it"):
        read(FRAME.lazy(), SCHEMA)


# Files without named columns.

WIDE = Schema.from_table({"features": {"count": 40, "bound": 2.0}, "target": {"classes": [-1, 1]}})
DENSE = np.round(np.where(RNG.random((N, 40)) < 0.2, RNG.normal(0, 2, (N, 40)), 0), 4)
LABELS = RNG.choice([-1, 1], N)
WANTED = (np.clip(DENSE / 2, -1, 1), (LABELS + 1) / 2)


def as_svmlight(folder):
    dump_svmlight_file(DENSE, LABELS, str(folder / "rows.svmlight"), zero_based=False)
    return folder / "rows.svmlight"


def as_libsvm_gzip(folder):
    (folder / "rows.libsvm.gz").write_bytes(gzip.compress(as_svmlight(folder).read_bytes()))
    return folder / "rows.libsvm.gz"


def as_npz(folder):
    np.savez(folder / "rows.npz", X=DENSE, y=LABELS)
    return folder / "rows.npz"


def parts(x):
    return {"data": x.data, "indices": x.indices, "indptr": x.indptr}


def as_sparse_npz(folder):
    x = sparse.csr_array(DENSE)
    np.savez_compressed(folder / "rows.npz", **parts(x), shape=x.shape, y=LABELS)
    return folder / "rows.npz"


def as_npy(folder):
    np.save(folder / "rows.npy", np.column_stack([DENSE, LABELS]))
    return folder / "rows.npy"


def as_mapped(folder):
    for name, array in {**parts(sparse.csr_array(DENSE)), "y": LABELS}.items():
        np.save(folder / f"{name}.npy", array)
    return folder


WIDE_FORMATS = [as_svmlight, as_libsvm_gzip, as_npz, as_sparse_npz, as_npy, as_mapped]


@pytest.mark.parametrize("make", WIDE_FORMATS)
def test_every_format_without_names_gives_the_same_rows(make, tmp_path):
    source = read(make(tmp_path), WIDE)
    assert source.shape == (N, 40)
    x, y = source.load()
    assert (x.dtype, y.dtype, x.indices.dtype) == (np.float64, np.float64, np.int32)
    same((x, y), WANTED)
    blocks = list(source.blocks(rows=50))
    same((sparse.vstack([x for x, _ in blocks]), np.concatenate([y for _, y in blocks])), WANTED)


@pytest.mark.parametrize("make", [as_npz, as_sparse_npz, as_npy, as_mapped])
def test_pieces_of_arrays(make, tmp_path, monkeypatch):
    monkeypatch.setattr("riata.data.readers.array_files.PIECE_ROWS", 100)
    pieces = pickle.loads(pickle.dumps(read(make(tmp_path), WIDE).pieces()))
    found = [piece.load() for piece in pieces]
    assert [len(y) for _, y in found] == [100, 100, 37]
    same((sparse.vstack([x for x, _ in found]), np.concatenate([y for _, y in found])), WANTED)


def test_rows_to_predict_without_names(tmp_path):
    np.save(tmp_path / "x.npy", DENSE)
    sparse.save_npz(tmp_path / "x.npz", sparse.csr_array(DENSE))
    for name in ("x.npy", "x.npz"):
        x, y = read(tmp_path / name, WIDE, target=False).load()
        assert y is None
        same((x,), WANTED[:1])
    with pytest.raises(DataError, match="no target y"):
        read(tmp_path / "x.npz", WIDE)
    with pytest.raises(DataError, match="40 columns, and the schema 40 features and a target"):
        read(tmp_path / "x.npy", WIDE)


def test_columns_of_a_frame_whose_names_are_numbers():
    schema = Schema.from_table({"features": [{"name": "0", "kind": "number", "bounds": [0, 2]}]})
    x, _ = read(pd.DataFrame(np.array([[0.0], [2.0]])), schema).load()
    assert x.toarray().tolist() == [[-1], [1]]


def test_labels_that_are_texts(tmp_path):
    schema = Schema.from_table({"features": {"count": 2}, "target": {"classes": ["a", "b"]}})
    np.savez(tmp_path / "t.npz", x=np.eye(2), y=np.array(["b", "c"]))
    assert read(tmp_path / "t.npz", schema).load()[1].tolist() == [1, -1]


def test_entries_are_divided_clipped_and_kept_at_zero(tmp_path):
    wide = {"count": 2, "bound": 4.0, "nonnegative": True, "first_index": 0}
    schema = Schema.from_table({"features": wide, "target": {"bounds": [0, 2]}})
    (tmp_path / "t.svm").write_text("1 0:2 1:-3\n2 0:9 0:1\n5 0:3 0:-1 1:nan\n")
    x, y = read(tmp_path / "t.svm", schema).load()
    assert x.toarray().tolist() == [[0.5, 0], [1, 0], [0.5, 0]]
    assert y.tolist() == [0, 1, 1]
