"""Basic composition: epsilons add up."""

from __future__ import annotations

from fractions import Fraction

from riata.errors import UnsupportedEvent
from riata.privacy.accountants.base import Accountant, exact_sum, rounded
from riata.privacy.accountants.repetition import cost_of_selection
from riata.privacy.events import (
    BoundedRange,
    Event,
    LaplaceMax,
    Leaf,
    Pure,
    RandomlyRepeated,
    leaves,
)


class PureAccountant(Accountant):
    """Basic composition: the epsilons add up. The only one that works at delta = 0."""

    name = "pure composition"
    knows = (Pure, BoundedRange, LaplaceMax, RandomlyRepeated)

    def applies_to(self, event: Event, delta: float) -> bool:
        return super().applies_to(event, delta) and all(
            super(PureAccountant, self).applies_to(candidate, delta)
            for leaf in leaves(event)
            if isinstance(leaf, RandomlyRepeated)
            for candidate in leaf.candidates
        )

    def epsilon(self, event: Event, delta: float) -> float:
        return rounded(self.total(event))

    def total(self, event: Event) -> Fraction | None:
        """The sum of the epsilons; only those of searches are rounded before. None if infinite."""
        return exact_sum((k, self._epsilon(leaf)) for leaf, k in leaves(event).items())

    def _epsilon(self, leaf: Leaf) -> float:
        if isinstance(leaf, RandomlyRepeated):
            runs = max(self.epsilon(candidate, 0.0) for candidate in leaf.candidates)
            return runs + cost_of_selection(leaf)
        return _own_epsilon(leaf)

    def delta(self, event: Event, epsilon: float) -> float:
        return 0.0 if self.epsilon(event, 0.0) <= epsilon else 1.0

    def exactly(self, event: Event) -> Fraction:
        """The sum of the epsilons, without rounding."""
        parts = leaves(event).items()
        return sum((k * Fraction(_own_epsilon(leaf)) for leaf, k in parts), Fraction())


def _own_epsilon(leaf: Leaf) -> float:
    if isinstance(leaf, Pure | BoundedRange | LaplaceMax):
        return leaf.epsilon
    raise UnsupportedEvent(f"There is no exact epsilon for {leaf!r}.")
