"""The exponential mechanism on utilities that are known only up to bounds.

Candidates are proposed from an envelope, whole numbers that are at least as large as the weights,
and accepted with the ratio of the two. Mostly the bounds of a candidate decide; otherwise it is
evaluated, alone. The distribution is exactly that of the mechanism, whatever the bounds are: a
loose one costs time. Proofs are in docs/privacy/rejection.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from riata.mechanisms.engine import Scores
from riata.mechanisms.envelope import (
    CELL,
    COIN_BITS,
    ROUNDING,
    SLACK,
    TOTAL_BITS,
    extremes,
    log_weight,
    positive_probability,
)
from riata.mechanisms.exact import Refined, decide
from riata.mechanisms.noise import Noise
from riata.mechanisms.noisy_max import Scale

#: Random words are drawn so many at a time.
_WORDS = 64


class SignedCandidate(NamedTuple):
    candidate: int
    positive: bool


def band(value: float) -> float:
    """How far off a computed probability may be, for a scaled utility."""
    return SLACK + ROUNDING * abs(value)


class Envelope:
    """Whole numbers, one for all candidates of a group: at least 2^bits * weight / e^top."""

    def __init__(self, scores: Scores, factor: float) -> None:
        counts, bounds = scores.groups()
        scaled = bounds * factor
        sizes = np.abs(scaled)
        logs = scaled + (SLACK + ROUNDING * sizes)
        if scores.symmetric:
            logs += np.log1p(np.exp(-2 * sizes))
        logs[counts == 0] = -np.inf
        self.top = float(logs.max())
        shares = np.exp(logs - self.top)
        mass = float(counts @ shares) + float(counts.sum()) * 2.0**-TOTAL_BITS
        self.bits = TOTAL_BITS - math.ceil(math.log2(mass) + 0.01)
        self.heights = np.floor(np.ldexp(shares * (1 + SLACK), self.bits)).astype(np.int64) + 1
        self._ends = np.cumsum(counts * self.heights)
        self.total = int(self._ends[-1])

    def group(self, number: int) -> tuple[int, int]:
        """The group that a number below the total falls into, and its candidate's place."""
        group = int(np.searchsorted(self._ends, number, side="right"))
        before = int(self._ends[group - 1]) if group else 0
        return group, (number - before) // int(self.heights[group])

    def probability(self, group: int, log_weight: float) -> float:
        """With which probability a candidate of a group is accepted, up to `band`."""
        share = math.exp(min(log_weight - self.top, 1.0))
        return math.ldexp(share, self.bits) / int(self.heights[group])

    def exact_probability(self, mp: Any, group: int, log_weight: Any) -> Any:
        """The same in the precision of a context, from the exact logarithm of the weight."""
        return (
            mp.exp(log_weight - mp.mpf(self.top))
            * mp.ldexp(1, self.bits)
            / int(self.heights[group])
        )


def draw(scores: Scores, scale: Scale, noise: Noise) -> SignedCandidate:
    """A candidate with probability proportional to its weight, and for two signs the sign."""
    words, factor, symmetric = _Words(noise), scale.factor, scores.symmetric
    version, envelope = scores.version, Envelope(scores, factor)
    while True:
        if scores.version != version:
            version, envelope = scores.version, Envelope(scores, factor)
        group, place = envelope.group(words.below(envelope.total))
        candidate = scores.candidate(group, place)
        coin = words.next()
        between = scores.between(group, candidate)
        accepted = _settled(coin, envelope, group, between, factor, symmetric)
        if accepted is None and (closer := scores.closely(group, candidate)) is not None:
            between = closer
            accepted = _settled(coin, envelope, group, between, factor, symmetric)
        if accepted is None:
            value = scores.exactly(group, candidate)
            between = value, value
            accepted = _accepted(coin, envelope, group, value, scale, symmetric, noise)
        if not accepted:
            scores.rejected()
            continue
        if not symmetric:
            return SignedCandidate(candidate, True)
        coin = words.next()
        positive = _settled_sign(coin, between, factor)
        if positive is None:
            value = scores.exactly(group, candidate)
            positive = _positive(coin, value, scale, noise)
        return SignedCandidate(candidate, positive)


def _settled(
    coin: int, envelope: Envelope, group: int, between: tuple[float, float], factor: float,
    symmetric: bool,
) -> bool | None:  # fmt: skip
    """Whether a candidate is accepted, if bounds on its utility decide that."""
    u = (coin + 0.5) * CELL
    least, most = extremes(between[0] * factor, between[1] * factor, symmetric)
    # The whole cell of the coin must lie on one side, even where the probability is tiny.
    if u > envelope.probability(group, log_weight(most, symmetric)) + band(most):
        return False
    if u < envelope.probability(group, log_weight(least, symmetric)) - band(least):
        return True
    return None


def _settled_sign(coin: int, between: tuple[float, float], factor: float) -> bool | None:
    """Whether the sign is positive, if bounds on the utility decide that."""
    u = (coin + 0.5) * CELL
    if u < positive_probability(between[0] * factor) - band(0.0):
        return True
    if u > positive_probability(between[1] * factor) + band(0.0):
        return False
    return None


def _accepted(
    coin: int, envelope: Envelope, group: int, value: float, scale: Scale, symmetric: bool,
    noise: Noise,
) -> bool:  # fmt: skip
    u = (coin + 0.5) * CELL
    scaled = value * scale.factor
    chance = envelope.probability(group, log_weight(scaled, symmetric))
    if abs(u - chance) > band(scaled):
        return u < chance

    def gap(mp: Any, u: Any) -> Any:
        v = scale.exact(mp, value)
        log = abs(v) + mp.log1p(mp.exp(-2 * abs(v))) if symmetric else v
        return envelope.exact_probability(mp, group, log) - u

    return _decided(coin, gap, noise)


def _positive(coin: int, value: float, scale: Scale, noise: Noise) -> bool:
    """True with probability e^v / (e^v + e^-v), v the scaled value."""
    chance = positive_probability(value * scale.factor)
    u = (coin + 0.5) * CELL
    if abs(u - chance) > band(0.0):
        return u < chance
    return _decided(coin, lambda mp, u: 1 / (1 + mp.exp(-2 * scale.exact(mp, value))) - u, noise)


def _decided(coin: int, gap: Callable[[Any, Any], Any], noise: Noise) -> bool:
    return bool(decide(Refined(coin, noise), gap, lambda gap: gap > 0))


class _Words:
    """Random words, drawn in blocks."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise
        self._left: list[int] = []

    def _word(self) -> int:
        if not self._left:
            self._left = self._noise.words(_WORDS).tolist()
        return self._left.pop()

    def next(self) -> int:
        """The first bits of a uniform variable."""
        return self._word() >> (64 - COIN_BITS)

    def below(self, total: int) -> int:
        """A whole number, uniform on 0, ..., total - 1."""
        usable = (1 << 64) // total * total
        while (word := self._word()) >= usable:
            pass
        return word % total
