"""Coins and dice whose odds are exact. Proofs are in docs/privacy/tuning.md."""

from __future__ import annotations

from riata.mechanisms.noise import Noise

_WORD = 64


def bernoulli(probability: float, noise: Noise) -> bool:
    """True with exactly this probability: a uniform variable against its binary digits."""
    rest, whole = probability.as_integer_ratio()
    while True:
        digits, rest = divmod(rest << _WORD, whole)
        word = int(noise.words(1)[0])
        if word != digits:
            return word < digits
        if rest == 0:
            return False


def geometric(stop: float, noise: Noise) -> int:
    """How many trials it takes until one that succeeds with probability `stop`."""
    count = 1
    while not bernoulli(stop, noise):
        count += 1
    return count


def uniform_int(total: int, noise: Noise) -> int:
    """A whole number, uniform on 0, ..., total - 1."""
    usable = (1 << _WORD) // total * total
    while (word := int(noise.words(1)[0])) >= usable:
        pass
    return word % total
