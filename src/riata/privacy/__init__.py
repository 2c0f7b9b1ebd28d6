"""Budgets, events, accountants, calibration, the ledger and the Statement."""

from typing import TYPE_CHECKING, Any

from riata.privacy.accountants import Spent, spent
from riata.privacy.budget import Budget
from riata.privacy.calibrate import calibrate
from riata.privacy.statement import Statement

if TYPE_CHECKING:
    from riata.privacy.ledger import Ledger

__all__ = ["Budget", "Ledger", "Spent", "Statement", "calibrate", "spent"]

if not TYPE_CHECKING:  # a type checker would take every misspelt name for one from here

    def __getattr__(name: str) -> Any:
        """The ledger, when it is first used: SQLAlchemy is slow to import."""
        if name != "Ledger":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from riata.privacy.ledger import Ledger

        globals()["Ledger"] = Ledger
        return Ledger


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
