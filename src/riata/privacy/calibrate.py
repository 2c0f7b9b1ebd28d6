"""From a budget to the noise that spends it: the accountants, inverted by root finding."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from riata.privacy.accountants import spent
from riata.privacy.budget import Budget
from riata.privacy.events import Event, of_group


def bounded_range_at(rho: float) -> float:
    """The epsilon of a bounded-range event that costs `rho` in zCDP."""
    return math.sqrt(8 * rho)


def pure_at(rho: float) -> float:
    """The epsilon of a pure event that costs `rho` in zCDP."""
    return math.sqrt(2 * rho)


def noise_multiplier_at(rho: float) -> float:
    """The noise multiplier of a Gaussian event that costs `rho` in zCDP."""
    return 1 / math.sqrt(2 * rho)


def root_of_rho_near(epsilon: float, delta: float) -> float:
    """About the root of the rho that pays for an epsilon of rho + 2 sqrt(rho log(1 / delta)).

    For plans that need a first guess. What is charged is calibrated.
    """
    far = math.log(1 / delta)
    return epsilon / (math.sqrt(far + epsilon) + math.sqrt(far))


def epsilon_near(root: float, delta: float) -> float:
    """The inverse: about the epsilon of the square of `root`."""
    return root * (root + 2 * math.sqrt(math.log(1 / delta)))


def calibrate(event_at: Callable[[float], Event], budget: Budget) -> float:
    """The largest strength whose event fits the budget.

    Parameters
    ----------
    event_at : callable
        Maps a positive strength to an event tree whose cost grows with the strength.
    budget : Budget
        Finite epsilon.

    Returns
    -------
    strength : float
        What ``event_at(strength)`` costs for a person's rows is at most ``budget.epsilon``, and
        below it by less than one part in 1e9 for any epsilon from 1e-4 up.
    """
    from scipy.optimize import brentq  # slow to import

    @cache
    def cost(strength: float) -> float:
        return spent(of_group(event_at(strength), budget.rows_of_a_person), budget.delta).epsilon

    def over(log_strength: float) -> float:
        return cost(math.exp(log_strength)) - budget.epsilon

    low = high = 0.0
    while over(low) > 0:
        low -= 2.0
    while over(high) <= 0:
        high += 2.0
    strength = math.exp(float(brentq(over, low, high, xtol=1e-14, rtol=1e-14)))
    step = 1e-15
    while cost(strength) > budget.epsilon:
        strength, step = strength * (1 - step), step * 2
    return strength
