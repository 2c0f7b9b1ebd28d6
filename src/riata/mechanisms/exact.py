"""Uniform variables with as many bits as a decision needs.

A draw begins with the 52 bits that fit float64. They fix a cell, and float64 arithmetic nearly
always shows that the whole cell leads to the same outcome. Where it does not, more bits are drawn
and the outcome is computed with as many digits as it takes. So every outcome has exactly the
distribution that it would have with infinitely many bits; proofs are in
docs/privacy/exact_draws.md.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from riata.mechanisms.noise import Noise

#: The first bits of a uniform variable.
BITS = 52

#: float64 functions (log, exp, ndtri) are trusted to this relative error: 4,000 times more than
#: their authors state, and checked in tests/statistical/test_exact_draws.py.
TRUSTED = 2.0**-40

#: The bits that one refinement adds, and the digits beyond them that are computed.
_MORE, _GUARD = 64, 64

#: How many float64 numbers are worked on at a time.
_BLOCK = 2**13

_THREADS = threading.local()

#: mpmath keeps constants such as log 2 in caches that two threads could garble.
_ONE_AT_A_TIME = threading.Lock()
if hasattr(os, "register_at_fork"):  # a child must not wait for a thread that it does not have
    os.register_at_fork(
        before=_ONE_AT_A_TIME.acquire,
        after_in_parent=_ONE_AT_A_TIME.release,
        after_in_child=_ONE_AT_A_TIME.release,
    )


class Uniforms:
    """`n` independent uniform variables on (0, 1), each known to a cell of width 2^-52."""

    def __init__(self, n: int, noise: Noise) -> None:
        self._words = noise.words(n)
        self._noise = noise

    def middle(self, part: slice = slice(None)) -> np.ndarray:
        """The middles of the cells, exact in float64."""
        middle = (self._words[part] >> np.uint64(64 - BITS)) + 0.5
        middle *= 2.0**-BITS
        return middle

    def __getitem__(self, i: int) -> Refined:
        """Variable number `i`, ready for more bits. To be taken once."""
        return Refined(int(self._words[i]) >> (64 - BITS), self._noise)


class Refined:
    """One uniform variable, known to lie in [cell, cell + 1] / 2^bits."""

    def __init__(self, cell: int, noise: Noise) -> None:
        self._cell, self._bits, self._noise = cell, BITS, noise

    def refine(self) -> None:
        self._cell = (self._cell << _MORE) | int(self._noise.words(1)[0])
        self._bits += _MORE

    def between(self, function: Callable[[Any, Any], Any], size: int = 0) -> tuple[Any, Any]:
        """Bounds on ``function(mp, u)`` for every u in the cell.

        It is monotone in u, and written with the functions of an mpmath context. `size` is the
        binary exponent of the largest number that enters.
        """
        mp = _context()
        # In a tail as deep as the bits, an inverse function loses as many digits as there are bits.
        mp.prec = 2 * self._bits + _GUARD + max(size, 0)
        with _ONE_AT_A_TIME:
            ends = [function(mp, mp.ldexp(mp.mpf(self._cell + k), -self._bits)) for k in (0, 1)]
        low, high = min(ends), max(ends)
        slack = mp.ldexp(1, -self._bits)  # far more than what _GUARD digits leave open
        return (
            low - slack * (1 + abs(low)) if mp.isfinite(low) else low,
            high + slack * (1 + abs(high)) if mp.isfinite(high) else high,
        )


def in_tail(middle: np.ndarray, tail: float) -> np.ndarray:
    """Which uniform variables are nearer than `tail` to 0 or 1: their first bits say too little."""
    return np.abs(middle - 0.5) > 0.5 - tail


def blocks(n: int) -> Iterator[slice]:
    """0, ..., n - 1 in slices that fit a processor's cache."""
    for start in range(0, n, _BLOCK):
        yield slice(start, start + _BLOCK)


def _context() -> Any:
    """mpmath's functions, with a precision that belongs to this thread."""
    if not hasattr(_THREADS, "mp"):
        import mpmath  # hardly ever needed, and slow to import

        _THREADS.mp = mpmath.MPContext()
    return _THREADS.mp


def decide(u: Refined, function: Callable[[Any, Any], Any], outcome: Callable[[Any], Any]) -> Any:
    """``outcome(function(u))``, with more bits until the whole cell agrees on it."""
    while True:
        low, high = u.between(function)
        if math.isfinite(low) and math.isfinite(high) and outcome(low) == outcome(high):
            return outcome(low)
        u.refine()
