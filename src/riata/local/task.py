"""The public file that fixes everything about a collection before it begins."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import tomllib
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from riata.errors import TaskError
from riata.local.arms import SKETCH_WIDTH, SKETCHED, Arm
from riata.local.channel import LARGEST_EPSILON, Channel, channel
from riata.local.encoding import Encoding, Feature
from riata.local.fields import Fields
from riata.local.fourier import Fourier
from riata.local.generator import SEED_BITS, Generator
from riata.local.sketch import Sketch

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
    def load(cls, path: str | Path) -> Task:
        """Read a task file: TOML or JSON, by its ending."""
        path = Path(path)
        try:
            text = path.read_bytes()
        except OSError as problem:
            raise TaskError(f"Cannot read the task file {path}: {problem.strerror}.") from None
        return cls.read(text, toml=path.suffix == ".toml")

    @classmethod
    def read(cls, text: bytes | str, *, toml: bool = False) -> Task:
        """Read the bytes of a task file."""
        try:
            decoded = text.decode() if isinstance(text, bytes) else text
            table = tomllib.loads(decoded) if toml else json.loads(decoded)
        except (UnicodeDecodeError, ValueError) as problem:
            form = "TOML" if toml else "JSON"
            raise TaskError(f"The task file is not {form}: {problem}.") from None
        return cls.from_table(table)

    @classmethod
    def from_table(cls, table: dict[str, Any]) -> Task:
        """Check a table of fields, fill in what is left to defaults, and choose the channels."""
        fields = Fields(table)
        fields.whole("format", default=FORMAT, least=FORMAT, most=FORMAT)
        kind = fields.one_of("kind", tuple(KINDS))
        with_target = "cross" in KINDS[kind]
        epsilon = fields.number("epsilon", above=0.0, most=LARGEST_EPSILON)
        features = tuple(Feature.read(one) for one in fields.tables("features"))
        _all_different(features)
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
        return task._with_arms(arms)

    def _with_arms(self, fields: Fields) -> Task:
        """The same task with its shares and channels, checked against epsilon."""
        shares, channels = {}, {}
        for name in KINDS[self.kind]:
            raw = fields.take(name)
            arm = Fields(raw if isinstance(raw, dict) else {"share": raw}, fields.path(name))
            shares[name] = arm.number("share", above=0.0, most=1.0)
            size, seeds = self._size(name), math.floor(shares[name] * 2**SEED_BITS)
            best = channel(DEGREES[name], size, self.epsilon, seeds)
            degree = arm.whole("degree", default=best.degree, least=best.degree, most=best.degree)
            arm.whole("size", default=size, least=size, most=size)
            threshold = arm.number("threshold", default=best.threshold, above=-1e-9, most=6.0)
            channels[name] = Channel(degree, size, threshold, _coin(arm, best.coin))
            arm.end()
            if channels[name].epsilon(seeds) > self.epsilon * (1.0 + 1e-12):
                raise fields.wrong(name, raw, f"its reports cost more than epsilon {self.epsilon}")
        fields.end()
        if abs(sum(shares.values()) - 1.0) > 1e-9:
            raise TaskError(
                f"The shares of the arms ({', '.join(shares)}) sum to {sum(shares.values()):g}, "
                "not to 1. Correct the table arms in the task file."
            )
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
        arms, first = [], 0
        for number, (name, share) in enumerate(self.shares.items(), start=1):
            seeds = math.floor(share * 2**SEED_BITS)
            if number == len(self.shares):
                seeds = 2**SEED_BITS - first
            sketch = None
            if self._sketched(name):
                sketch = Sketch(self.generator, self.vector_size, SKETCH_WIDTH)
            arms.append(Arm(name, share, first, seeds, self._channels[name], sketch))
            first += seeds
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


def _all_different(features: tuple[Feature, ...]) -> None:
    seen: set[str] = set()
    for i, feature in enumerate(features):
        if feature.name in seen:
            raise TaskError(
                f"The field features[{i}].name is {feature.name!r}: another feature has this name. "
                "Correct the task file."
            )
        seen.add(feature.name)


def _encoding(fields: Fields, features: tuple[Feature, ...]) -> Encoding:
    longest = math.sqrt(sum(feature.longest**2 for feature in features))
    return Encoding(features, fields.number("length", default=longest, above=0.0))


def _target(fields: Fields, kind: str) -> Feature:
    target = Feature.read(fields)
    allowed = ("yes-no",) if kind == "logistic" else ("number", "yes-no")
    if target.kind not in allowed:
        raise fields.wrong("kind", target.kind, f"{kind} needs a target of {' or '.join(allowed)}")
    if target.weight != 1.0:
        raise fields.wrong("weight", target.weight, "the target has none")
    return target


def _intercept(fields: Fields, default: float, allowed: bool) -> float:
    value = fields.number("intercept", default=default, above=-1e-300, most=0.9 if allowed else 0.0)
    return value


def _deadline(fields: Fields) -> str:
    value = fields.take("deadline", "")
    text = value.isoformat() if isinstance(value, datetime.date) else value
    try:
        if text:
            datetime.date.fromisoformat(text)
    except (TypeError, ValueError):
        raise fields.wrong("deadline", value, "it must be a day like 2027-01-31") from None
    return str(text)


def _kernel(fields: Fields) -> tuple[float, int]:
    width = fields.number("width", default=1.0, above=0.0)
    pairs = fields.whole("pairs", default=64, least=1, most=MOST_COLUMNS // 2)
    fields.end()
    return width, pairs


def _coin(fields: Fields, default: int) -> int:
    text = fields.take("coin", f"{default:016x}")
    try:
        coin = int(text, 16)
    except (TypeError, ValueError):
        coin = 0
    if not 0 < coin < 2**64:
        raise fields.wrong("coin", text, "it must be a word of 16 hexadecimal digits above 0")
    return coin
