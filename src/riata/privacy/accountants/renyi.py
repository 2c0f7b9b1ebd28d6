"""Renyi and zero-concentrated differential privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from riata.errors import UnsupportedEvent
from riata.privacy.accountants.base import Accountant, exact_sum, rounded
from riata.privacy.accountants.divergences import (
    bounded_range_divergence,
    laplace_max_divergence,
    pure_divergence,
    sampled_gaussian_divergence,
)
from riata.privacy.accountants.objective import perturbed_divergence, perturbed_rho
from riata.privacy.accountants.repetition import cost_of_selection, expected_repetitions
from riata.privacy.budget import Budget
from riata.privacy.events import (
    BoundedRange,
    Event,
    Gaussian,
    LaplaceMax,
    Leaf,
    ObjectivePerturbed,
    Pure,
    RandomlyRepeated,
    SampledGaussian,
    ZeroConcentrated,
    leaves,
)


class RenyiAccountant(Accountant):
    """Renyi divergences add up; converted at the best order (Canonne, Kamath, Steinke 2020)."""

    name = "Renyi differential privacy"
    knows = (
        Pure,
        BoundedRange,
        LaplaceMax,
        Gaussian,
        SampledGaussian,
        ObjectivePerturbed,
        ZeroConcentrated,
        RandomlyRepeated,
    )

    def applies_to(self, event: Event, delta: float) -> bool:
        return delta > 0 and super().applies_to(event, delta)

    def divergence(self, leaf: Leaf, alpha: float) -> float:
        """A bound on the Renyi divergence of order `alpha` of one event."""
        match leaf:
            case Gaussian(z):
                return alpha / (2 * z * z)
            case ZeroConcentrated(rho):
                return alpha * rho
            case Pure(eps):
                return min(pure_divergence(eps, alpha), alpha * eps * eps / 2)
            case BoundedRange(eps):
                return min(bounded_range_divergence(eps, alpha), alpha * eps * eps / 8)
            case LaplaceMax(eps):
                return min(laplace_max_divergence(eps, alpha), alpha * eps * eps / 2)
            case SampledGaussian(z, rate):
                return sampled_gaussian_divergence(z, rate, alpha)
            case ObjectivePerturbed():
                return perturbed_divergence(leaf, alpha)
            case RandomlyRepeated(candidates, shape, stop):
                runs = max(self._curve(candidate)(alpha) for candidate in candidates)
                repeats = math.log(expected_repetitions(shape, stop))
                return runs + cost_of_selection(leaf) + repeats / (alpha - 1)
        raise UnsupportedEvent(f"{self.name} does not know {leaf!r}.")

    def _curve(self, event: Event) -> Callable[[float], float]:
        parts = list(leaves(event).items())
        return lambda alpha: math.fsum(k * self.divergence(leaf, alpha) for leaf, k in parts)

    def epsilon(self, event: Event, delta: float) -> float:
        return self.converted(self._curve(event), delta)

    def converted(self, curve: Callable[[float], float], delta: float) -> float:
        """The epsilon at `delta` that follows from the divergence of each order."""
        log_delta = math.log(delta)

        def bound(alpha: float) -> float:
            return (
                curve(alpha) + math.log1p(-1 / alpha) - (log_delta + math.log(alpha)) / (alpha - 1)
            )

        return max(0.0, self._best(bound))

    def _best(self, bound: Callable[[float], float]) -> float:
        """The bound at the order that is used."""
        return bound(_best_order(bound))

    def delta(self, event: Event, epsilon: float) -> float:
        curve = self._curve(event)

        def bound(alpha: float) -> float:
            gap = curve(alpha) - epsilon + math.log1p(-1 / alpha)
            return (alpha - 1) * gap - math.log(alpha)

        return min(1.0, math.exp(min(0.0, self._best(bound))))


class ZcdpAccountant(RenyiAccountant):
    """Zero-concentrated privacy: one number, rho, that adds up even when a run adapts."""

    name = "zero-concentrated differential privacy"

    def rho(self, event: Event) -> float:
        return rounded(self.total(event))

    def total(self, event: Event) -> Fraction | None:
        """The sum of the rhos, each rounded once, or None if it is infinite."""
        return exact_sum((k, self._rho(leaf)) for leaf, k in leaves(event).items())

    def exactly(self, event: Event) -> Fraction:
        """`rho` without rounding, for events whose rho is a rational function of their numbers."""
        return sum((k * _exact_rho(leaf) for leaf, k in leaves(event).items()), Fraction())

    def divergence(self, leaf: Leaf, alpha: float) -> float:
        return alpha * self._rho(leaf)

    def _curve(self, event: Event) -> Callable[[float], float]:
        rho = self.rho(event)
        return lambda alpha: alpha * rho

    def _rho(self, leaf: Leaf) -> float:
        match leaf:
            case Gaussian(z):
                return 1 / (2 * z * z)
            case ZeroConcentrated(rho):
                return rho
            case Pure(eps) | LaplaceMax(eps):
                return eps * eps / 2
            case BoundedRange(eps):
                return eps * eps / 8
            case SampledGaussian(z, _):  # sampling never hurts
                return 1 / (2 * z * z)
            case ObjectivePerturbed():
                return perturbed_rho(leaf)
            case RandomlyRepeated(candidates, shape, stop):
                runs = max(self.rho(candidate) for candidate in candidates)
                repeats = math.log(expected_repetitions(shape, stop))
                return runs + 2 * math.sqrt(runs * repeats) + cost_of_selection(leaf)
        raise UnsupportedEvent(f"{self.name} does not know {leaf!r}.")


def _exact_rho(leaf: Leaf) -> Fraction:
    match leaf:
        case Gaussian(z):
            return 1 / (2 * Fraction(z) ** 2)
        case ZeroConcentrated(rho):
            return Fraction(rho)
        case Pure(eps) | LaplaceMax(eps):
            return Fraction(eps) ** 2 / 2
        case BoundedRange(eps):
            return Fraction(eps) ** 2 / 8
    raise UnsupportedEvent(f"There is no exact rho for {leaf!r}.")


class CeilingAccountant(RenyiAccountant):
    """Renyi divergences of one order, which is the best for a ceiling and fixed with it."""

    name = "Renyi differential privacy at the order of the ceiling"

    def __init__(self, ceiling: Budget) -> None:
        self.order = _order_of_ceiling(ceiling.epsilon, ceiling.delta) if ceiling.delta else 2.0

    @classmethod
    def at(cls, order: float) -> CeilingAccountant:
        """The accountant of a ceiling whose order was fixed before, perhaps on another machine."""
        made = cls.__new__(cls)
        made.order = order
        return made

    def total(self, event: Event) -> Fraction | None:
        """The sum of the divergences, each rounded once, or None if it is infinite."""
        parts = leaves(event).items()
        return exact_sum((k, self.divergence(leaf, self.order)) for leaf, k in parts)

    def _curve(self, event: Event) -> Callable[[float], float]:
        total = rounded(self.total(event))
        return lambda alpha: total

    def _best(self, bound: Callable[[float], float]) -> float:
        return bound(self.order)


@lru_cache(maxsize=2**8)
def _order_of_ceiling(epsilon: float, delta: float) -> float:
    """The order at which the largest rho fits under the ceiling."""
    log_delta = math.log(delta)

    def minus_rho(alpha: float) -> float:
        lost = math.log1p(-1 / alpha) - (log_delta + math.log(alpha)) / (alpha - 1)
        return (lost - epsilon) / alpha

    return _best_order(minus_rho)


def _best_order(bound: Callable[[float], float]) -> float:
    """Where `bound` is smallest among orders alpha > 1.

    Every order gives a valid bound, so a search that misses the best order is safe, only loose.
    """
    from scipy.optimize import minimize_scalar  # slow to import

    grid = np.linspace(math.log(1e-8), math.log(1e12), 81)
    values = {i: bound(1 + math.exp(grid[i])) for i in range(0, len(grid), 4)}
    first = min(values, key=values.__getitem__)  # and now between its neighbours
    around = range(max(first - 3, 0), min(first + 4, len(grid)))
    values |= {i: bound(1 + math.exp(grid[i])) for i in around if i != first}
    i = min(sorted(values), key=values.__getitem__)
    low, high = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
    found = minimize_scalar(
        lambda u: bound(1 + math.exp(u)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return 1 + math.exp(grid[i] if values[i] <= found.fun else found.x)
