"""Products of two features: what one means may depend on the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.data.columns import Column
from riata.data.schema.features import Feature, Nonzeros


@dataclass(frozen=True)
class Interaction(Feature):
    """A column for each pair of columns of two features, with the products of their entries.

    The length of the products is the product of the lengths.
    """

    first: Feature
    second: Feature

    kind = "interaction"

    @property
    def columns(self) -> tuple[str, ...]:
        return ()

    @property
    def names(self) -> list[str]:
        return [f"{one} * {other}" for one in self.first.names for other in self.second.names]

    @property
    def n_columns(self) -> int:
        return self.first.n_columns * self.second.n_columns

    @property
    def nonnegative(self) -> bool:
        return self.first.nonnegative and self.second.nonnegative

    @property
    def likely_entries(self) -> int:
        return self.first.likely_entries * self.second.likely_entries

    @property
    def squared_length(self) -> int:
        return self.first.squared_length * self.second.squared_length

    @property
    def units(self) -> tuple[np.ndarray, np.ndarray]:
        """Where both numbers of the file are 0 the product of their entries is not."""
        (scales, centres), (others, middles) = self.first.units, self.second.units
        return np.kron(scales, others), 0.0 - np.kron(centres, middles)

    @property
    def meanings(self) -> tuple[str, ...]:
        return (
            "of a product (*), the change for one unit of both, where numbers count from their "
            "centres: the two alone are then for the centre of the other",
        )

    def encode(self, column: Column) -> Nonzeros:
        raise AssertionError("an interaction is made of two columns")

    def encode_rows(self, columns: Mapping[str, Column]) -> Nonzeros:
        one, other = (_by_rows(part.encode_rows(columns)) for part in (self.first, self.second))
        n_rows = len(columns[self.first.name])
        counts = np.bincount(other.rows, minlength=n_rows)
        starts = np.cumsum(counts) - counts
        many = counts[one.rows]
        left = np.repeat(np.arange(len(one.rows)), many)
        within = np.arange(len(left)) - np.repeat(np.cumsum(many) - many, many)
        right = starts[one.rows][left] + within
        places = one.columns[left] * self.second.n_columns + other.columns[right]
        return Nonzeros(one.rows[left], places, one.values[left] * other.values[right])

    def lines(self) -> list[tuple[str, Any, str]]:
        return [("of", [self.first.name, self.second.name], "two features, whose products it is")]


def _by_rows(found: Nonzeros) -> Nonzeros:
    """The same entries, row after row."""
    order = np.lexsort((found.columns, found.rows))
    return Nonzeros(found.rows[order], found.columns[order].astype(np.int64), found.values[order])
