"""The public file that fixes everything about a collection before it begins."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from riata.errors import TaskError
from riata.files.fields import TABLE_BYTES, size_of
from riata.files.limit import MAX_BYTES, ReadLimit
from riata.files.text import parse_json, parse_toml, read_bytes
from riata.local.channel import LARGEST_EPSILON
from riata.local.encoding import MOST_ENCODED, Encoding, Feature, clip_to_unit_ball
from riata.local.fourier import FourierFeatures
from riata.local.generator import Generator
from riata.local.kinds import INTERCEPT, KINDS, MOST_COLUMNS, USUAL_SQUARE, TaskKind
from riata.local.questions import TARGET_SHARE, Question
from riata.local.task_fields import TaskFields
from riata.local.task_questions import read_questions
from riata.wording import number_of, shown

if TYPE_CHECKING:
    from riata.local.task_plan import TaskPlan

FORMAT = 1
#: Numbers in the matrix of frequencies of a kernel that a small device can hold.
MOST_FREQUENCIES = 1 << 24
#: Bytes of a task file. It holds questions, and devices read it whole.
MOST_BYTES = 1 << 22


@dataclass(frozen=True, eq=False)
class Task:
    """Everything that devices and servers must agree on, and nothing about any person.

    Make one with `Task.load`, `Task.read` or `Task.from_table`; its `id` names it for ever.

    Attributes
    ----------
    kind : str
        What is to be learned: a name in `riata.local.kinds.KINDS`.
    encoding : Encoding
        The features with their public bounds.
    target : Feature or None
        What is to be predicted.
    epsilon : float
        What one report costs the person who sends it.
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
    intercept: float = 0.0
    cap: int = 1
    seed: str = ""
    deadline: str = ""
    title: str = ""
    kernel: tuple[float, int] | None = None
    _questions: tuple[Question, ...] = field(default=(), repr=False)

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
        fields = TaskFields(table)
        fields.whole("format", default=FORMAT, least=FORMAT, most=FORMAT)
        kind = KINDS[fields.one_of("kind", tuple(KINDS))]
        epsilon = fields.number("epsilon", above=0.0, most=LARGEST_EPSILON)
        features = tuple(Feature.read(one) for one in fields.tables("features"))
        intercept = _read_intercept(fields, kind)
        kernel = _read_kernel(fields.table("kernel", default={})) if kind.kernel else None
        size = sum(feature.columns for feature in features) + (intercept > 0)
        size = size if kernel is None else 2 * kernel[1]
        arms = fields.table("arms", default=dict(kind.shares(size)))
        shortens = "joint" in arms and kernel is None
        task = cls(
            kind=kind.name,
            encoding=_read_encoding(fields, features, shortens),
            target=_read_target(fields.table("target"), kind) if kind.regression else None,
            epsilon=epsilon,
            intercept=intercept,
            cap=fields.whole("cap", default=1, least=1, most=1000),
            seed=fields.text("seed", default=""),
            deadline=fields.day("deadline"),
            title=fields.text("title", default=""),
            kernel=kernel,
        )
        fields.end()
        _require_different_names(features, task.target)
        task._check_sizes("joint" in arms)
        return replace(task, _questions=read_questions(arms, kind, epsilon, task.vector_size))

    def _check_sizes(self, joint: bool) -> None:
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
        if self.vector_size > MOST_COLUMNS and (joint or not self.spec.wide):
            raise TaskError(
                f"The field features has {columns} columns: the kind {self.kind} keeps all "
                f"products of two, and {MOST_COLUMNS} with the constant is the most. Choose the "
                'kind "sparse-linear" without arms, which screens them first.'
            )

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
            "arms": {question.name: question.table() for question in self._questions},
        }
        if self.target is not None:
            table["target"] = self.target.table()
        if self.kernel is not None:
            table["kernel"] = {"width": self.kernel[0], "pairs": self.kernel[1]}
        return table

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

    @property
    def spec(self) -> TaskKind:
        """What the kind of the task declares."""
        return KINDS[self.kind]

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """What devices report on, in the order of their seeds; together they own all seeds."""
        return tuple(q.with_sketch(self.generator, self.vector_size) for q in self._questions)

    def question(self, name: str) -> Question:
        """One question by name."""
        return next(question for question in self.questions if question.name == name)

    @property
    def shares(self) -> dict[str, float]:
        """The part of the devices that is asked each question."""
        return {question.name: question.share for question in self._questions}

    @property
    def vector_size(self) -> int:
        """Coordinates of the vector that a row becomes, before it is lifted."""
        if self.kernel is not None:
            return 2 * self.kernel[1]
        return self.encoding.columns + (self.intercept > 0)

    @cached_property
    def _fourier(self) -> FourierFeatures:
        assert self.kernel is not None
        width, pairs = self.kernel
        return FourierFeatures(self.generator, self.encoding.columns, pairs, width)

    @property
    def joint(self) -> bool:
        """Whether one question asks for the products of rows and target together."""
        return "joint" in self.shares

    @property
    def least_weight(self) -> float:
        """The smallest factor that `questions.join` may take off the squares of a row."""
        if not self.joint or self.kernel is not None:
            return 1.0
        square = sum(f.longest**2 for f in self.encoding.features) / self.encoding.length**2
        longest = (1.0 - self.intercept) * square + self.intercept
        return 1.0 / max(1.0, (1.0 - TARGET_SHARE) * longest + TARGET_SHARE)

    def vectors(self, encoded: np.ndarray) -> np.ndarray:
        """The vectors u that encoded rows become: of length at most 1, unless they are joint."""
        if self.kernel is not None:
            return self._fourier(clip_to_unit_ball(encoded) * self.encoding.length)
        if not self.joint:
            encoded = clip_to_unit_ball(encoded)
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

    def variant(self, **changes: object) -> Task:
        """The task with other fields, and channels chosen again."""
        return Task.from_table({**self.table(), "arms": self.shares, **changes})

    def with_epsilons(self, epsilons: Iterable[float]) -> dict[float, Task]:
        """The same task at several epsilons, of which each person may answer one.

        Publish all of the files. The choice is public: a report shows which task it answers. What
        was collected is learned from together by `solve_together`.
        """
        return {float(one): self.variant(epsilon=one) for one in epsilons}

    def plan(self, n: int, **guess: Any) -> TaskPlan:
        """What can be learned from `n` people, before anything is collected."""
        from riata.local.task_plan import plan

        return plan(self, n, **guess)

    def __repr__(self) -> str:
        return (
            f"<Task {self.id[:12]}: {self.kind}, {number_of(self.encoding.columns, 'column')}, "
            f"epsilon {self.epsilon:g}>"
        )


def _require_different_names(features: tuple[Feature, ...], target: Feature | None) -> None:
    asked = {f"features[{i}]": feature for i, feature in enumerate(features)}
    names: set[str] = set()
    for where, feature in (asked | ({} if target is None else {"target": target})).items():
        if feature.name in names:
            raise TaskError(
                f"The field {where}.name is {shown(feature.name)}: another feature has this name. "
                "Correct the task file."
            )
        names.add(feature.name)


def _read_encoding(fields: TaskFields, features: tuple[Feature, ...], shortens: bool) -> Encoding:
    """By default as long as rows can be, or usually are where a longer one loses only weight."""
    squares = (
        one.longest**2 * (USUAL_SQUARE if shortens and one.kind != "choice" else 1.0)
        for one in features
    )
    return Encoding(features, fields.scale("length", default=math.sqrt(sum(squares))))


def _read_target(fields: TaskFields, kind: TaskKind) -> Feature:
    target = Feature.read(fields)
    if target.kind not in kind.targets:
        needs = f"{kind.name} needs a target of {' or '.join(kind.targets)}"
        raise fields.wrong("kind", target.kind, needs)
    if kind.family == "poisson" and target.bounds[0] < 0:
        raise fields.wrong("bounds", list(target.bounds), "counts are at least 0")
    if target.weight != 1.0:
        raise fields.wrong("weight", target.weight, "the target has none")
    return target


def _read_intercept(fields: TaskFields, kind: TaskKind) -> float:
    default, most = (INTERCEPT, 0.9) if kind.intercept else (0.0, 0.0)
    return fields.number("intercept", default=default, least=0.0, most=most)


def _read_kernel(fields: TaskFields) -> tuple[float, int]:
    width = fields.scale("width", default=1.0)
    pairs = fields.whole("pairs", default=64, least=1, most=MOST_COLUMNS // 2)
    fields.end()
    return width, pairs
