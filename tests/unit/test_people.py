"""Rows of people: everybody counts as k rows, and a replaced person changes only their own."""

import os
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from riata import PrivateLasso, PrivateLogisticRegression, Schema, read
from riata.data.people import (
    PeopleSource,
    codes_by_first_appearance,
    random_order,
    sample_rows,
)
from riata.data.readers import lines
from riata.data.readers.csv_file import CsvReader
from riata.errors import DataError
from riata.mechanisms.noise import Noise

K = 3
TABLE = {
    "person": "id",
    "rows_of_a_person": K,
    "features": [{"name": "v", "kind": "number", "bounds": [0, 1000], "center": 0}],
    "target": {"name": "y", "bounds": [-1, 1]},
}


def schema(**changes):
    return Schema.from_table({**TABLE, **changes})


def people(ids, **changes):
    """A source whose values tell the row: v is the number of the row in the file, from 1."""
    frame = pl.DataFrame(
        {"id": ids, "v": range(1, len(ids) + 1), "y": np.linspace(-1, 1, len(ids))}
    )
    return read(frame, schema(**changes), random_state=1)


def rows_of(x):
    """Which row of the file each row is, from 0; -1 for a blank one."""
    return (np.round(x.toarray()[:, 0] * 1000) - 1).astype(int)


IDS = ["a"] * 7 + ["b", "c", "b", "d"] + ["c"] * 2 + ["a"]


def test_everybody_counts_alike():
    source = people(IDS)
    assert isinstance(source, PeopleSource)
    assert source.rows_of_a_person == K
    assert source.n_rows == 4 * K
    x, y = source.load()
    assert x.shape == (4 * K, 1)
    rows = rows_of(x)
    np.testing.assert_allclose(y, np.linspace(-1, 1, len(IDS))[rows])
    whose = np.array(IDS)[rows].reshape(4, K)
    assert (whose == whose[:, :1]).all()
    assert sorted(whose[:, 0]) == ["a", "b", "c", "d"]
    for person, its in zip(whose[:, 0], rows.reshape(4, K), strict=True):
        all_rows = np.flatnonzero(np.array(IDS) == person)
        used, times = np.unique(its, return_counts=True)
        assert len(used) == min(K, len(all_rows))
        assert times.max() - times.min() <= 1


def test_blocks_have_the_same_rows_in_the_order_of_the_file():
    source = people(IDS)
    wanted = np.sort(rows_of(source.load()[0]))
    for rows in (1, 2, 5, 100):
        blocks = list(source.blocks(rows=rows))
        assert all(x.shape[0] == len(y) <= rows for x, y in blocks)
        np.testing.assert_array_equal(np.concatenate([rows_of(x) for x, _ in blocks]), wanted)
    assert [piece is source for piece in source.pieces()] == [True]


def test_the_draw_is_made_once_and_stays_at_home():
    frame = pl.DataFrame({"id": IDS * 20, "v": range(1, 281), "y": [0.0] * 280})
    source = read(frame, schema())
    first, again = rows_of(source.load()[0]), rows_of(source.load()[0])
    np.testing.assert_array_equal(first, again)
    copy = pickle.loads(pickle.dumps(source))
    assert not {"_arrangement", "_people"} & vars(copy).keys()
    assert (rows_of(copy.load()[0]) != first).any()
    assert (rows_of(read(frame, schema()).load()[0]) != first).any()


def test_ids_of_every_type_are_the_same_people():
    numbers = [2**60, 2**60 + 1, 2**60, 7, 7]
    for ids in (numbers, [str(i) for i in numbers], pl.Series(numbers, dtype=pl.UInt64)):
        assert people(ids).n_rows == 3 * K
    assert people([1.0, 2.0, None, 1.0, None]).n_rows == 2 * K
    with pytest.raises(DataError, match="'person'"):
        people([True, False])


def test_rows_without_an_id_are_left_out():
    source = people(["", "a", None, " ", "b", "a", ""])
    assert source.n_rows == 2 * K
    assert set(rows_of(source.load()[0])) == {1, 4, 5}
    assert people([None, ""]).n_rows == 0
    assert rows_of(people([None, ""], people=2).load()[0]).tolist() == [-1] * 2 * K


@pytest.mark.parametrize("count", [1, 4, 9])
def test_a_public_number_of_people_leaves_out_and_fills_up(count):
    source = people(IDS, people=count)
    x, y = source.load()
    assert source.n_rows == x.shape[0] == len(y) == count * K
    rows = rows_of(x).reshape(count, K)
    blank = (rows == -1).all(axis=1)
    assert blank.sum() == max(0, count - 4)
    assert ((rows == -1).any(axis=1) == blank).all()
    assert (y.reshape(count, K)[blank] == 0).all()
    whose = np.array(IDS)[rows[~blank]]
    assert len(set(whose[:, 0])) == min(count, 4)
    blocks = np.concatenate([rows_of(x) for x, _ in source.blocks(rows=4)])
    np.testing.assert_array_equal(np.sort(blocks), np.sort(rows.ravel()))


NOBODY = -1


class Given:
    """Words that are given, in turn."""

    def __init__(self, *words):
        self.left = [np.asarray(each, dtype=np.uint64) for each in words]

    def words(self, n):
        found = self.left.pop(0)
        assert len(found) == n
        return found


def arrangement(ids, words_of_people, words_of_rows, k):
    """What `drawn` does with given words, told as (place, person, number of their row)."""
    named = np.array(ids) != NOBODY
    whose = np.full(len(ids), -1)
    digests = np.array([[i, 0] for i in np.array(ids)[named]], dtype=np.uint64)
    whose[named] = codes_by_first_appearance(digests)
    names = [i for i in dict.fromkeys(ids) if i != NOBODY]
    seen = {}
    ordinals = []
    for i in ids:
        seen[i] = seen.get(i, -1) + 1
        ordinals.append(seen[i])
    of_people = [(i, n) for i, n in zip(ids, ordinals, strict=True) if i != NOBODY]
    rows = np.array([words_of_rows[one] for one in of_people])
    order = np.array([words_of_people[i] for i in names])

    found = sample_rows(whose, len(names), k, Given(rows, order))
    assert (found >= 0).all()
    return {(place, ids[row], ordinals[row]) for place, row in enumerate(found)}


@pytest.mark.not_quick
@settings(deadline=None, max_examples=150)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=25),
    st.integers(0, 5),
    st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=1, max_size=6),
    st.integers(1, 4),
    st.integers(0, 2**32 - 1),
)
def test_a_replaced_person_changes_only_their_own_places(ids, old, new, k, seed):
    """The coupling of docs/privacy/people.md: words stay with people and with their rows."""
    old = ids[old % len(ids)]
    changed = [i for i in ids if i != old]
    for at, has_id in [*new, (0, True)]:
        changed.insert(at % (len(changed) + 1), 99 if has_id else NOBODY)
    words = np.random.default_rng(seed).permutation(1_000).tolist()
    of_people = {i: words.pop() for i in range(6)} | {99: None}
    of_people[99] = of_people[old]
    of_rows = {(i, n): words.pop() for i in [*range(6), 99] for n in range(25)}
    before = arrangement(ids, of_people, of_rows, k)
    after = arrangement(changed, of_people, of_rows, k)
    kept = {one for one in before if one[1] != old}
    assert kept == {one for one in after if one[1] != 99}
    mine = sorted(place for place, person, _ in before if person == old)
    assert mine == sorted(place for place, person, _ in after if person == 99)
    assert len(mine) == k


def test_orders_and_draws_are_uniform():
    """Fails for correct code with another seed with probability below 2e-7: two tests at 1e-7."""
    noise = Noise(3)
    orders = [tuple(random_order(4, noise)) for _ in range(6_000)]
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 24
    assert chisquare(counts).pvalue > 1e-7
    whose = np.array([0] * 5 + [1] * 2)
    samples = (sample_rows(whose, 2, 2, noise) for _ in range(6_000))
    pairs = [tuple(sorted(row for row in sample if row < 5)) for sample in samples]
    _, counts = np.unique(pairs, axis=0, return_counts=True)
    assert len(counts) == 10
    assert chisquare(counts).pvalue > 1e-7


def test_words_that_are_equal_are_drawn_again():
    assert random_order(2, Given([5, 5], [9, 2])).tolist() == [1, 0]


def test_numbers_follow_first_appearance():
    digests = np.array([[5, 1], [3, 9], [5, 1], [5, 0], [3, 9]], dtype=np.uint64)
    assert codes_by_first_appearance(digests).tolist() == [0, 1, 0, 2, 1]
    assert codes_by_first_appearance(np.empty((0, 2), dtype=np.uint64)).tolist() == []


def test_without_a_target_people_are_only_rows():
    table = {name: value for name, value in TABLE.items() if name != "target"}
    frame = pl.DataFrame({"v": [1, 2, 3]})
    assert read(frame, Schema.from_table(table)).load()[0].shape == (3, 1)
    assert read(frame[:0], Schema.from_table(table)).load()[1] is None


def test_a_source_says_nothing_about_its_draw():
    source = people(IDS)
    before = repr(source)
    source.load()
    assert repr(source) == before


PERSONS = st.one_of(st.none(), st.integers(0, 6).map("p{}".format), st.just('p"7'))


@pytest.mark.not_quick
@settings(deadline=None, max_examples=60)
@given(
    st.lists(PERSONS, min_size=1, max_size=40),
    st.sampled_from(["csv", "parquet", "directory"]),
    st.integers(1, 4),
    st.sampled_from([None, 1, 3, 20]),
    st.integers(1, 60),
)
def test_pieces_that_others_read_are_the_same_rows_in_the_same_order(ids, kind, k, count, size):
    """Whatever the parts of the file are, and with the same draw."""
    frame = pl.DataFrame(
        {"id": ids, "v": range(1, len(ids) + 1), "y": np.linspace(-1, 1, len(ids))},
        schema={"id": pl.String, "v": pl.Int64, "y": pl.Float64},
    )
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_PART_BYTES", size)
        path = Path(name)
        if kind == "directory":
            for number in range(0, len(ids), size):
                frame[number : number + size].write_parquet(path / f"{number:03}.parquet")
        elif kind == "parquet":
            path = path / "rows.parquet"
            frame.write_parquet(path, row_group_size=size)
        else:
            path = path / "rows.csv"
            frame.write_csv(path)
        source = read(path, schema(rows_of_a_person=k, people=count), random_state=1)
        others = source.gathered(lambda calls: [pickle.loads(pickle.dumps(c))() for c in calls])
        pieces = [pickle.loads(pickle.dumps(piece)) for piece in others.pieces()]
        assert others.n_rows == source.n_rows == sum(piece.n_rows for piece in pieces)
        expected = source.in_order()
        found = [piece.load() for piece in pieces]
        if expected[0].shape[0]:
            for at in (0, 1):
                whole = np.concatenate([np.asarray(_dense(each[at])) for each in found])
                np.testing.assert_array_equal(whole, _dense(expected[at]))


def _dense(values):
    return values.toarray() if hasattr(values, "toarray") else values


def test_lines_of_parts_are_all_lines_once(tmp_path, monkeypatch):
    """Headers, ends of lines and empty lines at every place of a cut."""
    text = b"id,v,y\na,1,0\r\n\nb,2,0\n" + b'"c,d",3,0\n' * 3 + b"e,4,0"
    path = tmp_path / "rows.csv"
    path.write_bytes(text)
    whole = next(CsvReader(path).batches(100))
    assert len(whole) == 7
    for size in range(1, len(text) + 2):
        monkeypatch.setattr(lines, "_PART_BYTES", size)
        parts = CsvReader(path).parts()
        assert len(parts) == -(-len(text) // size)
        found = [line for part in parts for batch in part.batches(2) for line in batch]
        assert found == whole
        assert sum(part.count() for part in parts) == 7


@pytest.mark.skipif("RIATA_DATA" not in os.environ, reason="RIATA_DATA names no folder")
def test_patients_of_the_diabetes_data():
    table = {
        "person": "patient_nbr",
        "rows_of_a_person": 2,
        "ignore_others": True,
        "features": [
            {"name": "num_medications", "kind": "number", "bounds": [0, 80]},
            {"name": "gender", "kind": "choice", "choices": ["Female", "Male"]},
        ],
        "target": {"name": "time_in_hospital", "bounds": [1, 14]},
    }
    path = Path(os.environ["RIATA_DATA"]) / "diabetes130_raw.csv.gz"
    source = read(path, Schema.from_table(table))
    assert source.n_rows == 2 * 71_518
    x, y = source.load()
    assert x.shape == (2 * 71_518, 4)
    assert np.abs(y).max() == 6.5


@pytest.mark.parametrize("solver", ["whitened-gradient", "greedy"])
@pytest.mark.parametrize("classes", [False, True])
def test_errors_of_four_times_the_same_row_are_those_of_the_row(solver, classes):
    """Each person has one row, which counts four times: copies tell nothing more.

    Nearly without noise, so that errors are those of sampling people.
    """
    rng, n = np.random.default_rng(0), 3_000
    x = rng.uniform(-1, 1, (n, 2))
    number = x @ [1.0, -0.7] + rng.logistic(size=n) / 2
    frame = pd.DataFrame({"id": np.arange(n), "a": x[:, 0], "b": x[:, 1]})
    frame["y"] = np.where(number > 0, "yes", "no") if classes else number
    target = {"classes": ["no", "yes"]} if classes else {"bounds": [-8, 8]}
    features = [{"name": name, "kind": "number", "bounds": [-1, 1], "knots": 0} for name in "ab"]
    schema = {"features": features, "target": {"name": "y", **target}, "person": "id"}
    estimator = PrivateLogisticRegression if classes else PrivateLasso
    errors = [
        estimator(300.0, 1e-6, adjacency="replace-person", solver=solver, random_state=0)
        .fit(read(frame, {**schema, "rows_of_a_person": each}))
        .coef_error_
        for each in (1, 4)
    ]
    np.testing.assert_allclose(errors[1], errors[0], rtol=0.15)
