"""From an event tree to (epsilon, delta).

Each accountant proves a bound for the events it knows and refuses the others; `spent` takes the
smallest proven bound. The proofs are in docs/privacy/accounting.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from riata.errors import UnsupportedEvent
from riata.privacy.accountants.base import Accountant
from riata.privacy.accountants.gaussian import GaussianAccountant
from riata.privacy.accountants.objective import ObjectiveAccountant
from riata.privacy.accountants.pure import PureAccountant
from riata.privacy.accountants.renyi import CeilingAccountant, RenyiAccountant, ZcdpAccountant
from riata.privacy.accountants.repetition import RepetitionAccountant
from riata.privacy.budget import Budget
from riata.privacy.events import Event, Unprotected, leaves

__all__ = [
    "Accountant",
    "CeilingAccountant",
    "GaussianAccountant",
    "ObjectiveAccountant",
    "PureAccountant",
    "RenyiAccountant",
    "RepetitionAccountant",
    "Spent",
    "ZcdpAccountant",
    "smallest_delta",
    "spent",
]

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
    known = [(a.epsilon(event, delta), a.name) for a in able if a.exact]
    if not any(epsilon > 0 for epsilon, _ in known):  # else the others could only be larger
        known += [(a.epsilon(event, delta), a.name) for a in able if not a.exact]
    epsilon, name = min(known)
    return Spent(epsilon, delta, name)


def smallest_delta(event: Event, epsilon: float) -> float:
    """The smallest proven delta of `event` at `epsilon`, if it is fixed in advance."""
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
