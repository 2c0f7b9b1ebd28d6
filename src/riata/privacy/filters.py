"""Running sums of privacy filters: what any number of charges cost, in a few exact numbers.

Charges may be chosen in the light of earlier releases. Then only sums count that are privacy
filters (docs/privacy/ledger.md, Theorem 2), and a sum needs no list of what was added before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from riata.errors import LedgerError, UnsupportedEvent
from riata.privacy.accountants import CeilingAccountant, PureAccountant, Spent, ZcdpAccountant
from riata.privacy.accountants.base import rounded
from riata.privacy.budget import Budget
from riata.privacy.events import Event, Unprotected, leaves

#: Of the numbers that are added. Another version of an accountant gets another number here, and
#: ledgers then add up their events again.
ARITHMETIC = 1

_PURE, _ZCDP = PureAccountant(), ZcdpAccountant()


@dataclass(frozen=True)
class FilterSums:
    """The sums of all charges so far, without rounding. None: by this one the cost is infinite."""

    #: The Renyi order that the ceiling fixed when the first sum was made.
    order: float
    #: Of epsilons, of zero-concentrated privacy, and of divergences of that order.
    pure: Fraction | None = Fraction()
    rho: Fraction | None = Fraction()
    divergence: Fraction | None = Fraction()

    @classmethod
    def before(cls, ceiling: Budget) -> Self:
        """The sums before the first charge."""
        return cls(CeilingAccountant(ceiling).order)

    def plus(self, event: Event) -> FilterSums:
        """The sums with one charge more."""
        if any(isinstance(leaf, Unprotected) for leaf in leaves(event)):
            return FilterSums(self.order, None, None, None)
        pure = _PURE.total(event) if _PURE.applies_to(event, 0.0) else None
        renyi = CeilingAccountant.at(self.order).total(event)
        return FilterSums(
            self.order,
            _plus(self.pure, pure),
            _plus(self.rho, _ZCDP.total(event)),
            _plus(self.divergence, renyi),
        )

    def spent(self, delta: float) -> Spent:
        """The smallest epsilon that a filter proves at `delta`."""
        epsilon, name = min(self._epsilons(delta), default=(math.inf, "not protected"))
        if math.isinf(epsilon) and delta == 0 and self.rho is not None:
            raise UnsupportedEvent(
                "Gaussian and zero-concentrated events have no pure guarantee, and the ceiling's "
                "delta is 0. Start a ledger with a positive delta, such as 1e-6."
            )
        return Spent(epsilon, delta, name)

    def _epsilons(self, delta: float) -> Iterator[tuple[float, str]]:
        if self.pure is not None:
            yield rounded(self.pure), _PURE.name
        if delta > 0 and self.rho is not None:
            rho = rounded(self.rho)
            yield _ZCDP.converted(lambda alpha: alpha * rho, delta), _ZCDP.name
        if delta > 0 and self.divergence is not None:
            renyi, total = CeilingAccountant.at(self.order), rounded(self.divergence)
            yield renyi.converted(lambda _: total, delta), renyi.name

    def below(self, other: FilterSums, tolerance: float) -> bool:
        """Whether a sum is smaller than in `other`, by more than some relative tolerance."""
        pairs = (
            (self.pure, other.pure),
            (self.rho, other.rho),
            (self.divergence, other.divergence),
        )
        return any(rounded(mine) < rounded(its) * (1 - tolerance) for mine, its in pairs)


def to_json(sums: FilterSums) -> str:
    """A canonical text for the ledger, with every digit."""
    numbers = (sums.pure, sums.rho, sums.divergence)
    texts = [None if number is None else str(number) for number in numbers]
    return json.dumps([ARITHMETIC, sums.order, *texts])


def from_json(text: str) -> FilterSums | None:
    """The inverse of `to_json`, or None for sums that another version of riata made."""
    try:
        version, order, *texts = json.loads(text)
        if version != ARITHMETIC:
            return None
        pure, rho, divergence = (None if each is None else Fraction(each) for each in texts)
        return FilterSums(float(order), pure, rho, divergence)
    except (ValueError, TypeError, ZeroDivisionError) as error:
        raise LedgerError(
            "The recorded sums of the ledger cannot be read, so nothing more can be spent. Restore "
            "the ledger from a copy that this version of riata wrote."
        ) from error


def _plus(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return None if one is None or other is None else one + other
