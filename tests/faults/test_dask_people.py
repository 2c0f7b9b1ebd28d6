"""Rows of people on a Dask cluster: workers read them, and the release is the same as here.

Files in all formats, with people all over them, with more and with fewer rows than count, and with
rows of nobody, are fitted with every engine and must give the same bits. Here, nothing may read a
row of them.
"""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

from riata import Budget, Ledger, PrivateLasso, PrivateLogisticRegression, Schema, read
from riata.data.people import PeopleSource, PersonIds
from riata.data.readers import lines
from riata.data.readers.arrow import ParquetDirectory, ParquetReader
from riata.data.readers.csv_file import CsvReader
from riata.data.readers.lines import LineReader
from riata.engines.dask import DaskEngine
from riata.engines.gather import gather
from riata.errors import ClusterError

from clusters import cluster

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore"),  # of the cluster
]

N, P = 240, 5
RNG = np.random.default_rng(3)
VALUES = RNG.uniform(-1, 1, (N, P))
TARGETS = 0.7 * VALUES[:, 1] - 0.3 * VALUES[:, 3]

#: The person of each row. None is nobody.
LAYOUTS = {
    "one person all over": ["a" if i % 2 else f"p{i}" for i in range(N)],
    "few rows each": [f"p{i // 2}" for i in range(N)],
    "many rows each": [f"p{i % 7}" for i in range(N)],
    "nobody's rows": [None if i % 3 else f"p{i % 11}" for i in range(N)],
    "everybody's rows": ["a"] * N,
}


def schema(k, people=None, **changes):
    table = {
        "person": "id",
        "rows_of_a_person": k,
        "features": [{"name": f"c{i}", "kind": "number", "bounds": [-1, 1]} for i in range(P)],
        "target": {"name": "y", "bounds": [-1, 1]},
        **({} if people is None else {"people": people}),
    }
    return Schema.from_table({**table, **changes})


def write(folder, kind, ids):
    """The same rows in a file, or in a directory of them, of this kind."""
    table = pd.DataFrame(VALUES, columns=[f"c{i}" for i in range(P)])
    table = table.assign(y=TARGETS, id=pd.Series(ids, dtype=object))
    if kind == "directory":
        for number, rows in enumerate((slice(0, 50), slice(50, 51), slice(51, 170), slice(170, N))):
            table[rows].to_parquet(folder / f"part-{number}.parquet")
        return folder
    if kind == "row groups":
        path = folder / "rows.parquet"
        pq.write_table(pa.Table.from_pandas(table, preserve_index=False), path, row_group_size=47)
        return path
    text = table.to_csv(index=False)
    path = folder / ("rows.csv" if kind == "csv" else "rows.csv.gz")
    path.write_bytes(text.encode() if kind == "csv" else gzip.compress(text.encode()))
    return path


@pytest.fixture(scope="module")
def client():
    with cluster() as made:
        yield made


@pytest.fixture
def nothing_is_read_here(monkeypatch):
    """Readers of rows raise in this process; workers are other processes."""

    def refuse(*arguments, **options):
        raise AssertionError("a row is read in this process")

    monkeypatch.setattr(lines, "_PART_BYTES", 3_000)
    return lambda: [
        monkeypatch.setattr(where, name, refuse)
        for where, name in (
            (ParquetReader, "chunks"), (ParquetDirectory, "chunks"), (CsvReader, "chunks"),
            (LineReader, "batches"), (LineReader, "count"), (PersonIds, "__call__"),
        )
    ]  # fmt: skip


def same(found, expected):
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.intercept_, expected.intercept_)
    assert str(found.privacy_) == str(expected.privacy_)


@pytest.mark.parametrize("kind", ["directory", "row groups", "csv", "csv.gz"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_workers_read_and_the_model_is_the_same(kind, layout, client, tmp_path, request):
    path, case = write(tmp_path, kind, LAYOUTS[layout]), list(LAYOUTS).index(layout)
    said = schema(k=(1, 2, 3, 5, 300)[case], people=(None, 40, 3, None, 4)[case])
    solver = {"solver": "frank-wolfe", "steps": 4}
    model = PrivateLasso(1.0, 1e-6, random_state=4, **solver)
    expected = clone(model).set_params(engine="scan").fit(read(path, said, random_state=2))
    same(clone(model).set_params(engine="disk").fit(read(path, said, random_state=2)), expected)
    request.getfixturevalue("nothing_is_read_here")()
    same(clone(model).set_params(engine="dask").fit(read(path, said, random_state=2)), expected)


def test_secret_samples_of_rows_are_the_same(client, tmp_path, nothing_is_read_here):
    """Coins follow from the number of a row, which is the same with every engine."""
    path = write(tmp_path, "directory", LAYOUTS["many rows each"])
    model = PrivateLasso(1.0, 1e-6, solver="noisy-gradient", random_state=4)
    found = []
    for engine in ("scan", "disk", "auto", "dask"):
        if engine == "dask":
            nothing_is_read_here()
        fitted = (
            clone(model)
            .set_params(engine=engine)
            .fit(read(path, schema(3, people=9), random_state=2))
        )
        found.append(fitted)
    for each in found[1:]:
        same(each, found[0])


def test_classes_and_a_checkpoint(client, tmp_path, nothing_is_read_here):
    path = write(tmp_path, "csv", LAYOUTS["nobody's rows"])
    said = schema(2, target={"name": "c0", "classes": ["no", "yes"]}, ignore=["y"],
                  features=[{"name": f"c{i}", "kind": "number", "bounds": [-1, 1]}
                            for i in range(1, P)])  # fmt: skip
    model = PrivateLogisticRegression(1.0, 1e-6, random_state=4)
    expected = clone(model).set_params(engine="scan").fit(read(path, said, random_state=2))
    nothing_is_read_here()
    source = read(path, said, random_state=2)
    found = clone(model).set_params(engine="dask").fit(source)
    same(found, expected)
    run = tmp_path / "a.run"
    again = [clone(model).set_params(engine="dask").fit(source, checkpoint=run) for _ in "ab"]
    same(again[1], again[0])


def test_a_worker_without_the_file_says_so_and_what_to_do(client, tmp_path, monkeypatch):
    path = write(tmp_path, "directory", LAYOUTS["few rows each"])
    source = read(path, schema(1, people=10))

    def elsewhere(calls):
        (path / "part-2.parquet").unlink()
        return gather(calls)

    monkeypatch.setattr("riata.engines.gather.gather", elsewhere)
    with pytest.raises(ClusterError, match=r"no file .*part-2.parquet.* same path"):
        PrivateLasso(1.0, 1e-6, engine="dask").fit(source)


def test_rows_in_memory_are_read_where_they_are(client):
    frame = pd.DataFrame(VALUES, columns=[f"c{i}" for i in range(P)])
    frame = frame.assign(y=TARGETS, id=LAYOUTS["many rows each"])
    model = PrivateLasso(1.0, 1e-6, solver="frank-wolfe", steps=3, random_state=4)
    found = [
        clone(model).set_params(engine=engine).fit(read(frame, schema(2), random_state=2))
        for engine in ("scan", "dask")
    ]
    same(found[1], found[0])


def test_digests_travel_and_ids_do_not(client, tmp_path):
    path = write(tmp_path, "csv", LAYOUTS["many rows each"])
    source = read(path, schema(2))
    heard = []

    def listening(calls):
        assert "p3" not in repr(calls)
        found = gather(calls)
        heard.extend(found)
        return found

    assert source.gathered(listening).n_rows == 7 * 2
    for digests, codes in heard:
        assert digests.dtype == np.uint64
        assert codes.dtype == np.int64
        assert b"p3" not in digests.tobytes()
    other = read(path, schema(2)).gathered(listening)
    assert other.n_rows == 7 * 2
    assert not np.intersect1d(heard[0][0], heard[1][0]).size  # another source has another key


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [np.zeros((1, 2), np.uint64)],
        [np.zeros((1, 2), np.uint64), np.array([1])],
        [np.zeros((1, 2), np.uint64), np.array([-2])],
        [np.zeros((1, 2), np.uint64), np.array([0.0])],
        [np.zeros((1, 3), np.uint64), np.array([0])],
        [np.zeros((1, 2), np.int64), np.array([0])],
        [np.zeros((1, 2), np.uint64), np.array([[0]])],
    ],
)
def test_what_cannot_be_ids_is_refused(wrong, tmp_path):
    path = write(tmp_path, "csv", LAYOUTS["few rows each"])
    source = read(path, schema(1)).gathered(lambda calls: [wrong for _ in calls])
    with pytest.raises(ClusterError, match="cannot be the ids"):
        _ = source.n_rows
    assert isinstance(source, PeopleSource)


def test_a_fit_of_people_is_charged_once_and_draws_in_secret(client, tmp_path, monkeypatch):
    path = write(tmp_path, "directory", LAYOUTS["many rows each"])
    ledger = Ledger.create(
        tmp_path / "l.db", dataset="d", ceiling=Budget(9.0, 1e-3, "replace-person")
    )
    drawn, totals = [], DaskEngine.__init__

    def watched(self, pieces, *more):
        drawn.append([tuple(piece._source._source._numbers) for piece in pieces])
        totals(self, pieces, *more)

    monkeypatch.setattr(DaskEngine, "__init__", watched)
    source = read(path, schema(3))
    for _ in range(2):
        PrivateLasso(1.0, 1e-6, engine="dask", ledger=ledger).fit(source)
    assert len(ledger.charges) == 2
    assert drawn[0] != drawn[1]
