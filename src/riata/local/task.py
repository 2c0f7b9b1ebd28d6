"""The public file that fixes everything about a collection before it begins."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from riata.errors import TaskError
from riata.files.fields import TABLE_BYTES, size_of
from riata.files.limit import MAX_BYTES, ReadLimit
from riata.files.text import parse_json, parse_toml, read_bytes
from riata.local.arms import SKETCH_WIDTH, SKETCHED, Arm
from riata.local.channel import LARGEST_EPSILON, Channel
from riata.local.channel_fields import read_channel
from riata.local.encoding import MOST_ENCODED, Encoding, Feature
from riata.local.fields import Fields
from riata.local.fourier import Fourier
from riata.local.generator import SEED_BITS, Generator
from riata.local.sketch import Sketch
from riata.wording import shown

if TYPE_CHECKING:
    from riata.local.planning import TaskPlan

FORMAT = 1
#: Which arms each kind of task has, with the part of the devices that each of them asks.
KINDS: dict[str, dict[str, float]] = {
    "mean": {"mean": 1.0},
    "sparse-mean": {"mean": 1.0},
    "linear": {"gram": 0.5, "cross": 0.5},
    "lasso": {"gram": 0.5, "cross": 0.5},
    "sparse-linear": {"gram": 0.5, "cross": 0.5},
    "logistic": {"gram": 0.5, "cross": 0.5},
    "kernel": {"gram": 0.5, "cross": 0.5},
}
DEGREES = {"mean": 1, "cross": 1, "gram": 2}
#: The part of a row's squared length that the constant for the intercept takes.
INTERCEPT = 0.15
#: Vectors whose second moments are kept whole.
MOST_COLUMNS = 4096
#: Numbers in the matrix of frequencies of a kernel that a small device can hold.
MOST_FREQUENCIES = 1 << 24
#: Bytes of a task file. It holds questions, and devices read it whole.
MOST_BYTES = 1 << 22
#: How far from 1 the shares of the arms may sum.
_SHARES_OFF = 1e-9


@dataclass(frozen=True, eq=False)
class Task:
    """Everything that devices and servers must agree on, and nothing about any person.

    Make one with `Task.load`, `Task.read` or `Task.from_table`; its `id` names it for ever.

    Attributes
    ----------
    kind : str
        What is to be learned: "mean", "sparse-mean", "linear", "lasso", "sparse-linear",
        "logistic" or "kernel".
    encoding : Encoding
        The features with their public bounds.
    target : Feature or None
        What is to be predicted.
    epsilon : float
        What one report costs the person who sends it.
    shares : dict
        The part of the devices that each arm asks.
    intercept : float
        The part of a row's squared length that a constant takes, 0 for none.
    cap : int
        How many reports one person may send. Each of them costs `epsilon`.
    seed : str
        Of the public transforms; any text.
    deadline : str
        The last day of the collection (UTC), or "".
    title : str
    kernel : tuple of (float, int), or None
        Width of the Gaussian kernel and number of Fourier pairs.
    """

    kind: str
    encoding: Encoding
    target: Feature | None
    epsilon: float
    shares: dict[str, float]
    intercept: float = 0.0
    cap: int = 1
    seed: str = ""
    deadline: str = ""
    title: str = ""
    kernel: tuple[float, int] | None = None
    _channels: dict[str, Channel] = field(default_factory=dict, repr=False)

    @classmethod
    def load(cls, path: str | Path, *, max_bytes: int = MAX_BYTES) -> Task:
        """Read a task file: TOML or JSON, by its ending.

        Parameters
        ----------
        path : path
        max_bytes : int, default=2**30
            The most memory that reading it may take, whoever made it.
        """
        limit = ReadLimit(max_bytes, TaskError)
        text = read_bytes(path, limit, "the task file")
        # No TOML begins with a brace: what `save` wrote is JSON, whatever the file is called.
        toml = Path(path).suffix == ".toml" and not text.startswith(b"{")
        return cls.read_within(text, limit, toml=toml)

    @classmethod
    def read(cls, text: bytes | str, *, toml: bool = False, max_bytes: int = MAX_BYTES) -> Task:
        """Read the bytes of a task file."""
        return cls.read_within(text, ReadLimit(max_bytes, TaskError), toml=toml)

    @classmethod
    def read_within(cls, text: bytes | str, limit: ReadLimit, *, toml: bool = False) -> Task:
        """Read a task that is a part of something larger."""
        if len(text) > MOST_BYTES:
            raise TaskError(
                f"The task file has {len(text):,} bytes: at most {MOST_BYTES:,} are possible. Ask "
                "for less in one task."
            )
        parse = parse_toml if toml else parse_json
        return cls._from_table(parse(text, limit, "The task file"), limit)

    @classmethod
    def from_table(cls, table: dict[str, Any], *, max_bytes: int = MAX_BYTES) -> Task:
        """Check a table of fields, fill in what is left to defaults, and choose the channels."""
        return cls._from_table(table, ReadLimit(max_bytes, TaskError))

    @classmethod
    def _from_table(cls, table: dict[str, Any], limit: ReadLimit) -> Task:
        limit.take(TABLE_BYTES * size_of(table, "features"), "The features of the task")
        fields = Fields(table)
        fields.whole("format", default=FORMAT, least=FORMAT, most=FORMAT)
        kind = fields.one_of("kind", tuple(KINDS))
        with_target = "cross" in KINDS[kind]
        epsilon = fields.number("epsilon", above=0.0, most=LARGEST_EPSILON)
        features = tuple(Feature.read(one) for one in fields.tables("features"))
        linear = with_target and kind != "kernel"
        task = cls(
            kind=kind,
            encoding=_encoding(fields, features),
            target=_target(fields.table("target"), kind) if with_target else None,
            epsilon=epsilon,
            shares={},
            intercept=_intercept(fields, INTERCEPT if linear else 0.0, linear),
            cap=fields.whole("cap", default=1, least=1, most=1000),
            seed=fields.text("seed", default=""),
            deadline=_deadline(fields),
            title=fields.text("title", default=""),
            kernel=_kernel(fields.table("kernel", default={})) if kind == "kernel" else None,
        )
        arms = fields.table("arms", default=dict(KINDS[kind]))
        fields.end()
        _all_different(features, task.target)
        task._check_sizes()
        return task._with_arms(arms)

    def _check_sizes(self) -> None:
        """Devices and servers can hold what the task asks for."""
        columns = self.encoding.columns
        if columns > MOST_ENCODED:
            raise TaskError(
                f"The field features has {columns} columns: at most {MOST_ENCODED} are possible. "
                "Correct the task file."
            )
        if self.kernel is not None and self.kernel[1] * columns > MOST_FREQUENCIES:
            raise TaskError(
                f"The field kernel.pairs is {self.kernel[1]}: with {columns} columns, at most "
                f"{MOST_FREQUENCIES // columns} are possible. Correct the task file."
            )
        if self.kind in ("linear", "lasso", "logistic") and self.vector_size > MOST_COLUMNS:
            raise TaskError(
                f"The field features has {columns} columns: the kind {self.kind} keeps all "
                f"products of two, and {MOST_COLUMNS} with the constant is the most. Choose the "
                'kind "sparse-linear", which screens them first.'
            )

    def _with_arms(self, fields: Fields) -> Task:
        """The same task with its shares and channels, checked against epsilon."""
        tables, shares = {}, {}
        for name in KINDS[self.kind]:
            raw = fields.take(name)
            tables[name] = Fields(
                raw if isinstance(raw, Mapping) else {"share": raw}, fields.path(name)
            )
            shares[name] = tables[name].number("share", above=0.0, least=0.0, most=1.0)
        fields.end()
        total = math.fsum(shares.values())
        if abs(total - 1.0) > _SHARES_OFF or any(seeds < 1 for _, seeds in owned(shares).values()):
            raise TaskError(
                f"The field arms is wrong: its shares ({', '.join(shares)}) sum to {total:.12g}, "
                "not to 1. Correct the task file."
            )
        channels = {
            name: read_channel(
                tables[name], DEGREES[name], self._size(name), self.epsilon, seeds, self.vector_size
            )
            for name, (_, seeds) in owned(shares).items()
        }
        return replace(self, shares=shares, _channels=channels)

    def table(self) -> dict[str, Any]:
        """All fields of the task, with nothing left to defaults."""
        table: dict[str, Any] = {
            "format": FORMAT,
            "kind": self.kind,
            "title": self.title,
            "epsilon": self.epsilon,
            "features": [feature.table() for feature in self.encoding.features],
            "length": self.encoding.length,
            "cap": self.cap,
            "seed": self.seed,
            "deadline": self.deadline,
            "intercept": self.intercept,
            "arms": {name: self._arm_table(name) for name in self.shares},
        }
        if self.target is not None:
            table["target"] = self.target.table()
        if self.kernel is not None:
            table["kernel"] = {"width": self.kernel[0], "pairs": self.kernel[1]}
        return table

    def _arm_table(self, name: str) -> dict[str, Any]:
        used = self._channels[name]
        return {
            "share": self.shares[name],
            "degree": used.degree,
            "size": used.size,
            "threshold": used.threshold,
            "coin": f"{used.coin:016x}",
        }

    @cached_property
    def canonical(self) -> bytes:
        """The one byte form of the task: JSON with sorted keys and no spaces."""
        text = json.dumps(self.table(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return text.encode()

    @cached_property
    def id(self) -> str:
        """The SHA-256 of the canonical bytes."""
        return hashlib.sha256(self.canonical).hexdigest()

    def save(self, path: str | Path) -> None:
        """Write the canonical bytes, which `load` reads again."""
        Path(path).write_bytes(self.canonical)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Task) and self.canonical == other.canonical

    def __hash__(self) -> int:
        return hash(self.canonical)

    @cached_property
    def generator(self) -> Generator:
        """The public function from reports to normal vectors."""
        return Generator(bytes.fromhex(self.id))

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """The questions, in the order of their seeds; together they own all seeds."""
        arms = []
        for name, (first, seeds) in owned(self.shares).items():
            sketch = None
            if self._sketched(name):
                sketch = Sketch(self.generator, self.vector_size, SKETCH_WIDTH)
            share, used = self.shares[name], self._channels[name]
            arms.append(Arm(name, share, first, seeds, used, sketch))
        return tuple(arms)

    def arm(self, name: str) -> Arm:
        """One arm by name."""
        return next(arm for arm in self.arms if arm.name == name)

    @property
    def vector_size(self) -> int:
        """Coordinates of the vector that a row becomes, before it is lifted."""
        if self.kernel is not None:
            return 2 * self.kernel[1]
        return self.encoding.columns + (self.intercept > 0)

    def _sketched(self, arm: str) -> bool:
        return DEGREES[arm] == 1 and self.vector_size > SKETCHED

    def _size(self, arm: str) -> int:
        """Coordinates of a report's normal vector."""
        return (SKETCH_WIDTH if self._sketched(arm) else self.vector_size) + 1

    @cached_property
    def _fourier(self) -> Fourier:
        assert self.kernel is not None
        width, pairs = self.kernel
        return Fourier(self.generator, self.encoding.columns, pairs, width)

    def vectors(self, encoded: np.ndarray) -> np.ndarray:
        """The vectors that encoded rows become, of length at most 1."""
        if self.kernel is not None:
            return self._fourier(encoded * self.encoding.length)
        if self.intercept == 0:
            return encoded
        constant = np.full(len(encoded), math.sqrt(self.intercept))
        return np.column_stack([encoded * math.sqrt(1.0 - self.intercept), constant])

    @property
    def total_epsilon(self) -> float:
        """What all reports of one person cost together."""
        return self.cap * self.epsilon

    def open_on(self, day: datetime.date) -> bool:
        """Whether reports are still accepted."""
        day = day.date() if isinstance(day, datetime.datetime) else day
        return not self.deadline or day <= datetime.date.fromisoformat(self.deadline)

    def plan(self, n: int, **guess: Any) -> TaskPlan:
        """What can be learned from `n` people, before anything is collected."""
        from riata.local.planning import plan

        return plan(self, n, **guess)

    def __repr__(self) -> str:
        return (
            f"<Task {self.id[:12]}: {self.kind}, {self.encoding.columns} columns, "
            f"epsilon {self.epsilon:g}>"
        )


def owned(shares: Mapping[str, float]) -> dict[str, tuple[int, int]]:
    """The first seed of each arm and their number: the last arm owns all that are left."""
    owners: dict[str, tuple[int, int]] = {}
    first = 0
    for name, share in shares.items():
        seeds = math.floor(share * 2**SEED_BITS)
        if len(owners) == len(shares) - 1:
            seeds = 2**SEED_BITS - first
        owners[name] = (first, seeds)
        first += seeds
    return owners


def _all_different(features: tuple[Feature, ...], target: Feature | None) -> None:
    asked = {f"features[{i}]": feature for i, feature in enumerate(features)}
    seen: set[str] = set()
    for where, feature in (asked | ({} if target is None else {"target": target})).items():
        if feature.name in seen:
            raise TaskError(
                f"The field {where}.name is {shown(feature.name)}: another feature has this name. "
                "Correct the task file."
            )
        seen.add(feature.name)


def _encoding(fields: Fields, features: tuple[Feature, ...]) -> Encoding:
    longest = math.sqrt(sum(feature.longest**2 for feature in features))
    return Encoding(features, fields.scale("length", default=longest))


def _target(fields: Fields, kind: str) -> Feature:
    target = Feature.read(fields)
    allowed = ("yes-no",) if kind == "logistic" else ("number", "yes-no")
    if target.kind not in allowed:
        raise fields.wrong("kind", target.kind, f"{kind} needs a target of {' or '.join(allowed)}")
    if target.weight != 1.0:
        raise fields.wrong("weight", target.weight, "the target has none")
    return target


def _intercept(fields: Fields, default: float, allowed: bool) -> float:
    return fields.number("intercept", default=default, least=0.0, most=0.9 if allowed else 0.0)


def _deadline(fields: Fields) -> str:
    value = fields.take("deadline", "")
    text = value.isoformat() if isinstance(value, datetime.date) else value
    try:
        good = text == "" or datetime.date.fromisoformat(text).isoformat() == text
    except (TypeError, ValueError):
        good = False
    if not good:
        raise fields.wrong("deadline", value, "it must be a day like 2027-01-31")
    return str(text)


def _kernel(fields: Fields) -> tuple[float, int]:
    width = fields.scale("width", default=1.0)
    pairs = fields.whole("pairs", default=64, least=1, most=MOST_COLUMNS // 2)
    fields.end()
    return width, pairs
