"""What the server keeps of the reports of one question: sums, never the reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from riata.local.generator import Generator
from riata.local.questions import Question
from riata.numeric import row_slices

#: Normal numbers that are made at once.
_AT_ONCE = 1 << 20
#: Where acceptance lengthens reports by less, their length says nothing.
_TOO_SHORT = 1e-6


class QuestionSums:
    """Sums over the reports of one question, which can be merged with those of other reports.

    Attributes
    ----------
    count : int
    total : ndarray
        Of the normal vectors (degree 1, by rotated coordinate if there is a sketch), or of their
        outer products (degree 2).
    squares : float
        The sum of all squared lengths.
    """

    def __init__(
        self, question: Question, generator: Generator, stores_seeds: bool = False
    ) -> None:
        self.question = question
        self.count = 0
        self.squares = 0.0
        self._generator = generator
        self._seeds: list[np.ndarray] | None = [] if stores_seeds else None
        self.total = np.zeros(total_shape(question, stores_seeds))

    def add(self, seeds: np.ndarray) -> None:
        """Count reports of this question."""
        self.count += len(seeds)
        if self._seeds is not None:
            self._seeds.append(seeds.copy())
            return
        for part in row_slices(len(seeds), self.question.channel.size, _AT_ONCE):
            self._add(seeds[part])

    def _add(self, seeds: np.ndarray) -> None:
        normals = self._generator.normals(seeds, self.question.channel.size)
        if self.question.channel.degree == 2:
            products = normals.T @ normals
            self.total += products
            self.squares += float(np.trace(products))
            return
        self.squares += float(np.einsum("ij,ij->", normals, normals))
        if self.question.sketch is None:
            self.total += normals.sum(axis=0)
        else:
            places = self.question.sketch.places(seeds)
            self.total += np.bincount(
                places.ravel(), normals[:, :-1].ravel(), minlength=len(self.total)
            )

    def merge(self, other: QuestionSums) -> None:
        """Count the reports of other sums too."""
        self.count += other.count
        self.squares += other.squares
        self.total = self.total + other.total
        if self._seeds is not None and other._seeds is not None:
            self._seeds += other._seeds

    @property
    def seeds(self) -> np.ndarray:
        """The stored seeds: these reports are read again, once the support is known."""
        assert self._seeds is not None
        return np.concatenate([np.zeros(0, np.uint64), *self._seeds])

    def vector(self) -> tuple[np.ndarray, float]:
        """An unbiased estimate of the mean of u or y u, and its noise by coordinate."""
        strength = self.question.channel.signal * max(self.count, 1)
        noise, sketch = self.question.noise(self.count), self.question.sketch
        if sketch is None:
            return self.total[:-1] / strength, noise
        return sketch.inverse(self.total / (strength * sketch.share * sketch.scale)), noise

    def matrix(self, places: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """An unbiased estimate of the mean of u u', and its noise by entry off the diagonal.

        Where seeds are stored, it can be made for the coordinates at a few `places`.
        """
        total = self.total if places is None else self._products(places)
        moments = (total / max(self.count, 1) - np.eye(len(total))) / self.question.channel.signal
        return moments if places is not None else moments[:-1, :-1], self.question.noise(self.count)

    def _products(self, places: np.ndarray) -> np.ndarray:
        sums = np.zeros((len(places), len(places)))
        seeds = self.seeds
        for part in row_slices(len(seeds), len(places), _AT_ONCE):
            normals = self._generator.coordinates(seeds[part], places)
            sums += normals.T @ normals
        return sums

    def honesty(self) -> Honesty | None:
        """What the lengths of the reports say about how many of them are honest."""
        channel = self.question.channel
        if self._seeds is not None or self.count == 0 or channel.length_excess < _TOO_SHORT:
            return None
        excess = self.squares / self.count - channel.size
        return Honesty(
            share=excess / channel.length_excess,
            error=math.sqrt(2.0 * channel.size + channel.length_excess**2 * 2.0)
            / (channel.length_excess * math.sqrt(self.count)),
        )

    def state(self) -> dict[str, np.ndarray]:
        """Everything that a file has to hold."""
        state = {"count": self.count, "squares": self.squares, "sums": self.total}
        if self._seeds is not None:
            state["seeds"] = self.seeds
        return {name: np.asarray(value) for name, value in state.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """The inverse of `state`. What no reports can have left behind is a ValueError."""
        count, squares, sums = (state[key] for key in ("count", "squares", "sums"))
        if count.shape != () or count.dtype.kind not in "iu" or not 0 <= count < 2**62:
            raise ValueError("count")
        if squares.shape != () or squares.dtype != float or not 0 <= squares < math.inf:
            raise ValueError("squares")
        ends = (sums.min(initial=0), sums.max(initial=0)) if sums.dtype == float else (np.nan,)
        if sums.shape != self.total.shape or not np.isfinite(ends).all():
            raise ValueError("sums")
        self.count, self.squares, self.total = int(count), float(squares), sums
        if self._seeds is not None:
            seeds = state["seeds"]
            if seeds.shape != (self.count,) or seeds.dtype != np.uint64:
                raise ValueError("seeds")
            self._seeds = [seeds]


@dataclass(frozen=True)
class PooledSums:
    """Sums of one question at several epsilons: each counts as its noise is small."""

    parts: tuple[QuestionSums, ...]

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    def vector(self) -> tuple[np.ndarray, float]:
        """As `QuestionSums.vector`."""
        return _pooled([part.vector() for part in self._counted])

    def matrix(self, places: np.ndarray | None = None) -> tuple[np.ndarray, float]:
        """As `QuestionSums.matrix`."""
        return _pooled([part.matrix(places) for part in self._counted])

    @property
    def _counted(self) -> tuple[QuestionSums, ...]:
        return tuple(part for part in self.parts if part.count) or self.parts[:1]


def _pooled(found: list[tuple[np.ndarray, float]]) -> tuple[np.ndarray, float]:
    """The mean of unbiased estimates, weighted by the inverses of their variances."""
    weights = np.array([1.0 / noise**2 for _, noise in found])
    pooled = sum(w * estimate for w, (estimate, _) in zip(weights, found, strict=True))
    return np.asarray(pooled / weights.sum()), float(1.0 / math.sqrt(weights.sum()))


def total_shape(question: Question, stores_seeds: bool) -> tuple[int, ...]:
    """The shape of the sums of a question, which are none where the seeds themselves are stored."""
    size = question.channel.size
    if stores_seeds:
        return ()
    if question.channel.degree == 2:
        return (size, size)
    return (size if question.sketch is None else question.sketch.padded,)


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
