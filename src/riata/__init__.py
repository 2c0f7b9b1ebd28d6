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
from riata.forecast import Forecast, ForecastCurve, forecast, forecast_curve
from riata.model_file import load, save
from riata.privacy import Budget, Ledger, Statement

__version__ = "0.1.0"

__all__ = [
    "Bounds",
    "Budget",
    "BudgetExceeded",
    "Forecast",
    "ForecastCurve",
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
    "forecast",
    "forecast_curve",
    "load",
    "save",
]
