"""What is to be minimised, as public facts alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.grid import MOST_ROWS
from riata.losses import Loss
from riata.privacy.budget import CHANGED_CONTRIBUTIONS, REPLACE_ONE, check_adjacency
from riata.sets import ConstraintSet


@dataclass(frozen=True)
class Problem:
    """Minimise the mean loss over a set, for rows inside bounds.

    A problem knows no rows. Queries are made from it (`riata.queries`).

    Parameters
    ----------
    loss : Loss
    set : ConstraintSet
        Takes its dimension from `n_features`.
    bounds : Bounds
        With a bound on y.
    n_rows, n_features : int
    adjacency : {"replace-one", "add-remove", "replace-label"}
    fit_intercept : bool
        Whether an unconstrained offset is fitted beside theta.
    unpenalized : tuple of int
        Columns that are always in the model, in increasing order: the set says nothing about their
        coefficients.
    """

    loss: Loss
    set: ConstraintSet
    bounds: Bounds
    n_rows: int
    n_features: int
    adjacency: str = REPLACE_ONE
    fit_intercept: bool = False
    unpenalized: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("n_rows", "n_features"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"{name}={getattr(self, name)} must be at least 1.")
        if self.n_rows > MOST_ROWS:
            raise InvalidArgument(
                f"n_rows={self.n_rows} is more than the {MOST_ROWS} whose sums are exact. "
                "Fit on a sample of the rows."
            )
        if self.bounds.y is None:
            raise InvalidArgument(
                "The bounds say nothing about y: taking its range from the data would reveal it. "
                "Pass bounds=Bounds(x=..., y=...)."
            )
        if self.fit_intercept and self.loss.gradient_bounds is not None:
            raise InvalidArgument(
                f"The {self.loss.name} loss is a function of whole rows and has no intercept. Pass "
                "fit_intercept=False, and give the rows a column of ones if the loss needs one."
            )
        check_adjacency(self.adjacency)
        places = np.unique(np.asarray(self.unpenalized, dtype=np.int64)).tolist()
        if places and not 0 <= places[0] <= places[-1] < self.n_features:
            raise InvalidArgument(
                f"unpenalized={self.unpenalized!r} must be indices of {self.n_features} columns."
            )
        object.__setattr__(self, "unpenalized", tuple(places))
        for bounds in (self.bounds, self.gradient_bounds):
            bounds.check_size(self.n_features)
        object.__setattr__(self, "set", self.set.sized(self.n_features))

    @property
    def y_bound(self) -> float:
        assert self.bounds.y is not None
        return self.bounds.y

    @property
    def offset_bound(self) -> float:
        """The largest |intercept| that a solver may visit."""
        return self.loss.offset_bound(self.y_bound) if self.fit_intercept else 0.0

    @property
    def gradient_bounds(self) -> Bounds:
        """How long gradients of rows are in units of the slope bound: as rows are, or declared."""
        declared = self.loss.gradient_bounds
        return self.bounds if declared is None else declared

    @property
    def margin_bound(self) -> float:
        """The largest |margin| over all rows inside the bounds and all theta in the set.

        For a loss of whole rows, the largest inner product of a gradient and a theta.
        """
        return self.set.reach(self.gradient_bounds) + self.offset_bound

    @property
    def slope_bound(self) -> float:
        """The largest |slope| over all rows inside the bounds and all theta in the set."""
        return self.loss.slope_bound(self.margin_bound, self.y_bound)

    @property
    def worst_excess_risk(self) -> float:
        """The largest difference of the risks of two models in the set."""
        return 2 * self.slope_bound * self.margin_bound

    @property
    def penalized(self) -> np.ndarray:
        """The columns whose coefficients the set is about."""
        found = np.ones(self.n_features, dtype=bool)
        found[list(self.unpenalized)] = False
        return np.flatnonzero(found)

    def project(self, theta: np.ndarray) -> np.ndarray:
        """The nearest coefficients in the set; those of unpenalized columns stay as they are."""
        free = list(self.unpenalized)
        rest = theta.copy()
        rest[free] = 0.0
        found = self.set.project(rest)
        found[free] = theta[free]
        return found

    def worst_sensitivity(self, row_length: float) -> float:
        """The largest change between neighbours of a mean of slope * x, anywhere in the set.

        For planning only: a release uses the sensitivity at its own iterate, which is smaller.
        """
        changed = CHANGED_CONTRIBUTIONS[self.adjacency]
        return changed * self.slope_bound * row_length / self.n_rows

    @property
    def curvature(self) -> float:
        """A bound on the curvature constant of the risk over the set (Definition 2.1).

        The loss's second derivative times the square of the largest change of a margin between
        two points of the set. For the mean squared loss this is 2 max ||A(a - b)||^2.
        """
        change = 2 * self.set.reach(self.gradient_bounds)
        return self.loss.curvature_bound(self.y_bound) * change**2
