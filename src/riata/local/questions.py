"""The questions that a task may put to a device. Each device answers exactly one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from riata.local.channel import Channel
from riata.local.generator import Generator
from riata.local.sketch import Sketch

#: The degree of the channel of each question: of u, of y u, of u u', and of z z' where z is (u, y).
DEGREES = {"mean": 1, "cross": 1, "gram": 2, "joint": 2}
#: The part of the squared length of z that the target takes.
TARGET_SHARE = 0.4
#: Vectors longer than this go through a sketch of so many coordinates, unless they are needed
#: whole because their second moments are.
SKETCHED, SKETCH_WIDTH = 2048, 512


def is_sketched(name: str, size: int) -> bool:
    """Whether vectors of `size` coordinates are too long to be reported whole."""
    return DEGREES[name] == 1 and size > SKETCHED


def report_size(name: str, size: int) -> int:
    """Coordinates of a report's normal vector, one more than are reported."""
    return (SKETCH_WIDTH if is_sketched(name, size) else reported_size(name, size)) + 1


def reported_size(name: str, size: int) -> int:
    """Numbers that the answer is computed from, for vectors u of `size` coordinates."""
    return size + (name == "joint")


@dataclass(frozen=True)
class Question:
    """One moment that some of the devices report on, and the seeds that answer it.

    Which question a report answers shows in the report: it owns the `seeds` seeds from `first` on.

    Attributes
    ----------
    name : {"mean", "cross", "gram", "joint"}
        What is reported: u, y u or, at degree 2, u u' or z z' with u and y in one vector z.
    share : float
        The part of all devices that are asked.
    first, seeds : int
        The seeds of this question.
    channel : Channel
        What happens to the unit vector that the answer becomes.
    sketch : Sketch, optional
        For vectors too long to be reported whole.
    """

    name: str
    share: float
    first: int
    seeds: int
    channel: Channel
    sketch: Sketch | None = None

    def with_sketch(self, generator: Generator, size: int) -> Question:
        """The same question, with the sketch that vectors of `size` coordinates need, if any."""
        if not is_sketched(self.name, size):
            return self
        return replace(self, sketch=Sketch(generator, size, SKETCH_WIDTH))

    def table(self) -> dict[str, Any]:
        """Its table in a task file, with nothing left to defaults."""
        return {
            "share": self.share,
            "degree": self.channel.degree,
            "size": self.channel.size,
            "threshold": self.channel.threshold,
            "coin": f"{self.channel.coin:016x}",
        }

    @property
    def epsilon(self) -> float:
        """What one report costs."""
        return self.channel.epsilon(self.seeds, None if self.sketch is None else self.sketch.size)

    def noise(self, reports: float) -> float:
        """The noise of so many reports: by coordinate, or by entry off the diagonal."""
        noise = 1.0 / (self.channel.signal * math.sqrt(max(reports, 1)))
        if self.sketch is None:
            return noise
        return noise / (self.sketch.scale * math.sqrt(self.sketch.share))

    def prepare(self, rows: np.ndarray, targets: np.ndarray | None) -> np.ndarray:
        """What the device works on: done once, before any seed is tried."""
        if self.name == "joint":
            assert targets is not None
            return join(rows, targets)
        if self.name == "cross":
            assert targets is not None
            rows = rows * targets[:, None]
        return rows if self.sketch is None else self.sketch.rotate(rows)

    def directions(self, prepared: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        """The unit vector that each seed is held against: its last coordinate fills the length."""
        rows = prepared if self.sketch is None else self.sketch.select(prepared, seeds)
        return lift(rows)

    def seeds_from(self, words: np.ndarray) -> np.ndarray:
        """Random words as random seeds: the high half of each word times the number of seeds."""
        return _multiply_high(words, self.seeds) + np.uint64(self.first)

    def accepts(
        self,
        generator: Generator,
        prepared: np.ndarray,
        seeds: np.ndarray,
        coins: np.ndarray,
    ) -> np.ndarray:
        """Which of the seeds the devices accept; row i of `prepared` holds seed i."""
        normals = generator.normals(seeds, self.channel.size)
        products = np.einsum("ij,ij->i", normals, self.directions(prepared, seeds))
        return self.channel.accepts(products, coins)


def join(rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """z: rows and targets as one vector, the longer ones shortened by a factor of the row alone.

    So a model that is linear in u is as true of the shortened vectors, with weights that do not
    depend on the target.
    """
    squares = (1.0 - TARGET_SHARE) * np.einsum("ij,ij->i", rows, rows) + TARGET_SHARE
    z = np.column_stack([rows * math.sqrt(1.0 - TARGET_SHARE), targets * math.sqrt(TARGET_SHARE)])
    return z / np.sqrt(np.maximum(squares, 1.0))[:, None]


def lift(rows: np.ndarray) -> np.ndarray:
    """Vectors of the unit ball as unit vectors with one coordinate more."""
    rest = 1.0 - np.einsum("ij,ij->i", rows, rows)
    return np.column_stack([rows, np.sqrt(np.maximum(rest, 0.0))])


def _multiply_high(words: np.ndarray, count: int) -> np.ndarray:
    """floor(word * count / 2^64).

    Each value comes from floor(2^64 / count) or one more words. That is not quite even, but the
    same for all inputs, and the margin counts with the larger of the two: `unevenness`.
    """
    if count == 1 << 64:
        return words
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b = words >> half, words & mask
    c, d = np.uint64(count >> 32), np.uint64(count & 0xFFFFFFFF)
    low = b * d
    middle = a * d + (low >> half)  # cannot overflow: (2^32 - 1)^2 + 2^32 - 1 < 2^64
    other = b * c + (middle & mask)
    return a * c + (middle >> half) + (other >> half)
