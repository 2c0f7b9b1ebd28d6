"""A public guess of what the rows look like."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from riata.arguments import check_known
from riata.errors import InvalidArgument
from riata.privacy.budget import check_number

DESIGNS = ("uniform", "signs", "normal", "binary")

#: A normal entry's bound is so many standard deviations.
NORMAL_BOUND = 4.0


@dataclass(frozen=True)
class Guess:
    """What somebody who has not seen the rows believes about them.

    Parameters
    ----------
    relevant : int, default=10
        How many columns matter.
    signal : float, default=0.5
        The R2 of the best linear model on fresh rows, or for labels its AUC.
    design : {"uniform", "signs", "normal", "binary"}, default="uniform"
        How entries fill their bounds: evenly, only at plus and minus the bound, normally with a
        bound of four standard deviations, or as 0 and the bound.
    spread : float, default=1/3
        The standard deviation of y over the bound on y. Numbers only.
    positives : float, default=0.5
        The share of the second class. Labels only.
    density : float, default=0.3
        The share of entries that are not 0, for "binary".
    correlation : float, default=0.0
        Of two columns in the same group, before they are fitted to their bounds.
    group : int, optional
        How many neighbouring columns are correlated; all of them if it is not given.
    alignment : float, default=0.0
        How often relevant columns push the target the way that their common factor does, from 0 for
        any direction to 1 for always.
    nonzeros : int, default=20
        How many entries of a row are not 0, for rows with a bound on their length. If these are
        less than half, rows are as long as the bound, and columns as unequal as words: the k-th
        occurs 1 / (k + 10)^a as often, with an `a` between 1 and 1.5.
    nonnegative : bool, default=False
        Whether entries are the sizes of what `design` draws, as the bounds promise.
    """

    relevant: int = 10
    signal: float = 0.5
    design: str = "uniform"
    spread: float = 1 / 3
    positives: float = 0.5
    density: float = 0.3
    correlation: float = 0.0
    group: int | None = None
    alignment: float = 0.0
    nonzeros: int = 20
    nonnegative: bool = False

    def __post_init__(self) -> None:
        check_known("design", self.design, DESIGNS, "it says how entries fill their bounds")
        for name in ("relevant", "nonzeros", "group"):
            number = getattr(self, name)
            if number is None:
                continue
            if check_number(name, number) < 1 or number != int(number):
                raise InvalidArgument(
                    f"{name}={number!r} must be a whole number of at least 1: it counts columns."
                )
        for name, why in (
            ("signal", "it is the R2 or the AUC of the best model, which noise keeps below 1"),
            ("positives", "it is the share of a class, and both classes occur"),
        ):
            if not 0 < check_number(name, getattr(self, name)) < 1:
                raise InvalidArgument(
                    f"{name}={getattr(self, name)!r} must lie strictly between 0 and 1: {why}."
                )
        for name, why in (
            ("spread", "a target cannot vary by more than its bound"),
            ("density", "it is a share of the entries"),
        ):
            if not 0 < check_number(name, getattr(self, name)) <= 1:
                raise InvalidArgument(f"{name}={getattr(self, name)!r} must lie in (0, 1]: {why}.")
        if not 0 <= check_number("alignment", self.alignment) <= 1:
            raise InvalidArgument(
                f"alignment={self.alignment!r} must lie in [0, 1]: it is a share of the columns."
            )
        if not 0 <= check_number("correlation", self.correlation) < 1:
            raise InvalidArgument(
                f"correlation={self.correlation!r} must lie in [0, 1): columns that are copies of "
                "each other cannot be told apart."
            )

    def entries(self, normals: np.ndarray) -> np.ndarray:
        """Entries in units of their bounds, from standard normals."""
        if self.design == "uniform":
            return self._signed(2 * ndtr(normals) - 1)
        if self.design == "signs":
            return self._signed(np.where(normals < 0, -1.0, 1.0))
        if self.design == "normal":
            return self._signed(np.clip(normals / NORMAL_BOUND, -1.0, 1.0))
        return (normals < ndtri(self.density)).astype(np.float64)

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Independent entries in units of their bounds."""
        if self.design == "uniform":
            return self._signed(rng.uniform(-1.0, 1.0, shape))
        if self.design == "signs":
            return self._signed(rng.integers(0, 2, shape) * 2.0 - 1.0)
        if self.design == "binary":
            return (rng.random(shape) < self.density).astype(np.float64)
        return self.entries(rng.standard_normal(shape))

    def _signed(self, entries: np.ndarray) -> np.ndarray:
        return np.abs(entries) if self.nonnegative else entries

    def shared(self, common: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Entries of columns that share a factor of their latent normals."""
        own = rng.standard_normal(common.shape)
        r = self.correlation
        return self.entries(math.sqrt(r) * common + math.sqrt(1 - r) * own)
