"""Long vectors through short reports: a seeded rotation, and a few of its coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import linalg

from riata.local.encoding import clip_to_unit_ball
from riata.local.generator import Generator

#: Blocks of the generator that no report's normal vector reaches.
_SIGNS, _PLACES = 1 << 40, 1 << 41
_FACTOR = 32


@dataclass(frozen=True)
class Sketch:
    """Sign flips and a fast Hadamard transform, of which each seed picks `width` coordinates.

    The rotation spreads every vector evenly, so the picked coordinates, scaled up, are about as
    long as the vector. A margin in the scale keeps nearly all of them inside the unit ball; those
    outside are shortened.

    Attributes
    ----------
    generator : Generator
        Of the task: it makes the signs and each seed's choice of coordinates.
    size, width : int
        Coordinates of the vector, and of the part that is reported.
    """

    generator: Generator
    size: int
    width: int

    @cached_property
    def padded(self) -> int:
        """The power of two that the transform needs."""
        return 1 << (self.size - 1).bit_length()

    @cached_property
    def _signs(self) -> np.ndarray:
        blocks = -(-self.padded // 128)
        words = self.generator.words(np.zeros(1, np.uint64), _SIGNS, _SIGNS + blocks)
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")[: self.padded]
        return 1.0 - 2.0 * bits

    @property
    def share(self) -> float:
        """The part of the rotated coordinates that a seed picks."""
        return self.width / self.padded

    @cached_property
    def scale(self) -> float:
        """What a picked coordinate is multiplied by."""
        return math.sqrt(self.padded / self.width / (1.0 + math.sqrt(8.0 / self.width)))

    def rotate(self, rows: np.ndarray) -> np.ndarray:
        """Each row, padded with zeros and rotated."""
        padded = np.zeros((len(rows), self.padded))
        padded[:, : self.size] = rows
        padded *= self._signs
        return hadamard(padded)

    def inverse(self, rotated: np.ndarray) -> np.ndarray:
        """The inverse of `rotate`, for one vector."""
        return (hadamard(rotated[None])[0] * self._signs)[: self.size]

    def places(self, seeds: np.ndarray) -> np.ndarray:
        """The coordinates that each seed picks: an arithmetic progression, all different."""
        words = self.generator.words(seeds, _PLACES, _PLACES + 1)[:, :2].astype(np.int64)
        start, stride = words[:, :1], words[:, 1:] | 1
        return (start + stride * np.arange(self.width)) & (self.padded - 1)

    def select(self, rotated: np.ndarray, seeds: np.ndarray) -> np.ndarray:
        """What is reported of each rotated row, when its seed is tried."""
        picked = np.take_along_axis(rotated, self.places(seeds), axis=1)
        return clip_to_unit_ball(picked * self.scale)


def hadamard(rows: np.ndarray) -> np.ndarray:
    """The orthonormal Walsh-Hadamard transform of each row, in factors of at most 32."""
    n, size = rows.shape
    done = 1
    while done < size:
        factor = min(_FACTOR, size // done)
        small = linalg.hadamard(factor) / math.sqrt(factor)
        if done == 1:
            rows = rows.reshape(-1, factor) @ small
        else:
            rows = small @ rows.reshape(-1, factor, done)
        done *= factor
    return rows.reshape(n, size)
