"""scikit-learn's own checks. What noise or privacy makes impossible is listed with its reason."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from riata import (
    Bounds,
    HeavyTailedRegression,
    LocalKernelRidge,
    LocalLasso,
    LocalLogisticRegression,
    LocalPoissonRegression,
    LocalSparseMean,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSearch,
    PrivateSparseRegression,
    ProjectedClassifier,
    ProjectedRegression,
)
from riata.losses import Huber, Squared
from riata.sets import L1Ball, L2Ball
from riata.solvers import NoisyGradient, PrivatePeeling

pytestmark = pytest.mark.matrix(one_in=11)

BOUNDS = Bounds(x=5.0, y=10.0)
LENGTH = Bounds(x=5.0, y=10.0, norm="l2")

OBJECTS = {
    "check_dtype_object": (
        "What is no number in a column of objects counts as missing: an error whose occurrence "
        "depends on one value would reveal it"
    )
}
BAD_TARGETS = OBJECTS | {
    "check_supervised_y_no_nan": (
        "NaN and infinity in y are read as values inside the bounds: an error whose occurrence "
        "depends on one row would reveal that row"
    )
}

EXPECTED_FAILURES = {
    PrivateLasso: BAD_TARGETS,
    PrivateErm: BAD_TARGETS,
    PrivateSparseRegression: BAD_TARGETS,
    HeavyTailedRegression: BAD_TARGETS,
    ProjectedRegression: BAD_TARGETS,
    PrivateLogisticRegression: OBJECTS,
    PrivateLinearSVC: OBJECTS,
    ProjectedClassifier: OBJECTS,
    LocalLasso: BAD_TARGETS,
    LocalKernelRidge: BAD_TARGETS,
    LocalLogisticRegression: OBJECTS,
    LocalPoissonRegression: BAD_TARGETS,
    LocalSparseMean: OBJECTS,
    PrivateSearch: BAD_TARGETS,
}


def expected_failures(estimator):
    return EXPECTED_FAILURES[type(estimator)]


@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings of scikit-learn's own
@parametrize_with_checks(
    [
        PrivateLasso(1.0, 1e-6, bounds=BOUNDS, steps=20),
        PrivateLasso(1.0, bounds=BOUNDS),
        PrivateLasso(1.0, bounds=BOUNDS, random_state=0),
        PrivateLasso(1.0, 0.0, bounds=BOUNDS, fit_intercept=False),
        PrivateLogisticRegression(1.0, 1e-6, bounds=BOUNDS, classes="observed", steps=20),
        PrivateErm(Squared(), L1Ball(2.0), 1.0, 1e-6, bounds=BOUNDS, steps=20),
        PrivateErm(Huber(1.0), L2Ball(2.0), 1.0, 1e-6, bounds=BOUNDS, steps=20),
        PrivateErm(
            Squared(), L2Ball(1.0), 1.0, 0.0, bounds=LENGTH, solver="objective-perturbation"
        ),
        PrivateErm(Squared(), L2Ball(1.0), 1.0, 0.0, bounds=LENGTH, solver="posterior-sampling"),
        PrivateErm(Huber(1.0), L1Ball(1.0), 1.0, bounds=LENGTH, solver=NoisyGradient(5)),
        PrivateLogisticRegression(1.0, bounds=LENGTH, classes="observed", steps=5),
        PrivateLinearSVC(1.0, bounds=BOUNDS, classes="observed", steps=5),
        PrivateSparseRegression(1.0, bounds=BOUNDS, sparsity=1, random_state=0),
        PrivateSparseRegression(1.0, 1e-6, bounds=LENGTH, sparsity=1, steps=5),
        HeavyTailedRegression(1.0, sparsity=1),
        HeavyTailedRegression(1.0, 0.0, sparsity=1, solver=PrivatePeeling(2, values="laplace")),
        ProjectedRegression(1.0, bounds=LENGTH, steps=5),
        ProjectedClassifier(1.0, bounds=LENGTH, classes="observed", dimension=1, steps=5),
        PrivateSearch(PrivateLasso(None, bounds=BOUNDS), {"radius": [1.0, 2.0]}, 1.0, expected=1),
        LocalSparseMean(1.0, bounds=BOUNDS),
        LocalSparseMean(1.0, bounds=LENGTH, threshold="none", random_state=0),
        LocalLasso(1.0, bounds=BOUNDS),
        LocalLasso(4.0, bounds=LENGTH, penalty="l2", fit_intercept=False, random_state=0),
        LocalKernelRidge(1.0, bounds=BOUNDS, pairs=8),
        LocalKernelRidge(1.0, bounds=LENGTH, pairs=4, random_state=0),
        LocalLogisticRegression(1.0, bounds=BOUNDS),
        LocalPoissonRegression(1.0, bounds=BOUNDS),
        LocalLogisticRegression(1.0, bounds=LENGTH, fit_intercept=False, random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
