"""Sparse models from sensitive data, with a differential-privacy guarantee."""

from riata.bounds import Bounds
from riata.errors import BudgetExceeded, RiataError
from riata.estimators import PrivateErm, PrivateLasso, PrivateLogisticRegression
from riata.model_file import load, save
from riata.privacy import Budget, Ledger, Statement

__version__ = "0.1.0"

__all__ = [
    "Bounds",
    "Budget",
    "BudgetExceeded",
    "Ledger",
    "PrivateErm",
    "PrivateLasso",
    "PrivateLogisticRegression",
    "RiataError",
    "Statement",
    "load",
    "save",
]
