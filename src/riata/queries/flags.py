"""How many rows have something wrong. See docs/privacy/data_quality.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from riata.queries.mean_vector import MeanVector


@dataclass(frozen=True, eq=False)
class FlagCounts(MeanVector):
    """The mean of rows of flags: entries of at least 0 that say what is wrong with a row.

    Its bounds must say that no entry is below 0, so that clipping makes it true.
    """

    nonnegative_inner: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.bounds.nonnegative:
            raise ValueError("Flags are not negative, and their bounds must say so.")

    @property
    def symmetric(self) -> bool:
        return False
