"""Many numeric columns without names: what svmlight, NumPy and SciPy files hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from riata.data.schema.features import MOST_COLUMNS
from riata.data.schema.schema_fields import SchemaFields

#: So many entries a row is taken to have, where the memory for rows is estimated.
_ENTRIES_OF_ROW = 256


@dataclass(frozen=True)
class NumericBlock:
    """`count` numbers with one public bound, which they are divided by."""

    count: int
    bound: float = 1.0  # on the absolute value of an entry; what is larger counts as the bound
    nonnegative: bool = False  # whether no entry is below 0; those below count as 0
    first_index: int = 1  # the number of the first column in svmlight files: 1, or 0

    @property
    def columns(self) -> list[str]:
        """The columns of a file that are read by their name: none."""
        return []

    @property
    def likely_entries(self) -> int:
        """About how many entries of a row are not 0: a guess from public facts."""
        return min(self.count, _ENTRIES_OF_ROW)

    @property
    def names(self) -> list[str]:
        return [f"x[{i}]" for i in range(self.count)]

    @property
    def units(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each column, how many units of the file an encoded 1 is, and which value became 0."""
        return np.full(self.count, self.bound), np.zeros(self.count)

    def encode(self, x: sparse.csr_array) -> sparse.csr_array:
        """Rows in [-1, 1]: NaN becomes 0, duplicates are added, and entries are clipped."""
        with np.errstate(all="ignore"):
            kind = np.int32 if x.nnz < 2**31 else np.int64
            parts = (x.data.astype(np.float64), x.indices.astype(kind), x.indptr.astype(kind))
            made = sparse.csr_array(parts, shape=x.shape)
            made.sum_duplicates()
            made.data /= self.bound
            made.data[np.isnan(made.data)] = 0.0
            np.clip(made.data, 0.0 if self.nonnegative else -1.0, 1.0, out=made.data)
        made.eliminate_zeros()
        return made

    def blank(self, n_rows: int) -> sparse.csr_array:
        """Rows in which everything is missing."""
        return sparse.csr_array((n_rows, self.count), dtype=np.float64)

    def lines(self) -> list[tuple[str, Any, str]]:
        """Its fields in a schema, each with its meaning."""
        return [
            ("count", self.count, "how many columns there are"),
            ("bound", self.bound, "the largest absolute value; entries are divided by it"),
            ("nonnegative", self.nonnegative, "whether no entry is below 0"),
            ("first_index", self.first_index, "the number of the first column in svmlight files"),
        ]


def read_numeric_block(fields: SchemaFields) -> NumericBlock:
    """From a table of a schema."""
    made = NumericBlock(
        fields.whole("count", least=1, most=MOST_COLUMNS),
        fields.scale("bound", default=1.0),
        fields.flag("nonnegative", default=False),
        fields.whole("first_index", default=1, least=0, most=1),
    )
    fields.end()
    return made
