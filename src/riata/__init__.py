"""Sparse models from sensitive data, with a differential-privacy guarantee."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from riata.errors import BudgetExceeded, RiataError

if TYPE_CHECKING:
    from riata.bounds import Bounds
    from riata.data import Schema, Source, read
    from riata.estimators import (
        HeavyTailedRegression,
        LocalKernelRidge,
        LocalLasso,
        LocalLogisticRegression,
        LocalSparseMean,
        PrivateErm,
        PrivateLasso,
        PrivateLinearSVC,
        PrivateLogisticRegression,
        PrivateSparseRegression,
        ProjectedClassifier,
        ProjectedRegression,
    )
    from riata.fitting import peel
    from riata.forecasting import (
        Comparison,
        Forecast,
        ForecastCurve,
        Required,
        compare_solvers,
        forecast,
        forecast_curve,
        required_epsilon,
        required_rows,
    )
    from riata.model_file import load, save
    from riata.onnx_graph import export_onnx
    from riata.privacy import Budget, Ledger, Statement
    from riata.tuning import PrivateSearch, SearchPlan

__version__ = "0.1.0"

__all__ = [
    "Bounds",
    "Budget",
    "BudgetExceeded",
    "Comparison",
    "Forecast",
    "ForecastCurve",
    "HeavyTailedRegression",
    "Ledger",
    "LocalKernelRidge",
    "LocalLasso",
    "LocalLogisticRegression",
    "LocalSparseMean",
    "PrivateErm",
    "PrivateLasso",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateSearch",
    "PrivateSparseRegression",
    "ProjectedClassifier",
    "ProjectedRegression",
    "Required",
    "RiataError",
    "Schema",
    "SearchPlan",
    "Source",
    "Statement",
    "compare_solvers",
    "export_onnx",
    "forecast",
    "forecast_curve",
    "load",
    "peel",
    "read",
    "required_epsilon",
    "required_rows",
    "save",
]

#: Where the names above are. A module is imported when a name from it is first used, because the
#: estimators bring scikit-learn with them, and the ledger a database.
_NAMES = {
    "riata.bounds": ("Bounds",),
    "riata.data": ("Schema", "Source", "read"),
    "riata.estimators": (
        "HeavyTailedRegression",
        "LocalKernelRidge",
        "LocalLasso",
        "LocalLogisticRegression",
        "LocalSparseMean",
        "PrivateErm",
        "PrivateLasso",
        "PrivateLinearSVC",
        "PrivateLogisticRegression",
        "PrivateSparseRegression",
        "ProjectedClassifier",
        "ProjectedRegression",
    ),
    "riata.fitting": ("peel",),
    "riata.forecasting": (
        "Comparison",
        "Forecast",
        "ForecastCurve",
        "Required",
        "compare_solvers",
        "forecast",
        "forecast_curve",
        "required_epsilon",
        "required_rows",
    ),
    "riata.model_file": ("load", "save"),
    "riata.onnx_graph": ("export_onnx",),
    "riata.privacy": ("Budget", "Ledger", "Statement"),
    "riata.tuning": ("PrivateSearch", "SearchPlan"),
}

#: The documented modules, which need no import of their own either: `riata.sets.L1Ball`.
_MODULES = (
    "audit",
    "curator",
    "data",
    "datasets",
    "embedding",
    "engines",
    "errors",
    "fitting",
    "forecasting",
    "geometry",
    "hard_instances",
    "local",
    "losses",
    "lower_bounds",
    "mechanisms",
    "privacy",
    "problem",
    "projections",
    "queries",
    "report",
    "sets",
    "simulation",
    "solvers",
    "vectors",
)

if not TYPE_CHECKING:  # a type checker would take every misspelt name for one from here

    def __getattr__(name: str) -> Any:
        """A public name that is used for the first time."""
        if name in _MODULES:
            return import_module(f"riata.{name}")
        for module, names in _NAMES.items():
            if name in names:
                value = globals()[name] = getattr(import_module(module), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
