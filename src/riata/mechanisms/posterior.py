"""A draw from the exponential mechanism for least squares on a ball, exactly.

Proposals come from a normal distribution whose centre and factor are given numbers: float64 finds
them, and an exact draw corrects whatever it got wrong. Most proposals are clearly rejected in
float64. The others are decided, and rounded to the grid, in whole numbers with as many random bits
as it takes. Proofs are in docs/privacy/posterior.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from riata.errors import InvalidArgument
from riata.grid import X_STEPS
from riata.mechanisms.additive import NormalDraws
from riata.mechanisms.base import Mechanism
from riata.mechanisms.engine import Engine
from riata.mechanisms.exact import Refined, Uniforms, in_tail
from riata.mechanisms.noise import Noise
from riata.privacy.budget import CHANGED_CONTRIBUTIONS
from riata.privacy.events import BoundedRange, Event
from riata.queries.moments import Y_STEPS, SquaredMoments
from riata.vectors import length
from riata.wording import number_of

#: A released coefficient is a multiple of the radius times 2^-30.
_GRID_BITS = 30

#: The centre and the factor of the proposals are multiples of 2^-60.
_FACTOR_BITS = 60

#: How near to the sphere, in squared lengths, float64 may be trusted to reject, ...
_BAND = 2.0**-24

#: ... for coins no nearer than this to 0 or 1; normal draws have a tail of their own.
_TAIL = 2.0**-19

#: Proposals are made so many at a time.
_PROPOSALS = 64

#: Rows times epsilon. Beyond, draws would stay exact but become slow.
MOST_INFORMATION = 2.0**32


@dataclass(frozen=True)
class PosteriorSample(Mechanism):
    """Coefficients in a ball with density proportional to exp(-eta * sum of squared losses).

    The exponential mechanism (McSherry, Talwar 2007), with eta such that the privacy loss has
    range `epsilon`.
    """

    epsilon: float

    @property
    def event(self) -> Event:
        return BoundedRange(self.epsilon)

    def target(self, query: SquaredMoments, total: np.ndarray) -> Target:
        """The density to draw from, in units of the ball's radius."""
        changed = CHANGED_CONTRIBUTIONS[query.adjacency]
        eta = self.epsilon / (changed * query.loss_bound)
        x, y = query.reach / X_STEPS, query.y_bound / Y_STEPS
        whole = query.matrix(total)
        return Target(whole[:-1, :-1], whole[:-1, -1], eta * x * x, 2 * eta * x * y)

    def release(self, query: SquaredMoments, engine: Engine, noise: Noise) -> np.ndarray:
        """The coefficients; that of the constant column, if there is one, comes last."""
        if query.n_rows * self.epsilon > MOST_INFORMATION:
            raise InvalidArgument(
                f"{query.n_rows} rows at epsilon={self.epsilon:g} determine the coefficients so "
                "sharply that an exact draw would take too long. Choose a smaller epsilon."
            )
        target = self.target(query, engine.total(query))
        envelope = Envelope.of(target)
        outcomes = (envelope.decide(target, *variables) for variables in envelope.proposals(noise))
        accepted = next(outcome for outcome in outcomes if outcome is not None)
        return np.array(accepted) * (query.ball_radius * 2.0**-_GRID_BITS)

    def describe(self, times: int) -> str:
        each = f"exact posterior sample, epsilon {self.epsilon:.4g} per release"
        return f"{each}, {number_of(times, 'release')}"


@dataclass(frozen=True, eq=False)
class Target:
    """exp(linear * <cross, phi> - quadratic * <phi, gram phi>) for phi in the unit ball."""

    gram: np.ndarray
    cross: np.ndarray
    quadratic: float
    linear: float

    def exponent(self, phi: np.ndarray, bits: int) -> Fraction:
        """The logarithm of the density at phi / 2^bits, exactly."""
        first = Fraction(int(self.cross.astype(object) @ phi), 2**bits)
        second = Fraction(int(phi @ (self.gram.astype(object) @ phi)), 4**bits)
        return Fraction(self.linear) * first - Fraction(self.quadratic) * second


@dataclass(frozen=True, eq=False)
class Envelope:
    """Proposals phi = centre + (1 + 2^-widening) * factor @ z, with z standard normal.

    Everywhere target.exponent(phi) + |z|^2 / 2 <= level - tau * (1 - |phi|^2) / 2. So a proposal in
    the ball is accepted with the exponential of the left side minus the level as probability.
    """

    factor: np.ndarray
    centre: np.ndarray
    widening: int
    tau: float
    level: float
    steepness: float

    @classmethod
    def of(cls, target: Target) -> Envelope:
        """Proposals as like the target as float64 can make them, and how unlike they may be."""
        matrix, pull = 2 * target.quadratic * target.gram, target.linear * target.cross
        m, identity = len(pull), np.eye(len(pull))
        rounding = (m + 8) * 2.0**-51
        values, basis = np.linalg.eigh(matrix)
        np.maximum(values, 0, out=values)
        tau = _best_tau(values, np.square(basis.T @ pull))
        while True:
            precision, factor = matrix + tau * identity, _to_bits(basis / np.sqrt(values + tau))
            size, factor_size = _norm(precision), _norm(factor)
            off = _norm(factor.T @ (precision @ factor) - identity)
            off += rounding * factor_size**2 * size
            if off <= 1 / (4 * max(m, 8)):
                break
            tau *= 4
        widening = min(20, -math.frexp(2 * off)[1])  # 2^-widening is between 2 * off and 1/8

        centre = np.zeros(m)
        for _ in range(2):  # the second time for what the first one missed
            centre += factor @ (factor.T @ (pull - precision @ centre))
        centre = _to_bits(np.clip(centre, -1, 1))
        left = pull - precision @ centre
        scale = length(pull) + size * length(centre)
        tilt = factor_size * (length(left) + rounding * scale)
        level = float((pull + left) @ centre) / 2 + tau / 2 + tilt**2 * 2.0 ** (widening - 1)
        level += rounding * (scale * length(centre) + tau)
        return cls(factor, centre, widening, tau, level, 4 * (length(pull) + size))

    def proposals(self, noise: Noise) -> Iterator[tuple[list[Refined], Refined]]:
        """The variables of one proposal after another, clear rejections left out."""
        m = len(self.centre)
        while True:
            draws, coins = NormalDraws(_PROPOSALS * m, noise), Uniforms(_PROPOSALS, noise)
            heads = coins.middle()
            for i in np.flatnonzero(~self.clearly_rejected(draws, heads)):
                yield [draws.uniforms[j] for j in range(i * m, i * m + m)], coins[int(i)]

    def clearly_rejected(self, draws: NormalDraws, heads: np.ndarray) -> np.ndarray:
        """Which proposals are rejected whatever the bits are that were not yet drawn."""
        z = draws.values.reshape(len(heads), -1)
        phi = self.centre + (1 + 2.0**-self.widening) * (z @ self.factor.T)
        square = np.square(phi).sum(axis=1)
        rejected = square > 1 + _BAND
        rejected |= square < 1 + 2 / self.tau * np.log(heads) - _BAND
        return rejected & ~in_tail(heads, _TAIL) & ~draws.tails().reshape(z.shape).any(axis=1)

    def decide(self, target: Target, normals: list[Refined], coin: Refined) -> list[int] | None:
        """The multiples of 2^-30 nearest to a proposal if it is accepted, and None if it is not.

        Each round knows z to a box: a middle, and how far `apart` from it the rest can be. What it
        decides holds in the whole box, and it computes with integers and fractions only.
        """
        factor: Any = _integers(self.factor)
        centre: Any = _integers(self.centre)
        bits = 64
        while True:
            bits += 64
            box = [_more_bits(u, _quantile, bits) for u in normals]
            coin_low, coin_high = _more_bits(coin, _log, bits)
            z: Any = np.array([(low + high) // 2 for low, high in box], dtype=object)
            apart = sum(high for _, high in box) - int(z.sum())

            wide = bits + _FACTOR_BITS + self.widening  # phi in units of 2^-wide is an integer
            phi = (centre << (wide - _FACTOR_BITS)) + ((1 << self.widening) + 1) * (factor @ z)
            one, slack = 1 << wide, 2 * apart << (wide - bits)
            square = int(phi @ phi)
            if square > (one + slack) ** 2:
                return None
            if slack > one >> 2 or square > (one - slack) ** 2:
                continue

            margin = target.exponent(phi, wide) + Fraction(int(z @ z), 2 * 4**bits)
            margin = (margin - Fraction(self.level)) * 2**bits
            blur = apart * (Fraction(self.steepness) + 1 + Fraction(int(abs(z).sum()), 2**bits))
            if coin_low > margin + blur:
                return None
            found = _nearest(phi - slack, wide)
            if coin_high < margin - blur and found == _nearest(phi + slack, wide):
                return found


def _best_tau(values: np.ndarray, pulls: np.ndarray) -> float:
    """The tau with the fewest rejections: the mean squared length of a proposal is 1, or less."""
    low, high = 1.0, len(values) + math.sqrt(pulls.sum())
    for _ in range(60):
        middle = math.sqrt(low * high)
        spread = values + middle
        if (1 / spread + pulls / spread**2).sum() > 1:
            low = middle
        else:
            high = middle
    return high


def _norm(matrix: np.ndarray) -> float:
    return length(matrix.ravel())


def _to_bits(values: np.ndarray) -> np.ndarray:
    return np.ldexp(np.rint(np.ldexp(values, _FACTOR_BITS)), -_FACTOR_BITS)


def _integers(values: np.ndarray) -> np.ndarray:
    """What `_to_bits` left, as Python's integers."""
    return np.ldexp(values, _FACTOR_BITS).astype(np.int64).astype(object)


def _more_bits(u: Refined, function: Callable[[Any, Any], Any], bits: int) -> tuple[int, int]:
    """Integers below and above 2^bits times a function of the variable, after more bits of it."""
    while True:
        u.refine()
        low, high = u.between(function)
        mp = low.context
        if mp.isfinite(low) and mp.isfinite(high):
            return int(mp.floor(mp.ldexp(low, bits))), int(mp.ceil(mp.ldexp(high, bits)))


def _log(mp: Any, u: Any) -> Any:
    return mp.log(u)


def _quantile(mp: Any, u: Any) -> Any:
    return mp.sqrt(2) * mp.erfinv(2 * u - 1)


def _nearest(phi: np.ndarray, bits: int) -> list[int]:
    """The nearest multiples of the grid, upwards if there are two."""
    cut = bits - _GRID_BITS
    return [int(place + (1 << (cut - 1))) >> cut for place in phi]
