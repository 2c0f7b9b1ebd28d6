"""From rows as they are given to rows that queries are summed over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.bounds import Bounds
from riata.projections import Projection


@dataclass(frozen=True, eq=False)
class Preparation:
    """Rows are clipped, projected where the plan says so, and put on the grid.

    What a row becomes depends on no other row, so rows can be prepared wherever they are.

    Parameters
    ----------
    given : Bounds
        What the rows as they are given are clipped to.
    projection : Projection, optional
    asked : Bounds, optional
        Of projected rows.
    """

    given: Bounds
    projection: Projection | None = None
    asked: Bounds | None = None

    @property
    def bounds(self) -> Bounds:
        """Of the rows that queries are about."""
        return self.given if self.asked is None else self.asked

    def project(self, x: Any) -> Any:
        """The rows that queries are about, before they are clipped to their bounds."""
        if self.projection is None:
            return x
        return self.projection.rows_of_steps(self.given.grid_x(x), self.given.x)

    def __call__(self, x: Any, y: np.ndarray) -> tuple[Any, np.ndarray]:
        """Rows on the grid, and their targets inside the bounds."""
        return self.bounds.grid_x(self.project(x)), self.bounds.clip_y(y)
