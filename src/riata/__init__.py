"""Sparse models from sensitive data, with a differential-privacy guarantee."""

from riata.bounds import Bounds
from riata.errors import BudgetExceeded, RiataError
from riata.estimators import (
    HeavyTailedRegression,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSparseRegression,
    ProjectedClassifier,
    ProjectedRegression,
)
from riata.model_file import load, save
from riata.privacy import Budget, Ledger, Statement

__version__ = "0.1.0"

__all__ = [
    "Bounds",
    "Budget",
    "BudgetExceeded",
    "HeavyTailedRegression",
    "Ledger",
    "PrivateErm",
    "PrivateLasso",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateSparseRegression",
    "ProjectedClassifier",
    "ProjectedRegression",
    "RiataError",
    "Statement",
    "load",
    "save",
]
