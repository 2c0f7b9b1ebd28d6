"""From an event tree to (epsilon, delta).

Each accountant proves a bound for the events it knows and refuses the others; `spent` takes the
smallest proven bound. The proofs are in docs/privacy/accounting.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from scipy.special import gammaln, log_ndtr, logsumexp

from riata.errors import UnsupportedEvent
from riata.privacy.budget import Budget
from riata.privacy.events import (
    BoundedRange,
    Event,
    Gaussian,
    Leaf,
    ObjectivePerturbed,
    Pure,
    RandomlyRepeated,
    SampledGaussian,
    Unprotected,
    ZeroConcentrated,
    compose,
    leaves,
)
from riata.privacy.perturbed import perturbed_delta, perturbed_divergence, perturbed_rho
from riata.privacy.repeated import expected_repetitions, selection_cost

#: Below this value psi (see `_bounded_range_divergence`) equals its series to machine precision.
_SMALL = 0.25
_PSI_SERIES = ((2, 1 / 24), (4, -1 / 2880), (6, 1 / 181440), (8, -1 / 9676800), (10, 1 / 479001600))


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
    knows = (Pure, BoundedRange, RandomlyRepeated)

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
        return leaf.epsilon  # type: ignore[union-attr]

    def delta(self, event: Event, epsilon: float) -> float:
        return 0.0 if self.epsilon(event, 0.0) <= epsilon else 1.0

    def exactly(self, event: Event) -> Fraction:
        """The sum of the epsilons, without rounding."""
        if not all(isinstance(leaf, Pure | BoundedRange) for leaf in leaves(event)):
            raise UnsupportedEvent("Only pure and bounded-range events have an exact epsilon.")
        return sum((k * Fraction(leaf.epsilon) for leaf, k in leaves(event).items()), Fraction())  # type: ignore[union-attr]


class RenyiAccountant(Accountant):
    """Renyi divergences add up; converted at the best order (Canonne, Kamath, Steinke 2020)."""

    name = "Renyi differential privacy"
    knows = (
        Pure,
        BoundedRange,
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
                return min(_pure_divergence(eps, alpha), alpha * eps * eps / 2)
            case BoundedRange(eps):
                return min(_bounded_range_divergence(eps, alpha), alpha * eps * eps / 8)
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
            case Pure(eps):
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
        case Pure(eps):
            return Fraction(eps) ** 2 / 2
        case BoundedRange(eps):
            return Fraction(eps) ** 2 / 8
    raise UnsupportedEvent(f"There is no exact rho for {leaf!r}.")


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
        return _gaussian_delta(self.shift(event), epsilon)

    def epsilon(self, event: Event, delta: float) -> float:
        if self.delta(event, 0.0) <= delta:
            return 0.0
        mu = self.shift(event)
        top = mu * mu / 2 + mu * math.sqrt(2 * math.log(1 / delta)) + 1e-9
        return _root(lambda eps: self.delta(event, eps), delta, 0.0, top)


class ObjectiveAccountant(Accountant):
    """One objective perturbation, and Gaussian releases beside it."""

    name = "objective perturbation beside Gaussian releases"
    knows = (ObjectivePerturbed, Gaussian)

    def applies_to(self, event: Event, delta: float) -> bool:
        objectives = [
            k for leaf, k in leaves(event).items() if isinstance(leaf, ObjectivePerturbed)
        ]
        return delta > 0 and objectives == [1] and super().applies_to(event, delta)

    def _parts(self, event: Event) -> tuple[ObjectivePerturbed, float]:
        """The objective, and the shift of the others."""
        (own,) = (leaf for leaf in leaves(event) if isinstance(leaf, ObjectivePerturbed))
        others = compose(*((leaf, k) for leaf, k in leaves(event).items() if leaf != own))
        return own, GaussianAccountant().shift(others)

    def delta(self, event: Event, epsilon: float) -> float:
        return perturbed_delta(*self._parts(event), epsilon)

    def epsilon(self, event: Event, delta: float) -> float:
        own, beside = self._parts(event)
        together = math.hypot(1 / own.noise_multiplier, beside)
        low = own.stretch if own.stretch_above is None else min(own.stretch, own.stretch_above)
        top = own.stretch + together**2 / 2 + together * math.sqrt(2 * math.log(8 / delta)) + 1e-9
        while perturbed_delta(own, beside, top) > delta:
            top *= 2
        return _root(partial(perturbed_delta, own, beside), delta, low, top)


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
        leaf = self._leaf(event)
        each = delta / expected_repetitions(leaf.shape, leaf.stop)
        runs = max(spent(candidate, each).epsilon for candidate in leaf.candidates)
        return runs + cost_of_selection(leaf)

    def delta(self, event: Event, epsilon: float) -> float:
        leaf = self._leaf(event)
        rest = epsilon - cost_of_selection(leaf)
        if rest < 0:
            return 1.0
        runs = max(_smallest_delta(run, rest) for run in leaf.candidates)
        return min(1.0, expected_repetitions(leaf.shape, leaf.stop) * runs)


@lru_cache(maxsize=2**10)
def cost_of_selection(leaf: RandomlyRepeated) -> float:
    """What the selection adds to the epsilon and to every divergence of one run."""
    return max(
        selection_cost(partial(_smallest_delta, run), leaf.shape, leaf.stop)
        for run in leaf.candidates
    )


def _smallest_delta(event: Event, epsilon: float) -> float:
    some = 0.5  # accountants ask only whether delta is 0
    found = [a.delta(event, epsilon) for a in ACCOUNTANTS if a.applies_to(event, some)]
    pure = PureAccountant()
    if pure.applies_to(event, 0.0):
        found.append(_delta_of_pure(pure.epsilon(event, 0.0), epsilon))
    return min(found)


def _delta_of_pure(total: float, epsilon: float) -> float:
    """The delta of randomised response, the worst mechanism with a pure guarantee of `total`."""
    if epsilon >= total:
        return 0.0
    return -math.expm1(epsilon - total) / (1 + math.exp(-total))


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


#: For events that are fixed in advance. Renyi's bound is never above zCDP's.
ACCOUNTANTS: tuple[Accountant, ...] = (
    PureAccountant(),
    GaussianAccountant(),
    ObjectiveAccountant(),
    RenyiAccountant(),
    RepetitionAccountant(),
)

#: For events that were themselves chosen in the light of earlier releases: sums that are privacy
#: filters (docs/privacy/ledger.md, Theorem 2).
FILTERS: tuple[Accountant, ...] = (PureAccountant(), ZcdpAccountant())


@dataclass(frozen=True)
class Spent:
    """What an event tree costs, and who proved it."""

    epsilon: float
    delta: float
    accountant: str


def spent(
    event: Event, delta: float, *, adaptive: bool = False, ceiling: Budget | None = None
) -> Spent:
    """The smallest proven epsilon of `event` at `delta`.

    Parameters
    ----------
    event : Event
    delta : float
    adaptive : bool, default=False
        Whether the events were chosen one after the other in the light of earlier releases. Then
        only accountants whose sums are privacy filters count.
    ceiling : Budget, optional
        What adaptive events were held below from the beginning, at the same delta.
    """
    kinds = leaves(event)
    if not kinds:
        return Spent(0.0, delta, "nothing was released")
    if any(isinstance(leaf, Unprotected) for leaf in kinds):
        return Spent(math.inf, delta, "not protected")
    filters = FILTERS if ceiling is None else (*FILTERS, CeilingAccountant(ceiling))
    able = [a for a in (filters if adaptive else ACCOUNTANTS) if a.applies_to(event, delta)]
    if not able:
        raise UnsupportedEvent(
            f"No accountant can bound {sorted(type(leaf).__name__ for leaf in kinds)} at "
            f"delta={delta:g}: Gaussian and zero-concentrated events have no pure guarantee. "
            "Pass a positive delta, such as 1e-6."
        )
    epsilon, name = min((a.epsilon(event, delta), a.name) for a in able)
    return Spent(epsilon, delta, name)


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


def _best_order(bound: Callable[[float], float]) -> float:
    """Where `bound` is smallest among orders alpha > 1.

    Every order gives a valid bound, so a search that misses the best order is safe, only loose.
    """
    from scipy.optimize import minimize_scalar  # slow to import

    grid = np.linspace(math.log(1e-8), math.log(1e12), 81)
    values = [bound(1 + math.exp(u)) for u in grid]
    i = int(np.argmin(values))
    low, high = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
    found = minimize_scalar(
        lambda u: bound(1 + math.exp(u)),
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return 1 + math.exp(grid[i] if values[i] <= found.fun else found.x)


def _root(curve: Callable[[float], float], level: float, low: float, high: float) -> float:
    """The smallest epsilon, up to rounding, at which a falling curve is at most `level`."""
    from scipy.optimize import brentq  # slow to import

    root = float(brentq(lambda eps: curve(eps) - level, low, high, xtol=1e-300, rtol=1e-14))
    step = 1e-15
    while curve(root) > level:
        root, step = root * (1 + step), step * 2
    return root


def _gaussian_delta(shift: float, epsilon: float) -> float:
    """The exact curve of two normals whose means are `shift` standard deviations apart."""
    if shift == 0:
        return 0.0
    upper = math.exp(float(log_ndtr(shift / 2 - epsilon / shift)))
    lower = math.exp(min(0.0, epsilon + float(log_ndtr(-shift / 2 - epsilon / shift))))
    return max(0.0, upper - lower)


#: Orders up to here are computed for sampled events; beyond, the bound without sampling is used.
_MOST_SAMPLED_ORDER = 1024


def sampled_gaussian_divergence(z: float, rate: float, alpha: float) -> float:
    """A bound for neighbours that differ by one summand, or by two of half the sensitivity."""
    plain = alpha / (2 * z * z)
    if rate == 1 or 2 * alpha > _MOST_SAMPLED_ORDER:
        return plain
    removed = _sampled_log_moment(z, rate, alpha) / (alpha - 1)
    there = _sampled_log_moment(2 * z, rate, 2 * alpha) / (2 * alpha - 1)
    back = _sampled_log_moment(2 * z, rate, 2 * alpha - 1) / (2 * alpha - 2)
    replaced = (alpha - 0.5) / (alpha - 1) * there + back
    return min(plain, max(removed, replaced))


def _sampled_log_moment(z: float, rate: float, alpha: float) -> float:
    """(alpha - 1) times the divergence: convex in alpha, so interpolated between whole orders."""
    low = math.floor(alpha)
    at_low = _whole_log_moment(z, rate, low)
    if alpha == low:
        return at_low
    return at_low + (alpha - low) * (_whole_log_moment(z, rate, low + 1) - at_low)


@lru_cache(maxsize=2**16)
def _whole_log_moment(z: float, rate: float, order: int) -> float:
    """log E (1 - rate + rate * likelihood ratio)^order (Mironov, Talwar, Zhang 2019)."""
    j = np.arange(order + 1)
    terms = (
        gammaln(order + 1) - gammaln(j + 1) - gammaln(order - j + 1)
        + (order - j) * math.log1p(-rate) + j * math.log(rate)
        + (j * j - j) / (2 * z * z)
    )  # fmt: skip
    return max(0.0, float(logsumexp(terms)))


def _pure_divergence(eps: float, alpha: float) -> float:
    """Order-alpha divergence of randomised response, the worst epsilon-private mechanism.

    The log moment is log(cosh((alpha - 1/2) eps) / cosh(eps / 2)), written without cancellation.
    """
    if alpha * eps > 1:
        return _log_cosh((alpha - 0.5) * eps, minus=eps / 2) / (alpha - 1)
    rise = 2 * math.sinh(alpha * eps / 2) * math.sinh((alpha - 1) * eps / 2) / math.cosh(eps / 2)
    return math.log1p(rise) / (alpha - 1)


def _log_cosh(x: float, minus: float) -> float:
    """log cosh(x) - log cosh(minus) for non-negative arguments of any size."""
    return (x - minus) + math.log1p(math.exp(-2 * x)) - math.log1p(math.exp(-2 * minus))


def _bounded_range_divergence(eps: float, alpha: float) -> float:
    """Order-alpha divergence of the worst pair whose privacy loss has range eps.

    The loss takes the values t and t - eps. At the worst t the log moment is
    alpha psi(alpha eps) - (alpha - 1) psi((alpha - 1) eps) - psi(eps), where
    psi(x) = log(sinh(x / 2) / (x / 2)); see docs/privacy/accounting.md.
    """
    if alpha * eps > _SMALL:
        rest = (alpha - 1) * eps
        ratio = math.exp(-rest) * math.expm1(-eps) / math.expm1(-rest)
        slope = eps / 2 + math.log1p(ratio) + math.log1p(-1 / alpha)  # psi's last difference
        return (_psi(alpha * eps) - _psi(eps)) / (alpha - 1) + slope
    moment = 0.0
    for power, coefficient in _PSI_SERIES:  # alpha^m - (alpha - 1)^m - 1 without cancellation
        m = power + 1
        weight = -(alpha**m) * math.expm1(m * math.log1p(-1 / alpha)) - 1
        moment += coefficient * eps**power * weight
    return moment / (alpha - 1)


def _psi(x: float) -> float:
    """log(sinh(x / 2) / (x / 2)) for x > 0."""
    if x < _SMALL:
        return sum(coefficient * x**power for power, coefficient in _PSI_SERIES)
    return x / 2 + math.log(-math.expm1(-x) / x)
