"""Adaptive budgets: what one run may spend, and the mechanisms that a part of it pays for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from riata.mechanisms import (
    Additive,
    Exact,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    Mechanism,
    PermuteAndFlip,
    Selection,
)
from riata.privacy.budget import Budget
from riata.privacy.calibrate import bounded_range_at, calibrate, noise_multiplier_at
from riata.privacy.events import Event, Pure, ZeroConcentrated, compose, of_group
from riata.queries import Query

#: A part of what is charged that no release uses: more than the roundings of all of them.
_SPARE = 1e-9


def adaptive_budget(budget: Budget, fits: int) -> Event:
    """What each of `fits` runs may spend: a rho, or an epsilon where delta is 0."""
    if budget.delta == 0:
        rows = budget.rows_of_a_person
        each = budget.row_epsilon / fits
        while fits * Fraction(_epsilon_of_group(each, rows)) > Fraction(budget.epsilon):
            each = math.nextafter(each, 0.0)
        return Pure(each)
    return ZeroConcentrated(calibrate(lambda rho: compose((ZeroConcentrated(rho), fits)), budget))


def _epsilon_of_group(epsilon: float, rows: int) -> float:
    event = of_group(Pure(epsilon), rows)
    assert isinstance(event, Pure)
    return event.epsilon


@dataclass
class RemainingBudget:
    """What is left of an adaptive budget: a rho, or an epsilon for a pure one.

    What is taken here is only a plan. The curator's filter counts what is spent, exactly.
    """

    left: float
    pure: bool

    @classmethod
    def of(cls, whole: Event) -> RemainingBudget:
        if isinstance(whole, Pure):
            return cls(whole.epsilon * (1 - _SPARE), True)
        assert isinstance(whole, ZeroConcentrated)
        return cls(whole.rho * (1 - _SPARE), False)

    def selection(self, amount: float) -> Selection:
        """A mechanism that selects, for this amount."""
        self._take(amount)
        return (
            PermuteAndFlip(amount) if self.pure else ExponentialMechanism(bounded_range_at(amount))
        )

    def measurement(self, amount: float) -> Additive:
        """A mechanism that adds noise to numbers, for this amount."""
        self._take(amount)
        return measurement_at(amount, self.pure)

    def _take(self, amount: float) -> None:
        self.left = max(0.0, self.left - amount)


def measurement_at(amount: float, pure: bool) -> Additive:
    """The mechanism that adds noise to numbers for a rho, or for an epsilon if `pure`."""
    return LaplaceMechanism(amount) if pure else GaussianMechanism(noise_multiplier_at(amount))


def noise_std(mechanism: Mechanism, query: Query) -> float:
    """The standard deviation of the noise that the mechanism adds to each number."""
    if isinstance(mechanism, Exact):
        return 0.0
    assert isinstance(mechanism, Additive)
    scale = mechanism.scale(query)
    return scale * 2**0.5 if isinstance(mechanism, LaplaceMechanism) else scale
