"""What is to be predicted: a number in public bounds, or one of public classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.data.columns import Column
from riata.data.schema.features import Cell, flags
from riata.data.schema.number import Number
from riata.data.schema.schema_fields import SchemaFields
from riata.files.limit import ReadLimit
from riata.losses.cox import signed_durations


@dataclass(frozen=True)
class Target:
    """The target of a schema. It has bounds or labels, and not both.

    Values outside the bounds are clipped, and what is missing counts as the middle. A row with
    another label is in none of the classes.

    With the column of an event the target is a duration up to the upper bound. It is encoded as
    itself if the event was observed, as its negative if it was censored, and what is missing counts
    as censored at 0.
    """

    name: str  # of the column, or "" in files without named columns
    bounds: tuple[float, float] | None = None
    labels: tuple[Any, ...] = ()
    event: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the file."""
        return (self.name, self.event) if self.event else (self.name,)

    @property
    def classes(self) -> np.ndarray | None:
        """The labels in the order of their codes, which is that of the estimators."""
        return np.unique(np.asarray(self.labels)) if self.labels else None

    @property
    def centre(self) -> float:
        """The middle of the bounds, which becomes 0."""
        return 0.0 if self.bounds is None or self.event else (self.bounds[0] + self.bounds[1]) / 2

    @property
    def half(self) -> float | None:
        """How far a centred target reaches."""
        if self.bounds is None:
            return None
        return max(self.bounds[1] - self.centre, self.centre - self.bounds[0])

    def encode(self, column: Column, event: Column | None = None) -> np.ndarray:
        """Centred numbers, or codes of classes, -1 for none. No value raises.

        `event` is the column of that name, if the target has one.
        """
        if self.event:
            assert self.bounds is not None
            happened = np.zeros(len(column.numbers())) if event is None else flags(event)
            return signed_durations(column.numbers(), happened, self.bounds[1])
        if self.bounds is not None:
            away = np.clip(column.numbers(), *self.bounds) - self.centre
            return np.where(np.isnan(away), 0.0, away)
        classes = self.classes
        assert classes is not None
        if classes.dtype.kind == "b":
            return flags(column).astype(np.float64)
        if classes.dtype.kind in "iuf":
            numbers = column.numbers()
            codes = np.minimum(np.searchsorted(classes, numbers), len(classes) - 1)
            return np.where(classes[codes] == numbers, codes, -1.0)
        table = {label: code for code, label in enumerate(classes.tolist())}
        return column.texts().encode(lambda word: table.get(word, -1), -1).astype(np.float64)

    def cells(self, column: Column) -> np.ndarray:
        """A `Cell` for each row: of labels, outside is what is none of the classes."""
        if self.bounds is not None:
            return Number(self.name, self.bounds, sum(self.bounds) / 2).cells(column)
        missing = column.texts().encode(lambda word: Cell.GOOD, Cell.MISSING)
        unknown = (self.encode(column) < 0) & (missing == Cell.GOOD)
        return np.where(unknown, Cell.OUTSIDE, missing)

    def lines(self) -> list[tuple[str, Any, str]]:
        """Its fields in a schema, each with its meaning."""
        named = [("name", self.name, "the column")] if self.name else []
        if self.bounds is None:
            return [
                *named,
                ("classes", list(self.labels), "rows with other labels are in none of them"),
            ]
        if self.event:
            meaning = "durations beyond are censored there, missing ones count as censored at 0"
            event = ("event", self.event, "yes where the event was observed at the end")
            return [*named, ("bounds", list(self.bounds), meaning), event]
        meaning = "values outside are clipped, missing ones count as the middle"
        return [*named, ("bounds", list(self.bounds), meaning)]


def read_target(fields: SchemaFields, named: bool, limit: ReadLimit) -> Target:
    """From a table of a schema, whose file has named columns or not."""
    name = fields.name("name") if named else ""
    if not named and (given := fields.take("name", "")):
        raise fields.wrong("name", given, "files without named columns have one target without one")
    classes = fields.take("classes", None)
    bounds = fields.take("bounds", None)
    event = fields.name("event") if "event" in fields else ""
    if (classes is None) == (bounds is None):
        raise fields.error(
            f"The field {fields.path('bounds')} or {fields.path('classes')} is needed, and not "
            "both: bounds = [low, high] for numbers, classes = [...] for labels. Correct the "
            "schema."
        )
    again = SchemaFields({"bounds": bounds, "classes": classes}, "target")
    fields.end()
    if bounds is not None:
        found = Target(name, bounds=again.pair("bounds"), event=event)
        if event and (not named or found.bounds is None or found.bounds[0] != 0):
            raise fields.wrong(
                "event", event, "it goes with the name of a duration and bounds = [0, horizon]"
            )
        return found
    if event:
        raise fields.wrong(
            "event", event, "it goes with a duration in bounds, and not with classes"
        )
    labels = again.classes("classes")
    longest = max(len(label) if isinstance(label, str) else 1 for label in labels)
    # An array of texts gives each of them the room of the longest, and is sorted in a copy.
    limit.take(16 * longest * len(labels), f"The {len(labels)} classes of the schema")
    return Target(name, labels=labels)
