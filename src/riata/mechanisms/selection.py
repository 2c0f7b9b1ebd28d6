"""Private selection: the numbers of candidates with large utilities.

All mechanisms see only how much one row can change one utility. Each takes the largest of utilities
with noise. Proofs are in docs/privacy/selection.md.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from riata.errors import InvalidArgument
from riata.mechanisms.base import Mechanism
from riata.mechanisms.engine import Engine
from riata.mechanisms.noise import Noise
from riata.mechanisms.noisy_max import (
    Candidates,
    Exponential,
    Gumbel,
    Laplace,
    Scale,
    first_of_two,
    largest,
)
from riata.mechanisms.rejection import draw
from riata.privacy.events import BoundedRange, Event, LaplaceMax, Pure, compose
from riata.queries import GradientStep, MeanVector, VertexUtilities
from riata.wording import number_of


@dataclass(frozen=True)
class Selection(Mechanism):
    """Selects one candidate with privacy parameter `epsilon`."""

    norm: ClassVar[str | None] = "linf"

    epsilon: float

    def release(self, query: VertexUtilities, engine: Engine, noise: Noise) -> int:
        """The number of the selected candidate."""
        scale = Scale(self.epsilon, query.sensitivity("linf"))
        values = query.from_total(engine.total(query))
        return self._choose(values, query.symmetric, scale, noise)

    @abstractmethod
    def _choose(self, values: np.ndarray, symmetric: bool, scale: Scale, noise: Noise) -> int: ...


@dataclass(frozen=True)
class ExponentialMechanism(Selection):
    """P(s) proportional to exp(epsilon * utility(s) / (2 * sensitivity)) (McSherry, Talwar 2007).

    Drawn as the arg max of utilities with Gumbel noise, or by rejection where the engine knows
    bounds on the utilities: both have exactly this distribution. The privacy loss has range
    epsilon, so the event is `BoundedRange` and not `Pure`.
    """

    @property
    def event(self) -> Event:
        return BoundedRange(self.epsilon)

    def release(self, query: VertexUtilities, engine: Engine, noise: Noise) -> int:
        """The number of the selected candidate, without all utilities if the engine can."""
        scale = Scale(self.epsilon, query.sensitivity("linf"))
        scores = engine.scores(query, scale.factor)
        if scores is None:
            return super().release(query, engine, noise)
        column, positive = draw(scores, scale, noise)
        return column if positive else column + query.source.theta.size

    def _choose(self, values: np.ndarray, symmetric: bool, scale: Scale, noise: Noise) -> int:
        if not symmetric:
            return largest(Candidates(values, scale), Gumbel(), noise)[0]
        # A column stands for two candidates of weights exp(v) and exp(-v): draw the column by
        # their sum, then the sign.
        columns = Candidates(np.abs(values), scale, both_signs=True)
        column = largest(columns, Gumbel(), noise)[0]
        positive = first_of_two(float(values[column]), scale, noise)
        return column if positive else column + len(values)

    def describe(self, times: int) -> str:
        each = f"exponential mechanism, epsilon {self.epsilon:.4g} per selection"
        return f"{each}, {number_of(times, 'selection')}"


@dataclass(frozen=True)
class TopK(Mechanism):
    """The `k` largest utilities' numbers, best first: `k` exponential mechanisms in one draw.

    One Gumbel variable a candidate and the k largest sums have the same distribution as k rounds of
    the exponential mechanism, each without those already chosen. For a symmetric list the
    candidates are the columns, with the size of their utility.

    Parameters
    ----------
    epsilon : float
        For each of the `k` selections.
    k : int
    """

    norm: ClassVar[str | None] = "linf"

    epsilon: float
    k: int

    @property
    def event(self) -> Event:
        return compose((BoundedRange(self.epsilon), self.k))

    def release(
        self, query: VertexUtilities | GradientStep | MeanVector, engine: Engine, noise: Noise
    ) -> np.ndarray:
        values = query.from_total(engine.total(query))
        if not 1 <= self.k <= len(values):
            raise InvalidArgument(
                f"k={self.k} must lie between 1 and the {len(values)} candidates."
            )
        scale = Scale(self.epsilon, query.sensitivity("linf"))
        candidates = Candidates(np.abs(values) if query.symmetric else values, scale)
        return np.array(largest(candidates, Gumbel(), noise, self.k))

    def describe(self, times: int) -> str:
        return (
            f"top {self.k} by Gumbel noise, epsilon {self.epsilon:.4g} for each, "
            f"{number_of(times, 'release')}"
        )


@dataclass(frozen=True)
class ReportNoisyMax(Selection):
    """The arg max of utilities with Laplace noise: the mechanism printed in the paper.

    epsilon-differentially private. It has no bounded range, so over many steps it costs more than
    the exponential mechanism at the same epsilon.
    """

    @property
    def event(self) -> Event:
        return LaplaceMax(self.epsilon)

    def _choose(self, values: np.ndarray, symmetric: bool, scale: Scale, noise: Noise) -> int:
        candidates = Candidates(listed(values, symmetric), scale)
        return largest(candidates, Laplace(len(candidates.values), noise), noise)[0]

    def describe(self, times: int) -> str:
        each = f"Laplace noisy max, epsilon {self.epsilon:.4g} per selection"
        return f"{each}, {number_of(times, 'selection')}"


@dataclass(frozen=True)
class PermuteAndFlip(Selection):
    """Permute-and-flip (McKenna, Sheldon 2020), drawn as the arg max with exponential noise.

    Never less accurate than the exponential mechanism at the same epsilon, but only
    epsilon-differentially private: the choice under pure differential privacy.
    """

    @property
    def event(self) -> Event:
        return Pure(self.epsilon)

    def _choose(self, values: np.ndarray, symmetric: bool, scale: Scale, noise: Noise) -> int:
        return largest(Candidates(listed(values, symmetric), scale), Exponential(), noise)[0]

    def describe(self, times: int) -> str:
        each = f"permute-and-flip, epsilon {self.epsilon:.4g} per selection"
        return f"{each}, {number_of(times, 'selection')}"


def listed(values: np.ndarray, symmetric: bool) -> np.ndarray:
    """The utilities of all candidates, those that a symmetric list leaves out included."""
    return np.concatenate([values, -values]) if symmetric else values
