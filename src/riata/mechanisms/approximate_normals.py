"""Noise that is never released itself, known to a stated absolute error.

It only moves the objective of a minimisation, so it need not be rounded exactly: an error that is
bounded for every draw can be hidden by what is added to the minimiser.
"""

from __future__ import annotations

import math

import numpy as np

from riata.mechanisms.additive import Draws, NormalDraws
from riata.mechanisms.exact import Refined, in_tail
from riata.mechanisms.noise import Noise

#: float64 knows a draw from 52 bits to 2^-ERROR_BITS, unless its variable is this near to 0 or 1.
ERROR_BITS = 36
_TAIL = 2.0**-12


def approximate_normals(n: int, noise: Noise, bits: int = ERROR_BITS) -> np.ndarray:
    """`n` standard normals, each with an error of at most 2^-bits (or what float64 can hold)."""
    return _approximate(NormalDraws(n, noise), bits)


def approximate_gamma(shape: int, noise: Noise) -> float:
    """A Gamma variable: the sum of `shape` exponentials, each with an error of 2^-ERROR_BITS."""
    return float(_approximate(ExponentialDraws(shape, noise), ERROR_BITS).sum())


class ExponentialDraws(Draws):
    def at(self, middle: np.ndarray, part: slice) -> np.ndarray:
        return -np.log(middle)

    def exact(self, i: int, mp: object, u: object) -> object:
        return -mp.log(u)  # type: ignore[attr-defined]


def _approximate(draws: Draws, bits: int) -> np.ndarray:
    values = draws.values.copy()
    unsure = in_tail(draws.middle, _TAIL) if bits <= ERROR_BITS else np.full(len(values), True)
    for i in np.flatnonzero(unsure):
        values[i] = _pinned(draws.uniforms[int(i)], draws, int(i), max(bits, ERROR_BITS) + 2)
    return values


def _pinned(variable: Refined, draws: Draws, i: int, bits: int) -> float:
    """The draw, from as many bits as pin it down."""
    while True:
        low, high = variable.between(lambda mp, u: draws.exact(i, mp, u))
        if math.isfinite(low) and math.isfinite(high) and high - low <= 2.0**-bits:
            return float((low + high) / 2)
        variable.refine()
