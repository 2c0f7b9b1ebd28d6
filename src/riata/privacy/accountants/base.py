"""What an accountant is, and sums of costs without rounding."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import ClassVar

from riata.privacy.events import Event, Leaf, leaves


class Accountant(ABC):
    """A sound conversion from some events to (epsilon, delta)."""

    name: str
    knows: tuple[type[Leaf], ...]

    #: Whether it knows the curve of the worst pair itself: no other bound can be lower.
    exact: ClassVar[bool] = False

    def applies_to(self, event: Event, delta: float) -> bool:
        return all(isinstance(leaf, self.knows) for leaf in leaves(event))

    @abstractmethod
    def epsilon(self, event: Event, delta: float) -> float:
        """The smallest epsilon this accountant can prove at `delta`."""

    @abstractmethod
    def delta(self, event: Event, epsilon: float) -> float:
        """The smallest delta this accountant can prove at `epsilon`."""


def exact_sum(terms: Iterable[tuple[int, float]]) -> Fraction | None:
    """The sum of each number repeated as often as it says, without rounding; None if infinite.

    Numbers are multiples of 2^-1074, so a sum of any number of them keeps to a few hundred digits.
    """
    total = Fraction()
    for times, value in terms:
        if math.isinf(value):
            return None
        total += times * Fraction(value)
    return total


def rounded(total: Fraction | None) -> float:
    """The nearest float. None, and what is too large, are infinite."""
    try:
        return math.inf if total is None else float(total)
    except OverflowError:
        return math.inf


def smallest_epsilon(
    curve: Callable[[float], float], level: float, low: float, high: float
) -> float:
    """The smallest epsilon, up to rounding, at which a falling curve is at most `level`."""
    from scipy.optimize import brentq  # slow to import

    root = float(brentq(lambda eps: curve(eps) - level, low, high, xtol=1e-300, rtol=1e-14))
    step = 1e-15
    while curve(root) > level:
        root, step = root * (1 + step), step * 2
    return root
