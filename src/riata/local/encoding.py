"""From one person's answers to numbers in a public range, the same on every device."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.errors import InvalidArgument
from riata.local.task_fields import TaskFields

KINDS = ("number", "yes-no", "choice", "vector")
#: Words for yes and no. What a device does not understand is missing.
_YES = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
#: The texts that are numbers, on every device: decimal, in ASCII, with blanks around them.
_BLANKS = " \t\n\r\f\v"
_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: Columns of all features together: what a small device can hold.
MOST_ENCODED = 1 << 22


@dataclass(frozen=True)
class Feature:
    """One question of a task and how its answer is encoded.

    A number is moved by `center` and divided by its largest distance from it, so that it lies in
    [-1, 1]; a choice becomes one 1 among zeros. Missing and unreadable answers count as the centre
    (numbers) or as no choice. All of it is multiplied by `weight`.

    Attributes
    ----------
    name : str
    kind : {"number", "yes-no", "choice", "vector"}
        A vector is `size` numbers with the same bounds.
    bounds : tuple of float
        The smallest and the largest number; answers outside are clipped on the device.
    center : float
        What an unremarkable answer is: the middle of the bounds unless stated.
    choices : tuple of str
    size : int
    weight : float
        More than 1 for what is believed to matter, less for what is not.
    question : str
        How people are asked, where that is not the name.
    """

    name: str
    kind: str
    bounds: tuple[float, float] = (0.0, 1.0)
    center: float = 0.5
    choices: tuple[str, ...] = ()
    size: int = 1
    weight: float = 1.0
    question: str = ""

    @property
    def columns(self) -> int:
        """Numbers that the answer becomes."""
        return len(self.choices) if self.kind == "choice" else self.size

    @property
    def names(self) -> list[str]:
        """A name for each of them."""
        if self.kind == "choice":
            return [f"{self.name}={choice}" for choice in self.choices]
        if self.kind == "vector":
            return [f"{self.name}[{i}]" for i in range(self.size)]
        return [self.name]

    @property
    def reach(self) -> float:
        """The largest distance of a number from the centre."""
        return max(self.bounds[1] - self.center, self.center - self.bounds[0])

    @property
    def longest(self) -> float:
        """The largest Euclidean length of the encoded answer."""
        return self.weight * (math.sqrt(self.size) if self.kind == "vector" else 1.0)

    def encode(self, answer: Any) -> np.ndarray:
        """The numbers of one answer. No answer raises: that would say something about it."""
        if self.kind == "choice":
            chosen = answer if isinstance(answer, str) else None
            return self.weight * np.array([float(chosen == choice) for choice in self.choices])
        if self.kind == "yes-no" and isinstance(answer, str):
            answer = _YES.get(answer.strip(_BLANKS).lower())
        return self.scale(_numbers(answer, self.size))

    def encode_many(self, answers: np.ndarray) -> np.ndarray:
        """The numbers of many answers, a row for each, as `encode` has them."""
        n = len(answers)
        if answers.dtype.kind in "fiub" and self.kind != "choice":
            given = answers.reshape(n, math.prod(answers.shape[1:]))
            numbers = np.full((n, self.size), math.nan)
            numbers[:, : given.shape[1]] = given[:, : self.size]
            return self.scale(numbers)
        if answers.dtype.kind == "U" and answers.ndim == 1:  # few of them differ
            texts, places = np.unique(answers, return_inverse=True)
            return self._stacked([self.encode(str(one)) for one in texts])[places]
        return self._stacked([self.encode(one) for one in answers])

    def _stacked(self, encoded: list[np.ndarray]) -> np.ndarray:
        return np.array(encoded).reshape(len(encoded), self.columns)

    def scale(self, numbers: np.ndarray) -> np.ndarray:
        """Encoded numbers, for one answer or an array of them; NaN becomes the centre."""
        with np.errstate(all="ignore"):  # of NaN there is a kind that warns
            away = np.clip(numbers, *self.bounds) - self.center
            return np.where(np.isnan(away), 0.0, away * (self.weight / self.reach))

    def answered(self, value: float) -> np.ndarray:
        """Each column where its own answer is 1 (yes, or this choice) or 0, as encoded."""
        if self.kind == "choice":
            return np.full(self.columns, self.weight * value)
        return self.scale(np.full(self.columns, float(value)))

    @classmethod
    def read(cls, fields: TaskFields) -> Feature:
        """From a table of a task file."""
        name = fields.text("name")
        kind = fields.one_of("kind", KINDS)
        weight = fields.scale("weight", default=1.0)
        question = fields.text("question", default="")
        if kind == "choice":
            choices = fields.texts("choices")
            fields.end()
            # From the centre 0 a choice reaches 1, as encoded.
            return cls(name, kind, (0.0, 1.0), 0.0, choices, 1, weight, question)
        size = fields.whole("size", least=1, most=MOST_ENCODED) if kind == "vector" else 1
        low, high = (0.0, 1.0) if kind == "yes-no" else fields.pair("bounds")
        center = fields.center(low, high)
        fields.end()
        return cls(name, kind, (low, high), center, (), size, weight, question)

    def table(self) -> dict[str, Any]:
        """The table of a task file that says the same, with nothing left to defaults."""
        table: dict[str, Any] = {"name": self.name, "kind": self.kind, "weight": self.weight}
        if self.question:
            table["question"] = self.question
        if self.kind == "choice":
            return table | {"choices": list(self.choices)}
        table["center"] = self.center
        if self.kind != "yes-no":
            table["bounds"] = list(self.bounds)
        if self.kind == "vector":
            table["size"] = self.size
        return table


@dataclass(frozen=True)
class Encoding:
    """All questions of a task, and the length that an encoded row may have."""

    features: tuple[Feature, ...]
    length: float

    @property
    def columns(self) -> int:
        return sum(feature.columns for feature in self.features)

    @property
    def names(self) -> list[str]:
        return [name for feature in self.features for name in feature.names]

    def by_column(self, value: Callable[[Feature], float]) -> np.ndarray:
        """A number of each feature, for each of its columns."""
        return np.concatenate([np.full(f.columns, value(f)) for f in self.features])

    def encode(self, row: Any) -> np.ndarray:
        """One person's row, divided by the public length.

        Parameters
        ----------
        row : mapping or sequence
            Answers by name, or in the order of the features. Missing answers are neutral.
        """
        if len(self.features) == 1 and self.features[0].kind == "vector":
            answers = [row.get(self.features[0].name) if isinstance(row, Mapping) else row]
        elif isinstance(row, Mapping):
            answers = [row.get(feature.name) for feature in self.features]
        else:
            answers = list(row) if isinstance(row, Iterable) else [row]
            if len(answers) != len(self.features):
                raise InvalidArgument(
                    f"The row has {len(answers)} answers, the task asks {len(self.features)}. Pass "
                    "one answer for each feature, or a dict by name."
                )
        parts = [f.encode(a) for f, a in zip(self.features, answers, strict=True)]
        return np.concatenate(parts) / self.length

    def encode_array(self, rows: np.ndarray) -> np.ndarray:
        """Many rows of numbers at once, for tasks without choices."""
        if rows.ndim != 2 or rows.shape[1] != self.columns:
            raise InvalidArgument(
                f"The rows have the shape {rows.shape}, the task has {self.columns} columns. Pass "
                "one column for each."
            )
        if any(feature.kind == "choice" for feature in self.features):
            raise InvalidArgument(
                "The task has choices, and an array of numbers does not say which. Pass columns of "
                "answers by name, or a list of rows."
            )
        parts, at = [], 0
        for feature in self.features:
            parts.append(feature.scale(rows[:, at : at + feature.columns]))
            at += feature.columns
        return np.ascontiguousarray(np.concatenate(parts, axis=1)) / self.length

    def encode_columns(self, columns: Any) -> np.ndarray:
        """Many rows at once, for features of every kind.

        Parameters
        ----------
        columns : mapping or data frame
            A column of answers for each feature, by name; a vector's has two dimensions. A column
            that is not there is without answers.
        """
        given = {f.name: columns.get(f.name) for f in self.features}
        answers = {name: np.asarray(one) for name, one in given.items() if one is not None}
        lengths = {one.shape[0] if one.ndim else -1 for one in answers.values()}
        if len(lengths) != 1 or -1 in lengths:
            raise InvalidArgument(
                "The columns do not have one common length. Pass a column for at least one of "
                f"{[feature.name for feature in self.features][:5]}, and all with an answer from "
                "each person."
            )
        (n,) = lengths
        nothing = np.full(n, math.nan)
        parts = [f.encode_many(answers.get(f.name, nothing)) for f in self.features]
        return np.ascontiguousarray(np.concatenate(parts, axis=1)) / self.length


def clip_to_unit_ball(rows: np.ndarray) -> np.ndarray:
    """Rows longer than 1 are shortened to 1."""
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return rows / np.maximum(lengths, 1.0)[:, None]


def _numbers(answer: Any, size: int) -> np.ndarray:
    """`size` numbers, NaN where there is none."""
    numbers = np.full(size, math.nan)
    if isinstance(answer, np.ndarray):
        values = answer.ravel()[:size]
        fast = values.dtype.kind in "fiub"
        numbers[: len(values)] = values if fast else [_number(value) for value in values]
    elif isinstance(answer, Sequence) and not isinstance(answer, str | bytes):
        listed = [_number(value) for value in answer[:size]]
        numbers[: len(listed)] = listed
    else:
        numbers[0] = _number(answer)
    return numbers


def _number(value: Any) -> float:
    if isinstance(value, np.ndarray | bytes | bytearray):
        return math.nan
    if isinstance(value, str):
        value = value.strip(_BLANKS)
        return float(value) if _DECIMAL.fullmatch(value) else math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number beyond float64 lies outside all bounds
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError, ArithmeticError):
        return math.nan
