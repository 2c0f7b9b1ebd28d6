"""Private selection: the number of a candidate with a large utility.

All three mechanisms see only how much one row can change one utility. Proofs are in
docs/privacy/selection.md.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from riata.mechanisms.base import Engine, Mechanism
from riata.mechanisms.noise import Noise
from riata.privacy.events import BoundedRange, Leaf, Pure
from riata.queries import VertexUtilities


@dataclass(frozen=True)
class Selection(Mechanism):
    """Selects one candidate with privacy parameter `epsilon`."""

    epsilon: float

    def release(self, query: VertexUtilities, engine: Engine, noise: Noise) -> int:  # type: ignore[override]
        """The number of the selected candidate."""
        scale = 2 * query.sensitivity("linf") / self.epsilon
        return self._choose(engine.evaluate(query) / scale, query.mirrored, noise)

    @abstractmethod
    def _choose(self, utility: np.ndarray, mirrored: bool, noise: Noise) -> int:
        """Select, with utilities in units of 2 * sensitivity / epsilon."""


@dataclass(frozen=True)
class ExponentialMechanism(Selection):
    """P(s) proportional to exp(epsilon * utility(s) / (2 * sensitivity)) (McSherry, Talwar 2007).

    Drawn as the arg max of utilities with Gumbel noise, which has exactly this law. The privacy
    loss has range epsilon, so the event is `BoundedRange` and not `Pure`.
    """

    @property
    def event(self) -> Leaf:
        return BoundedRange(self.epsilon)

    def _choose(self, utility: np.ndarray, mirrored: bool, noise: Noise) -> int:
        if not mirrored:
            return int(np.argmax(utility + noise.gumbel(len(utility))))
        # A column stands for two candidates of weights exp(u) and exp(-u): draw the column by
        # their sum, 2 cosh(u), then the sign.
        size = np.abs(utility)
        column = int(np.argmax(size + np.log1p(np.exp(-2 * size)) + noise.gumbel(len(utility))))
        positive = noise.uniform(1)[0] < expit(2 * utility[column])
        return column if positive else column + len(utility)

    def describe(self, times: int) -> str:
        return f"exponential mechanism, epsilon {self.epsilon:.4g} a selection, {times} selections"


@dataclass(frozen=True)
class ReportNoisyMax(Selection):
    """The arg max of utilities with Laplace noise: the mechanism printed in the paper.

    epsilon-differentially private and nothing better, so over many steps it costs four times as
    much in zCDP as the exponential mechanism at the same epsilon.
    """

    @property
    def event(self) -> Leaf:
        return Pure(self.epsilon)

    def _choose(self, utility: np.ndarray, mirrored: bool, noise: Noise) -> int:
        return _largest(utility, mirrored, noise.laplace)

    def describe(self, times: int) -> str:
        return f"Laplace noisy max, epsilon {self.epsilon:.4g} a selection, {times} selections"


@dataclass(frozen=True)
class PermuteAndFlip(Selection):
    """Permute-and-flip (McKenna, Sheldon 2020), drawn as the arg max with exponential noise.

    Never less accurate than the exponential mechanism at the same epsilon, but only
    epsilon-differentially private: the choice under pure differential privacy.
    """

    @property
    def event(self) -> Leaf:
        return Pure(self.epsilon)

    def _choose(self, utility: np.ndarray, mirrored: bool, noise: Noise) -> int:
        return _largest(utility, mirrored, noise.exponential)

    def describe(self, times: int) -> str:
        return f"permute-and-flip, epsilon {self.epsilon:.4g} a selection, {times} selections"


def _largest(utility: np.ndarray, mirrored: bool, draw) -> int:  # type: ignore[no-untyped-def]
    """The number of the largest utility after independent noise on every candidate."""
    noisy = utility + draw(len(utility))
    best = int(np.argmax(noisy))
    if mirrored:
        negated = draw(len(utility)) - utility
        other = int(np.argmax(negated))
        return best if noisy[best] >= negated[other] else other + len(utility)
    return best
