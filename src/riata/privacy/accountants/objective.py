"""Objective perturbation: its privacy curve, its Renyi divergences and its zCDP.

The loss is bounded by a sum of three parts, and its positive part by straight lines: see
docs/privacy/objective_perturbation.md, Lemma 6 and Theorems 7 and 8.
"""

from __future__ import annotations

import math
from functools import partial

from scipy.special import erfcx, log_ndtr

from riata.privacy.accountants.base import Accountant, smallest_epsilon
from riata.privacy.accountants.gaussian import GaussianAccountant
from riata.privacy.events import Event, Gaussian, ObjectivePerturbed, compose, leaves

_ROOT_OF_2_PI = math.sqrt(2 * math.pi)

#: The expected length of a standard normal vector with 1 and with 2 directions.
_EXPECTED = {1: math.sqrt(2 / math.pi), 2: math.sqrt(math.pi / 2)}


def perturbed_delta(leaf: ObjectivePerturbed, others: float, epsilon: float) -> float:
    """A bound on delta, with Gaussian releases of the shift `others` before and after it."""
    plain = _delta(leaf, others, epsilon - leaf.stretch, None)
    if leaf.stretch_above is None:
        return plain
    return min(plain, _delta(leaf, others, epsilon - leaf.stretch_above, leaf.above))


def _delta(leaf: ObjectivePerturbed, others: float, rest: float, above: float | None) -> float:
    """The curve at what is left of epsilon after the stretch."""
    if rest <= 0:
        return 1.0
    own = 1 / leaf.noise_multiplier
    together = math.hypot(own, others)
    far = (rest - together**2 / 2) / together
    # Every line that touches 1 - exp(-u) from above gives a bound. This one touches it where the
    # tail of the loss, which falls about so fast, counts most.
    falls = (far + 1 / (1 + far) if far > 0 else 1.0) / together
    touch = math.log1p(1 / falls)
    level = rest - 1 / falls + touch
    excess = _expected_excess(leaf.directions, own, others, level - together**2 / 2)
    if above is not None:
        excess += _normal_excess(others, level - above - others**2 / 2)
    return min(1.0, math.exp(-touch) * excess)


def _expected_excess(directions: int, own: float, others: float, level: float) -> float:
    """A bound on E (own * chi + others * normal - level)_+."""
    together = math.hypot(own, others)
    if directions == 1:
        return 2 * _normal_excess(together, level)
    tail = math.exp(float(log_ndtr(-level / together)))
    return _ROOT_OF_2_PI * own * tail + _normal_excess(others, level)


def _normal_excess(deviation: float, level: float) -> float:
    """E (N - level)_+ for a normal N with mean 0."""
    if deviation == 0:
        return max(0.0, -level)
    u = level / deviation
    if u < 0:
        return deviation * _unit_excess(-u) - level
    return deviation * _unit_excess(u)


def _unit_excess(u: float) -> float:
    """phi(u) - u Phi(-u) for u >= 0, without cancelling more digits than u^2 has."""
    mills = math.sqrt(math.pi / 2) * float(erfcx(u / math.sqrt(2)))
    return math.exp(-u * u / 2) / _ROOT_OF_2_PI * max(0.0, 1 - u * mills)


def perturbed_divergence(leaf: ObjectivePerturbed, alpha: float) -> float:
    """A bound on the Renyi divergence of order `alpha`."""
    mu, weight = 1 / leaf.noise_multiplier, alpha - 1
    moment = weight * mu * mu / 2 + log_moment(leaf.directions, weight * mu)
    plain = leaf.stretch + moment / weight
    if leaf.stretch_above is None:
        return plain
    larger, smaller = max(moment, weight * leaf.above), min(moment, weight * leaf.above)
    either = larger + math.log1p(math.exp(smaller - larger))
    return min(plain, leaf.stretch_above + either / weight)


def perturbed_rho(leaf: ObjectivePerturbed) -> float:
    """A rho: the line that meets the Renyi bound at order 1."""
    mu = 1 / leaf.noise_multiplier
    return leaf.stretch + mu * mu / 2 + mu * _EXPECTED[leaf.directions]


def log_moment(directions: int, a: float) -> float:
    """log E exp(a chi), for a >= 0."""
    linear = a * _EXPECTED[directions]
    if a < 1e-4:  # chi minus its mean is subgaussian
        return linear + a * a / 2
    half = a * a / 2
    if directions == 1:
        return half + math.log(2) + float(log_ndtr(a))
    return half + math.log(math.exp(-half) + a * _ROOT_OF_2_PI * math.exp(float(log_ndtr(a))))


class ObjectiveAccountant(Accountant):
    """One objective perturbation, and Gaussian releases before or after it."""

    name = "objective perturbation with Gaussian releases"
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
        own, others = self._parts(event)
        together = math.hypot(1 / own.noise_multiplier, others)
        low = own.stretch if own.stretch_above is None else min(own.stretch, own.stretch_above)
        top = own.stretch + together**2 / 2 + together * math.sqrt(2 * math.log(8 / delta)) + 1e-9
        while perturbed_delta(own, others, top) > delta:
            top *= 2
        return smallest_epsilon(partial(perturbed_delta, own, others), delta, low, top)
