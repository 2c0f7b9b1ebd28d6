"""Scikit-learn faces: thin, no algorithm inside."""

from riata.estimators.erm import PrivateErm
from riata.estimators.lasso import PrivateLasso
from riata.estimators.logistic import PrivateLogisticRegression

__all__ = ["PrivateErm", "PrivateLasso", "PrivateLogisticRegression"]
