"""Degree-k PrivUnitG: one unit vector through one seed, pure epsilon-LDP.

The device draws seeds until it accepts one. The normal vector g of a seed is accepted surely if
He_k(<g, v>) is at least a threshold, and else with probability e^-epsilon. The proof is in
docs/privacy/channel.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import mpmath
import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from riata.errors import InvalidArgument
from riata.local.channel_limits import LARGEST_MARGIN, LARGEST_THRESHOLD, WORDS, unevenness
from riata.local.generator import SEED_BITS

#: The largest epsilon of one report: beyond it a device would try for minutes.
LARGEST_EPSILON = 16.0


@dataclass(frozen=True)
class Channel:
    """What one question of a task does to a unit vector.

    Attributes
    ----------
    degree : int
        1 for reports whose mean is v, 2 for reports whose second moment shows v v'.
    size : int
        Coordinates of v.
    threshold : float
        Degree 1 accepts `<g, v> >= threshold` surely, degree 2 `|<g, v>| >= threshold`.
    coin : int
        Other vectors are accepted with probability `coin / 2^64`.
    """

    degree: int
    size: int
    threshold: float
    coin: int

    def accepts_surely(self, products: np.ndarray) -> np.ndarray:
        """Which inner products are accepted surely."""
        return (products if self.degree == 1 else np.abs(products)) >= self.threshold

    def accepts(self, products: np.ndarray, coins: np.ndarray) -> np.ndarray:
        """Which candidates are accepted, where `coins` are random words of 64 bits."""
        return self.accepts_surely(products) | (coins < np.uint64(self.coin))

    @property
    def _other(self) -> float:
        return self.coin / WORDS

    @property
    def sure_acceptance(self) -> float:
        """How probable it is that a standard normal number is accepted surely."""
        return self.degree * float(ndtr(-self.threshold))

    @property
    def acceptance(self) -> float:
        """The probability that one candidate is accepted, whatever v is."""
        return self.sure_acceptance + self._other * (1.0 - self.sure_acceptance)

    @property
    def tries(self) -> float:
        """Candidates that a device draws on average, whatever v is."""
        return 1.0 / self.acceptance

    @property
    def signal(self) -> float:
        """e_k: E[g] = e_1 v for degree 1, and E[g g'] = I + e_2 v v' for degree 2."""
        return (1.0 - self._other) * _mass(self.degree, self.threshold) / self.acceptance

    @property
    def length_excess(self) -> float:
        """What acceptance adds to the mean of |g|^2, whatever v is: E[<g, v>^2] - 1."""
        beyond = (1.0 - self._other) * _second(self.degree, self.threshold)
        return beyond / self.acceptance

    @property
    def noise(self) -> float:
        """The standard deviation of one coordinate (or entry) that one report adds."""
        return 1.0 / self.signal

    def margin(self, seeds: int, inputs: int | None = None) -> float:
        """How much epsilon the generator can cost: Theorem 4 of docs/privacy/channel.md.

        Parameters
        ----------
        seeds : int
            How many there are to choose from.
        inputs : int, optional
            Numbers of float64 that the direction is computed from, `size - 1` unless stated.
        """
        inputs = self.size - 1 if inputs is None else inputs
        off = unevenness(self.degree, self.size, seeds, inputs) / self.acceptance
        return math.log1p(off) - math.log1p(-off) if off < 0.5 else math.inf

    def epsilon(self, seeds: int = 1 << SEED_BITS, inputs: int | None = None) -> float:
        """What one report costs: the logarithm of the coin's odds, and the margin."""
        if self.coin < 1:
            return math.inf
        return -math.log(self._other) + self.margin(seeds, inputs)


def _mass(degree: int, threshold: float) -> float:
    """E[He_k(z); accepted surely] for a standard normal z."""
    density = math.exp(-0.5 * threshold * threshold) / math.sqrt(2.0 * math.pi)
    return density if degree == 1 else 2.0 * threshold * density


def _second(degree: int, threshold: float) -> float:
    """E[z^2 - 1; accepted surely] for a standard normal z: the tail's t times density."""
    density = math.exp(-0.5 * threshold * threshold) / math.sqrt(2.0 * math.pi)
    return degree * threshold * density


@lru_cache(maxsize=256)
def channel(
    degree: int,
    size: int,
    epsilon: float,
    seeds: int = 1 << SEED_BITS,
    inputs: int | None = None,
) -> Channel:
    """The channel with the strongest signal among those that cost at most `epsilon`."""
    if not 0.0 < epsilon <= LARGEST_EPSILON:
        raise InvalidArgument(
            f"epsilon is {epsilon}. One report can spend between 0 and {LARGEST_EPSILON:g}. "
            "Choose a value in this range."
        )
    best = _strongest(degree, size, _coin(epsilon))
    margin = best.margin(seeds, inputs)
    if margin > LARGEST_MARGIN * epsilon:
        raise InvalidArgument(
            f"epsilon is {epsilon} for vectors of {size} coordinates. The proof needs a margin of "
            f"{margin:.2g} for the generator, more than {LARGEST_MARGIN:.0%} of it. Choose "
            "fewer coordinates or an epsilon nearer to 1."
        )
    # The margin grows a little as the acceptance shrinks: a tenth more is enough.
    return _strongest(degree, size, _coin(epsilon - 1.1 * margin))


def _coin(epsilon: float) -> int:
    """The smallest word w with w / 2^64 >= e^-epsilon."""
    with mpmath.workprec(256):
        odds = mpmath.exp(-mpmath.mpf(Fraction(epsilon).numerator) / Fraction(epsilon).denominator)
        return int(mpmath.ceil(odds * WORDS))


def _strongest(degree: int, size: int, coin: int) -> Channel:
    def weakness(threshold: float) -> float:
        return -Channel(degree, size, threshold, coin).signal

    bounds = (0.0, LARGEST_THRESHOLD)
    found = minimize_scalar(weakness, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    # A short decimal, so that every language reads the same threshold.
    return Channel(degree, size, round(float(found.x), 6), coin)
