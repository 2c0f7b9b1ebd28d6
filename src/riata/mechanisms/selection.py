"""Private selection: the numbers of candidates with large utilities.

All mechanisms see only how much one row can change one utility. Each gives every candidate a key,
its utility with noise, and takes the largest; the keys are compared with as many digits as it
takes. Proofs are in docs/privacy/selection.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
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

#: Candidates whose weight is further below the best than exp of this cannot win by float64's bits.
_LOWEST = -690.0


@dataclass(frozen=True)
class Selection(Mechanism):
    """Selects one candidate with privacy parameter `epsilon`."""

    epsilon: float

    def release(self, query: VertexUtilities, engine: Engine, noise: Noise) -> int:  # type: ignore[override]
        """The number of the selected candidate."""
        utilities = Utilities.of(query, engine, self.epsilon)
        return self._choose(utilities, noise)

    @abstractmethod
    def _choose(self, utilities: Utilities, noise: Noise) -> int: ...


@dataclass(frozen=True)
class ExponentialMechanism(Selection):
    """P(s) proportional to exp(epsilon * utility(s) / (2 * sensitivity)) (McSherry, Talwar 2007).

    Drawn as the arg max of utilities with Gumbel noise, which has exactly this law. The privacy
    loss has range epsilon, so the event is `BoundedRange` and not `Pure`.
    """

    @property
    def event(self) -> Event:
        return BoundedRange(self.epsilon)

    def _choose(self, utilities: Utilities, noise: Noise) -> int:
        if not utilities.mirrored:
            return _first_arrivals(utilities, 1, noise)[0]
        # A column stands for two candidates of weights exp(v) and exp(-v): draw the column by
        # their sum, then the sign.
        column = _first_arrivals(utilities, 1, noise, both_signs=True)[0]
        odds = utilities.exact(column)

        def positive(mp: Any, u: Any) -> Any:
            return 1 / (1 + mp.exp(-2 * odds(mp))) - u

        sign = Uniforms(1, noise)
        gap = float(expit(2 * utilities.approximate(column))) - sign.middle()[0]
        if abs(gap) <= _BAND:
            gap = decide(sign[0], positive, lambda value: 1 if value > 0 else -1)
        return column if gap > 0 else column + len(utilities.values)

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
        utilities = Utilities.of(query, engine, self.epsilon)
        if not 1 <= self.k <= len(utilities.values):
            raise InvalidArgument(
                f"k={self.k} must lie between 1 and the {len(utilities.values)} candidates."
            )
        return np.array(_first_arrivals(utilities.sizes(), self.k, noise))

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

    def _choose(self, utilities: Utilities, noise: Noise) -> int:
        n = utilities.n_candidates
        signs = np.where(noise.words(n) >> np.uint64(63), 1.0, -1.0)
        return _largest(utilities, signs, noise)

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

    def _choose(self, utilities: Utilities, noise: Noise) -> int:
        return _largest(utilities, np.ones(utilities.n_candidates), noise)

    def describe(self, times: int) -> str:
        return f"permute-and-flip, epsilon {self.epsilon:.4g} a selection, {times} selections"


@dataclass(frozen=True, eq=False)
class Utilities:
    """The utilities of a query, to be multiplied by epsilon / (2 sensitivity)."""

    values: np.ndarray
    epsilon: float
    sensitivity: float
    mirrored: bool

    @classmethod
    def of(cls, query: VertexUtilities, engine: Engine, epsilon: float) -> Utilities:
        values = query.finish(engine.total(query))
        return cls(values, epsilon, query.sensitivity("linf"), query.mirrored)

    @property
    def n_candidates(self) -> int:
        return len(self.values) * (1 + self.mirrored)

    @property
    def factor(self) -> float:
        return self.epsilon / (2 * self.sensitivity)

    def sizes(self) -> Utilities:
        """One candidate a column, with the size of its utility."""
        values = np.abs(self.values) if self.mirrored else self.values
        return Utilities(values, self.epsilon, self.sensitivity, mirrored=False)

    def approximate(self, i: int) -> float:
        """The scaled utility of candidate `i`, in float64."""
        sign = 1.0 if i < len(self.values) else -1.0
        return sign * float(self.values[i % len(self.values)]) * self.factor

    def exact(self, i: int) -> Callable[[Any], Any]:
        """The scaled utility of candidate `i`, in the precision of a context."""
        sign = 1 if i < len(self.values) else -1
        value = float(self.values[i % len(self.values)])
        return lambda mp: (
            sign * mp.mpf(value) * mp.mpf(self.epsilon) / (2 * mp.mpf(self.sensitivity))
        )


def _first_arrivals(
    utilities: Utilities, k: int, noise: Noise, *, both_signs: bool = False
) -> list[int]:
    """The `k` smallest of independent exponential variables with rates exp(utility).

    Equivalently, the k largest of utilities with Gumbel noise. With `both_signs` the rates are
    exp(utility) + exp(-utility).
    """
    n = len(utilities.values)
    uniforms, time = Uniforms(n, noise), np.empty(n)
    least, most = 1.0, 0.0
    top = np.abs(utilities.values).max() if both_signs else utilities.values.max()
    for part in blocks(n):
        size = np.abs(utilities.values[part]) if both_signs else utilities.values[part]
        rate = np.exp(np.maximum((size - top) * utilities.factor, _LOWEST))
        if both_signs:
            rate += np.exp(np.maximum((size + top) * -utilities.factor, _LOWEST))
        middle = uniforms.middle(part)
        least, most = min(least, middle.min()), max(most, middle.max())
        np.divide(np.log(middle), -rate, out=time[part])

    last = np.partition(time, k - 1)[k - 1] if k > 1 else time.min()
    near = time <= last * (1 + _BAND)
    if least < _TAIL or most > 1 - _TAIL:
        near |= np.abs(uniforms.middle() - 0.5) > 0.5 - _TAIL
    found = np.flatnonzero(near)
    found = found[np.argsort(time[found], kind="stable")]
    if len(found) == k and np.all(time[found[1:]] > time[found[:-1]] * (1 + _BAND)):
        return [int(i) for i in found]

    def key(i: int) -> Callable[[Any, Any], Any]:
        utility = utilities.exact(i)

        def gumbel(mp: Any, u: Any) -> Any:
            v = utility(mp)
            weight = abs(v) + mp.log1p(mp.exp(-2 * abs(v))) if both_signs else v
            return weight - mp.log(-mp.log(u))

        return gumbel

    return _largest_exactly(
        {int(i): key(int(i)) for i in found}, uniforms, k, top * utilities.factor
    )


def _largest(utilities: Utilities, signs: np.ndarray, noise: Noise) -> int:
    """The largest of utilities with exponential noise, of either sign, on every candidate."""
    values = utilities.values
    if utilities.mirrored:
        values = np.concatenate([values, -values])
    n, top = len(values), values.max()
    uniforms, keys, tails = Uniforms(n, noise), np.empty(n), np.empty(n, dtype=bool)
    for part in blocks(n):
        middle = uniforms.middle(part)
        tails[part] = np.abs(middle - 0.5) > 0.5 - _TAIL
        np.subtract(
            (values[part] - top) * utilities.factor, signs[part] * np.log(middle), out=keys[part]
        )
    found = np.flatnonzero((keys >= keys.max() - _BAND) | tails)
    if len(found) == 1:
        return int(found[0])

    def key(i: int) -> Callable[[Any, Any], Any]:
        utility = utilities.exact(i)
        return lambda mp, u: utility(mp) - int(signs[i]) * mp.log(u)

    return _largest_exactly(
        {int(i): key(int(i)) for i in found}, uniforms, 1, top * utilities.factor
    )[0]


def _largest_exactly(
    keys: dict[int, Callable[[Any, Any], Any]], uniforms: Uniforms, k: int, size: float
) -> list[int]:
    """The candidates with the `k` largest keys, best first, with more bits until that is sure."""
    exponent = math.frexp(size)[1]
    variables = {i: uniforms[i] for i in keys}
    while True:
        between = {i: variables[i].between(keys[i], exponent) for i in keys}
        order = sorted(keys, key=lambda i: between[i][1], reverse=True)
        unsure = _overlapping(order, between, k)
        if not unsure:
            return order[:k]
        for i in unsure:
            variables[i].refine()


def _overlapping(order: list[int], between: dict[int, tuple[Any, Any]], k: int) -> Iterable[int]:
    """Those whose place among the first `k` is still open. `order` is by upper bounds."""
    found: set[int] = set()
    for place, i in enumerate(order[:k]):
        rivals = [j for j in order[place + 1 :] if between[j][1] >= between[i][0]]
        if rivals:
            found.update([i, *rivals])
    return found
