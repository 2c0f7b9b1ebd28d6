"""Inner products that follow a model have the bits of those that are computed at once."""

import numpy as np
import pytest
from scipy import sparse

from riata import Bounds
from riata.engines.columns import SparseColumns
from riata.engines.margins import Margins
from riata.grid import X_STEPS
from riata.queries.coefficients import Coefficients
from riata.vectors import Vector


@pytest.mark.parametrize("density", [0.05, 0.6])
def test_margins_that_follow_a_model_are_those_of_the_model(density):
    rng = np.random.default_rng(0)
    n, p = 500, 12
    entries = rng.integers(-X_STEPS, X_STEPS + 1, (n, p)) * (rng.random((n, p)) < density)
    x, bounds, theta = sparse.csr_array(entries.astype(float)), Bounds(0.3, 1.0), np.zeros(p)
    margins, followed = Margins(x, SparseColumns(x)), 0
    for step in range(30):
        theta[rng.integers(p)] += rng.normal()
        if step % 10 == 9:  # a move that is too large to follow
            theta = rng.normal(size=p)
        model = Coefficients.of(Vector.of(theta), bounds)
        found = margins.inner(model)
        followed += margins.followed
        assert np.array_equal(found, model.in_units(model.steps_of(x)))
    assert followed > 10


def test_models_on_other_columns_are_followed_by_their_differences():
    rng = np.random.default_rng(1)
    n, p = 300, 400
    entries = rng.integers(-X_STEPS, X_STEPS + 1, (n, p)) * (rng.random((n, p)) < 0.1)
    x, bounds = sparse.csr_array(entries.astype(float)), Bounds(0.3, 1.0)
    margins, ways = Margins(x, SparseColumns(x)), set()
    for size in (0, 3, 350, 2, 5, 0, 400):
        support = np.sort(rng.choice(p, size, replace=False))
        model = Coefficients.of(Vector(p, support, rng.normal(size=size)), bounds)
        found = margins.inner(model)
        ways.add(margins.followed)
        assert np.array_equal(found, model.in_units(model.steps_of(x)))
        assert margins.inner(model) is found  # the next block asks the same
        assert margins.followed
    assert ways == {False, True}
