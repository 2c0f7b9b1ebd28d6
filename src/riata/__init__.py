"""Sparse models from sensitive data, with a differential-privacy guarantee."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from riata.errors import BudgetExceeded as BudgetExceeded, RiataError as RiataError

if TYPE_CHECKING:
    from riata.bounds import Bounds as Bounds
    from riata.data import (
        Schema as Schema,
        SchemaEncoder as SchemaEncoder,
        Source as Source,
        read as read,
    )
    from riata.estimators import (
        HeavyTailedRegression as HeavyTailedRegression,
        LocalKernelRidge as LocalKernelRidge,
        LocalLasso as LocalLasso,
        LocalLogisticRegression as LocalLogisticRegression,
        LocalPoissonRegression as LocalPoissonRegression,
        LocalSparseMean as LocalSparseMean,
        PrivateCoxRegression as PrivateCoxRegression,
        PrivateErm as PrivateErm,
        PrivateGammaRegression as PrivateGammaRegression,
        PrivateLasso as PrivateLasso,
        PrivateLinearSVC as PrivateLinearSVC,
        PrivateLogisticRegression as PrivateLogisticRegression,
        PrivateNegativeBinomialRegression as PrivateNegativeBinomialRegression,
        PrivateOrdinalRegression as PrivateOrdinalRegression,
        PrivatePoissonRegression as PrivatePoissonRegression,
        PrivateQuantileRegression as PrivateQuantileRegression,
        PrivateSparseRegression as PrivateSparseRegression,
        PrivateTweedieRegression as PrivateTweedieRegression,
        ProjectedClassifier as ProjectedClassifier,
        ProjectedRegression as ProjectedRegression,
    )
    from riata.fitting import peel as peel
    from riata.forecasting import (
        Comparison as Comparison,
        Forecast as Forecast,
        ForecastCurve as ForecastCurve,
        Required as Required,
        compare_solvers as compare_solvers,
        forecast as forecast,
        forecast_curve as forecast_curve,
        required_epsilon as required_epsilon,
        required_rows as required_rows,
    )
    from riata.model_file import (
        load as load,
        save as save,
    )
    from riata.onnx_graph import export_onnx as export_onnx
    from riata.privacy import (
        Budget as Budget,
        Ledger as Ledger,
        Statement as Statement,
    )
    from riata.tuning import (
        PrivateSearch as PrivateSearch,
        SearchPlan as SearchPlan,
    )

__version__ = "0.1.0"

#: Where the public names are. A module is imported when a name from it is first used, because the
#: estimators bring scikit-learn with them, and the ledger a database. The imports above tell type
#: checkers the same, and a test holds the two together.
_NAMES = {
    "riata.bounds": "Bounds",
    "riata.data": "Schema SchemaEncoder Source read",
    "riata.estimators": (
        "HeavyTailedRegression LocalKernelRidge LocalLasso LocalLogisticRegression "
        "LocalPoissonRegression LocalSparseMean PrivateCoxRegression PrivateErm "
        "PrivateGammaRegression PrivateLasso PrivateLinearSVC PrivateLogisticRegression "
        "PrivateNegativeBinomialRegression PrivateOrdinalRegression "
        "PrivatePoissonRegression PrivateQuantileRegression PrivateSparseRegression "
        "PrivateTweedieRegression ProjectedClassifier ProjectedRegression"
    ),
    "riata.fitting": "peel",
    "riata.forecasting": (
        "Comparison Forecast ForecastCurve Required compare_solvers forecast forecast_curve "
        "required_epsilon required_rows"
    ),
    "riata.model_file": "load save",
    "riata.onnx_graph": "export_onnx",
    "riata.privacy": "Budget Ledger Statement",
    "riata.tuning": "PrivateSearch SearchPlan",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(["BudgetExceeded", "RiataError", *_MODULE_OF])

#: The documented modules, which need no import of their own either: `riata.sets.L1Ball`.
_MODULES = (
    "audit", "curator", "data", "datasets", "embedding", "engines", "errors", "estimators",
    "evaluation",
    "fitting", "forecasting", "geometry", "hard_instances", "local", "losses", "lower_bounds",
    "mechanisms", "privacy", "problem", "projections", "queries", "report", "sets",
    "simulation", "solvers", "vectors",
)  # fmt: skip

if not TYPE_CHECKING:  # a type checker would take every misspelt name for one from here

    def __getattr__(name: str) -> Any:
        """A public name that is used for the first time."""
        if name in _MODULES:
            return import_module(f"riata.{name}")
        if name in _MODULE_OF:
            value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
            return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
