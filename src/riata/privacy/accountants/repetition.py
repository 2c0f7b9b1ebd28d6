"""The best of a random number of private runs.

The number of repetitions has the truncated negative binomial distribution of Papernot and Steinke
(2022),

    P(K = k)  =  c (1 - stop)^k  Gamma(k + shape) / k! ,      k = 1, 2, ... ,

which for shape 1 is the geometric distribution. Proofs are in docs/privacy/tuning.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

from riata.privacy.accountants.base import Accountant
from riata.privacy.events import Event, RandomlyRepeated, leaves

#: More than what the roundings of a few functions can make of the number 1.
_ROUNDED_UP = 1 + 2.0**-40

#: Where the search for the cost of a selection begins, and where it ends.
_SMALLEST, _TYPICAL, _LARGEST = 1e-12, 0.1, 700.0


def expected_repetitions(shape: float, stop: float) -> float:
    """The mean of K, rounded up."""
    if stop == 1:
        return 1.0
    fewer = math.log(stop)
    if shape == 0:
        mean = (1 - stop) / (stop * -fewer)
    else:
        mean = shape * (1 - stop) / (stop * -math.expm1(shape * fewer))
    return max(1.0, mean * _ROUNDED_UP)


def selection_cost(curve: Callable[[float], float], shape: float, stop: float) -> float:
    """What the selection costs beside the run that is selected: (1 + shape) times an epsilon.

    Parameters
    ----------
    curve : callable
        The delta of one run at any epsilon.

    Returns
    -------
    cost : float
        (1 + shape) * e for the smallest e, up to rounding, with
        (1 - stop) * curve(e) <= stop * (exp(e) - 1).
    """
    if stop == 1:
        return 0.0

    from scipy.optimize import brentq  # slow to import

    def above(epsilon: float) -> float:
        return (1 - stop) * curve(epsilon) - stop * math.expm1(epsilon)

    low = high = _TYPICAL
    while above(high) > 0:
        if high > _LARGEST:
            return math.inf
        low, high = high, 2 * high
    while low > _SMALLEST and above(low) <= 0:
        low, high = low / 2, low
    epsilon = high if low <= _SMALLEST else float(brentq(above, low, high, rtol=1e-12))
    step = 1e-15
    while above(epsilon) > 0:
        epsilon, step = epsilon * (1 + step), step * 2
    return (1 + shape) * epsilon * _ROUNDED_UP


class RepetitionAccountant(Accountant):
    """One selection among randomly repeated runs, from the exact curves of the runs."""

    name = "random repetition of private runs"
    knows = (RandomlyRepeated,)

    def applies_to(self, event: Event, delta: float) -> bool:
        return super().applies_to(event, delta) and list(leaves(event).values()) == [1]

    def _leaf(self, event: Event) -> RandomlyRepeated:
        (leaf,) = leaves(event)
        assert isinstance(leaf, RandomlyRepeated)
        return leaf

    def epsilon(self, event: Event, delta: float) -> float:
        from riata.privacy.accountants import spent  # which knows this accountant

        leaf = self._leaf(event)
        each = delta / expected_repetitions(leaf.shape, leaf.stop)
        runs = max(spent(run, each).epsilon for run in leaf.candidates)
        return runs + cost_of_selection(leaf)

    def delta(self, event: Event, epsilon: float) -> float:
        from riata.privacy.accountants import smallest_delta

        leaf = self._leaf(event)
        rest = epsilon - cost_of_selection(leaf)
        if rest < 0:
            return 1.0
        runs = max(smallest_delta(run, rest) for run in leaf.candidates)
        return min(1.0, expected_repetitions(leaf.shape, leaf.stop) * runs)


@lru_cache(maxsize=2**10)
def cost_of_selection(leaf: RandomlyRepeated) -> float:
    """What the selection adds to the epsilon and to every divergence of one run."""
    from riata.privacy.accountants import smallest_delta

    return max(
        selection_cost(partial(smallest_delta, run), leaf.shape, leaf.stop)
        for run in leaf.candidates
    )
