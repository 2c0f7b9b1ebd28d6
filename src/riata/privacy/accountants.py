"""From an event tree to (epsilon, delta).

Each accountant proves a bound for the events it knows and refuses the others; `spent` takes the
smallest proven bound. The proofs are in docs/privacy/accounting.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr

from riata.errors import UnsupportedEvent
from riata.privacy.events import (
    BoundedRange,
    Event,
    Gaussian,
    Leaf,
    Pure,
    Unprotected,
    ZeroConcentrated,
    leaves,
)

#: Below this value of epsilon * alpha the exact Renyi divergences of two-point distributions lose
#: digits to cancellation, and the quadratic bound differs from them by less than one part in 1e4.
_SMALL = 1e-2


class Accountant(ABC):
    """A sound conversion from some events to (epsilon, delta)."""

    name: str
    knows: tuple[type[Leaf], ...]

    def applies_to(self, event: Event, delta: float) -> bool:
        return all(isinstance(leaf, self.knows) for leaf in leaves(event))

    @abstractmethod
    def epsilon(self, event: Event, delta: float) -> float:
        """The smallest epsilon this accountant can prove at `delta`."""

    @abstractmethod
    def delta(self, event: Event, epsilon: float) -> float:
        """The smallest delta this accountant can prove at `epsilon`."""


class PureAccountant(Accountant):
    """Basic composition: the epsilons add up. The only one that works at delta = 0."""

    name = "pure composition"
    knows = (Pure, BoundedRange)

    def epsilon(self, event: Event, delta: float) -> float:
        return math.fsum(leaf.epsilon * k for leaf, k in leaves(event).items())  # type: ignore[union-attr]

    def delta(self, event: Event, epsilon: float) -> float:
        return 0.0 if self.epsilon(event, 0.0) <= epsilon else 1.0


class RenyiAccountant(Accountant):
    """Renyi divergences add up; converted at the best order (Canonne, Kamath, Steinke 2020)."""

    name = "Renyi differential privacy"
    knows = (Pure, BoundedRange, Gaussian, ZeroConcentrated)

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
                return min(_pure_divergence(eps, alpha), alpha * eps * eps / 2)
            case BoundedRange(eps):
                return min(_bounded_range_divergence(eps, alpha), alpha * eps * eps / 8)
        raise UnsupportedEvent(f"{self.name} does not know {leaf!r}.")

    def _curve(self, event: Event) -> Callable[[float], float]:
        parts = list(leaves(event).items())
        return lambda alpha: math.fsum(k * self.divergence(leaf, alpha) for leaf, k in parts)

    def epsilon(self, event: Event, delta: float) -> float:
        curve, log_delta = self._curve(event), math.log(delta)

        def bound(alpha: float) -> float:
            return (
                curve(alpha) + math.log1p(-1 / alpha) - (log_delta + math.log(alpha)) / (alpha - 1)
            )

        return max(0.0, _smallest(bound))

    def delta(self, event: Event, epsilon: float) -> float:
        curve = self._curve(event)

        def bound(alpha: float) -> float:
            gap = curve(alpha) - epsilon + math.log1p(-1 / alpha)
            return (alpha - 1) * gap - math.log(alpha)

        return min(1.0, math.exp(min(0.0, _smallest(bound))))


class ZcdpAccountant(RenyiAccountant):
    """Zero-concentrated privacy: one number, rho, that adds up even when a run adapts."""

    name = "zero-concentrated differential privacy"

    def rho(self, event: Event) -> float:
        return math.fsum(k * self._rho(leaf) for leaf, k in leaves(event).items())

    def divergence(self, leaf: Leaf, alpha: float) -> float:
        return alpha * self._rho(leaf)

    def _rho(self, leaf: Leaf) -> float:
        match leaf:
            case Gaussian(z):
                return 1 / (2 * z * z)
            case ZeroConcentrated(rho):
                return rho
            case Pure(eps):
                return eps * eps / 2
            case BoundedRange(eps):
                return eps * eps / 8
        raise UnsupportedEvent(f"{self.name} does not know {leaf!r}.")


class GaussianAccountant(Accountant):
    """Gaussian releases compose to one, whose curve is known exactly (Balle, Wang 2018)."""

    name = "exact Gaussian composition"
    knows = (Gaussian,)

    def applies_to(self, event: Event, delta: float) -> bool:
        return delta > 0 and super().applies_to(event, delta)

    def shift(self, event: Event) -> float:
        """The distance of the means of the composed pair, in standard deviations."""
        return math.sqrt(
            math.fsum(k / leaf.noise_multiplier**2 for leaf, k in leaves(event).items())  # type: ignore[union-attr]
        )

    def delta(self, event: Event, epsilon: float) -> float:
        mu = self.shift(event)
        if mu == 0:
            return 0.0
        upper = math.exp(float(log_ndtr(mu / 2 - epsilon / mu)))
        lower = math.exp(min(0.0, epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))))
        return max(0.0, upper - lower)

    def epsilon(self, event: Event, delta: float) -> float:
        if self.delta(event, 0.0) <= delta:
            return 0.0
        mu = self.shift(event)
        top = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1e-9
        root = float(
            brentq(lambda eps: self.delta(event, eps) - delta, 0.0, top, xtol=1e-300, rtol=1e-14)
        )
        step = 1e-15
        while self.delta(event, root) > delta:
            root, step = root * (1 + step), step * 2
        return root


ACCOUNTANTS: tuple[Accountant, ...] = (
    PureAccountant(),
    GaussianAccountant(),
    RenyiAccountant(),
    ZcdpAccountant(),
)


@dataclass(frozen=True)
class Spent:
    """What an event tree costs, and who proved it."""

    epsilon: float
    delta: float
    accountant: str


def spent(event: Event, delta: float) -> Spent:
    """The smallest proven epsilon of `event` at `delta`."""
    kinds = leaves(event)
    if not kinds:
        return Spent(0.0, delta, "nothing was released")
    if any(isinstance(leaf, Unprotected) for leaf in kinds):
        return Spent(math.inf, delta, "not protected")
    able = [a for a in ACCOUNTANTS if a.applies_to(event, delta)]
    if not able:
        raise UnsupportedEvent(
            f"No accountant can bound {sorted(type(leaf).__name__ for leaf in kinds)} at "
            f"delta={delta:g}: Gaussian and zero-concentrated events have no pure guarantee. "
            "Pass a positive delta, such as 1e-6."
        )
    best = min(able, key=lambda a: a.epsilon(event, delta))
    return Spent(best.epsilon(event, delta), delta, best.name)


def _smallest(bound: Callable[[float], float]) -> float:
    """The minimum of `bound` over orders alpha > 1.

    Every order gives a valid bound, so a search that misses the best order is safe, only loose.
    """
    grid = np.linspace(math.log(1e-8), math.log(1e12), 161)
    values = [bound(1 + math.exp(u)) for u in grid]
    i = int(np.argmin(values))
    low, high = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
    found = minimize_scalar(
        lambda u: bound(1 + math.exp(u)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(min(values[i], found.fun))


def _pure_divergence(eps: float, alpha: float) -> float:
    """Order-alpha divergence of randomised response, the worst epsilon-private mechanism."""
    if eps * alpha < _SMALL:
        return math.inf  # the caller takes the quadratic bound
    log_norm = float(np.logaddexp(0.0, eps))
    return float(np.logaddexp(alpha * eps, (1 - alpha) * eps) - log_norm) / (alpha - 1)


def _bounded_range_divergence(eps: float, alpha: float) -> float:
    """Order-alpha divergence of the worst pair whose privacy loss has range eps.

    The loss takes the values t and t - eps; the best t has the closed form below.
    """
    if eps * alpha < _SMALL:
        return math.inf
    log_a = eps + math.log(-math.expm1(-alpha * eps))  # log(e^eps - e^(-(alpha-1) eps))
    log_b = math.log(-math.expm1(-(alpha - 1) * eps))
    t = math.log1p(-1 / alpha) + log_a - log_b
    log_moment = (alpha - 1) * t + log_a - math.log(alpha) - (eps + math.log(-math.expm1(-eps)))
    return log_moment / (alpha - 1)
