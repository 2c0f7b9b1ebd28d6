"""The questions that a task may put to a device. Each device answers exactly one."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from riata.local.channel import Channel
from riata.local.generator import Generator
from riata.local.sketch import Sketch

#: Vectors longer than this go through a sketch of so many coordinates, unless they are needed
#: whole because their second moments are.
SKETCHED, SKETCH_WIDTH = 2048, 512


@dataclass(frozen=True)
class Arm:
    """One question, and the seeds that answer it.

    Which arm a report belongs to shows in the report: an arm owns the seeds from `first` on.

    Attributes
    ----------
    name : {"mean", "cross", "gram"}
        What is reported: u, y u or, at degree 2, u u'.
    share : float
        The part of all devices that are asked.
    first, seeds : int
        The seeds of this arm.
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

    def carried(self, rows: np.ndarray, targets: np.ndarray | None) -> np.ndarray:
        """What the device works on: done once, before any seed is tried."""
        if self.name == "cross":
            assert targets is not None
            rows = rows * targets[:, None]
        return rows if self.sketch is None else self.sketch.rotate(rows)

    def directions(self, carried: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        """The unit vector that each seed is held against: its last coordinate fills the length."""
        rows = carried if self.sketch is None else self.sketch.part(carried, seeds)
        return lifted(rows)

    def seeds_from(self, words: np.ndarray) -> np.ndarray:
        """Random words as random seeds of this arm: the high half of word times number of seeds."""
        return _scaled(words, self.seeds) + np.uint64(self.first)

    def accepted(
        self,
        generator: Generator,
        carried: np.ndarray,
        seeds: np.ndarray,
        coins: np.ndarray,
    ) -> np.ndarray:
        """Which of the seeds the devices accept; row i of `carried` holds seed i."""
        normals = generator.normals(seeds, self.channel.size)
        products = np.einsum("ij,ij->i", normals, self.directions(carried, seeds))
        return self.channel.accepts(products, coins)


def lifted(rows: np.ndarray) -> np.ndarray:
    """Vectors of the unit ball as unit vectors with one coordinate more."""
    rest = 1.0 - np.einsum("ij,ij->i", rows, rows)
    return np.column_stack([rows, np.sqrt(np.maximum(rest, 0.0))])


def _scaled(words: np.ndarray, count: int) -> np.ndarray:
    """floor(word * count / 2^64).

    Each value comes from floor(2^64 / count) or one more words. That is not quite even, but the
    same for all inputs, and the margin counts with the larger of the two (`limits.unevenness`).
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
