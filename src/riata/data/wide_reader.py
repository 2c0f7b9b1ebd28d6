"""What files without named columns have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from scipy import sparse

from riata.data.columns import Column
from riata.data.reader import Reader
from riata.data.wide import Wide
from riata.errors import DataError

if TYPE_CHECKING:
    from riata.data.schema import Schema


class WideReader(Reader):
    """A reader of rows without names for their columns."""

    def check(self, schema: Schema, target: bool) -> None:
        if not isinstance(schema.features, Wide):
            raise DataError(
                f"{self.title} has no named columns, and the schema names some. Describe it with "
                "[features] and count = ..., bound = ... in the schema."
            )
        self.check_sizes(schema.features, target)

    @abstractmethod
    def check_sizes(self, wide: Wide, target: bool) -> None:
        """Raise `DataError` unless sizes and types are what the schema says. Reads no row."""

    @abstractmethod
    def chunks(
        self, wide: Wide, rows: int, target: bool
    ) -> Iterator[tuple[sparse.csr_array, Column | None]]:
        """At most `rows` raw rows at a time, and their targets. Indices are in range."""
