"""Sound and damaged task files: the vectors of tools/task_vectors.py, and random ones."""

import json
import math
import random
from pathlib import Path

from riata.errors import TaskError
from riata.local import Task
from riata.local.kinds import KINDS

VECTORS = Path(__file__).parents[1] / "data/task_vectors.json"


def vectors():
    """The bytes of each file, what must happen to it, and the id that it must have."""
    held = json.loads(VECTORS.read_text(encoding="utf-8"))
    for one in held["vectors"]:
        base = held["bases"][one["base"]].encode()
        new = bytes.fromhex(one["put_hex"]) if "put_hex" in one else one["put"].encode()
        new *= one.get("repeat", 1)
        raw = base[: one["at"]] + new + base[one["at"] + one["cut"] :]
        yield raw, one["expect"], one.get("id", "")


def decision(raw):
    """The id that Python gives a complete task file, or "" for one that a device must refuse."""
    try:
        task = Task.read(raw)
    except TaskError:
        return ""
    return task.id if json.loads(raw, parse_int=float) == task.table() else ""


def sound(rng):
    """A random task."""
    kind = rng.choice(list(KINDS))
    low = rng.uniform(-9, 9)
    made = {
        "number": {"kind": "number", "bounds": [low, low + 10 ** rng.uniform(-9, 9)]},
        "yes-no": {"kind": "yes-no", "center": rng.random()},
        "choice": {"kind": "choice", "choices": rng.sample("abcdü😀\n", rng.randint(1, 5))},
        "vector": {"kind": "vector", "bounds": [0, 1], "size": rng.choice([1, 3, 40, 2100])},
    }
    features = [
        {"name": f"q{i}", **made[rng.choice(list(made))], "weight": 10 ** rng.uniform(-3, 3)}
        for i in range(rng.randint(1, 4))
    ]
    table = {"kind": kind, "features": features, "epsilon": 2 ** rng.uniform(-4, 4)}
    if "mean" not in kind:
        table["target"] = {"name": "y", **made["yes-no" if kind == "logistic" else "number"]}
        if kind == "poisson":
            table["target"]["bounds"] = [0, 1 + abs(low)]
        share = rng.choice([0.5, rng.uniform(0.01, 0.99)])
        table["arms"] = rng.choice([{"joint": 1.0}, {"gram": share, "cross": 1 - share}])
    if kind == "kernel":
        table["kernel"] = {"width": 10 ** rng.uniform(-3, 3), "pairs": rng.randint(1, 30)}
    if rng.random() < 0.3:
        table |= {"title": "ä\u2028", "deadline": "2027-01-31", "cap": 7, "length": rng.random()}
    return Task.from_table(table).table()


def damaged(seed, n):
    """`n` task files with no to three random damages each."""
    rng = random.Random(seed)
    bases = []
    while len(bases) < max(20, n // 50):
        try:
            bases.append(json.dumps(sound(rng)))
        except TaskError:
            continue
    for _ in range(n):
        table = json.loads(rng.choice(bases))
        for _ in range(rng.choice([0, 1, 1, 1, 1, 2, 3])):
            damage(rng, table)
        yield spelled(rng, table)


def damage(rng, table):
    """One random change somewhere in a table."""
    inner, key = rng.choice(list(places(table)))
    what = rng.random()
    if what < 0.6:
        inner[key] = nudged(rng, inner[key])
    elif what < 0.7:
        del inner[key]
    elif what < 0.8:
        other, place = rng.choice(list(places(table)))
        inner[key] = json.loads(json.dumps(other[place]))
    elif isinstance(inner, dict):
        inner[rng.choice(["extra", "kernel", "target", "size", "bounds", "weight"])] = 1.0
    else:
        inner.append(rng.choice(inner))


def places(value):
    """Each container and key inside a table."""
    for key, inside in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(inside, dict | list):
            yield from places(inside)


def nudged(rng, value):
    """A value near another one, or of another type."""
    if rng.random() < 0.15:
        return rng.choice(
            [None, True, 0, 1, -1, 1.0, "", "x", "\ud800", [], [0, 1], {}, 1e61, "f" * 16]
        )
    if isinstance(value, str) and len(value) == 16:
        moved = int(value, 16) + rng.choice([-1, 1]) * 2 ** rng.randint(0, 62)
        return f"{min(max(moved, 0), 2**64 - 1):016x}"
    if isinstance(value, int):
        return value + rng.choice([-1, 1, 0.5])
    if isinstance(value, float):
        far = rng.choice([-1, 1]) * 10 ** rng.uniform(-17, 0)
        up = math.nextafter(value, rng.choice([-math.inf, math.inf]))
        return rng.choice([up, value * (1 + far), value + far, -value, round(value, 2)])
    return value


def spelled(rng, table):
    """JSON in one of many spellings, sometimes damaged."""
    blanks = rng.choice([(",", ":"), (", ", ": "), (" ,\n", "\t:")])
    text = json.dumps(
        table, separators=blanks, sort_keys=rng.random() < 0.5, ensure_ascii=rng.random() < 0.5
    )
    raw = bytearray(text.encode("utf-8", "surrogatepass"))
    if rng.random() < 0.15:
        at = rng.randrange(len(raw))
        raw[at : at + rng.randint(0, 2)] = rng.choice(
            [b"", b" ", b"0", b"1", b".", b"-", b"e", b'"', b"\\", b"}", b"\xff", b"\xef\xbb\xbf"]
        )
    return bytes(raw)
