"""Mechanisms of a plan, with the noise at which they spend a budget exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from riata.mechanisms import GaussianMechanism, LaplaceMechanism, Mechanism
from riata.privacy.budget import Budget
from riata.privacy.calibrate import calibrate
from riata.privacy.events import Event, compose


def calibrate_mechanisms(
    at: Callable[[float], dict[str, Mechanism]], times: int | Mapping[str, int], budget: Budget
) -> dict[str, Mechanism]:
    """The mechanisms at the strength that spends the budget when each is used `times` times."""

    def event(strength: float) -> Event:
        mechanisms = at(strength)
        often = dict.fromkeys(mechanisms, times) if isinstance(times, int) else times
        return compose(*((m.event, often[role]) for role, m in mechanisms.items()))

    return at(calibrate(event, budget))


def gaussian_mechanisms(
    times: Mapping[str, int], shares: Mapping[str, float], budget: Budget, fits: int = 1
) -> dict[str, Mechanism]:
    """Gaussian releases that spend the budget, each role with its share of the whole strength.

    The strength of a role is `times` / noise_multiplier^2. The shares need not add up to 1.
    """
    whole = sum(shares[role] for role in times)

    def at(strength: float) -> dict[str, Mechanism]:
        return {
            role: GaussianMechanism(math.sqrt(count * whole / shares[role]) / strength)
            for role, count in times.items()
        }

    return _of_fits(at, times, budget, fits)


def laplace_mechanisms(
    times: Mapping[str, int], shares: Mapping[str, float], budget: Budget, fits: int = 1
) -> dict[str, Mechanism]:
    """The same for a budget without delta: Laplace releases whose noise has the same proportions.

    Noise is in inverse proportion to epsilon, and to the root of a share.
    """

    def at(strength: float) -> dict[str, Mechanism]:
        return {
            role: LaplaceMechanism(strength * math.sqrt(shares[role] / count))
            for role, count in times.items()
        }

    return _of_fits(at, times, budget, fits)


def _of_fits(
    at: Callable[[float], dict[str, Mechanism]], times: Mapping[str, int], budget: Budget, fits: int
) -> dict[str, Mechanism]:
    return calibrate_mechanisms(at, {role: fits * k for role, k in times.items()}, budget)
