"""Numeric releases: the answer plus noise scaled to its sensitivity.

Proofs are in docs/privacy/additive.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from riata.mechanisms.base import Engine, Mechanism
from riata.mechanisms.noise import Noise
from riata.privacy.events import Gaussian, Leaf, Pure, Unprotected
from riata.queries import Query

#: A released number is a multiple of a power of two this many times below the noise's scale.
_GRID_BELOW_SCALE = 10


@dataclass(frozen=True)
class GaussianMechanism(Mechanism):
    """Normal noise of standard deviation `noise_multiplier` times the l2 sensitivity."""

    noise_multiplier: float

    @property
    def event(self) -> Leaf:
        return Gaussian(self.noise_multiplier)

    def release(self, query: Query, engine: Engine, noise: Noise) -> np.ndarray:
        answer, scale = engine.evaluate(query), self.noise_multiplier * query.sensitivity("l2")
        return _on_grid(answer + scale * noise.normal(len(answer)), scale)

    def describe(self, times: int) -> str:
        return (
            f"Gaussian mechanism, noise {self.noise_multiplier:.4g} x sensitivity, {times} releases"
        )


@dataclass(frozen=True)
class LaplaceMechanism(Mechanism):
    """Laplace noise of scale l1 sensitivity / `epsilon`."""

    epsilon: float

    @property
    def event(self) -> Leaf:
        return Pure(self.epsilon)

    def release(self, query: Query, engine: Engine, noise: Noise) -> np.ndarray:
        answer, scale = engine.evaluate(query), query.sensitivity("l1") / self.epsilon
        return _on_grid(answer + scale * noise.laplace(len(answer)), scale)

    def describe(self, times: int) -> str:
        return f"Laplace mechanism, epsilon {self.epsilon:.4g} a release, {times} releases"


@dataclass(frozen=True)
class Exact(Mechanism):
    """The answer itself. It protects nothing and costs infinity: no finite ceiling allows it."""

    @property
    def event(self) -> Leaf:
        return Unprotected()

    def release(self, query: Query, engine: Engine, noise: Noise) -> np.ndarray:
        return engine.evaluate(query)

    def describe(self, times: int) -> str:
        return f"no noise: {times} exact answers"


def _on_grid(noisy: np.ndarray, scale: float) -> np.ndarray:
    """`noisy` rounded to a public grid: its low-order bits would tell of the answer (Mironov 2012).

    Rounding is post-processing, and a grid of a thousandth of the noise costs no accuracy.
    """
    grid = 2.0 ** (math.floor(math.log2(scale)) - _GRID_BELOW_SCALE)
    return np.rint(noisy / grid) * grid
