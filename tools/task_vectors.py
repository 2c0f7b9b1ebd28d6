"""Write the tasks that every implementation of the local model's device must open or refuse.

    python tools/task_vectors.py > tests/data/task_vectors.json

A vector is a sound task file with one damage: of the bytes of `bases[base]`, `cut` are taken out
from `at` on, and the text `put` (or the bytes `put_hex`) is put there, `repeat` times.

`expect` is "accepted" (with the task's `id`), "refused", or "incomplete": a file that leaves
something to defaults. Python fills that in for who writes a task. A device refuses it, because the
defaults are no part of what was published.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator
from typing import Any

from riata.errors import TaskError
from riata.local import Task
from riata.local.task import MOST_BYTES

MIXED = [
    {"name": "age", "kind": "number", "bounds": [18, 90], "question": "How old are you?"},
    {"name": "smokes", "kind": "yes-no"},
    {"name": "town", "kind": "choice", "choices": ["a", "b", "ü"], "weight": 0.5},
    {"name": "z", "kind": "vector", "size": 3, "bounds": [-1e-05, 1.5e16], "center": 123.456},
]
WIDE = [{"name": "z", "kind": "vector", "size": 2500, "bounds": [-1, 1]}]
NUMBER = {"name": "y", "kind": "number", "bounds": [-2, 3]}
COUNT = {"name": "y", "kind": "number", "bounds": [0, 20], "center": 2}
YES_NO = {"name": "y", "kind": "yes-no"}
EVEN, UNEVEN = {"gram": 0.5, "cross": 0.5}, {"gram": 0.3, "cross": 0.7}

TASKS: dict[str, dict[str, Any]] = {
    "linear": {"kind": "linear", "epsilon": 4.0, "features": MIXED, "target": NUMBER,
               "title": 'Straße 😀 "\\\n', "seed": "s", "deadline": "2028-02-29", "cap": 3,
               "arms": EVEN},
    "joint": {"kind": "linear", "epsilon": 1.0, "features": MIXED, "target": NUMBER},
    "poisson": {"kind": "poisson", "epsilon": 3.0, "features": MIXED, "target": COUNT},
    "lasso": {"kind": "lasso", "epsilon": 0.5, "features": MIXED, "target": YES_NO,
              "intercept": 0.0, "length": 1.0, "arms": UNEVEN},
    "logistic": {"kind": "logistic", "epsilon": 16.0, "features": MIXED, "target": YES_NO},
    "kernel": {"kind": "kernel", "epsilon": 1.0, "features": MIXED, "target": NUMBER,
               "kernel": {"width": 0.7, "pairs": 9}},
    "sparse-linear": {"kind": "sparse-linear", "epsilon": 2.0, "features": WIDE, "target": NUMBER,
                      "arms": EVEN},
    "mean": {"kind": "mean", "epsilon": 0.01, "features": MIXED},
    "sparse-mean": {"kind": "sparse-mean", "epsilon": 8.0, "features": WIDE},
}  # fmt: skip

#: What may stand in the place of any value, as JSON spells it (or does not).
JUNK = [
    "null", "true", "false", "0", "-0", "-0.0", "1", "-1", "2", "3", "1.0", "2.0", "0.5", "0.9",
    "1e0", "1E+0", "10e-1", "16.000000000000004", "1e400", "-1e400", "1e-400", "NaN", "Infinity",
    "-Infinity", "1" + "0" * 60, "9" * 400, "1e60", "1.0000000000000002e60", "-1e60", "-2e60",
    "1e-60", "9.999999999999999e-61", "5e-324", "9007199254740993", "4194304", "4194305",
    "2147483648", "0.1000000000000000055511151231257827", '""', '"x"', '"1"', '"1.0"', '"NaN"',
    '"\\ud800"', '"\\udc00x"', '"\\ude00\\ud83d"', '"\\ud83d\\ude00"', '"\\u0000"',
    '"ffffffffffffffff"', '"0000000000000000"', '"FFFFFFFFFFFFFFFF"', '"0000000000000001"',
    '"__proto__"', '"constructor"',
    '"number"', '"yes-no"', '"choice"', '"vector"', '"mean"', '"kernel"', '"2027-02-29"',
    '"0000-01-01"', '"0001-01-01"', '"9999-12-31"', '"2027-1-31"', "[]", "[0]", "[0,1]", "[1,0]",
    "[0,1,2]", '["a"]', '["a","a"]', "[null]", "[[0,1]]", "{}", '{"share":1.0}', '{"a":{"a":{}}}',
]  # fmt: skip

#: Shares of the arms gram and cross, and what must happen.
SHARES = [
    (0.5, 0.4, "refused"), (0.5, 0.6, "refused"), (1.0, 1e-10, "refused"),
    (1e-12, 1.0, "refused"), (1e-12, 1 - 1e-12, "refused"), (1.0, 0.0, "refused"),
    (0.5, 0.5 + 9e-10, "accepted"), (0.5, 0.5 - 9e-10, "accepted"), (0.5, 0.5 + 2e-9, "refused"),
    (0.5, 0.5 - 2e-9, "refused"), (0.4, 0.6, ""), (0.6, 0.4, ""), (5e-20, 1.0, "refused"),
    (1 - 2**-53, 2**-53, "refused"),
]  # fmt: skip

#: Values of the linear task: of which field, as JSON, and what must happen.
VALUES = [
    (("target", "name"), '"age"', "refused"), (("features", 1, "name"), '"age"', "refused"),
    (("target", "center"), "3.0000000000000004", "refused"),
    (("target", "center"), "3", "accepted"), (("target", "bounds"), "[0.5,0.5]", "refused"),
    (("target", "bounds"), "[0.5,0.5000001]", "accepted"),
    (("target", "bounds"), "[0,2e-60]", "refused"),
    (("target", "bounds"), "[0.4999999999999999,3]", "accepted"),
    (("features", 3, "size"), "4", "refused"), (("features", 3, "size"), "5000", "refused"),
    (("features", 2, "choices"), '["a","b"]', "refused"), (("intercept",), "0.0", "refused"),
    (("intercept",), "0.9", "accepted"), (("intercept",), "0.9000000000000001", "refused"),
    (("intercept",), "1e-300", "accepted"), (("kind",), '"lasso"', "accepted"),
    (("kind",), '"logistic"', "refused"), (("kind",), '"mean"', "refused"),
    (("kind",), '"sparse-linear"', "accepted"), (("kind",), '"kernel"', "refused"),
    (("cap",), "1000", "accepted"), (("cap",), "1001", "refused"), (("format",), "2", "refused"),
    (("deadline",), '"2027-02-28"', "accepted"), (("deadline",), '"2100-02-29"', "refused"),
    (("deadline",), '"2000-02-29"', "accepted"), (("deadline",), '"2027-00-10"', "refused"),
    (("deadline",), '"+002027-01-01"', "refused"),
    (("deadline",), '"2027-01-01T00:00"', "refused"), (("deadline",), '"20270101"', "refused"),
    (("deadline",), '"2027-W01-1"', "refused"), (("deadline",), '"\u0662027-01-01"', "refused"),
    (("deadline",), '" 2027-01-01"', "refused"),
]  # fmt: skip


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class Raw:
    """JSON that is written as it stands."""

    def __init__(self, text: str) -> None:
        self.text = text


def spell(value: Any) -> str:
    """Canonical JSON with raw parts."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{canonical(k)}:{spell(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(spell, value)) + "]"
    return canonical(value)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values inside of tables and lists."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inside in items:
        yield (*path, key)
        if isinstance(inside, dict | list):
            yield from places(inside, (*path, key))


def changed(table: Any, path: tuple[Any, ...], change: Any) -> Any:
    """A copy in which `change(container, key)` was applied at a path."""
    copied = copy.deepcopy(table)
    inner = copied
    for key in path[:-1]:
        inner = inner[key]
    change(inner, path[-1])
    return copied


def put(raw: str) -> Any:
    return lambda inner, key: inner.__setitem__(key, Raw(raw))


def structural(table: dict[str, Any], every: int) -> Iterator[str]:
    """For each field of a task, each kind of damage; of the junk, one in `every`."""
    turn = itertools.count()
    for path in places(table):
        yield spell(changed(table, path, lambda inner, key: inner.pop(key)))
        for junk in JUNK:
            if next(turn) % every == 0:
                yield spell(changed(table, path, put(junk)))
    for path in [(), *places(table)]:
        inner = table
        for key in path:
            inner = inner[key]
        if isinstance(inner, dict):
            for name in ("extra", "Epsilon", "", "__proto__", "constructor", "question", "bounds",
                         "target", "kernel", "choices", "size", "coin"):  # fmt: skip
                if name not in inner:
                    yield spell(changed(table, (*path, name), put("1.0")))
        if isinstance(inner, list):
            longer = [*inner, inner[0]]
            yield spell(changed(table, path, put(canonical(longer))))
            yield spell(changed(table, path, put(canonical(inner[::-1]))))


def duplicates(whole: Any) -> Iterator[str]:
    """Each field twice: with the same value, and with another one before or after."""
    for place in places(whole):
        inner = whole
        for key in place[:-1]:
            inner = inner[key]
        if not isinstance(inner, dict):
            continue
        name, value = place[-1], canonical(inner[place[-1]])
        for first, second in ((value, value), ("0", value), (value, "{}")):
            twice = Raw(f"{first},{canonical(name)}:{second}")
            yield spell(
                changed(whole, place, lambda one, key, twice=twice: one.update({key: twice}))
            )


def spellings(text: str) -> Iterator[bytes]:
    """The same or nearly the same task in other bytes."""
    table = json.loads(text)
    backwards = json.dumps(table)[1:-1]
    for other in (
        json.dumps(table), json.dumps(table, indent=2), json.dumps(table, sort_keys=False),
        json.dumps(dict(reversed(table.items()))), f" \t\r\n{text}\n", f"\ufeff{text}",
        f"\u00a0{text}", f"\x0b{text}", f"{text}\x00", f"{text}{text}", f"{text},", f"[{text}]",
        text.replace(":", "=", 1), text.replace('"', "'"), text[:-1] + ",}", f"{text}//",
        f"/**/{text}", text.replace('"cap"', '"\\u0063ap"'), text.replace('"cap"', "cap"),
        text.replace('"format":1', '"format":01'), text.replace('"format":1', '"format":+1'),
        text.replace('"format":1', '"format":1.'), text.replace('"format":1', '"format":0x1'),
        text.replace('"format":1', '"format":1n'), text.replace('"format":1', '"format":1_0'),
        "{" + "[" * 5000, backwards, "", "null", "{}",
        text.replace(".0,", ","), text.replace(".0,", ".00,"), text.replace(".0,", "e0,"),
    ):  # fmt: skip
        yield other.encode()
    for start in (
        "\n",
        "\t",
        "\x7f",
        "\u2028",
        "\\u001f\\b\\/",
        "\\x41",
        "\\",
        '\\"cap\\":2,',
        "{[1e5,",
    ):
        yield text.replace('"seed":"', f'"seed":"{start}').encode()
    raw = text.encode()
    middle = raw.index(b'"seed":"') + 8
    for wrong in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80"):
        yield raw[:middle] + wrong + raw[middle:]
    for length in range(0, len(raw), max(1, len(raw) // 12)):
        yield raw[:length]
    yield text.encode("utf-16")


def opens(table: Any) -> bool:
    try:
        Task.read(spell(table))
    except TaskError:
        return False
    return True


def with_arm(table: Any, name: str, **fields: Any) -> Any:
    made = copy.deepcopy(table)
    made["arms"][name] |= fields
    return made


def edge(low: int, high: int, good: Any) -> int:
    """The first whole number above `low`, which is not good, that is; `high` is."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def limits(table: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Channels at the very edge of what is allowed, and across it."""
    for name, question in table["arms"].items():

        def coins(word: int, name: str = name) -> Any:
            return with_arm(table, name, coin=f"{word:016x}")

        def thresholds(t: int, name: str = name) -> Any:
            return with_arm(table, name, threshold=t / 1e12)

        usual, best = int(question["coin"], 16), round(question["threshold"] * 1e12)
        cheapest = edge(0, usual, lambda word: opens(coins(word)))
        dearest = edge(0, 2**64 - usual, lambda less: opens(coins(2**64 - less)))
        for step in (0, 1, 2, 500, 10_000, 2**20, 2**30, 2**40, 2**50):
            yield spell(coins(cheapest + step)), "accepted" if step < 2**40 else ""
            yield spell(coins(max(cheapest - 1 - step, 1))), "refused"
            yield spell(coins(2**64 - dearest - step)), "" if step > 2**40 else "accepted"
            yield spell(coins(min(2**64 - dearest + 1 + step, 2**64 - 1))), "refused"
        for far in (0, 6 * 10**12):
            if opens(thresholds(far)):
                continue
            sign = 1 if far else -1
            reach = edge(0, abs(far - best), lambda less: opens(thresholds(far - sign * less)))  # noqa: B023
            for step in (0, 1, 10**3, 10**6, 10**9):
                clear = step == 10**9  # nearer to the edge the decision may lie in rounding
                yield spell(thresholds(far - sign * (reach + step))), "accepted" if clear else ""
                yield spell(thresholds(far - sign * (reach - 1 - step))), "refused" if clear else ""
        for wrong in (-1e-300, -0.5, 6.000000000000001, 1e300):
            yield spell(with_arm(table, name, threshold=wrong)), "refused"
        for off in (-1, 1):
            yield spell(with_arm(table, name, size=question["size"] + off)), "refused"
            yield spell(with_arm(table, name, degree=question["degree"] + off)), "refused"
    for factor in (0.5, 0.9, 0.99, 0.999999999, 1.000000001, 1.2, 4.0):
        stated = {**table, "epsilon": table["epsilon"] * factor}
        yield spell(stated), "refused" if factor <= 0.99 or stated["epsilon"] > 16.0 else ""


def relations(bases: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Fields that are right alone and wrong together."""
    linear, mean, kernel = bases["linear"], bases["mean"], bases["kernel"]

    def shares(table: Any, gram: float, cross: float) -> Any:
        return with_arm(with_arm(table, "gram", share=gram), "cross", share=cross)

    for gram, cross, expect in SHARES:
        yield "linear", spell(shares(linear, gram, cross)), expect
    for share, expect in ((1 - 9e-10, "accepted"), (1 - 2e-9, "refused"), (0.5, "refused")):
        yield "mean", spell(with_arm(mean, "mean", share=share)), expect
    # The task of the first report about this: it costs nearly twice what it says.
    dear = shares(with_arm(linear, "cross", threshold=3.2), 1e-12, 1 - 1e-12)
    dear["target"]["weight"] = 1e6
    yield "linear", spell(dear), "refused"
    for weight in (1e6, 2.0, 1.0000000000000002, 0.9999999999999999, 1e-60, 0.5):
        yield "linear", spell(changed(linear, ("target", "weight"), put(repr(weight)))), "refused"
    for place, value, expect in VALUES:
        yield "linear", spell(changed(linear, place, put(value))), expect
    target = {**YES_NO, "center": 0.5, "weight": 1.0}
    for base, made, expect in (
        ("linear", {**linear, "target": target}, "accepted"),
        ("linear", {**linear, "target": linear["features"][2]}, "refused"),
        ("linear", {**linear, "target": {**linear["features"][3], "name": "y"}}, "refused"),
        ("linear", {**linear, "target": {**target, "bounds": [0.0, 1.0]}}, "refused"),
        ("logistic", {**bases["logistic"], "target": linear["target"]}, "refused"),
        ("poisson", {**bases["poisson"], "target": target}, "refused"),
        ("poisson", {**bases["poisson"], "target": linear["target"]}, "refused"),
        ("linear", {**linear, "arms": bases["joint"]["arms"]}, ""),
        ("linear", {**linear, "arms": {**linear["arms"], **bases["joint"]["arms"]}}, "refused"),
        ("mean", {**mean, "arms": bases["joint"]["arms"]}, "refused"),
        ("mean", {**mean, "target": target}, "refused"),
        ("mean", {**mean, "arms": linear["arms"]}, "refused"),
        ("linear", {**linear, "arms": mean["arms"]}, "refused"),
        ("linear", {**linear, "arms": {"gram": 0.5, "cross": 0.5}}, "incomplete"),
        ("kernel", {**kernel, "kernel": {"width": 0.7, "pairs": 2049}}, "refused"),
        ("kernel", {**kernel, "kernel": {"width": 0.7, "pairs": 10}}, "refused"),
        ("kernel", {**kernel, "kernel": {"width": 1e-60, "pairs": 9}}, "accepted"),
        ("kernel", {**kernel, "intercept": 0.1}, "refused"),
    ):
        yield base, spell(made), expect
    yield from sizes()


def sizes() -> Iterator[tuple[str, str, str]]:
    """As many columns as are possible, and one more."""

    def vector(size: int) -> list[Any]:
        return [{"name": "z", "kind": "vector", "size": size, "bounds": [-1, 1]}]

    def made(kind: str, size: int, **more: Any) -> dict[str, Any]:
        table = {"kind": kind, "epsilon": 8.0, "features": vector(size), **more}
        return Task.from_table(table if "mean" in kind else table | {"target": NUMBER}).table()

    one_more = ("features", 0, "size")
    for kind, most, extra, arms in (
        ("linear", 4095, 1, EVEN), ("lasso", 4095, 1, EVEN), ("mean", 2**22, 0, None),
        ("mean", 2048, 0, None), ("mean", 2049, 0, None), ("sparse-linear", 2047, 1, EVEN),
        ("sparse-linear", 2048, 1, EVEN), ("linear", 4095, 2, None),
        ("sparse-linear", 4095, 2, None),
    ):  # fmt: skip
        table = made(kind, most, **({"arms": arms} if arms else {}))
        yield kind, spell(table), "accepted"
        larger = changed(table, one_more, put(str(most + 1)))
        yield kind, spell(larger), "accepted" if most == 2049 else "refused"
        for name in table["arms"]:
            fits = with_arm(larger, name, size=most + 2 + extra)
            yield kind, spell(fits), ""
    kernel = made("kernel", 8192, kernel={"width": 1.0, "pairs": 2048})
    yield "kernel", spell(kernel), "accepted"
    yield "kernel", spell(changed(kernel, one_more, put("8193"))), "refused"
    mean = made("mean", 2**22 - 1)
    for bounds in ([0.0, 1.0], [-1.0, 1.0]):
        other = {"name": "a", "kind": "number", "weight": 1.0, "center": 0.5, "bounds": bounds}
        yield "mean", spell({**mean, "features": [*mean["features"], other]}), "accepted"
        third = {**other, "name": "b"}
        yield "mean", spell({**mean, "features": [*mean["features"], other, third]}), "refused"


def expectation(raw: bytes) -> dict[str, str]:
    """What Python decides about a task file."""
    try:
        task = Task.read(raw)
    except TaskError:
        return {"expect": "refused"}
    if json.loads(raw, parse_int=float) != task.table():
        return {"expect": "incomplete"}
    return {"expect": "accepted", "id": task.id}


def spliced(base: bytes, raw: bytes) -> dict[str, Any]:
    """How a text differs from its base."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(base, raw, strict=False))
    at = sum(1 for _ in pairs)
    back = zip(reversed(base[at:]), reversed(raw[at:]), strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], back))
    new = raw[at : len(raw) - same]
    made = {"at": at, "cut": len(base) - same - at}
    try:
        return {**made, "put": new.decode()}
    except UnicodeDecodeError:
        return {**made, "put_hex": new.hex()}


def vectors() -> dict[str, Any]:
    tasks = {name: Task.from_table(table) for name, table in TASKS.items()}
    bases = {name: task.canonical for name, task in tasks.items()}
    tables = {name: json.loads(text) for name, text in bases.items()}
    found: dict[tuple[str, bytes], str] = dict.fromkeys(bases.items(), "accepted")

    def add(base: str, text: str | bytes, expect: str = "") -> None:
        found.setdefault((base, text.encode() if isinstance(text, str) else text), expect)

    for base, text, expect in relations(tables):
        add(base, text, expect)
    for name, table in tables.items():
        for text, expect in limits(table):
            add(name, text, expect)
        for text in structural(table, 1 if name == "linear" else 7):
            add(name, text)
    for name in ("linear", "kernel"):
        for text in duplicates(tables[name]):
            add(name, text, "refused")
        for raw in spellings(bases[name].decode()):
            add(name, raw)
    listed, wrong = [], []
    for (base, raw), expect in found.items():
        decided = expectation(raw)
        if expect not in ("", decided["expect"]):
            wrong.append((base, expect, decided["expect"], spliced(bases[base], raw)))
        listed.append({"base": base, **spliced(bases[base], raw), **decided})
    if wrong:
        raise SystemExit("\n".join(map(str, wrong)))
    for repeat in (MOST_BYTES - len(bases["mean"]), MOST_BYTES - len(bases["mean"]) + 1):
        decided = expectation(bases["mean"] + b" " * repeat)
        at = len(bases["mean"])
        listed.append({"base": "mean", "at": at, "cut": 0, "put": " ", "repeat": repeat, **decided})
    return {"bases": {name: text.decode() for name, text in bases.items()}, "vectors": listed}


if __name__ == "__main__":
    made = vectors()
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in made["vectors"])
    print(f'{{"bases": {json.dumps(made["bases"], indent=1)},\n"vectors": [\n{lines}\n]}}')
