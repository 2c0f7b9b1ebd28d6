"""Gaussian noise on a sum over a secret sample of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riata.mechanisms.additive import GaussianMechanism
from riata.mechanisms.base import Mechanism
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Coins, Noise
from riata.privacy.events import Event, SampledGaussian
from riata.queries import Block, Query
from riata.queries.base import WrappedQuery
from riata.wording import number_of


@dataclass(frozen=True)
class SampledGaussianMechanism(Mechanism):
    """Each row takes part with probability `rate`, independently; then Gaussian noise.

    The sample is never seen, so at the same noise a release costs far less than on all rows. Its
    mean is taken over the expected number of rows in the sample.
    """

    norm: ClassVar[str | None] = "l2"

    noise_multiplier: float
    rate: float

    @property
    def event(self) -> Event:
        return SampledGaussian(self.noise_multiplier, self.rate)

    def sensitivity(self, query: Query) -> float:
        return _Sampled(query, 0).sensitivity("l2")

    def release(self, query: Query, engine: Engine, noise: Noise) -> np.ndarray:
        sampled = _Sampled(query, int(self.rate * 2**63), noise.coins())
        plain = GaussianMechanism(self.noise_multiplier)
        return plain.release(sampled, engine, noise) / self.rate

    def describe(self, times: int) -> str:
        return (
            f"Gaussian mechanism on a secret {self.rate:.3g} of the rows, noise "
            f"{self.noise_multiplier:.4g} x sensitivity, {number_of(times, 'release')}"
        )


@dataclass(frozen=True, eq=False)
class _Sampled(WrappedQuery):
    """A query over rows that a coin admits: with probability threshold / 2^63."""

    threshold: int
    coins: Coins | None = None

    def sensitivity(self, norm: str) -> float:
        # Of sampled rows one can be there without the other: `nonnegative_inner` does not help.
        return max(self.query.sensitivity(norm), super().sensitivity(norm))

    def block_sum(self, block: Block) -> np.ndarray:
        assert self.coins is not None
        words = self.coins.words(block.start, len(block.y)) >> np.uint64(1)
        sample = np.flatnonzero(words < np.uint64(self.threshold))
        return self.query.block_sum(block.some(sample))
