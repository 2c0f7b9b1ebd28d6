"""The distribution of selection by rejection: what lazy scores and compiled code have in common.

A candidate is proposed with a probability proportional to a height, a whole number of at least
2^bits * weight / e^top, and accepted with the probability

    2^bits * e^(log-weight - top) / height .

`rejection.py` draws by it in Python and `engines/compiled` in compiled code, which compiles the
functions of this module: they are plain arithmetic on numbers. Proofs are in
docs/privacy/rejection.md and docs/privacy/compiled_selection.md.
"""

from __future__ import annotations

import math

from riata.mechanisms.exact import BITS

#: The heights of all candidates sum to about 2 to this power.
TOTAL_BITS = 61

#: A coin has so many bits, and is known to a cell of this width.
COIN_BITS = BITS
CELL = 2.0**-COIN_BITS

#: More than what float64 makes of the logarithm of a weight, or of a probability, ...
SLACK = 2.0**-36

#: ... and relative to the size of the scaled utility.
ROUNDING = 2.0**-48

#: The same in compiled code, whose scores are at most 1 in size before they are scaled: of
#: logarithms, of probabilities, and of these relative to the largest logarithm.
COMPILED_SLACK, COMPILED_BAND, COMPILED_ROUNDING = 2.0**-38, 2.0**-36, 2.0**-46

#: Two signs weigh more than the larger one alone by less than float64 sees, for values beyond this.
_ONE_SIGN = 20.0


def log_weight(value: float, symmetric: bool) -> float:
    """The logarithm of a weight, from a scaled utility: of both signs together, if `symmetric`."""
    if not symmetric:
        return value
    size = abs(value)
    return size + math.log1p(math.exp(-2.0 * size)) if size < _ONE_SIGN else size


def extremes(low: float, high: float, symmetric: bool) -> tuple[float, float]:
    """The values between two bounds with the least and with the largest weight."""
    if not symmetric:
        return low, high
    least = 0.0 if low < 0.0 < high else min(abs(low), abs(high))
    return least, max(abs(low), abs(high))


def positive_probability(value: float) -> float:
    """With which probability the sign of a scaled utility is positive: e^v / (e^v + e^-v)."""
    return 1.0 / (1.0 + math.exp(min(-2.0 * value, 700.0)))
