"""What is wrong with the cells of a row, as a row of zeros and ones: for counts of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from riata.bounds import Bounds
from riata.data.columns import Column
from riata.data.schema.features import Cell, Feature, Nonzeros
from riata.data.schema.named_features import NamedFeatures
from riata.data.schema.target import Target

if TYPE_CHECKING:
    from riata.data.schema import Schema

#: The flags of each column of the file, in order.
FLAGS = (Cell.MISSING, Cell.OUTSIDE)


@dataclass(frozen=True)
class Flags(Feature):
    """Two entries for a column of the file: whether a cell is missing, and whether it is outside.

    Not both are set. A flag that is set has the value `weight`.
    """

    of: Feature | Target
    weight: float = 1.0

    @property
    def kind(self) -> str:  # type: ignore[override]
        return self.of.kind if isinstance(self.of, Feature) else "classes"

    @property
    def names(self) -> list[str]:
        return [f"{self.name} {flag.name.lower()}" for flag in FLAGS]

    @property
    def n_columns(self) -> int:
        return len(FLAGS)

    def encode(self, column: Column) -> Nonzeros:
        cells = self.of.cells(column)
        rows = np.flatnonzero(cells != Cell.GOOD)
        return Nonzeros(rows, cells[rows] - 1, np.full(len(rows), self.weight))


@dataclass(frozen=True)
class FlaggedSchema:
    """The schema that reads flags in place of rows, and the promise that they keep.

    Attributes
    ----------
    schema : Schema
        Two encoded columns for each column of the file, and two for its target, which come last.
    columns : tuple of str
        The columns of the file, without the target.
    kinds : tuple of str
        What each of them is.
    weight : float
        Of the target's flags: what is wrong with labels matters more, so half of the length of a
        row is theirs.
    """

    schema: Schema
    columns: tuple[str, ...]
    kinds: tuple[str, ...]
    weight: float

    @classmethod
    def of(cls, schema: Schema) -> FlaggedSchema:
        """For a schema of named columns and a target."""
        assert isinstance(schema.features, NamedFeatures)
        assert schema.target is not None
        each = [feature for feature in schema.features if feature.columns]
        weight = float(math.ceil(math.sqrt(len(each))))
        flags = [Flags(feature.name, feature) for feature in each]
        flags.append(Flags(schema.target.name, schema.target, weight))
        columns = tuple(feature.name for feature in each)
        kinds = tuple(feature.kind for feature in each)
        return cls(replace(schema, features=NamedFeatures(tuple(flags))), columns, kinds, weight)

    @property
    def bounds(self) -> Bounds:
        """At most one flag of each pair is set, and no entry is below 0. Longer rows are cut."""
        entries = np.repeat([1.0] * len(self.columns) + [self.weight], len(FLAGS))
        length = math.sqrt(len(self.columns) + self.weight**2) * (1 + 2.0**-20)
        return Bounds(x=entries, y=1.0, nonnegative=True, length=length)
