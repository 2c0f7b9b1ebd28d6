"""Reports on the disk and in a database: each once, none lost, damage is told from a crash."""

import errno
import os
import sqlite3

import numpy as np
import pytest
from sqlalchemy import event

from riata.collect import segments
from riata.collect.directory import DirectoryStore, directory_records
from riata.collect.sql import DatabaseStore
from riata.collect.stores import display_address, open_store, records_at
from riata.collect.tokens import Tokens
from riata.collect.word_set import WordSet
from riata.errors import CollectError
from riata.local import Task
from riata.local.report_format import first_occurrences

TABLE = {
    "kind": "mean",
    "epsilon": 1.0,
    "features": [{"name": "hours", "kind": "number", "bounds": [0, 24]}],
}
TASK = Task.from_table(TABLE)
OTHER = Task.from_table(TABLE | {"epsilon": 2.0})


def words(*numbers):
    return np.array(numbers, dtype=np.uint64)


def held(place, task=TASK):
    return sorted(records_at(str(place), task).seeds.tolist())


@pytest.fixture(params=["directory", "sqlite"])
def place(request, tmp_path):
    return str(tmp_path / "d") if request.param == "directory" else f"sqlite:///{tmp_path}/r.db"


def test_reports_are_kept_once_and_found_again(place):
    store = open_store(place, TASK)
    assert store.add(words(5, 3, 5, 2**64 - 1)).all()
    assert store.add(words(3, 7)).all()
    assert len(store) == 4
    store.close()
    assert held(place) == [3, 5, 7, 2**64 - 1]
    again = open_store(place, TASK)
    assert len(again) == 4
    again.add(words(7, 8))
    assert len(again) == 5
    again.close()
    assert held(place) == [3, 5, 7, 8, 2**64 - 1]


def test_a_token_is_good_for_one_report(place):
    store = open_store(place, TASK)
    assert store.add(words(10), words(1)).tolist() == [True]
    assert store.add(words(11), words(1)).tolist() == [False]  # another report
    assert store.add(words(10), words(1)).tolist() == [True]  # a retry
    store.close()
    store = open_store(place, TASK)
    assert store.add(words(12), words(1)).tolist() == [False]
    assert len(store) == 1
    store.close()
    assert held(place) == [10]


def test_requests_that_race_for_a_token_in_one_batch(place):
    store = open_store(place, TASK)
    found = store.add(words(10, 11, 10, 20, 10), words(1, 1, 1, 2, 3))
    # the first wins; another report is refused; the same report is accepted each time
    assert found.tolist() == [True, False, True, True, True]
    assert len(store) == 2
    # the third token came with a report that was there: it is used
    assert store.add(words(30), words(3)).tolist() == [False]
    store.close()
    assert held(place) == [10, 20]


def test_random_requests_with_tokens_are_handled_as_one_after_another(place):
    rng = np.random.default_rng(3)
    store, reports, used = open_store(place, TASK), set(), set()
    for _ in range(30):
        n = int(rng.integers(1, 12))
        seeds = rng.integers(0, 40, n).astype(np.uint64)
        tokens = rng.integers(0, 30, n).astype(np.uint64)
        expected = []
        for seed, token in zip(seeds.tolist(), tokens.tolist(), strict=True):
            expected.append(seed in reports or token not in used)
            if expected[-1]:
                reports.add(seed)
                used.add(token)
        found = store.add(seeds, tokens).tolist()
        # in one batch a report may be accepted that stands before the one with the good token
        assert all(f or not e for f, e in zip(found, expected, strict=True))
        assert len(store) == len(reports)
    store.close()
    assert held(place) == sorted(reports)


def test_a_word_set_is_a_set():
    rng, known, reference = np.random.default_rng(1), WordSet(), set()
    for _ in range(200):
        some = rng.integers(0, 3000, rng.integers(0, 40)).astype(np.uint64)
        new = known.difference(some)
        assert set(new.tolist()) == set(some.tolist()) - reference
        known.update(some)
        reference |= set(some.tolist())
        assert len(known) == len(reference)
    every = np.arange(3000, dtype=np.uint64)
    assert set(every[known.contains(every)].tolist()) == reference


def three_frames(path):
    store = DirectoryStore(path, TASK)
    for batch in (words(1, 2, 3), words(9), words(4, 5)):
        store.add(batch)
    store.close()
    return path / "00000001.reports"


def test_a_file_cut_at_any_byte_holds_its_whole_frames(tmp_path):
    file = three_frames(tmp_path)
    whole = file.read_bytes()
    ends = [12 + 24, 2 * 12 + 32, 3 * 12 + 48]
    assert len(whole) == ends[-1]
    for size in range(len(whole) + 1):
        file.write_bytes(whole[:size])
        expected = [[], [1, 2, 3], [1, 2, 3, 9], [1, 2, 3, 4, 5, 9]][sum(size >= e for e in ends)]
        assert held(tmp_path) == expected  # while it is being written
        store = DirectoryStore(tmp_path, TASK)
        assert len(store) == len(expected)
        store.add(words(77))
        store.close()
        assert held(tmp_path) == sorted([*expected, 77])


def test_zeros_after_the_last_frame_are_of_a_crash(tmp_path):
    file = three_frames(tmp_path)
    file.write_bytes(file.read_bytes() + bytes(4096))
    store = DirectoryStore(tmp_path, TASK)
    assert len(store) == 6
    store.close()


def test_damage_at_any_byte_before_the_last_frame_is_an_error(tmp_path):
    file = three_frames(tmp_path)
    whole = bytearray(file.read_bytes())
    for at in range(12 + 24 + 12 + 8):
        damaged = whole.copy()
        damaged[at] ^= 1 << (at % 8)
        file.write_bytes(damaged)
        with pytest.raises(CollectError, match="damaged"):
            DirectoryStore(tmp_path, TASK)
        with pytest.raises(CollectError, match="damaged"):
            held(tmp_path)
        assert file.read_bytes() == damaged  # nothing was cut off
    file.write_bytes(whole)
    DirectoryStore(tmp_path, TASK).close()  # the errors let go of the lock


def test_damage_at_any_byte_of_the_last_frame_counts_nothing_wrong(tmp_path):
    file = three_frames(tmp_path)
    whole = file.read_bytes()
    for at in range(len(whole) - 28, len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x55
        file.write_bytes(damaged)
        try:
            assert held(tmp_path) == [1, 2, 3, 9]
        except CollectError:
            assert at < len(whole) - 16  # its head


def test_a_torn_file_that_is_not_the_last_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 30)
    store = DirectoryStore(tmp_path, TASK)
    for one in range(10):
        store.add(words(one, 100 + one))
    store.close()
    files = sorted(tmp_path.glob("*.reports"))
    assert len(files) == 5
    assert len(held(tmp_path)) == 20
    files[2].write_bytes(files[2].read_bytes()[:-1])
    with pytest.raises(CollectError, match="damaged"):
        DirectoryStore(tmp_path, TASK)
    with pytest.raises(CollectError, match="damaged"):
        held(tmp_path)


def test_one_process_writes_and_others_read(tmp_path):
    store = DirectoryStore(tmp_path, TASK)
    store.add(words(1))
    with pytest.raises(CollectError, match="Another process"):
        DirectoryStore(tmp_path, TASK)
    assert held(tmp_path) == [1]
    store.close()
    DirectoryStore(tmp_path, TASK).close()


def test_a_directory_belongs_to_one_task(tmp_path):
    DirectoryStore(tmp_path, TASK).close()
    with pytest.raises(CollectError, match="another task"):
        DirectoryStore(tmp_path, OTHER)
    with pytest.raises(CollectError, match="another task"):
        directory_records(tmp_path, OTHER)
    with pytest.raises(CollectError, match="holds no reports"):
        directory_records(tmp_path / "elsewhere", TASK)


def test_a_relative_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = DirectoryStore(".", TASK)
    store.add(words(1))
    store.close()
    assert held(tmp_path) == [1]


@pytest.mark.parametrize("truncates", [True, False])
@pytest.mark.parametrize("fails", ["short", "write", "fsync"])
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch, fails, truncates):
    store = DirectoryStore(tmp_path, TASK)
    store.add(words(1, 2))
    real = os.write, os.fsync, os.ftruncate

    def write(file, data):
        if fails == "write":
            raise OSError(errno.ENOSPC, "full")
        return real[0](file, data[: len(data) // 2] if fails == "short" else data)

    def refuse(*arguments):
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        if fails == "fsync":
            patch.setattr(os, "fsync", refuse)
        if not truncates:
            patch.setattr(os, "ftruncate", refuse)
        for _ in range(2):
            with pytest.raises(OSError, match=r"full|No space"):
                store.add(words(3, 4, 5))
        assert len(store) == 2
    store.add(words(5, 6))  # there is room again
    store.close()
    assert held(tmp_path) == [1, 2, 5, 6]


def test_a_full_disk_when_a_new_file_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 20)
    store = DirectoryStore(tmp_path, TASK)
    store.add(words(1, 2))
    real = os.open

    def refuse(path, flags, *mode):
        if str(path).endswith("00000002.reports"):
            raise OSError(errno.ENOSPC, "full")
        return real(path, flags, *mode)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(OSError, match="full"):
            store.add(words(3))
    store.add(words(4))
    store.close()
    assert held(tmp_path) == [1, 2, 4]


def spread(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


def test_a_file_of_sqlite_does_not_tell_the_order_either_once_it_is_closed(tmp_path):
    tokens, reports, files = spread(900, 1), spread(900, 2), []
    for seed in range(3):
        store = DatabaseStore(f"sqlite:///{tmp_path}/{seed}.db", TASK)
        order = np.random.default_rng(seed).permutation(900)
        for part in np.array_split(order, 4 * seed + 1):
            assert store.add(reports[part], tokens[part]).all()
        store.close()
        files.append((tmp_path / f"{seed}.db").read_bytes()[100:])  # its head counts changes
    assert files[0] == files[1] == files[2]


def test_keys_that_are_made_at_once_are_one(tmp_path, monkeypatch):
    real, others = os.link, []

    def slow(source, target):
        monkeypatch.undo()
        others.append(Tokens.at(tmp_path / "key", TASK.id))
        real(source, target)

    monkeypatch.setattr(os, "link", slow)
    mine = Tokens.at(tmp_path / "key", TASK.id)
    (token,) = mine.make(1)
    assert others[0].read(token) is not None
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_files_are_closed_to_other_users(tmp_path):
    store = DirectoryStore(tmp_path / "new", TASK)
    store.add(words(1), words(1))
    store.close()
    files = list((tmp_path / "new").glob("0*"))
    assert len(files) == 2
    database = DatabaseStore(f"sqlite:///{tmp_path}/r.db", TASK)
    database.add(words(1), words(1))
    database.close()
    for file in [*files, tmp_path / "r.db"]:
        assert file.stat().st_mode & 0o077 == 0


def test_a_database_that_cannot_be_used():
    for url in ("sqlite:////no/such/folder/r.db", "nonsense://x", "postgresql+nothing://x/"):
        with pytest.raises(CollectError, match="database"):
            DatabaseStore(url, TASK)
    with pytest.raises(CollectError, match=r"PostgreSQL or SQLite|cannot be used"):
        DatabaseStore("mssql+pyodbc://x/", TASK)


def test_a_database_holds_several_tasks(tmp_path):
    url = f"sqlite:///{tmp_path}/r.db"
    one, two = DatabaseStore(url, TASK), DatabaseStore(url, OTHER)
    one.add(words(1, 2))
    two.add(words(2), words(5))
    assert (len(one), len(two)) == (2, 1)
    assert held(url) == [1, 2]
    assert held(url, OTHER) == [2]
    assert one.add(words(9), words(5)).all()  # tokens of the other task are not used here
    one.close()
    two.close()


def test_a_database_error_says_nothing_of_reports_and_counts_nothing(tmp_path):
    url = f"sqlite:///{tmp_path}/r.db"
    store = DatabaseStore(url, TASK)

    @event.listens_for(store._engine, "commit")
    def fails(connection):
        raise sqlite3.OperationalError("broken")

    with pytest.raises(Exception, match="broken") as problem:
        store.add(words(123456789))
    assert "123456789" not in str(problem.value)
    assert len(store) == 0
    store.close()


def test_a_full_database_is_a_full_disk(tmp_path):
    url = f"sqlite:///{tmp_path}/r.db"
    store = DatabaseStore(url, TASK)

    @event.listens_for(store._engine, "begin")
    def small(connection):
        connection.exec_driver_sql("PRAGMA max_page_count = 10")

    with pytest.raises(OSError, match="No space") as problem:
        store.add(np.arange(100_000, dtype=np.uint64))
    assert problem.value.errno == errno.ENOSPC
    assert len(store) == 0
    store.add(words(5))
    store.close()
    assert held(url) == [5]


@pytest.mark.long
def test_many_reports_in_a_database_at_once(tmp_path):
    url = f"sqlite:///{tmp_path}/r.db"
    store = DatabaseStore(url, TASK)
    many = np.arange(12_000, dtype=np.uint64) << np.uint64(50)
    assert store.add(many, many).all()
    assert store.add(many[::-1].copy(), many).all()
    assert len(store) == 12_000
    store.close()


def test_passwords_are_not_shown():
    assert "secret" not in display_address("postgresql+psycopg://me:secret@host/db")
    assert "secret" not in display_address("://secret")
    assert display_address("some/where") == "some/where"


def test_tokens_are_signed_for_one_task(tmp_path):
    tokens = Tokens.at(tmp_path / "keys" / "key", TASK.id)
    made = tokens.make(50)
    numbers = {tokens.read(one) for one in made}
    assert None not in numbers
    assert len(numbers) == 50
    again = Tokens.at(tmp_path / "keys" / "key", TASK.id)
    assert again.read(made[0]) == tokens.read(made[0])
    assert Tokens.at(tmp_path / "keys" / "key", OTHER.id).read(made[0]) is None
    assert Tokens.at(tmp_path / "another", TASK.id).read(made[0]) is None
    assert (tmp_path / "another").stat().st_mode & 0o077 == 0
    assert all(len(one) == 32 and one.isascii() for one in made)


def test_changed_tokens_are_none(tmp_path):
    tokens = Tokens(b"k" * 32, TASK.id)
    (good,) = tokens.make(1)
    for i in range(len(good)):
        for new in "AZaz09-_=\n é\x00":
            changed = good[:i] + new + good[i + 1 :]
            assert changed == good or tokens.read(changed) is None
    for junk in ("", good[:-1], good + "A", good + "====", "=" * 32, "\ud800" * 32):
        assert tokens.read(junk) is None


def test_a_key_of_another_length_is_refused(tmp_path):
    (tmp_path / "key").write_bytes(b"short")
    with pytest.raises(CollectError, match="not a key"):
        Tokens.at(tmp_path / "key", TASK.id)


def test_first_occurrences():
    assert first_occurrences(words(3, 1, 3, 1, 2)).tolist() == [True, True, False, False, True]
