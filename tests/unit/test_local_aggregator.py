"""Nothing that is sent or stands in a file stops the aggregator, and nothing counts twice."""

import datetime
import io
import math
import os
import zipfile

import numpy as np
import pytest

from riata.errors import InvalidArgument
from riata.local import Aggregator, Client, Task, solve_together
from riata.local.aggregator import _BATCH
from riata.local.duplicate_filter import DuplicateFilter
from riata.local.randomize import choose_questions, randomize
from riata.local.report_format import to_bytes
from riata.mechanisms.noise import Noise

TABLE = {
    "kind": "linear",
    "epsilon": 2.0,
    "features": [{"name": "v", "kind": "vector", "size": 5, "bounds": [-1, 1]}],
    "target": {"name": "t", "kind": "yes-no"},
    "deadline": "2027-01-31",
    "arms": {"gram": 0.5, "cross": 0.5},
}
TASK = Task.from_table(TABLE)
WIDE = Task.from_table(
    {**TABLE, "kind": "sparse-linear", "features": [{**TABLE["features"][0], "size": 5000}]}
)
SEEDS = np.random.default_rng(1).integers(0, 2**64, 600, dtype=np.uint64)


def same(one, other):
    """Whether two aggregators hold the same, up to the order of additions."""
    assert one.task == other.task
    assert one.rejected == other.rejected
    for name, sums in one.sums.items():
        twin = other.sums[name]
        assert sums.count == twin.count
        assert sums.squares == pytest.approx(twin.squares, rel=1e-12)
        np.testing.assert_allclose(sums.total, twin.total, rtol=1e-11, atol=1e-11)
        if sums._seeds is not None:
            assert np.array_equal(np.sort(sums.seeds), np.sort(twin.seeds))
    return True


# Forms of reports


@pytest.mark.parametrize(
    "form",
    [
        lambda seeds: seeds,
        lambda seeds: seeds.astype(">u8"),
        lambda seeds: seeds.reshape(2, -1),
        lambda seeds: np.repeat(seeds, 2)[::2],
        to_bytes,
        lambda seeds: bytearray(to_bytes(seeds)),
        lambda seeds: memoryview(to_bytes(seeds)),
        lambda seeds: memoryview(np.frombuffer(to_bytes(seeds), np.uint8).repeat(2))[::2],
        lambda seeds: [to_bytes(seed[None]) for seed in seeds.reshape(-1, 1)[:, 0]],
        lambda seeds: (bytearray(to_bytes(seeds[i : i + 1])) for i in range(len(seeds))),
        lambda seeds: np.array([to_bytes(s[None]) for s in seeds[:, None][:, 0]], dtype=object),
    ],
    ids=["array", "other order", "two rows", "strided", "bytes", "bytearray", "memoryview",
         "strided memoryview", "list", "generator", "objects"],
)  # fmt: skip
def test_all_forms_of_the_same_reports_count_the_same(form):
    assert same(Aggregator(TASK).add(form(SEEDS)), Aggregator(TASK).add(SEEDS))


BAD = {
    "nothing": (None, 1),
    "a number": (5, 1),
    "nan": (math.nan, 1),
    "text": ("a" * 16, 1),
    "a table": ({"seed": 5}, 1),
    "an object": (object(), 1),
    "no bytes": (b"", 0),
    "an empty list": ([], 0),
    "an empty array": (np.zeros(0), 0),
    "an empty array of seeds": (np.zeros(0, np.uint64), 0),
    "seven bytes": (b"1234567", 1),
    "nothing in a list": ([None], 1),
    "short and long reports": ([b"", b"1234567", b"123456789"], 3),
    "text in a list": (["12345678"], 1),
    "numbers in a list": ([1, 2.5, 10**400, True], 4),
    "lists in a list": ([[b"12345678"], ()], 2),
    "arrays in a list": ([np.zeros(8, np.uint8), np.uint64(7)], 2),
    "floats": (np.array([1.5, math.nan, math.inf]), 3),
    "signed": (np.array([-1, 5]), 2),
    "smaller words": (np.array([1, 2, 3], np.uint32), 3),
    "bools": (np.array([True]), 1),
    "texts": (np.array(["12345678"]), 1),
    "fixed bytes": (np.array([b"12345678"]), 1),
    "dates": (np.array(["2020-01-01"], dtype="M8[D]"), 1),
    "records": (np.zeros(2, dtype=[("a", "u8")]), 2),
    "objects": (np.array([None, "x", 5], dtype=object), 3),
    "a number without a shape": (np.array(1.5), 1),
}


@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_report_is_counted_as_malformed(bad):
    sent, count = BAD[bad]
    aggregator = Aggregator(TASK).add(SEEDS)
    aggregator.add(sent)
    assert aggregator.rejected == {"repeated": 0, "malformed": count, "wrong task": 0, "late": 0}
    assert aggregator.count == len(SEEDS)
    assert same(Aggregator(TASK).add(SEEDS).add(sent), aggregator)


def test_good_reports_among_bad_ones_count():
    reports = [to_bytes(SEEDS[:1]), None, b"short", to_bytes(SEEDS[1:2]), 7]
    aggregator = Aggregator(TASK).add(reports)
    assert aggregator.count == 2
    assert aggregator.rejected["malformed"] == 3


def test_a_cut_off_stream_loses_its_last_report_only():
    aggregator = Aggregator(TASK).add(to_bytes(SEEDS)[:-1])
    assert aggregator.count == len(SEEDS) - 1
    assert aggregator.rejected["malformed"] == 1


def test_long_streams_are_read_in_parts():
    seeds = np.arange(_BATCH + 5, dtype=np.uint64) << np.uint64(40)
    one = Aggregator(TASK).add(seeds)
    other = Aggregator(TASK).add(to_bytes(seeds[i : i + 1]) for i in range(len(seeds)))
    assert one.count + one.rejected["repeated"] == len(seeds)
    assert other.count + other.rejected["repeated"] == len(seeds)
    assert one.rejected["repeated"] <= 20


@pytest.mark.parametrize(
    "task", ["", "f" * 64, TASK.id[:-1], TASK.id.upper(), 5, np.arange(3), b""]
)
def test_reports_of_another_task_are_counted_and_left_out(task):
    aggregator = Aggregator(TASK).add(SEEDS, task=task)
    assert aggregator.rejected["wrong task"] == len(SEEDS)
    assert aggregator.count == 0
    assert aggregator.add(SEEDS, task=TASK.id).count == len(SEEDS)


def test_late_reports_are_counted_and_left_out():
    aggregator = Aggregator(TASK).add(SEEDS, today=datetime.date(2027, 2, 1))
    assert aggregator.rejected["late"] == len(SEEDS)
    assert aggregator.count == 0
    assert aggregator.add(SEEDS, today=datetime.datetime(2027, 1, 31, 23)).count == len(SEEDS)


@pytest.mark.parametrize("expected", [0, -1, 1.5, "9", None, True, 10**30])
def test_the_expected_number_is_checked(expected):
    with pytest.raises(InvalidArgument, match="expected="):
        Aggregator(TASK, expected=expected)


# Repeats


def test_repeats_within_a_call_and_between_calls_count_once():
    aggregator = Aggregator(TASK).add(np.concatenate([SEEDS, SEEDS[:100]]))
    assert aggregator.count == len(SEEDS)
    assert aggregator.rejected["repeated"] == 100
    aggregator.add(to_bytes(SEEDS))
    assert aggregator.rejected["repeated"] == 100 + len(SEEDS)
    assert aggregator.count == len(SEEDS)


def test_repeats_are_noticed_after_saving_and_merging(tmp_path):
    one = Aggregator(TASK).add(SEEDS[:300])
    one.save(tmp_path / "sums")
    merged = Aggregator(TASK).add(SEEDS[300:]).merge(Aggregator.load(tmp_path / "sums"))
    merged.save(tmp_path / "sums")
    for aggregator in (merged, Aggregator.load(tmp_path / "sums")):
        aggregator.add(SEEDS)
        assert aggregator.count == len(SEEDS)
        assert aggregator.rejected["repeated"] == len(SEEDS)


def test_a_filter_beyond_its_size_loses_reports_but_never_counts_twice():
    seen = DuplicateFilter(1)
    seeds = np.random.default_rng(2).integers(0, 2**64, 2000, dtype=np.uint64)
    seen.add(seeds)
    assert seen.contains(seeds).all()
    assert not seen.add(seeds).any()


def test_few_new_reports_are_taken_for_repeats():
    # At most 2.5 in 10,000 at the expected number; 100 of 40,000 has probability below 1e-20.
    seen = DuplicateFilter(40_000)
    new = seen.add(np.random.default_rng(3).integers(0, 2**64, 40_000, dtype=np.uint64))
    assert 40_000 - new.sum() < 100


# Merging and keeping


@pytest.mark.parametrize("task", [TASK, WIDE], ids=["sums", "seeds"])
@pytest.mark.parametrize("cuts", [[300], [1, 2, 599], [0, 600]])
def test_parts_merge_to_the_whole(task, cuts):
    seeds = SEEDS if task is TASK else SEEDS[:60]
    parts = [Aggregator(task).add(part) for part in np.split(seeds, cuts)]
    for i, part in enumerate(parts):
        part.add([None] * i)
    merged = Aggregator(task)
    for part in parts:
        merged.merge(part)
    whole = Aggregator(task).add(seeds).add([None] * sum(range(len(parts))))
    assert same(merged, whole)


def test_only_the_same_task_can_be_merged():
    with pytest.raises(InvalidArgument, match="different tasks"):
        Aggregator(TASK).merge(Aggregator(WIDE))


def test_nothing_is_merged_twice(tmp_path):
    one, other = Aggregator(TASK).add(SEEDS[:10]), Aggregator(TASK).add(SEEDS[10:20])
    other.save(tmp_path / "other")
    one.merge(other)
    for again in (one, other, Aggregator.load(tmp_path / "other")):
        with pytest.raises(InvalidArgument, match="twice"):
            one.merge(again)
    with pytest.raises(InvalidArgument, match="twice"):
        other.merge(one)
    assert one.count == 20


@pytest.mark.parametrize("task", [TASK, WIDE], ids=["sums", "seeds"])
def test_what_was_saved_is_loaded(task, tmp_path):
    aggregator = Aggregator(task, expected=5000).add(SEEDS[:50]).add([None, b""]).add(SEEDS[:3])
    aggregator.save(tmp_path / "sums.riata")
    loaded = Aggregator.load(tmp_path / "sums.riata")
    assert same(loaded, aggregator)
    assert loaded.rejected == {"repeated": 3, "malformed": 2, "wrong task": 0, "late": 0}
    assert same(loaded.add(SEEDS[50:60]), aggregator.add(SEEDS[50:60]))
    assert os.listdir(tmp_path) == ["sums.riata"]


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    aggregator = Aggregator(TASK).add(SEEDS[:10])
    aggregator.save(tmp_path / "sums")

    def full(file, **arrays):
        file.write(b"half")
        raise OSError("no room")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no room"):
        aggregator.add(SEEDS[10:]).save(tmp_path / "sums")
    assert Aggregator.load(tmp_path / "sums").count == 10


def changed(**arrays):
    """The bytes of a saved aggregator with some arrays replaced, or left out."""

    def change(path):
        with np.load(path) as file:
            held = {key: file[key] for key in file.files}
        held = {key.replace("/", "__"): value for key, value in held.items()} | arrays
        kept = {k.replace("__", "/"): v for k, v in held.items() if v is not None}
        with path.open("wb") as stream:
            np.savez(stream, **kept)

    return change


def overwritten(change):
    return lambda path: path.write_bytes(change(path.read_bytes()))


def a_pickle(path):
    with path.open("wb") as stream:
        np.savez(stream, task=np.array([print], dtype=object))


def one_array(path):
    with path.open("wb") as stream:
        np.save(stream, np.zeros(3))


def a_bomb(path):
    """An array that claims to be larger than any memory."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (2**50,)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("task.npy", header.getvalue())


TAMPERED = {
    "empty": overwritten(lambda data: b""),
    "no archive": overwritten(lambda data: b"x" * 500),
    "cut": overwritten(lambda data: data[: len(data) // 2]),
    "a flipped byte": overwritten(lambda data: data[:5000] + bytes([data[5000] ^ 1]) + data[5001:]),
    "one array": one_array,
    "a pickle": a_pickle,
    "a bomb": a_bomb,
    "no task": changed(task=None),
    "a task of other bytes": changed(task=np.frombuffer(b"{}", np.uint8)),
    "a task with another size": changed(
        task=np.frombuffer(
            Task.from_table({**TABLE, "features": [{**TABLE["features"][0], "size": 4}]}).canonical,
            np.uint8,
        )
    ),
    "no count": changed(gram__count=None),
    "a count below 0": changed(gram__count=np.array(-1)),
    "a count of half a report": changed(gram__count=np.array(1.5)),
    "many counts": changed(gram__count=np.arange(3)),
    "a count as text": changed(gram__count=np.array("5")),
    "sums of another shape": changed(gram__sums=np.zeros(49)),
    "sums of another type": changed(gram__sums=np.zeros((7, 7), complex)),
    "sums that are not finite": changed(cross__sums=np.full(7, np.nan)),
    "squares below 0": changed(cross__squares=np.array(-1.0)),
    "squares that are not finite": changed(cross__squares=np.array(np.inf)),
    "rejected below 0": changed(rejected=np.array([0, -1, 0, 0])),
    "rejected too short": changed(rejected=np.array([0])),
    "rejected as text": changed(rejected=np.array(["a", "b", "c", "d"])),
    "no filter": changed(expected=np.array([], int)),
    "a filter for nobody": changed(expected=np.array([0])),
    "a filter beyond memory": changed(expected=np.array([2**60])),
    "more filters than there are": changed(expected=np.array([1_000_000, 1_000_000])),
    "a filter of another size": changed(seen__0=np.zeros(16, np.uint64)),
    "a filter of another type": changed(seen__0=np.zeros(1 << 19)),
    "keys of another size": changed(seen_keys__0=np.zeros(3, np.uint64)),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_a_damaged_file_is_an_error_and_nothing_else(how, tmp_path):
    path = tmp_path / "sums"
    Aggregator(TASK).add(SEEDS).save(path)
    TAMPERED[how](path)
    with pytest.raises(InvalidArgument, match="cannot be read"):
        Aggregator.load(path)


def test_seeds_that_are_kept_must_be_as_many_as_were_counted(tmp_path):
    path = tmp_path / "sums"
    Aggregator(WIDE).add(SEEDS[:20]).save(path)
    changed(gram__seeds=SEEDS[:3])(path)
    with pytest.raises(InvalidArgument, match="cannot be read"):
        Aggregator.load(path)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(InvalidArgument, match="cannot be read"):
        Aggregator.load(tmp_path / "none")


# Sums


def test_sums_are_those_of_the_normal_vectors():
    aggregator = Aggregator(TASK).add(SEEDS)
    first = choose_questions(TASK, SEEDS) == 0
    assert np.array_equal(first, np.array([int(seed) < 2**63 for seed in SEEDS]))
    gram, cross = (TASK.generator.normals(SEEDS[question], 7) for question in (first, ~first))
    np.testing.assert_allclose(aggregator.sums["gram"].total, gram.T @ gram, rtol=1e-12, atol=1e-9)
    np.testing.assert_allclose(aggregator.sums["cross"].total, cross.sum(axis=0), atol=1e-10)
    assert aggregator.sums["gram"].squares == pytest.approx((gram**2).sum())
    assert aggregator.sums["cross"].squares == pytest.approx((cross**2).sum())
    assert [aggregator.sums[question].count for question in ("gram", "cross")] == [
        len(gram),
        len(cross),
    ]


def test_stored_seeds_give_the_same_matrix_as_sums():
    narrow = Task.from_table({**TABLE, "kind": "sparse-linear"})
    sums = Aggregator(narrow).add(SEEDS).sums["gram"]
    stored = type(sums)(sums.question, narrow.generator, stores_seeds=True)
    stored.add(SEEDS[choose_questions(narrow, SEEDS) == 0])
    places = np.array([4, 0, 2])
    np.testing.assert_allclose(stored.matrix(places)[0], sums.matrix()[0][np.ix_(places, places)])


def test_an_empty_aggregator_estimates_without_dividing_by_nothing():
    for sums in Aggregator(TASK).sums.values():
        assert sums.honesty() is None
    vector, noise = Aggregator(TASK).sums["cross"].vector()
    assert not vector.any()
    assert math.isfinite(noise)
    matrix, noise = Aggregator(TASK).sums["gram"].matrix()
    assert np.isfinite(matrix).all()
    assert Aggregator(WIDE).sums["gram"].matrix(np.arange(3))[0].shape == (3, 3)


def test_a_threshold_of_zero_says_nothing_about_honesty():
    table = Task.from_table({"kind": "mean", "epsilon": 0.5, "features": TABLE["features"]}).table()
    table["arms"]["mean"]["threshold"] = 0.0
    assert Aggregator(Task.from_table(table)).add(SEEDS).honesty() == {}


def test_what_a_client_sends_is_counted():
    aggregator = Aggregator(TASK)
    reports = [Client(TASK).report([1, 0, 0, 0, 0], True) for _ in range(10)]
    assert aggregator.add(reports, task=TASK.id).count == 10
    assert aggregator.add(reports).rejected["repeated"] == 10


# Epsilons of one's own


def test_people_with_their_own_epsilon_make_one_model():
    features = [{"name": "v", "kind": "vector", "size": 3, "bounds": [-1, 1]}]
    base = Task.from_table({"kind": "mean", "epsilon": 1.0, "features": features, "length": 1.0})
    tasks = base.with_epsilons([0.5, 4.0])
    assert [task.epsilon for task in tasks.values()] == [0.5, 4.0]
    assert len({task.id for task in tasks.values()}) == 2
    row = np.array([0.5, -0.3, 0.1])
    parts = []
    for seed, task in enumerate(tasks.values()):
        sent = randomize(task, np.repeat(row[None], 3000, axis=0), None, Noise(seed))
        parts.append(Aggregator(task).add(sent))
    model = solve_together(parts)
    means, noises = zip(*(one.sums["mean"].vector() for one in parts), strict=True)
    weights = np.array(noises) ** -2.0
    np.testing.assert_allclose(model.theta, weights @ np.array(means) / weights.sum())
    assert model.theta_errors[0] == pytest.approx(weights.sum() ** -0.5)
    assert model.theta_errors[0] < min(noises)
    assert model.reports == sum(one.count for one in parts)
    assert model.privacy.epsilon == 4.0
    alone = solve_together([parts[1], Aggregator(tasks[0.5])])  # nobody chose the other one
    np.testing.assert_allclose(alone.theta, parts[1].solve().theta)
    nobody = solve_together([Aggregator(task) for task in tasks.values()])
    assert np.isfinite(nobody.theta).all()


def test_only_tasks_that_differ_in_epsilon_are_solved_together():
    other = Task.from_table({**TABLE, "seed": "other", "epsilon": 1.0})
    for wrong in ([Aggregator(TASK), Aggregator(other)], [Aggregator(TASK), Aggregator(TASK)]):
        with pytest.raises(InvalidArgument, match="differ in more than epsilon, or in nothing"):
            solve_together(wrong)
    with pytest.raises(InvalidArgument, match="no aggregators"):
        solve_together([])
    kernel = Task.from_table({**TABLE, "kind": "kernel"})
    with pytest.raises(InvalidArgument, match="Kernels have random features"):
        solve_together(Aggregator(task) for task in kernel.with_epsilons([1, 2]).values())
    for kind in ("linear", "lasso", "logistic", "sparse-linear"):
        for arms in (TABLE["arms"], {"joint": 1.0}):
            tasks = Task.from_table({**TABLE, "kind": kind, "arms": arms}).with_epsilons([1, 8])
            several = [Aggregator(task).add(SEEDS) for task in tasks.values()]
            assert np.isfinite(solve_together(several).theta).all()
