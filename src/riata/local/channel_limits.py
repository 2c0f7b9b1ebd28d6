"""What the channel of a task's question may be, decided alike by devices in every language.

Only operations that IEEE 754 rounds in one way are used: +, -, *, / and sqrt, in this order.
`riata.js` does the same ones, so that both come to the same bits, and to the same decision about
every task.
"""

from __future__ import annotations

import math

WORDS = 1 << 64
#: Share of epsilon that the margin for the generator may take.
LARGEST_MARGIN = 0.02
#: Arms may choose their own threshold and coin, but within these factors of the best signal and
#: of the number of tries that it takes: a task must not keep devices busy for nothing.
WEAKEST, SLOWEST = 0.5, 2.0
#: Thresholds lie between 0 and this.
LARGEST_THRESHOLD = 6.0
#: The margin holds for all keys, arms, thresholds and sizes at once, and for 2^64 ways to round,
#: with probability 1 - 2^-100 over the generator: together so many bits.
_UNION_BITS = 700
#: Blocks of the generator that public transforms take, at most.
_PUBLIC_BLOCKS = 1 << 48
#: How far the operations here may be off: probabilities, and factors.
_OFF, _FACTOR = 1e-13, 1.0 + 1e-12


def exp_minus(x: float) -> float:
    """e^-x for x from 0 to 18: the series at x / 64, and six squares."""
    y = x / 64.0
    power = 1.0
    for k in range(16, 0, -1):
        power = 1.0 + power * y / k
    for _ in range(6):
        power = power * power
    return 1.0 / power


def density(t: float) -> float:
    """Of the standard normal distribution."""
    return exp_minus(t * t / 2.0) * 0.3989422804014327


def tail(t: float) -> float:
    """The probability that a standard normal number is at least t, for t from 0 to 6."""
    term = total = t
    for k in range(3, 250, 2):
        term = term * (t * t) / k
        total = total + term
    return 0.5 - density(t) * total


def unevenness(degree: int, size: int, seeds: int, inputs: int) -> float:
    """How far the share of accepted seeds may be from its expectation: Lemmas 5 to 7 of channel.md.

    Parameters
    ----------
    degree, size : int
        Of the channel.
    seeds : int
        How many there are to choose from.
    inputs : int
        Numbers of float64 that the direction is computed from.
    """
    # Lattices of 2^32 lengths and angles, k half-spaces, size / 2 pairs.
    lattice = 0.75 * degree * (size + 3) * 2.0**-32
    # Rounding of coordinates, and of inner products and the direction's length.
    root = math.sqrt(size)
    rounding = 0.4 * degree * (2.0**-36 * root + 2.0**-48 * (size * root))
    # Hoeffding for every input that float64 can hold, and the largest probability of a seed.
    bits = 64 * inputs + _UNION_BITS + 1
    weight = -(-WORDS // seeds) / WORDS
    # The logarithm of how much likelier a permutation of blocks makes what a function does.
    blocks = float(seeds * (-(-size // 4) + 1) + _PUBLIC_BLOCKS)
    switching = blocks * blocks * 2.0**-128
    spread = math.sqrt((bits * 0.6931471805599453 + switching) * weight / 2.0)
    return lattice + rounding + spread


def acceptance(degree: int, threshold: float, other: float) -> float:
    """The probability that one candidate is accepted, where `other` is the coin's."""
    surely = degree * tail(threshold)
    return surely + other * (1.0 - surely)


def signal(degree: int, threshold: float, other: float) -> float:
    """e_k of Theorem 2 of channel.md."""
    mass = density(threshold) if degree == 1 else 2.0 * threshold * density(threshold)
    return (1.0 - other) * mass / acceptance(degree, threshold, other)


def best_threshold(degree: int, other: float) -> float:
    """Where the signal is largest: there it equals He_k, and below there it is larger."""
    low, high = 0.0, LARGEST_THRESHOLD
    for _ in range(50):
        middle = (low + high) / 2.0
        polynomial = middle if degree == 1 else middle * middle - 1.0
        if signal(degree, middle, other) > polynomial:
            low = middle
        else:
            high = middle
    return low


def broken_limit(
    degree: int, size: int, threshold: float, coin: int, epsilon: float, seeds: int, inputs: int
) -> str:
    """Which limit a channel breaks: "margin", "threshold", "cost", "coin", or "" for none.

    Formal guarantees
    -----------------
    Where it breaks none, one report costs at most `epsilon` (Theorem 8 of channel.md): with the
    probability a of acceptance, off by at most w, the cost is ln(1 / coin) + ln((a + w) / (a - w)).
    """
    least, other = exp_minus(epsilon), coin / WORDS
    accepted = acceptance(degree, threshold, other) - _OFF
    off = unevenness(degree, size, seeds, inputs)
    if not 2.0 * off <= LARGEST_MARGIN * epsilon * accepted:
        return "margin"
    best = best_threshold(degree, least)
    enough = WEAKEST * signal(degree, best, least)
    tries = SLOWEST * acceptance(degree, threshold, least) >= acceptance(degree, best, least)
    if not (tries and signal(degree, threshold, least) >= enough):
        return "threshold"
    if not least * (accepted + off) * _FACTOR <= other * (accepted - off):
        return "cost"
    return "" if signal(degree, threshold, other) >= enough else "coin"
