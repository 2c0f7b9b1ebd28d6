"""What the server keeps of the reports of one arm: sums, never the reports."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from riata.local.arms import Arm
from riata.local.generator import Generator

#: Normal numbers that are made at once.
_AT_ONCE = 1 << 20
#: Where acceptance lengthens reports by less, their length says nothing.
_TOO_SHORT = 1e-6


class Tally:
    """Sums over the reports of one arm. Two tallies add up to the tally of all their reports.

    Attributes
    ----------
    count : int
    sums : ndarray
        Of the normal vectors (degree 1, by rotated coordinate where the arm has a sketch), or of
        their outer products (degree 2).
    squares : float
        The sum of all squared lengths.
    """

    def __init__(self, arm: Arm, generator: Generator, keeps_seeds: bool = False) -> None:
        self.arm = arm
        self.count = 0
        self.squares = 0.0
        self._generator = generator
        self.kept: list[np.ndarray] | None = [] if keeps_seeds else None
        self.sums = np.zeros(sums_shape(arm, keeps_seeds))

    def add(self, seeds: np.ndarray) -> None:
        """Count reports of this arm."""
        self.count += len(seeds)
        if self.kept is not None:
            self.kept.append(seeds.copy())
            return
        step = max(1, _AT_ONCE // self.arm.channel.size)
        for start in range(0, len(seeds), step):
            self._add(seeds[start : start + step])

    def _add(self, seeds: np.ndarray) -> None:
        normals = self._generator.normals(seeds, self.arm.channel.size)
        if self.arm.channel.degree == 2:
            products = normals.T @ normals
            self.sums += products
            self.squares += float(np.trace(products))
            return
        self.squares += float(np.einsum("ij,ij->", normals, normals))
        if self.arm.sketch is None:
            self.sums += normals.sum(axis=0)
        else:
            places = self.arm.sketch.places(seeds)
            self.sums += np.bincount(
                places.ravel(), normals[:, :-1].ravel(), minlength=len(self.sums)
            )

    def merge(self, other: Tally) -> None:
        """Count the reports of another tally too."""
        self.count += other.count
        self.squares += other.squares
        self.sums = self.sums + other.sums
        if self.kept is not None and other.kept is not None:
            self.kept += other.kept

    @property
    def seeds(self) -> np.ndarray:
        """The seeds of an arm whose reports are looked at again, once the support is known."""
        assert self.kept is not None
        return np.concatenate([np.zeros(0, np.uint64), *self.kept])

    def vector(self) -> tuple[np.ndarray, float]:
        """An unbiased estimate of the mean of what was carried, and its noise by coordinate."""
        strength = self.arm.channel.signal * max(self.count, 1)
        noise, sketch = self.arm.noise(self.count), self.arm.sketch
        if sketch is None:
            return self.sums[:-1] / strength, noise
        return sketch.back(self.sums / (strength * sketch.share * sketch.scale)), noise

    def matrix(self) -> tuple[np.ndarray, float]:
        """An unbiased estimate of the mean of u u', and its noise by entry off the diagonal."""
        size = self.arm.channel.size
        moments = (self.sums / max(self.count, 1) - np.eye(size)) / self.arm.channel.signal
        return moments[:-1, :-1], self.arm.noise(self.count)

    def matrix_at(self, places: np.ndarray) -> tuple[np.ndarray, float]:
        """The same for a few coordinates, from the reports themselves."""
        sums = np.zeros((len(places), len(places)))
        step = max(1, _AT_ONCE // max(1, len(places)))
        seeds = self.seeds
        for start in range(0, len(seeds), step):
            normals = self._generator.coordinates(seeds[start : start + step], places)
            sums += normals.T @ normals
        moments = (sums / max(self.count, 1) - np.eye(len(places))) / self.arm.channel.signal
        return moments, self.arm.noise(self.count)

    def honest(self) -> Honesty | None:
        """What the lengths of the reports say about how many of them are honest."""
        channel = self.arm.channel
        if self.kept is not None or self.count == 0 or channel.lengthening < _TOO_SHORT:
            return None
        excess = self.squares / self.count - channel.size
        return Honesty(
            share=excess / channel.lengthening,
            error=math.sqrt(2.0 * channel.size + channel.lengthening**2 * 2.0)
            / (channel.lengthening * math.sqrt(self.count)),
        )

    @property
    def state_names(self) -> list[str]:
        """The names of what `state` holds."""
        return ["count", "squares", "sums", *(["seeds"] if self.kept is not None else [])]

    def state(self) -> dict[str, Any]:
        """Everything that a file has to hold."""
        state = {"count": self.count, "squares": self.squares, "sums": self.sums}
        return state if self.kept is None else state | {"seeds": self.seeds}

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of `state`. What no reports can have left behind is a ValueError."""
        count, squares, sums = (state[key] for key in ("count", "squares", "sums"))
        if count.shape != () or count.dtype.kind not in "iu" or not 0 <= count < 2**62:
            raise ValueError("count")
        if squares.shape != () or squares.dtype != float or not 0 <= squares < math.inf:
            raise ValueError("squares")
        ends = (sums.min(initial=0), sums.max(initial=0)) if sums.dtype == float else (np.nan,)
        if sums.shape != self.sums.shape or not np.isfinite(ends).all():
            raise ValueError("sums")
        self.count, self.squares, self.sums = int(count), float(squares), sums
        if self.kept is not None:
            seeds = state["seeds"]
            if seeds.shape != (self.count,) or seeds.dtype != np.uint64:
                raise ValueError("seeds")
            self.kept = [seeds]


def sums_shape(arm: Arm, keeps_seeds: bool) -> tuple[int, ...]:
    """The shape of the sums of an arm, which are none where the seeds themselves are kept."""
    size = arm.channel.size
    if keeps_seeds:
        return ()
    if arm.channel.degree == 2:
        return (size, size)
    return (size if arm.sketch is None else arm.sketch.padded,)


@dataclass(frozen=True)
class Honesty:
    """The trace of the estimated second moment: 1 if all devices are honest, 0 for random bytes.

    Attributes
    ----------
    share : float
        The estimated part of reports that an honest device made.
    error : float
        Its standard error.
    """

    share: float
    error: float

    @property
    def suspicious(self) -> bool:
        """Whether the estimate is more than five standard errors away from 1."""
        return abs(self.share - 1.0) > 5.0 * self.error
