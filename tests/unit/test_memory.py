"""Rows that do not fit into memory go to disk, and the fit is the same."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from riata import PrivateLasso, Schema, read
from riata.data.schema.numeric_block import NumericBlock
from riata.engines import choice
from riata.engines.disk import DiskEngine
from riata.engines.local import LocalEngine
from riata.engines.memory import bytes_of, memory_for_rows
from riata.errors import InvalidArgument

N = 3_000
RNG = np.random.default_rng(2)
FRAME = pl.DataFrame({f"c{i}": RNG.uniform(-2, 12, N) for i in range(6)}).with_columns(
    y=pl.col("c2") * 0.5 + pl.Series(RNG.standard_normal(N))
)
SCHEMA = Schema.from_table(
    {
        "features": [{"name": f"c{i}", "kind": "number", "bounds": [0, 10]} for i in range(6)],
        "target": {"name": "y", "bounds": [-10, 10]},
    }
)


@pytest.fixture
def opened(monkeypatch):
    """The engines that fits used."""
    engines = []
    open_engine = choice.open_engine

    def told(*given):
        engines.append(open_engine(*given))
        return engines[-1]

    monkeypatch.setattr("riata.fitting.running.open_engine", told)
    return engines


@pytest.mark.parametrize("room", ["10k", "200k", "300k"])
def test_rows_without_room_go_to_disk(room, tmp_path, monkeypatch, opened):
    FRAME.write_parquet(tmp_path / "rows.parquet", row_group_size=500)
    source = read(tmp_path / "rows.parquet", SCHEMA)
    model = PrivateLasso(1.0, 1e-6, solver="frank-wolfe", steps=6, random_state=1)
    expected = model.set_params(engine="scan").fit(source).coef_
    monkeypatch.setenv("RIATA_MEMORY", room)
    found = model.set_params(engine="auto").fit(source)
    np.testing.assert_array_equal(found.coef_, expected)
    assert isinstance(opened[-1], DiskEngine)
    np.testing.assert_array_equal(model.set_params(engine="disk").fit(source).coef_, expected)


@pytest.mark.parametrize("value", [5.0, 10.0], ids=["no entry", "every entry"])
@pytest.mark.parametrize(("room", "engine"), [("200k", DiskEngine), ("1GB", LocalEngine)])
def test_memory_or_disk_is_a_question_of_public_facts(value, room, engine, monkeypatch, opened):
    # The middle of the bounds is encoded as 0, which takes no place in memory.
    rows = FRAME.with_columns(pl.lit(value).alias(f"c{i}") for i in range(6))
    monkeypatch.setenv("RIATA_MEMORY", room)
    PrivateLasso(1.0, 1e-6, solver="frank-wolfe", steps=2).fit(read(rows, SCHEMA))
    assert isinstance(opened[-1], engine)


@pytest.mark.parametrize(("count", "likely"), [(40, 40), (10_000, 256)])
def test_how_many_entries_a_row_is_taken_to_have_follows_from_the_schema(count, likely):
    assert SCHEMA.likely_entries == 6
    assert NumericBlock(count).likely_entries == likely


def test_rows_with_room_stay_in_memory(monkeypatch, opened):
    monkeypatch.setenv("RIATA_MEMORY", "1GB")
    PrivateLasso(1.0, 1e-6, solver="frank-wolfe", steps=2).fit(read(FRAME, SCHEMA))
    assert isinstance(opened[-1], LocalEngine)
    monkeypatch.delenv("RIATA_MEMORY")
    PrivateLasso(1.0, 1e-6, solver="frank-wolfe", steps=2).fit(read(FRAME, SCHEMA))
    assert isinstance(opened[-1], LocalEngine)


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GB", 2**33), ("500 mb", 500 * 2**20), ("1e9", 10**9), ("1.5GiB", 3 * 2**29), ("7", 7)],
)
def test_amounts_of_memory(text, size):
    assert bytes_of(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1GB", "0", "1e400", "nan", "3PB"])
def test_what_is_no_amount_is_refused(text, monkeypatch):
    monkeypatch.setenv("RIATA_MEMORY", text)
    with pytest.raises(InvalidArgument, match="RIATA_MEMORY"):
        memory_for_rows()
    with pytest.raises(InvalidArgument, match="RIATA_MEMORY"):  # before anything is charged
        PrivateLasso(1.0, 1e-6).fit(read(FRAME, SCHEMA))


def test_what_is_free_is_less_than_there_is():
    assert 2**20 < memory_for_rows() < 2**50
