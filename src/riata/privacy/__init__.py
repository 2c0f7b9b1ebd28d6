"""Budgets, events, accountants, calibration, the ledger and the Statement."""

from riata.privacy.accountants import Spent, spent
from riata.privacy.budget import Budget
from riata.privacy.calibrate import calibrate
from riata.privacy.ledger import Ledger
from riata.privacy.statement import Statement

__all__ = ["Budget", "Ledger", "Spent", "Statement", "calibrate", "spent"]
