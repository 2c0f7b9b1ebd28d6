"""Numeric releases: an exact integer sum plus noise, rounded to a public grid.

What is released has exactly the law of the real number sum + noise after rounding. Proofs are in
docs/privacy/additive.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from riata.mechanisms.base import Mechanism
from riata.mechanisms.engine import Engine
from riata.mechanisms.exact import Uniforms, decide, in_tail
from riata.mechanisms.noise import Noise
from riata.privacy.events import Event, Gaussian, Pure, Unprotected
from riata.queries import Query
from riata.wording import number_of

#: A released number is a multiple of a power of two this many times below the noise's scale.
_GRID_BELOW_SCALE = 10

#: How near to a rounding boundary float64 may be trusted, in steps of the grid, ...
_BAND = 2.0**-20

#: ... for uniform variables no further out than this; beyond, and nearer, more bits are drawn.
_TAIL = 2.0**-19


class Additive(Mechanism):
    """Noise on every coordinate of the answer, scaled to its sensitivity."""

    @abstractmethod
    def scale(self, query: Query) -> float:
        """The scale of the noise, in units of the answer."""

    @abstractmethod
    def _draw(self, n: int, noise: Noise) -> Draws:
        """Standard noise for `n` coordinates."""

    def release(self, query: Query, engine: Engine, noise: Noise) -> np.ndarray:
        total = engine.total(query)
        # In steps of the sum. Dividing rounds, so the noise is made a little larger.
        scale = np.asarray(self.scale(query) / query.unit * (1 + 2.0**-50))
        return query.from_total(rounded(total, scale, self._draw(len(total), noise)))


@dataclass(frozen=True)
class GaussianMechanism(Additive):
    """Normal noise of standard deviation `noise_multiplier` times the l2 sensitivity."""

    norm: ClassVar[str | None] = "l2"

    noise_multiplier: float

    @property
    def event(self) -> Event:
        return Gaussian(self.noise_multiplier)

    def scale(self, query: Query) -> float:
        return self.noise_multiplier * query.sensitivity("l2")

    def _draw(self, n: int, noise: Noise) -> Draws:
        return NormalDraws(n, noise)

    def describe(self, times: int) -> str:
        return (
            f"Gaussian mechanism, noise {self.noise_multiplier:.4g} x sensitivity, "
            f"{number_of(times, 'release')}"
        )


@dataclass(frozen=True)
class LaplaceMechanism(Additive):
    """Laplace noise of scale l1 sensitivity / `epsilon`."""

    norm: ClassVar[str | None] = "l1"

    epsilon: float

    @property
    def event(self) -> Event:
        return Pure(self.epsilon)

    def scale(self, query: Query) -> float:
        return query.sensitivity("l1") / self.epsilon

    def _draw(self, n: int, noise: Noise) -> Draws:
        return LaplaceDraws(n, noise)

    def describe(self, times: int) -> str:
        each = f"Laplace mechanism, epsilon {self.epsilon:.4g} per release"
        return f"{each}, {number_of(times, 'release')}"


@dataclass(frozen=True)
class Exact(Mechanism):
    """The answer itself. It protects nothing and costs infinity: no finite ceiling allows it."""

    @property
    def event(self) -> Event:
        return Unprotected()

    def release(self, query: Query, engine: Engine, noise: Noise) -> np.ndarray:
        return query.from_total(engine.total(query))

    def describe(self, times: int) -> str:
        return f"no noise: {times} exact answers"


class Draws(ABC):
    """Standard noise: its value in float64, and its exact value wherever that is asked for."""

    def __init__(self, n: int, noise: Noise) -> None:
        self.uniforms = Uniforms(n, noise)
        self.middle = self.uniforms.middle()
        self.values = self._values()

    def tails(self) -> np.ndarray:
        """Where the first bits say too little about the value."""
        return in_tail(self.middle, _TAIL)

    @abstractmethod
    def _values(self) -> np.ndarray:
        """The values at the middles of the cells."""

    @abstractmethod
    def exact(self, i: int, mp: Any, u: Any) -> Any:
        """The value of draw `i` at the uniform variable `u`, in any precision."""


class NormalDraws(Draws):
    def _values(self) -> np.ndarray:
        return ndtri(self.middle)

    def exact(self, i: int, mp: Any, u: Any) -> Any:
        return mp.sqrt(2) * mp.erfinv(2 * u - 1)


class LaplaceDraws(Draws):
    def __init__(self, n: int, noise: Noise) -> None:
        self._negative = (noise.words(n) >> np.uint64(63)).astype(bool)
        super().__init__(n, noise)

    def _values(self) -> np.ndarray:
        size = -np.log(self.middle)
        return np.where(self._negative, -size, size)

    def exact(self, i: int, mp: Any, u: Any) -> Any:
        return mp.log(u) if self._negative[i] else -mp.log(u)


def rounded(total: np.ndarray, scale: np.ndarray, draws: Draws) -> np.ndarray:
    """`total` + `scale` * noise, rounded to multiples of a power of two, as floats."""
    exponent = np.maximum(np.frexp(scale)[1] - 1 - _GRID_BELOW_SCALE, 0).astype(np.int64)
    grid = np.ldexp(1.0, exponent)
    whole = (total >> np.minimum(exponent, 62)) * (exponent <= 62)
    rest = total - (whole << np.minimum(exponent, 62))
    place = rest * (1 / grid)
    place += draws.values * (scale / grid)
    nearest = np.rint(place)
    unsure = np.abs(place - nearest) > 0.5 - _BAND
    unsure |= draws.tails()
    scales, exponents = np.broadcast_to(scale, total.shape), np.broadcast_to(exponent, total.shape)
    for i in np.flatnonzero(unsure):
        nearest[i] = _exact_place(draws, int(i), int(rest[i]), float(scales[i]), int(exponents[i]))
    return (whole + nearest.astype(np.int64)) * grid


def _exact_place(draws: Draws, i: int, rest: int, scale: float, exponent: int) -> int:
    """The multiple of 2^exponent nearest to rest + scale * noise."""

    def place(mp: Any, u: Any) -> Any:
        return mp.ldexp(rest + mp.mpf(scale) * draws.exact(i, mp, u), -exponent)

    def nearest(value: Any) -> int:
        return int(value.context.floor(value + 0.5))

    return decide(draws.uniforms[i], place, nearest)
