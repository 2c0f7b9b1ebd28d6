"""Scikit-learn faces: thin, no algorithm inside."""

from riata.estimators.erm import PrivateErm
from riata.estimators.heavy_tailed import HeavyTailedRegression
from riata.estimators.lasso import PrivateLasso
from riata.estimators.local import (
    LocalKernelRidge,
    LocalLasso,
    LocalLogisticRegression,
    LocalSparseMean,
)
from riata.estimators.logistic import PrivateLogisticRegression
from riata.estimators.projected import ProjectedClassifier, ProjectedRegression
from riata.estimators.sparse import PrivateSparseRegression
from riata.estimators.svm import PrivateLinearSVC

__all__ = [
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
]
