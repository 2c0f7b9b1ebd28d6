"""A task file says everything, in one byte form, and every mistake in it is named."""

import copy
import datetime
import hashlib
import json
import math
import pickle
import re

import numpy as np
import pytest

from riata.errors import InvalidArgument, TaskError
from riata.local import Task
from riata.local.channel import WORDS, Channel, _coin, channel
from riata.local.kinds import KINDS, MOST_COLUMNS

pytestmark = pytest.mark.matrix(one_in=11)

NUMBER = {"name": "hours", "kind": "number", "bounds": [0, 24]}


def table(**changed):
    made = {
        "kind": "linear",
        "epsilon": 1.0,
        "features": [
            dict(NUMBER),
            {"name": "smoker", "kind": "yes-no"},
            {"name": "region", "kind": "choice", "choices": ["north", "south"]},
        ],
        "target": {"name": "pressure", "kind": "number", "bounds": [80, 200]},
    }
    for name, value in changed.items():
        if value is None:
            del made[name]
        else:
            made[name] = value
    return made


def feature(**changed):
    return [{**NUMBER, **changed}]


def without(name):
    return [{key: value for key, value in NUMBER.items() if key != name}]


def split(**changed):
    """A task of two questions."""
    return table(**{"arms": {"gram": 0.5, "cross": 0.5}, **changed})


def arms(**changed):
    full = Task.from_table(split()).table()["arms"]
    full["gram"] |= changed
    return full


HUGE = 10**400

#: What is wrong, and the field that the error has to name.
MISTAKES = {
    "no kind": (table(kind=None), "kind"),
    "unknown kind": (table(kind="liner"), "kind"),
    "kind that is a list": (table(kind=["linear"]), "kind"),
    "kind that is an array": (table(kind=np.array(["linear", "x"])), "kind"),
    "no epsilon": (table(epsilon=None), "epsilon"),
    "epsilon 0": (table(epsilon=0), "epsilon"),
    "epsilon below 0": (table(epsilon=-1.0), "epsilon"),
    "epsilon nan": (table(epsilon=math.nan), "epsilon"),
    "epsilon inf": (table(epsilon=math.inf), "epsilon"),
    "epsilon as text": (table(epsilon="1"), "epsilon"),
    "epsilon true": (table(epsilon=True), "epsilon"),
    "epsilon too large": (table(epsilon=17), "epsilon"),
    "epsilon beyond float": (table(epsilon=HUGE), "epsilon"),
    "epsilon with too many digits to print": (table(epsilon=1 << 20000), "epsilon"),
    "epsilon smaller than the generator's margin": (table(epsilon=1e-9), "epsilon"),
    "epsilon so small that the coin is 1": (table(epsilon=1e-300), "epsilon"),
    "no features": (table(features=None), "features"),
    "empty features": (table(features=[]), "features"),
    "features that are a table": (table(features=NUMBER), "features"),
    "a feature that is text": (table(features=["hours"]), "features[0]"),
    "a feature without a name": (table(features=without("name")), "features[0].name"),
    "an empty name": (table(features=feature(name="")), "features[0].name"),
    "a name without a byte form": (table(features=feature(name="\ud800")), "features[0].name"),
    "two features with one name": (table(features=[NUMBER, NUMBER]), "features[1].name"),
    "unknown kind of feature": (table(features=feature(kind="real")), "features[0].kind"),
    "no bounds": (table(features=without("bounds")), "features[0].bounds"),
    "bounds the wrong way": (table(features=feature(bounds=[1, 0])), "features[0].bounds"),
    "equal bounds": (table(features=feature(bounds=[1, 1])), "features[0].bounds"),
    "bounds nearly equal": (table(features=feature(bounds=[0, 5e-324])), "features[0].bounds"),
    "infinite bounds": (table(features=feature(bounds=[0, math.inf])), "features[0].bounds"),
    "bounds nan": (table(features=feature(bounds=[math.nan, 1])), "features[0].bounds"),
    "bounds beyond float": (table(features=feature(bounds=[0, HUGE])), "features[0].bounds"),
    "bounds near overflow": (
        table(features=feature(bounds=[-1e308, 1e308])), "features[0].bounds"),
    "three bounds": (table(features=feature(bounds=[0, 1, 2])), "features[0].bounds"),
    "bounds that are one number": (table(features=feature(bounds=1)), "features[0].bounds"),
    "nested bounds": (table(features=feature(bounds=[[0], [1]])), "features[0].bounds"),
    "centre outside": (table(features=feature(center=25)), "features[0].center"),
    "centre nan": (table(features=feature(center=math.nan)), "features[0].center"),
    "weight 0": (table(features=feature(weight=0)), "features[0].weight"),
    "weight that vanishes": (table(features=feature(weight=5e-324)), "features[0].weight"),
    "weight whose square overflows": (
        table(features=feature(weight=1e200)), "features[0].weight"),
    "unknown field of a feature": (table(features=feature(bound=[0, 1])), "features[0].bound"),
    "vector without a size": (table(features=feature(kind="vector")), "features[0].size"),
    "vector of size 0": (table(features=feature(kind="vector", size=0)), "features[0].size"),
    "vector of half a number": (
        table(features=feature(kind="vector", size=1.5)), "features[0].size"),
    "vector too long for a device": (
        table(kind="mean", target=None, features=feature(kind="vector", size=2**31)),
        "features[0].size"),
    "vectors too long together": (
        table(kind="mean", target=None, features=[
            {**NUMBER, "name": str(i), "kind": "vector", "size": 2**21} for i in range(3)]),
        "features"),
    "no choices": (
        table(features=[{"name": "r", "kind": "choice", "choices": []}]), "features[0].choices"),
    "choices twice": (
        table(features=[{"name": "r", "kind": "choice", "choices": ["a", "a"]}]),
        "features[0].choices"),
    "choices that are numbers": (
        table(features=[{"name": "r", "kind": "choice", "choices": [1, 2]}]),
        "features[0].choices"),
    "choices that are one text": (
        table(features=[{"name": "r", "kind": "choice", "choices": "ab"}]),
        "features[0].choices"),
    "no target": (table(target=None), "target"),
    "target that is text": (table(target="pressure"), "target"),
    "target of choices": (
        table(target={"name": "t", "kind": "choice", "choices": ["a", "b"]}), "target.kind"),
    "target with the name of a feature": (
        table(target={"name": "hours", "kind": "yes-no"}), "target.name"),
    "logistic target of numbers": (table(kind="logistic"), "target.kind"),
    "target with a weight": (
        table(target={"name": "t", "kind": "yes-no", "weight": 2.0}), "target.weight"),
    "target where there is none": (table(kind="mean"), "target"),
    "length 0": (table(length=0), "length"),
    "length that vanishes": (table(length=1e-300), "length"),
    "length nan": (table(length=math.nan), "length"),
    "intercept below 0": (table(intercept=-0.1), "intercept"),
    "intercept 1": (table(intercept=1.0), "intercept"),
    "intercept for a mean": (table(kind="mean", target=None, intercept=0.1), "intercept"),
    "cap 0": (table(cap=0), "cap"),
    "cap true": (table(cap=True), "cap"),
    "cap of 1.0": (table(cap=1.0), "cap"),
    "seed that is a number": (table(seed=5), "seed"),
    "seed without a byte form": (table(seed="a\udfff"), "seed"),
    "title that is a number": (table(title=5), "title"),
    "deadline 0": (table(deadline=0), "deadline"),
    "deadline false": (table(deadline=False), "deadline"),
    "deadline of words": (table(deadline="tomorrow"), "deadline"),
    "deadline in another form": (table(deadline="20270131"), "deadline"),
    "deadline with a time": (
        table(deadline=datetime.datetime(2027, 1, 31)), "deadline"),
    "kernel where there is none": (table(kernel={"width": 1.0}), "kernel"),
    "kernel of width 0": (table(kind="kernel", kernel={"width": 0.0}), "kernel.width"),
    "kernel of a width that vanishes": (
        table(kind="kernel", kernel={"width": 1e-300}), "kernel.width"),
    "kernel with too many pairs": (table(kind="kernel", kernel={"pairs": 5000}), "kernel.pairs"),
    "kernel with more frequencies than fit": (
        table(kind="kernel", kernel={"pairs": 2048},
              features=feature(kind="vector", size=100_000)), "kernel.pairs"),
    "unknown field of the kernel": (table(kind="kernel", kernel={"wide": 1}), "kernel.wide"),
    "unknown format": (table(format=2), "format"),
    "unknown field": (table(epsilom=1.0), "epsilom"),
    "a field that is no text": (table() | {7: 1}, "7"),
    "arms that are a list": (table(arms=[0.5, 0.5]), "arms"),
    "a question is missing": (table(arms={"gram": 1.0}), "arms.cross"),
    "an unknown question": (table(arms={"gram": 0.5, "cross": 0.4, "mean": 0.1}), "arms.mean"),
    "arms below 1": (table(arms={"gram": 0.5, "cross": 0.4}), "arms"),
    "arms above 1": (table(arms={"gram": 0.5, "cross": 0.6}), "arms"),
    "arms that leave nothing for the last": (table(arms={"gram": 1.0, "cross": 1e-10}), "arms"),
    "a share of 0": (table(arms={"gram": 1.0, "cross": 0.0}), "arms.cross.share"),
    "a share below 0": (table(arms={"gram": 1.5, "cross": -0.5}), "arms.gram.share"),
    "a share nan": (table(arms={"gram": math.nan, "cross": 0.5}), "arms.gram.share"),
    "a share as text": (table(arms={"gram": "0.5", "cross": 0.5}), "arms.gram.share"),
    "a share too small for the proof": (
        table(arms={"gram": 1 - 1e-15, "cross": 1e-15}), "epsilon"),
    "unknown field of a question": (table(arms=arms(tries=3)), "arms.gram.tries"),
    "another degree": (table(arms=arms(degree=1)), "arms.gram.degree"),
    "another size": (table(arms=arms(size=4)), "arms.gram.size"),
    "threshold below 0": (table(arms=arms(threshold=-1e-10)), "arms.gram.threshold"),
    "threshold nan": (table(arms=arms(threshold=math.nan)), "arms.gram.threshold"),
    "threshold too large": (table(arms=arms(threshold=7)), "arms.gram.threshold"),
    "threshold that says nothing": (table(arms=arms(threshold=0)), "arms.gram.threshold"),
    "threshold that is never reached": (table(arms=arms(threshold=5.9)), "arms.gram.threshold"),
    "coin 0": (table(arms=arms(coin="0" * 16)), "arms.gram.coin"),
    "coin smaller than epsilon allows": (
        table(arms=arms(coin="00" + "f" * 14)), "arms.gram.coin"),
    "coin that says nothing": (table(arms=arms(coin="f" * 16)), "arms.gram.coin"),
    "coin in capitals": (table(arms=arms(coin="F" * 16)), "arms.gram.coin"),
    "coin with a prefix": (table(arms=arms(coin="0x" + "f" * 14)), "arms.gram.coin"),
    "coin with spaces": (table(arms=arms(coin=" " + "f" * 15)), "arms.gram.coin"),
    "coin below 0": (table(arms=arms(coin="-" + "f" * 15)), "arms.gram.coin"),
    "coin of other digits": (table(arms=arms(coin="\u0661" * 16)), "arms.gram.coin"),
    "coin as a number": (table(arms=arms(coin=2**63)), "arms.gram.coin"),
    "coin of 17 digits": (table(arms=arms(coin="f" * 17)), "arms.gram.coin"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_an_error_with_the_name_of_its_field(mistake):
    wrong, field = MISTAKES[mistake]
    with pytest.raises(TaskError) as caught:
        Task.from_table(wrong)
    said = str(caught.value)
    assert f"field {field} " in said or said.startswith(f"{field} ")
    assert len(said) < 400


JUNK = [
    None, True, 0, -1, 1, 2**63, HUGE, 0.5, -0.0, 1e-320, 1e308, math.nan, math.inf, "", "x",
    "\ud800", "f" * 16, b"x", [], [0, 1], [[]], ["a", "a"], {}, {"share": 0.5}, {"": {}}, (),
    {1, 2}, object(), np.float64(0.5), np.int64(1), np.array(1), np.arange(3),
    datetime.date(2027, 1, 31), lambda: 1,
]  # fmt: skip


def leaves(value, path=()):
    """All places inside of tables and lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inside in items:
        yield (*path, key)
        if isinstance(inside, dict | list):
            yield from leaves(inside, (*path, key))


@pytest.mark.parametrize("kind", ["linear", "kernel", "mean"])
def test_junk_in_any_place_is_a_task_error_or_a_task(kind):
    full = Task.from_table(table(kind=kind, **({"target": None} if kind == "mean" else {}))).table()
    tasks, said = 0, []
    for path in leaves(full):
        for junk in JUNK:
            changed = copy.deepcopy(full)
            inner = changed
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = junk
            try:
                task = Task.from_table(changed)
            except TaskError as error:
                said.append(str(error))
            else:
                assert Task.read(task.canonical) == task
                assert all(question.epsilon <= task.epsilon for question in task.questions)
                tasks += 1
    assert all(re.search(r"field \S+ |must be a table", error) for error in said)
    assert len(said) > 10 * tasks > 0


@pytest.mark.parametrize("kind", ["linear", "lasso", "logistic"])
def test_second_moments_that_no_server_keeps_name_the_features(kind):
    target = {"name": "t", "kind": "yes-no"}
    wide = feature(kind="vector", size=MOST_COLUMNS)
    with pytest.raises(TaskError, match=r"field features has 4096 columns.*sparse-linear"):
        Task.from_table(table(kind=kind, features=wide, target=target))
    narrow = feature(kind="vector", size=MOST_COLUMNS - 1)
    assert Task.from_table(table(kind=kind, features=narrow, target=target)).vector_size == 4096
    assert Task.from_table(table(kind="sparse-linear", features=wide, target=target))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"5",
        b"null",
        b"{",
        b"\xff\xfe",
        b'{"kind": ' + b"1" * 5000 + b"}",
        b"[" * 100_000,
    ],
    ids=["empty", "list", "number", "null", "cut off", "not UTF-8", "many digits", "deep"],
)
@pytest.mark.parametrize("toml", [False, True])
def test_files_of_another_form_are_task_errors(text, toml):
    with pytest.raises(TaskError):
        Task.read(text, toml=toml)


def test_deep_toml_is_a_task_error():
    with pytest.raises(TaskError):
        Task.read("kind = " + "[" * 5000 + "]" * 5000, toml=True)


def test_a_field_that_stands_twice_is_named():
    with pytest.raises(TaskError, match="field epsilon stands twice"):
        Task.read('{"kind": "mean", "epsilon": 1, "epsilon": 8, "features": []}')
    with pytest.raises(TaskError, match="TOML"):
        Task.read('kind = "mean"\nepsilon = 1\nepsilon = 8', toml=True)


def test_json_may_spell_numbers_that_are_none():
    for spelled in ("NaN", "Infinity", "1e999", "-0.0"):
        with pytest.raises(TaskError, match="field epsilon "):
            Task.read(json.dumps(table()).replace("1.0", spelled))


def test_a_missing_file_is_a_task_error(tmp_path):
    with pytest.raises(TaskError, match="Cannot read"):
        Task.load(tmp_path / "no.toml")


def test_numbers_of_numpy_are_numbers():
    plain = Task.from_table(table(cap=2))
    assert Task.from_table(table(epsilon=np.float32(1), cap=np.int64(2))) == plain
    assert Task.from_table(table(epsilon=1, cap=2)) == plain


@pytest.mark.parametrize("kind", KINDS)
def test_the_canonical_bytes_read_back_to_the_same_task(kind, tmp_path):
    given = table(kind=kind, deadline=datetime.date(2027, 1, 31), title="Größe", seed="s", cap=3)
    count = {"name": "t", "kind": "number", "bounds": [0, 9]}
    given["target"] = count if kind == "poisson" else {"name": "t", "kind": "yes-no"}
    if kind in ("mean", "sparse-mean"):
        del given["target"]
    task = Task.from_table(given)
    again = Task.read(task.canonical)
    assert again == task
    assert again.id == task.id == hashlib.sha256(task.canonical).hexdigest()
    assert again.canonical == task.canonical
    for name in ("task.json", "task.toml"):
        task.save(tmp_path / name)
        assert Task.load(tmp_path / name) == task
    assert pickle.loads(pickle.dumps(task)) == task
    assert copy.deepcopy(task) == task


def test_toml_and_json_and_defaults_make_the_same_task(tmp_path):
    file = tmp_path / "survey.toml"
    file.write_text(
        """
        kind = "linear"
        epsilon = 1
        deadline = 2027-01-31
        [arms]
        gram = 0.5
        cross = 0.5
        [target]
        name = "pressure"
        kind = "number"
        bounds = [80, 200]
        [[features]]
        name = "hours"
        kind = "number"
        bounds = [0.0, 24.0]
        center = 12
        """
    )
    assert Task.load(file) == Task.from_table(split(features=[NUMBER], deadline="2027-01-31"))


@pytest.mark.parametrize(
    "changed",
    [
        {"epsilon": 1.0 + 2**-52},
        {"title": "t"},
        {"seed": "s"},
        {"cap": 2},
        {"deadline": "2027-01-31"},
        {"intercept": 0.2},
        {"length": 1.5},
        {"arms": {"gram": 0.5 + 2**-53, "cross": 0.5 - 2**-53}},
        {"features": feature(bounds=[0, 25])},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_changes_the_task_changes_its_id(changed):
    assert Task.from_table(table(**changed)).id != Task.from_table(table()).id
    assert Task.from_table(split(**changed)).id != Task.from_table(split()).id


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.3, 0.7), (1 / 3, 2 / 3), (1e-6, 1 - 1e-6)])
def test_the_arms_own_all_seeds(shares):
    task = Task.from_table(table(arms=dict(zip(("gram", "cross"), shares, strict=True))))
    gram, cross = task.questions
    assert gram.first == 0
    assert cross.first == gram.seeds
    assert cross.first + cross.seeds == 2**64
    assert [question.seeds / 2**64 for question in task.questions] == pytest.approx(
        shares, abs=1e-9
    )
    ends = np.array([0, 2**64 - 1], dtype=np.uint64)
    for question in task.questions:
        seeds = [int(seed) for seed in question.seeds_from(ends)]
        assert seeds == [question.first, question.first + question.seeds - 1]


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 8.0, 12.0])
@pytest.mark.parametrize("kind", ["linear", "sparse-mean"])
def test_no_arm_costs_more_than_epsilon(kind, epsilon):
    given = table(kind=kind, epsilon=epsilon)
    if kind == "sparse-mean":
        given |= {"features": feature(kind="vector", size=10_000)}
        del given["target"]
    task = Task.from_table(given)
    for question in task.questions:
        assert 0.98 * epsilon <= question.epsilon <= epsilon
    assert Task.from_table({**given, "cap": 3}).total_epsilon == 3 * epsilon


def test_a_coin_of_one_less_than_epsilon_allows_is_refused():
    task = Task.from_table(split())
    gram = task.question("gram")
    coin = gram.channel.coin
    while Channel(2, gram.channel.size, gram.channel.threshold, coin).epsilon(gram.seeds) <= 1.0:
        coin -= 1 << 32
    full = task.table()
    full["arms"]["gram"]["coin"] = f"{coin:016x}"
    with pytest.raises(TaskError, match=r"field arms\.gram\.coin .*cost more"):
        Task.from_table(full)


def test_a_larger_coin_is_allowed_because_it_protects_more():
    task = Task.from_table(split())
    full = task.table()
    full["arms"]["gram"]["coin"] = f"{task.question('gram').channel.coin + 12345:016x}"
    assert Task.from_table(full).question("gram").epsilon < task.question("gram").epsilon


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 8.0])
def test_the_threshold_is_where_the_polynomial_equals_the_signal(degree, epsilon):
    best = channel(degree, 10, epsilon)
    polynomial = best.threshold if degree == 1 else best.threshold**2 - 1
    assert polynomial == pytest.approx(best.signal, abs=1e-5)
    for other in (best.threshold - 0.01, best.threshold + 0.01):
        assert Channel(degree, 10, max(other, 0.0), best.coin).signal < best.signal


@pytest.mark.parametrize("epsilon", [0.001, 1.0, 4.0, 15.5])
def test_the_coin_is_rounded_up(epsilon):
    mpmath = pytest.importorskip("mpmath")
    best = channel(1, 3, epsilon)
    with mpmath.workprec(300):
        spent = -mpmath.log(mpmath.mpf(best.coin) / WORDS)
        assert spent <= mpmath.mpf(epsilon) - best.margin(1 << 64)
        exact = mpmath.exp(-mpmath.mpf(epsilon)) * WORDS
        assert _coin(epsilon) - 1 < exact < _coin(epsilon)


def test_the_margin_grows_with_everything_that_makes_the_proof_harder():
    one = channel(1, 100, 1.0)
    assert one.margin(1 << 64) < one.margin(1 << 60) < one.margin(1 << 40)
    assert one.margin(1 << 64, 100) < one.margin(1 << 64, 10_000)
    assert one.margin(1 << 64) < Channel(1, 1000, one.threshold, one.coin).margin(1 << 64)
    assert one.margin(1 << 64) < Channel(2, 100, 1.5, one.coin).margin(1 << 64)
    assert one.margin(1 << 10) > 0.1
    assert one.margin(1) == math.inf


@pytest.mark.parametrize("degree", [1, 2])
def test_the_margin_covers_each_of_its_terms(degree):
    """The terms as docs/privacy/channel.md states them, written again."""
    seeds, size, inputs = 3 * 2**62, 33, 5000
    used = channel(degree, size, 1.0)
    pairs, blocks = math.ceil(size / 2), math.ceil(size / 4) + 1
    lattice = degree * pairs * 1.5 * 2**-32
    longest = math.sqrt(66 * math.log(2) * pairs)
    error = math.sqrt(size) * 6.77 * (2**-41 + 2**-40) + 2 * (size + 3) * 2**-53 * longest
    rounding = degree * error / math.sqrt(2 * math.pi)
    weight = math.ceil(2**64 / seeds) / 2**64
    exponent = (64 * inputs + 645 + 33) * math.log(2) + (seeds * blocks) ** 2 / 2**129
    off = (lattice + rounding + math.sqrt(exponent * weight / 2)) / used.acceptance
    exact = math.log1p(off) - math.log1p(-off)
    assert exact <= used.margin(seeds, inputs) <= 1.5 * exact


def test_errors_outside_of_tasks_say_what_to_do():
    with pytest.raises(InvalidArgument, match="Choose a value in this range"):
        channel(1, 10, 20.0)
    with pytest.raises(InvalidArgument, match="fewer coordinates"):
        channel(2, 10**6, 14.0)


def test_a_deadline_holds_until_the_end_of_its_day():
    task = Task.from_table(table(deadline="2027-01-31"))
    assert task.open_on(datetime.date(2027, 1, 31))
    assert task.open_on(datetime.datetime(2027, 1, 31, 23, 59))
    assert not task.open_on(datetime.date(2027, 2, 1))
    assert Task.from_table(table()).open_on(datetime.date(9999, 1, 1))
