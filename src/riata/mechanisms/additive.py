"""Numeric releases: an exact integer sum plus noise, rounded to a public grid.

What is released has exactly the distribution of the real number sum + noise after rounding. Proofs
are in docs/privacy/additive.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from riata.mechanisms.base import Mechanism
from riata.mechanisms.engine import Engine
from riata.mechanisms.exact import Uniforms, blocks, decide, in_tail
from riata.mechanisms.noise import Noise
from riata.privacy.events import Event, Gaussian, Pure, Unprotected
from riata.queries import Query
from riata.wording import number_of

#: A released number is a multiple of a power of two this many times below the noise's scale.
_GRID_BELOW_SCALE = 10

#: How near to a rounding boundary float64 may be trusted, in steps of the grid, ...
_BAND = 2.0**-20

#: ... for uniform variables no further out than this, ...
_TAIL = 2.0**-19

#: ... and in the tail, where a cell is wider, up to a band and an end of its own. Otherwise more
#: bits are drawn.
_TAIL_BAND, _FAR_TAIL = 2.0**-10, 2.0**-30


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

    @cached_property
    def middle(self) -> np.ndarray:
        """The middles of the cells of all variables."""
        return self.uniforms.middle()

    @cached_property
    def values(self) -> np.ndarray:
        """The values there."""
        return self.at(self.middle, slice(None))

    def tails(self) -> np.ndarray:
        """Where the first bits say too little about the value."""
        return in_tail(self.middle, _TAIL)

    @abstractmethod
    def at(self, middle: np.ndarray, part: slice) -> np.ndarray:
        """The values of some of the draws, at the middles of their cells."""

    @abstractmethod
    def exact(self, i: int, mp: Any, u: Any) -> Any:
        """The value of draw `i` at the uniform variable `u`, in any precision."""


class NormalDraws(Draws):
    def at(self, middle: np.ndarray, part: slice) -> np.ndarray:
        return ndtri(middle)

    def exact(self, i: int, mp: Any, u: Any) -> Any:
        return mp.sqrt(2) * mp.erfinv(2 * u - 1)


class LaplaceDraws(Draws):
    def __init__(self, n: int, noise: Noise) -> None:
        self._negative = noise.words(n) >= np.uint64(1 << 63)
        super().__init__(n, noise)

    def at(self, middle: np.ndarray, part: slice) -> np.ndarray:
        size = -np.log(middle)
        return np.where(self._negative[part], -size, size)

    def exact(self, i: int, mp: Any, u: Any) -> Any:
        return mp.log(u) if self._negative[i] else -mp.log(u)


def rounded(total: np.ndarray, scale: np.ndarray, draws: Draws) -> np.ndarray:
    """`total` + `scale` * noise, rounded to multiples of a power of two, as floats."""
    released = np.empty(len(total))
    for part in blocks(len(total)):
        its = scale[part] if scale.ndim else scale
        released[part] = _rounded(total[part], its, draws, part)
    return released


def _rounded(total: np.ndarray, scale: np.ndarray, draws: Draws, part: slice) -> np.ndarray:
    """The same for the draws of a part."""
    exponent = np.maximum(np.frexp(scale)[1] - 1 - _GRID_BELOW_SCALE, 0).astype(np.int64)
    grid = np.ldexp(1.0, exponent)
    whole = (total >> np.minimum(exponent, 62)) * (exponent <= 62)
    rest = total - (whole << np.minimum(exponent, 62))
    middle = draws.uniforms.middle(part)
    place = rest * (1 / grid)
    place += draws.at(middle, part) * (scale / grid)
    nearest = np.rint(place)
    for i in np.flatnonzero(_unsure(np.abs(place - nearest), middle)):
        sigma, power = (one[i] if scale.ndim else one for one in (scale, exponent))
        at = part.start + int(i)
        nearest[i] = _exact_place(draws, at, int(rest[i]), float(sigma), int(power))
    return (whole + nearest.astype(np.int64)) * grid


def _unsure(apart: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Where the first bits leave open which multiple is nearest, at a distance from it so far."""
    unsure: np.ndarray = apart > 0.5 - _BAND
    tail = np.flatnonzero(in_tail(middle, _TAIL))
    unsure[tail] = (apart[tail] > 0.5 - _TAIL_BAND) | in_tail(middle[tail], _FAR_TAIL)
    return unsure


def _exact_place(draws: Draws, i: int, rest: int, scale: float, exponent: int) -> int:
    """The multiple of 2^exponent nearest to rest + scale * noise."""

    def place(mp: Any, u: Any) -> Any:
        return mp.ldexp(rest + mp.mpf(scale) * draws.exact(i, mp, u), -exponent)

    def nearest(value: Any) -> int:
        return int(value.context.floor(value + 0.5))

    return decide(draws.uniforms[i], place, nearest)
