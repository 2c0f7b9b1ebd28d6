"""scikit-learn's own checks. What noise or privacy makes impossible is listed with its reason."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from riata import Bounds, PrivateErm, PrivateLasso, PrivateLogisticRegression
from riata.losses import Huber, Squared
from riata.sets import L1Ball, L2Ball

BOUNDS = Bounds(x=5.0, y=10.0)

BAD_TARGETS = {
    "check_supervised_y_no_nan": (
        "NaN and infinity in y are read as values inside the bounds: an error whose occurrence "
        "depends on one row would reveal that row"
    )
}

EXPECTED_FAILURES = {
    PrivateLasso: BAD_TARGETS,
    PrivateErm: BAD_TARGETS,
    PrivateLogisticRegression: {},
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
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check(estimator, check):
    check(estimator)
