"""Numeric releases: the answer plus noise scaled to its sensitivity.

Proofs are in docs/privacy/additive.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from riata.mechanisms.base import Engine, Mechanism
from riata.mechanisms.noise import Noise
from riata.privacy.events import Gaussian, Leaf, Pure, Unprotected
from riata.queries import Query


@dataclass(frozen=True)
class GaussianMechanism(Mechanism):
    """Normal noise of standard deviation `noise_multiplier` times the l2 sensitivity."""

    noise_multiplier: float

    @property
    def event(self) -> Leaf:
        return Gaussian(self.noise_multiplier)

    def release(self, query: Query, engine: Engine, noise: Noise) -> np.ndarray:
        answer = engine.evaluate(query)
        return answer + self.noise_multiplier * query.sensitivity("l2") * noise.normal(len(answer))

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
        answer = engine.evaluate(query)
        return answer + query.sensitivity("l1") / self.epsilon * noise.laplace(len(answer))

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
