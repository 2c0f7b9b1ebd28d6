"""Private selection: the numbers of candidates with large utilities.

All mechanisms see only how much one row can change one utility. Each gives every candidate a key,
its utility with noise, and takes the largest; the keys are compared with as many digits as it
takes. Proofs are in docs/privacy/selection.md and docs/privacy/exact_draws.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from riata.errors import InvalidArgument
from riata.mechanisms.base import Engine, Mechanism
from riata.mechanisms.exact import Uniforms, blocks, decide
from riata.mechanisms.noise import Noise
from riata.privacy.events import BoundedRange, Event, Pure, compose
from riata.queries import VertexUtilities

#: Keys this near to each other are compared with more digits, ...
_BAND = 2.0**-20

#: ... and so are those of uniform variables nearer than this to 0 or 1.
_TAIL = 2.0**-30

#: What rounding may make of a utility, relative to its distance from the best.
_ROUNDING = 2.0**-49


@dataclass(frozen=True)
class Selection(Mechanism):
    """Selects one candidate with privacy parameter `epsilon`."""

    epsilon: float

    def release(self, query: VertexUtilities, engine: Engine, noise: Noise) -> int:  # type: ignore[override]
        """The number of the selected candidate."""
        values = query.finish(engine.total(query))
        scale = Scale(self.epsilon, query.sensitivity("linf"))
        return self._choose(values, query.mirrored, scale, noise)

    @abstractmethod
    def _choose(self, values: np.ndarray, mirrored: bool, scale: Scale, noise: Noise) -> int: ...


@dataclass(frozen=True)
class ExponentialMechanism(Selection):
    """P(s) proportional to exp(epsilon * utility(s) / (2 * sensitivity)) (McSherry, Talwar 2007).

    Drawn as the arg max of utilities with Gumbel noise, which has exactly this law. The privacy
    loss has range epsilon, so the event is `BoundedRange` and not `Pure`.
    """

    @property
    def event(self) -> Event:
        return BoundedRange(self.epsilon)

    def _choose(self, values: np.ndarray, mirrored: bool, scale: Scale, noise: Noise) -> int:
        if not mirrored:
            return _largest(Candidates(values, scale), Gumbel(), noise)[0]
        # A column stands for two candidates of weights exp(v) and exp(-v): draw the column by
        # their sum, then the sign.
        columns = Candidates(np.abs(values), scale, both_signs=True)
        column = _largest(columns, Gumbel(), noise)[0]
        positive = _flip(float(values[column]), scale, noise)
        return column if positive else column + len(values)

    def describe(self, times: int) -> str:
        return f"exponential mechanism, epsilon {self.epsilon:.4g} a selection, {times} selections"


@dataclass(frozen=True)
class TopK(Mechanism):
    """The `k` largest utilities' numbers, best first: `k` exponential mechanisms in one draw.

    One Gumbel variable a candidate and the k largest sums have the same law as k rounds of the
    exponential mechanism, each without those already chosen. For a mirrored list the candidates
    are the columns, with the size of their utility.

    Parameters
    ----------
    epsilon : float
        For each of the `k` selections.
    k : int
    """

    epsilon: float
    k: int

    @property
    def event(self) -> Event:
        return compose((BoundedRange(self.epsilon), self.k))

    def release(self, query: VertexUtilities, engine: Engine, noise: Noise) -> np.ndarray:  # type: ignore[override]
        values = query.finish(engine.total(query))
        if not 1 <= self.k <= len(values):
            raise InvalidArgument(
                f"k={self.k} must lie between 1 and the {len(values)} candidates."
            )
        scale = Scale(self.epsilon, query.sensitivity("linf"))
        candidates = Candidates(np.abs(values) if query.mirrored else values, scale)
        return np.array(_largest(candidates, Gumbel(), noise, self.k))

    def describe(self, times: int) -> str:
        return (
            f"top {self.k} by Gumbel noise, epsilon {self.epsilon:.4g} for each, {times} releases"
        )


@dataclass(frozen=True)
class ReportNoisyMax(Selection):
    """The arg max of utilities with Laplace noise: the mechanism printed in the paper.

    epsilon-differentially private and nothing better, so over many steps it costs four times as
    much in zCDP as the exponential mechanism at the same epsilon.
    """

    @property
    def event(self) -> Event:
        return Pure(self.epsilon)

    def _choose(self, values: np.ndarray, mirrored: bool, scale: Scale, noise: Noise) -> int:
        candidates = Candidates(_listed(values, mirrored), scale)
        return _largest(candidates, Laplace(len(candidates.values), noise), noise)[0]

    def describe(self, times: int) -> str:
        return f"Laplace noisy max, epsilon {self.epsilon:.4g} a selection, {times} selections"


@dataclass(frozen=True)
class PermuteAndFlip(Selection):
    """Permute-and-flip (McKenna, Sheldon 2020), drawn as the arg max with exponential noise.

    Never less accurate than the exponential mechanism at the same epsilon, but only
    epsilon-differentially private: the choice under pure differential privacy.
    """

    @property
    def event(self) -> Event:
        return Pure(self.epsilon)

    def _choose(self, values: np.ndarray, mirrored: bool, scale: Scale, noise: Noise) -> int:
        return _largest(Candidates(_listed(values, mirrored), scale), Exponential(), noise)[0]

    def describe(self, times: int) -> str:
        return f"permute-and-flip, epsilon {self.epsilon:.4g} a selection, {times} selections"


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


Law = Gumbel | Exponential | Laplace


def _listed(values: np.ndarray, mirrored: bool) -> np.ndarray:
    return np.concatenate([values, -values]) if mirrored else values


def _largest(candidates: Candidates, law: Law, noise: Noise, k: int = 1) -> list[int]:
    """The candidates with the `k` largest keys, best first."""
    n, top = len(candidates.values), candidates.values.max()
    uniforms, keys, tails = Uniforms(n, noise), np.empty(n), np.empty(n, dtype=bool)
    for part in blocks(n):
        middle = uniforms.middle(part)
        tails[part] = np.abs(middle - 0.5) > 0.5 - _TAIL
        np.add(candidates.log_weights(part, top), law.values(middle, part), out=keys[part])

    known = np.where(tails, -np.inf, keys)  # of a tail, the first bits say too little
    last = np.partition(known, n - k)[n - k] if k > 1 else known.max()
    band = _BAND + _ROUNDING * abs(last)
    found = np.flatnonzero((keys >= last - band) | tails)
    found = found[np.argsort(-keys[found], kind="stable")]
    if len(found) == k and np.all(keys[found[:-1]] > keys[found[1:]] + band):
        return [int(i) for i in found]

    def key(i: int) -> Callable[[Any, Any], Any]:
        return lambda mp, u: candidates.exact_log_weight(mp, i) + law.exact(mp, u, i)

    size = math.frexp(np.abs(candidates.values).max() * candidates.scale.factor)[1]
    return _largest_exactly({int(i): key(int(i)) for i in found}, uniforms, k, size)


def _largest_exactly(
    keys: dict[int, Callable[[Any, Any], Any]], uniforms: Uniforms, k: int, size: int
) -> list[int]:
    """`_largest` of a few candidates, with more bits until it is sure."""
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


def _flip(value: float, scale: Scale, noise: Noise) -> bool:
    """True with probability e^v / (e^v + e^-v), v the scaled value."""
    coin = Uniforms(1, noise)
    gap = float(expit(2 * value * scale.factor)) - coin.middle()[0]
    if abs(gap) > _BAND:
        return bool(gap > 0)

    def exact_gap(mp: Any, u: Any) -> Any:
        return 1 / (1 + mp.exp(-2 * scale.exact(mp, value))) - u

    return bool(decide(coin[0], exact_gap, lambda gap: gap > 0))
