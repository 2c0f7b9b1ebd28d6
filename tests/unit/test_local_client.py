"""A device answers once, whatever it is asked and whatever happens to it."""

import concurrent.futures
import copy
import decimal
import fractions
import itertools
import json
import math
import os
import sqlite3
import subprocess
import sys
import threading
from collections import UserDict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from riata.errors import AlreadyAnswered, InvalidArgument
from riata.local import Client, Task, report_journal
from riata.local.encoding import Feature
from riata.local.questions import lift
from riata.local.randomize import choose_questions, randomize
from riata.local.report_format import from_bytes, to_bytes
from riata.local.task_fields import TaskFields
from riata.mechanisms.noise import Noise

FROZEN = json.loads((Path(__file__).parents[1] / "data/local_vectors.json").read_text())
HOURS = {"name": "hours", "kind": "number", "bounds": [0, 24]}
TABLE = {
    "kind": "linear",
    "epsilon": 1.0,
    "features": [
        HOURS,
        {"name": "smoker", "kind": "yes-no"},
        {"name": "region", "kind": "choice", "choices": ["north", "south"]},
        {"name": "counts", "kind": "vector", "size": 3, "bounds": [-1, 1]},
    ],
    "target": {"name": "pressure", "kind": "number", "bounds": [80, 200]},
}
ROW = {"hours": 7, "smoker": "yes", "region": "south", "counts": [1, 0, -1], "pressure": 120}


@pytest.fixture(params=[{"joint": 1.0}, {"gram": 0.5, "cross": 0.5}], ids=["joint", "split"])
def task(request):
    return Task.from_table({**TABLE, "arms": request.param})


@pytest.fixture
def mean():
    return Task.from_table({"kind": "mean", "epsilon": 1.0, "features": [HOURS], "cap": 3})


# What is sent


def test_a_report_is_eight_bytes_of_an_arm(task):
    report = Client(task).report(ROW)
    assert type(report) is bytes
    assert len(report) == 8


def test_devices_draw_with_the_randomness_of_the_system(task):
    reports = {Client(task).report(ROW) for _ in range(20)}
    assert len(reports) == 20
    assert Client(task, random_state=1).report(ROW) == Client(task, random_state=1).report(ROW)


def test_which_arm_answers_depends_on_the_words_alone(task):
    words = Noise(3).words(1000)
    rows = np.zeros((1000, task.encoding.columns))
    one = randomize(task, rows, np.zeros(1000), Noise(3))
    other = randomize(task, rows + 0.3, np.ones(1000), Noise(3))
    arms = choose_questions(task, words)
    assert np.array_equal(choose_questions(task, one), arms)
    assert np.array_equal(choose_questions(task, other), arms)


def test_reports_travel_most_significant_byte_first():
    seeds = np.array([1, 2**63 + 5], dtype=np.uint64)
    assert to_bytes(seeds).hex() == "0000000000000001" + "8000000000000005"
    assert np.array_equal(from_bytes(to_bytes(seeds) + b"abc"), seeds)


# Sending again


def test_a_retry_is_the_same_bytes_whatever_the_row(task):
    client = Client(task)
    first = client.report(ROW)
    assert client.report(ROW) == first
    assert client.report({}) == first
    assert client.report(ROW, 199.0) == first


def test_a_ledger_remembers_after_a_restart(task, tmp_path):
    first = Client(task, ledger=tmp_path / "sent").report(ROW)
    assert Client(task, ledger=tmp_path / "sent").report({"hours": 1}) == first
    assert Client(task, ledger=str(tmp_path / "sent")).report(ROW) == first
    assert os.listdir(tmp_path) == ["sent"]


def test_one_ledger_keeps_tasks_apart(task, mean, tmp_path):
    one = Client(task, ledger=tmp_path / "sent").report(ROW)
    other = Client(mean, ledger=tmp_path / "sent").report(ROW)
    assert Client(task, ledger=tmp_path / "sent").report(ROW) == one
    assert Client(mean, ledger=tmp_path / "sent").report(ROW) == other
    assert one != other


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_the_cap_holds(mean, tmp_path, where):
    client = Client(mean, ledger=tmp_path / "sent" if where == "disk" else None)
    reports = [client.report(ROW, occasion=i) for i in (1, 2, 3)]
    assert len(set(reports)) == 3
    assert [client.report(ROW, occasion=i) for i in (1, 2, 3)] == reports
    for beyond in (0, -1, 4, 10**30):
        with pytest.raises(AlreadyAnswered, match="cap is 3"):
            client.report(ROW, occasion=beyond)


@pytest.mark.parametrize("between", [1.5, 1.0, "1", None, math.nan, [1]])
def test_there_are_no_occasions_between_others(mean, between):
    with pytest.raises(InvalidArgument, match="whole number"):
        Client(mean).report(ROW, occasion=between)


def test_other_ways_to_say_one_are_the_same_occasion(mean, tmp_path):
    client = Client(mean, ledger=tmp_path / "sent")
    assert client.report(ROW) == client.report(ROW, occasion=np.int64(1))
    assert client.report(ROW) == client.report(ROW, occasion=True)


def test_a_seeded_client_refuses_a_ledger(mean, tmp_path):
    with pytest.raises(InvalidArgument, match="protect nobody"):
        Client(mean, ledger=tmp_path / "sent", random_state=1)


def test_a_copy_of_a_client_sends_the_same(mean):
    client = Client(mean)
    assert copy.copy(client).report(ROW) == client.report(ROW)


# What can happen to a device


def test_nothing_leaves_that_was_not_remembered(mean, tmp_path, monkeypatch):
    """A disk that fails between drawing and writing: nothing is sent, now or at the next try."""
    client = Client(mean, ledger=tmp_path / "sent")

    def full(self, *arguments):
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(report_journal.FileJournal, "_create", full)
        for _ in range(2):
            with pytest.raises(InvalidArgument, match="no report was made"):
                client.report(ROW)
    assert not (tmp_path / "sent").exists()
    first = client.report(ROW)
    assert Client(mean, ledger=tmp_path / "sent").report(ROW) == first


def test_a_ledger_that_cannot_be_written_makes_no_report(mean, tmp_path):
    with pytest.raises(InvalidArgument, match="cannot be created"):
        Client(mean, ledger=tmp_path / "missing" / "sent").report(ROW)


def test_a_process_that_dies_before_it_remembered_has_sent_nothing(mean, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def die(*arguments):
        raise Killed

    client = Client(mean, ledger=tmp_path / "sent")
    with monkeypatch.context() as broken:
        broken.setattr(report_journal.os, "link", die)
        with pytest.raises(Killed):
            client.report(ROW)
    assert os.listdir(tmp_path) == []
    assert client.report(ROW) == Client(mean, ledger=tmp_path / "sent").report(ROW)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"{}",
        lambda data: data[:50],
        lambda data: data[: len(data) // 2],
        lambda data: bytes(len(data)),
        lambda data: b"x" + data[1:],
    ],
    ids=["empty", "another file", "cut early", "cut", "zeros", "first byte"],
)
def test_a_damaged_ledger_is_never_taken_for_a_new_one(mean, tmp_path, damage):
    file = tmp_path / "sent"
    client = Client(mean, ledger=file)
    client.report(ROW)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.raises(InvalidArgument, match="Do not report again"):
        Client(mean, ledger=file)
    for occasion in (1, 2):
        with pytest.raises(InvalidArgument, match="Do not report again"):
            client.report(ROW, occasion=occasion)


def test_a_remembered_report_of_another_length_is_damage(mean, tmp_path):
    file = tmp_path / "sent"
    Client(mean, ledger=file).report(ROW)
    for wrong in (b"short", b"nine byte", "8 letters"):
        with sqlite3.connect(file) as ledger:
            ledger.execute("UPDATE report SET report = ?", (wrong,))
        ledger.close()
        with pytest.raises(InvalidArgument, match="Do not report again"):
            Client(mean, ledger=file)


def test_two_clients_that_do_not_know_of_each_other_send_the_same(mean, tmp_path):
    """Both look before either writes; only the first is believed."""
    one, other = (Client(mean, ledger=tmp_path / "sent") for _ in range(2))
    draws = []
    for client in (one, other):
        draw = client._draw
        client._draw = lambda *row, draw=draw: draws.append(draw(*row)) or draws[-1]
    inner, between = one._draw, []
    one._draw = lambda *row: between.append(other.report(ROW)) or inner(*row)
    assert one.report(ROW) == between[0] == other.report(ROW)
    assert len(set(draws)) == 2


PROCESS = """
import sys
from riata.local import Client, Task
task, ledger = Task.load(sys.argv[1]), sys.argv[2]
client = Client(task, ledger=ledger)
print("ready", flush=True)
sys.stdin.readline()
print(client.report({"hours": 3}).hex(), flush=True)
"""


@pytest.mark.long
def test_processes_at_the_same_time_send_the_same(mean, tmp_path):
    mean.save(tmp_path / "task.json")
    command = [sys.executable, "-c", PROCESS, str(tmp_path / "task.json"), str(tmp_path / "sent")]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("\n")
        process.stdin.flush()
    reports = {process.communicate()[0] for process in running}
    assert len(reports) == 1
    assert len(reports.pop()) == 17


LOOP = """
import sys
from riata.local import Client, Task
task = Task.load(sys.argv[1])
for number in range(10**6):
    report = Client(task, ledger=f"{sys.argv[2]}/{number}").report({"hours": 3})
    print(number, report.hex(), flush=True)
"""


def test_what_a_killed_process_sent_is_remembered(mean, tmp_path):
    mean.save(tmp_path / "task.json")
    command = [sys.executable, "-c", LOOP, str(tmp_path / "task.json"), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = [process.stdout.readline() for _ in range(20)]
        process.kill()
        lines += process.stdout.readlines()
    sent_before = [line.split() for line in lines if line.endswith("\n")]
    assert len(sent_before) >= 20
    for number, report in sent_before:
        assert Client(mean, ledger=tmp_path / number).report(ROW).hex() == report
    # The one after them died somewhere on the way: it is remembered, or it was never made.
    next_one = tmp_path / str(len(sent_before))
    assert len(Client(mean, ledger=next_one).report(ROW)) == 8


def test_a_file_system_without_links_can_hold_a_ledger(mean, tmp_path, monkeypatch):
    def none(*arguments):
        raise PermissionError("no links")

    monkeypatch.setattr(report_journal.os, "link", none)
    first = Client(mean, ledger=tmp_path / "sent").report(ROW)
    assert Client(mean, ledger=tmp_path / "sent").report(ROW) == first
    assert os.listdir(tmp_path) == ["sent"]


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_threads_at_the_same_time_send_the_same(mean, tmp_path, where):
    client = Client(mean, ledger=tmp_path / "sent" if where == "disk" else None)
    together = threading.Barrier(4)

    def report(_):
        together.wait()
        return client.report(ROW)

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(report, range(4)))) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_forked_devices_draw_with_keys_of_their_own(mean):
    client = Client(mean)
    client.report(ROW, occasion=2)  # the noise has a key
    reports = []
    for _ in range(2):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, client.report(ROW))
            os._exit(0)
        os.close(write)
        reports.append(os.read(read, 8))
        os.close(read)
        os.waitpid(child, 0)
    assert len({*reports, client.report(ROW)}) == 3


# What a row may hold


class Rude:
    def __float__(self):
        raise ZeroDivisionError

    def __eq__(self, other):
        raise ValueError

    __hash__ = None


ODD = [
    None, math.nan, math.inf, -math.inf, 10**400, -(10**400), 1e308, "", "abc", "nan", "1e999",
    b"1", bytearray(b"12"), True, [], [1], [[1, 2], [3]], (), {}, {"a": 1}, {1, 2}, object(),
    Rude(), 1j, decimal.Decimal("NaN"), decimal.Decimal("sNaN"), decimal.Decimal("1e9999"),
    fractions.Fraction(10**400, 3), np.float32(3), np.int8(-5), np.nan, np.array(3.0), np.array([]),
    np.array([1.0, np.nan]), np.array([[1, 2], [3, 4]]), np.array(["a", "b"]), np.array([None, 2]),
    np.array([[1], 2], dtype=object), np.datetime64("2020-01-01"), range(5), iter([1]),
    "\ud800", "\u0661",
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ODD)))
def test_no_answer_stops_a_device(task, number):
    odd = ODD[number]
    for name in ROW:
        report = Client(task, random_state=0).report({**ROW, name: odd})
        assert len(report) == 8
    for feature in (*task.encoding.features, task.target):
        encoded = feature.encode(odd)
        assert encoded.shape == (feature.columns,)
        assert np.isfinite(encoded).all()
        assert np.linalg.norm(encoded) <= feature.longest * (1 + 1e-15)
    row = task.encoding.encode(dict.fromkeys(ROW, odd))
    for question in task.questions:
        prepared = question.prepare(task.vectors(row[None]), task.target.encode(odd))
        assert np.linalg.norm(prepared) <= 1 + 1e-15
        assert np.linalg.norm(lift(prepared)) == pytest.approx(1.0, abs=1e-14)


def test_answers_outside_the_bounds_are_clipped():
    hours = Feature("hours", "number", (0.0, 24.0), 12.0)
    for inside, outside in ((24, 25), (24, math.inf), (24, 10**400), (0, -1), (0, -(10**400))):
        assert hours.encode(outside) == hours.encode(inside)
    assert hours.encode("25") == hours.encode(24) == 1.0
    assert hours.encode("-1e999") == hours.encode(-math.inf) == hours.encode(0) == -1.0


def test_missing_answers_are_neutral():
    hours = Feature("hours", "number", (0.0, 24.0), 8.0)
    assert hours.encode(None) == hours.encode(math.nan) == hours.encode("?") == hours.encode(8) == 0
    region = Feature("region", "choice", choices=("north", "south"))
    assert region.encode("east").tolist() == region.encode(None).tolist() == [0, 0]
    assert region.encode("south").tolist() == [0, 1]


@pytest.mark.parametrize("yes", ["yes", "Yes", " TRUE ", True, 1, 1.0, np.True_, "1"])
def test_yes_is_said_in_many_ways(yes):
    smoker = Feature("smoker", "yes-no")
    assert smoker.encode(yes) == 1.0
    assert smoker.encode({True: "no", False: False}[isinstance(yes, str)]) == -1.0
    assert smoker.encode("perhaps") == 0.0


def test_a_vector_may_be_short_or_long():
    counts = Feature("counts", "vector", (-1.0, 1.0), 0.0, size=3)
    assert counts.encode([1]).tolist() == [1, 0, 0]
    assert counts.encode(np.array([1, 1, 1, 1])).tolist() == [1, 1, 1]
    assert counts.encode(range(5)).tolist() == [0, 1, 1]


def test_rows_may_be_mappings_or_sequences(task):
    as_list = task.encoding.encode([7, "yes", "south", [1, 0, -1]])
    assert np.array_equal(task.encoding.encode(ROW), as_list)
    assert np.array_equal(task.encoding.encode(UserDict(ROW)), as_list)
    one, other = Client(task, random_state=4), Client(task, random_state=4)
    assert one.report(UserDict(ROW)) == other.report(list(ROW.values())[:4], 120)
    for wrong in ([1, 2], 5, None, np.zeros(9)):
        with pytest.raises(InvalidArgument, match="4"):
            task.encoding.encode(wrong)


def test_one_vector_may_be_the_row():
    vector = {"name": "v", "kind": "vector", "size": 2, "bounds": [-1, 1]}
    task = Task.from_table({"kind": "mean", "epsilon": 1.0, "features": [vector]})
    assert np.array_equal(task.encoding.encode([1, 1]), task.encoding.encode({"v": [1, 1]}))
    assert task.encoding.encode({}).tolist() == [0, 0]


def test_many_rows_are_encoded_as_one():
    features = [TABLE["features"][i] for i in (0, 1, 3)]
    task = Task.from_table({**TABLE, "features": features})
    rows = np.random.default_rng(0).normal(0, 20, (50, 5))
    rows[3, 2] = np.nan
    one_by_one = [task.encoding.encode([r[0], r[1], r[2:]]) for r in rows]
    assert np.array_equal(task.encoding.encode_array(rows), one_by_one)
    with pytest.raises(InvalidArgument, match="5 columns"):
        task.encoding.encode_array(rows[:, :4])


def test_numbers_do_not_say_which_choice_they_mean(task):
    with pytest.raises(InvalidArgument, match="choices"):
        task.encoding.encode_array(np.zeros((1, task.encoding.columns)))


@pytest.mark.parametrize("kind", ["linear", "logistic", "kernel", "mean", "sparse-linear"])
@pytest.mark.parametrize("size", [1, 7, 2100])
def test_directions_have_length_one(kind, size):
    table = {
        "kind": kind,
        "epsilon": 1.0,
        "features": [{"name": "v", "kind": "vector", "size": size, "bounds": [-1e60, 1e60]}],
        "length": 1e-60,
    }
    if kind != "mean":
        table["target"] = {"name": "t", "kind": "yes-no"}
    task = Task.from_table(table)
    rng = np.random.default_rng(1)
    rows = [np.full(size, 1e60), np.full(size, 1e-60), np.zeros(size), rng.normal(size=size) * 1e59]
    seeds = np.arange(4, dtype=np.uint64)
    for row, target in itertools.product(rows, (-1.0, 0.0, 1.0)):
        vectors = task.vectors(task.encoding.encode({"v": row})[None])
        for question in task.questions:
            prepared = question.prepare(vectors, np.array([target]))
            directions = question.directions(
                np.repeat(prepared, 4, axis=0), question.seeds_from(seeds)
            )
            assert directions.shape == (4, question.channel.size)
            lengths = np.linalg.norm(directions, axis=1)
            assert np.abs(lengths - 1.0).max() <= (question.channel.size + 3) * 2.0**-53


def test_texts_are_read_as_the_frozen_ones_and_only_decimal_ones_are_numbers():
    for one in FROZEN["answers"]:
        feature = Feature.read(TaskFields(one["feature"]))
        for text, encoded in zip(one["texts"], one["encoded"], strict=True):
            assert feature.encode(text).tolist() == [encoded], text
            assert feature.encode(np.str_(text)).tolist() == [encoded], text
    number = dict(zip(one["texts"], FROZEN["answers"][0]["encoded"], strict=True))
    for text in ("", "५", "\uff11\uff12", "1_000", "0x10", "Infinity", "nan", "1,5", "\u00a01"):
        assert number[text] == 0.0, text
    for text in ("7", " 1 ", "1e3", "+1", "-0", "1.", ".5"):
        feature = Feature.read(TaskFields(FROZEN["answers"][0]["feature"]))
        assert number[text] == feature.encode(float(text))[0] != 0.0, text


def test_columns_are_encoded_as_rows_are():
    encoding = Task.from_table(TABLE).encoding
    odd = [one for one in ODD if one is None or isinstance(one, str | float | int)]
    numbers = np.array([0.0, 7.5, 25, -3, math.nan, math.inf, -math.inf])
    texts = np.array(["yes", " 7", "south", "north", "1e3", "", "५"])
    mixed = np.empty(len(odd), dtype=object)
    mixed[:] = odd
    vectors = np.arange(21.0).reshape(7, 3) / 9 - 1
    cases = [
        {"hours": numbers, "smoker": numbers, "region": texts, "counts": vectors},
        {"hours": texts, "smoker": texts, "region": texts, "counts": vectors[:, :2]},
        {"hours": mixed, "smoker": mixed, "region": mixed, "counts": mixed},
        {"hours": numbers.tolist(), "region": numbers, "counts": numbers},
        {"smoker": numbers > 0, "more": 3},
        {"hours": np.zeros(0), "region": np.zeros(0, "U3")},
    ]
    for columns in cases:
        n = len(next(iter(columns.values())))
        known = {name: one for name, one in columns.items() if name in ROW}
        rows = [{name: one[i] for name, one in known.items()} for i in range(n)]
        expected = np.array([encoding.encode(row) for row in rows]).reshape(n, encoding.columns)
        assert np.array_equal(encoding.encode_columns(columns), expected)
    frame = pd.DataFrame({"hours": numbers, "region": texts})
    expected = encoding.encode_columns({"hours": numbers, "region": texts})
    assert np.array_equal(encoding.encode_columns(frame), expected)
    frame["region"] = frame["region"].astype("category")
    assert np.array_equal(encoding.encode_columns(frame), expected)


@pytest.mark.parametrize("columns", [{}, {"hours": [1, 2], "smoker": [1]}, {"hours": 3}])
def test_columns_without_a_common_length_are_refused(columns):
    with pytest.raises(InvalidArgument, match="common length"):
        Task.from_table(TABLE).encoding.encode_columns(columns)
