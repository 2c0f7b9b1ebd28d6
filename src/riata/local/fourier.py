"""Random Fourier features of a Gaussian kernel, as pairs whose length is exactly 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from riata.local.generator import Generator

#: Blocks of the generator that no report's normal vector reaches.
_FREQUENCIES = 1 << 42


@dataclass(frozen=True)
class FourierFeatures:
    """The map x -> (cos <w_j, x>, sin <w_j, x>) / sqrt(pairs) with w_j ~ N(0, I / width^2).

    Inner products of mapped rows are close to exp(-|x - x'|^2 / (2 width^2)).
    """

    generator: Generator
    columns: int
    pairs: int
    width: float

    @cached_property
    def _frequencies(self) -> np.ndarray:
        seeds = np.arange(self.pairs, dtype=np.uint64)
        return self.generator.normals(seeds, self.columns, _FREQUENCIES) / self.width

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        angles = rows @ self._frequencies.T
        return np.hstack([np.cos(angles), np.sin(angles)]) / math.sqrt(self.pairs)
