"""Scikit-learn faces: thin, no algorithm inside."""

from riata.estimators.erm import PrivateErm
from riata.estimators.families import (
    PrivateGammaRegression,
    PrivateNegativeBinomialRegression,
    PrivatePoissonRegression,
    PrivateTweedieRegression,
)
from riata.estimators.heavy_tailed import HeavyTailedRegression
from riata.estimators.lasso import PrivateLasso
from riata.estimators.local import (
    LocalKernelRidge,
    LocalLasso,
    LocalLogisticRegression,
    LocalPoissonRegression,
    LocalSparseMean,
)
from riata.estimators.logistic import PrivateLogisticRegression
from riata.estimators.ordinal import PrivateOrdinalRegression
from riata.estimators.projected import ProjectedClassifier, ProjectedRegression
from riata.estimators.quantile import PrivateQuantileRegression
from riata.estimators.sparse import PrivateSparseRegression
from riata.estimators.survival import PrivateCoxRegression
from riata.estimators.svm import PrivateLinearSVC

__all__ = [
    "HeavyTailedRegression",
    "LocalKernelRidge",
    "LocalLasso",
    "LocalLogisticRegression",
    "LocalPoissonRegression",
    "LocalSparseMean",
    "PrivateCoxRegression",
    "PrivateErm",
    "PrivateGammaRegression",
    "PrivateLasso",
    "PrivateLinearSVC",
    "PrivateLogisticRegression",
    "PrivateNegativeBinomialRegression",
    "PrivateOrdinalRegression",
    "PrivatePoissonRegression",
    "PrivateQuantileRegression",
    "PrivateSparseRegression",
    "PrivateTweedieRegression",
    "ProjectedClassifier",
    "ProjectedRegression",
]
