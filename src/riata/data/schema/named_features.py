"""The features of a table: named columns, each with an encoding of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from riata.data.columns import Column, Texts
from riata.data.schema.features import Feature


@dataclass(frozen=True)
class NamedFeatures:
    """Features in the order of their encoded columns."""

    each: tuple[Feature, ...]

    def __iter__(self) -> Iterator[Feature]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    @property
    def columns(self) -> list[str]:
        """The columns of a file that are read."""
        return [name for feature in self.each for name in feature.columns]

    @property
    def names(self) -> list[str]:
        """A name for each encoded column."""
        return [name for feature in self.each for name in feature.names]

    @property
    def count(self) -> int:
        """The number of encoded columns."""
        return sum(feature.n_columns for feature in self.each)

    @property
    def nonnegative(self) -> bool:
        """Whether no encoded entry is below 0."""
        return all(feature.nonnegative for feature in self.each)

    @property
    def likely_entries(self) -> int:
        """About how many entries of an encoded row are not 0: a guess from public facts."""
        return sum(feature.likely_entries for feature in self.each)

    @property
    def units(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each encoded column, how many units of the file a 1 is, and which value became 0."""
        scales, centres = zip(*(feature.units for feature in self.each), strict=True)
        return np.concatenate(scales), np.concatenate(centres)

    @property
    def squared_length(self) -> int:
        """The largest squared length of an encoded row."""
        return sum(feature.squared_length for feature in self.each)

    def encode(self, columns: Mapping[str, Column], n_rows: int) -> sparse.csr_array:
        """Rows from columns by name. No value raises."""
        parts, first = [], 0
        for feature in self.each:
            rows, places, values = feature.encode_rows(columns)
            parts.append((rows, places + first, values))
            first += feature.n_columns
        *at, values = zip(*parts, strict=True)
        rows, places = (np.concatenate(one, dtype=np.int32, casting="same_kind") for one in at)
        found = sparse.coo_array((np.concatenate(values), (rows, places)), shape=(n_rows, first))
        return found.tocsr()

    def blank(self, n_rows: int) -> sparse.csr_array:
        """Rows in which everything is missing."""
        return self.encode(dict.fromkeys(self.columns, Texts.blank(n_rows)), n_rows)
