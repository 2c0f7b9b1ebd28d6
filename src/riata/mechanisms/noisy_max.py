"""The largest of utilities with noise, compared with as many digits as it takes.

Every candidate has a key, its scaled utility plus noise. float64 computes all keys from the first
bits of the noise, and rules out those that cannot win whatever the other bits are. If more remain
than are wanted, these few get more bits and more digits. Proofs are in docs/privacy/exact_draws.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from riata.mechanisms.exact import Uniforms, blocks, decide, in_tail
from riata.mechanisms.noise import Noise

#: Keys this near to each other are compared with more digits, ...
_BAND = 2.0**-20

#: ... and so are those of uniform variables nearer than this to 0 or 1.
_TAIL = 2.0**-30

#: What rounding may make of a utility, relative to its distance from the best.
_ROUNDING = 2.0**-49


@dataclass(frozen=True)
class Scale:
    """Utilities count in units of 2 * sensitivity / epsilon."""

    epsilon: float
    sensitivity: float

    @property
    def factor(self) -> float:
        return self.epsilon / (2 * self.sensitivity)

    def exact(self, mp: Any, value: float) -> Any:
        """The scaled utility, in the precision of a context."""
        return mp.mpf(value) * mp.mpf(self.epsilon) / (2 * mp.mpf(self.sensitivity))


@dataclass(frozen=True, eq=False)
class Candidates:
    """One utility a candidate, or with `both_signs` the size of two that are opposite."""

    values: np.ndarray
    scale: Scale
    both_signs: bool = False

    def log_weights(self, part: slice, top: float) -> np.ndarray:
        """The scaled utilities less the `top` one; of two opposite ones, log(e^v + e^-v)."""
        weights = (self.values[part] - top) * self.scale.factor
        if self.both_signs:
            with np.errstate(all="ignore"):  # a warning would tell of a utility
                weights += np.log1p(np.exp(self.values[part] * (-2 * self.scale.factor)))
        return weights

    def exact_log_weight(self, mp: Any, i: int) -> Any:
        v = self.scale.exact(mp, float(self.values[i]))
        return v + mp.log1p(mp.exp(-2 * v)) if self.both_signs else v


class Gumbel:
    def values(self, middle: np.ndarray, part: slice) -> np.ndarray:
        return -np.log(-np.log(middle))

    def exact(self, mp: Any, u: Any, i: int) -> Any:
        return -mp.log(-mp.log(u))


class Exponential:
    def values(self, middle: np.ndarray, part: slice) -> np.ndarray:
        return -np.log(middle)

    def exact(self, mp: Any, u: Any, i: int) -> Any:
        return -mp.log(u)


class Laplace:
    def __init__(self, n: int, noise: Noise) -> None:
        self._signs = np.where(noise.words(n) >> np.uint64(63), 1.0, -1.0)

    def values(self, middle: np.ndarray, part: slice) -> np.ndarray:
        return self._signs[part] * np.log(middle)

    def exact(self, mp: Any, u: Any, i: int) -> Any:
        return int(self._signs[i]) * mp.log(u)


Perturbation = Gumbel | Exponential | Laplace


def largest(
    candidates: Candidates, perturbation: Perturbation, noise: Noise, k: int = 1
) -> list[int]:
    """The candidates with the `k` largest keys, best first."""
    n, top = len(candidates.values), candidates.values.max()
    uniforms, keys, tails = Uniforms(n, noise), np.empty(n), np.empty(n, dtype=bool)
    for part in blocks(n):
        middle = uniforms.middle(part)
        tails[part] = in_tail(middle, _TAIL)
        np.add(candidates.log_weights(part, top), perturbation.values(middle, part), out=keys[part])

    open_ended = bool(tails.any())  # only keys that float64 knows can rule others out
    known = np.where(tails, -np.inf, keys) if open_ended else keys
    last = np.partition(known, n - k)[n - k] if k > 1 else known.max()
    band = _BAND + _ROUNDING * abs(last) if np.isfinite(last) else np.inf
    found = np.flatnonzero((keys >= last - band) | tails)
    found = found[np.argsort(-keys[found], kind="stable")]
    apart = np.all(keys[found[:-1]] > keys[found[1:]] + band)
    if len(found) == k and apart and not open_ended:
        return [int(i) for i in found]

    def key(i: int) -> Callable[[Any, Any], Any]:
        return lambda mp, u: candidates.exact_log_weight(mp, i) + perturbation.exact(mp, u, i)

    size = math.frexp(np.abs(candidates.values).max() * candidates.scale.factor)[1]
    return _largest_exactly({int(i): key(int(i)) for i in found}, uniforms, k, size)


def _largest_exactly(
    keys: dict[int, Callable[[Any, Any], Any]], uniforms: Uniforms, k: int, size: int
) -> list[int]:
    """`largest` of a few candidates, with more bits until it is sure."""
    variables = {i: uniforms[i] for i in keys}
    while True:
        between = {i: variables[i].between(keys[i], size) for i in keys}
        order = sorted(keys, key=lambda i: between[i][1], reverse=True)
        unsure = _overlapping(order, between, k)
        if not unsure:
            return order[:k]
        for i in unsure:
            variables[i].refine()


def _overlapping(order: list[int], between: dict[int, tuple[Any, Any]], k: int) -> set[int]:
    """Those whose place among the first `k` is still open. `order` is by upper bounds."""
    found: set[int] = set()
    for place, i in enumerate(order[:k]):
        rivals = [j for j in order[place + 1 :] if between[j][1] >= between[i][0]]
        if rivals:
            found.update([i, *rivals])
    return found


def first_of_two(value: float, scale: Scale, noise: Noise) -> bool:
    """True with probability e^v / (e^v + e^-v), v the scaled value."""
    coin = Uniforms(1, noise)
    gap = float(expit(2 * value * scale.factor)) - coin.middle()[0]
    if abs(gap) > _BAND:
        return bool(gap > 0)

    def exact_gap(mp: Any, u: Any) -> Any:
        return 1 / (1 + mp.exp(-2 * scale.exact(mp, value))) - u

    return bool(decide(coin[0], exact_gap, lambda gap: gap > 0))
