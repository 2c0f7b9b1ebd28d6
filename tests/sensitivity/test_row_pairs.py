"""How far a changed row moves an objective's gradient, and what its determinant costs beside it.

Random and hostile rows and points of the set, for every loss, set and kind of bounds that objective
perturbation takes: no pair of rows moves the gradient by more than the sensitivity, and none moves
gradient and determinant at once by more than is charged. Searched pairs come near the bound.
Nothing here is random beyond fixed seeds.
"""

import itertools
import math

import numpy as np
import pytest

from riata.bounds import Bounds
from riata.errors import InvalidArgument
from riata.losses import Hinge, Huber, Logistic, OneAgainstRest, Smoothed, Squared, Weighted
from riata.losses.base import Loss
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.problem import Problem
from riata.queries import Minimum
from riata.queries.minimum import SLOPE_ERROR
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, Simplex

pytestmark = pytest.mark.matrix(one_in=17)

P = 3


class Unknown(Squared):
    """A loss that says nothing about its slopes at a margin."""

    slope_range = Loss.slope_range
    curvature_beyond = Loss.curvature_beyond


LOSSES = {
    "squared": (Squared(), 1.0),
    "squared, large targets": (Squared(), 30.0),
    "logistic": (Logistic(), 1.0),
    "one against rest": (OneAgainstRest(Logistic(), 1), 2.0),
    "weighted": (Weighted(OneAgainstRest(Logistic(), 1), (0.5, 4.0, 1.0)), 2.0),
    "unknown": (Unknown(), 1.0),
    "huber": (Huber(0.4), 1.0),
    "rounded hinge": (Smoothed(Hinge(), 0.3), 1.0),
}
SETS = {
    "l1": L1Ball(1.0),
    "long l1": L1Ball(30.0),
    "l2": L2Ball(2.0),
    "simplex": Simplex(3.0),
    "groups": GroupL1Ball([0, 0, 1], 0.5),
    "l1.5": LpBall(1.5, 2.0),
    "hull": Polytope([[1.0, 0.0, 0.5], [-1.0, 2.0, 0.0], [0.0, -1.0, -1.0]]),
}
BOUNDS = {
    "entries": lambda y: Bounds(1.0, y),
    "columns": lambda y: Bounds([0.1, 1.0, 5.0], y),
    "length": lambda y: Bounds(1.0, y, norm="l2"),
    "long": lambda y: Bounds(40.0, y, norm="l2"),
    "counts": lambda y: Bounds(1.0, y, norm="l2", nonnegative=True),
}
every_loss = pytest.mark.parametrize("loss", LOSSES)
every_set = pytest.mark.parametrize("constraint", SETS)
every_bound = pytest.mark.parametrize("bound", BOUNDS)


def problem_of(loss, constraint, bound, fit_intercept, adjacency=REPLACE_ONE):
    kind, y = LOSSES[loss]
    bounds = BOUNDS[bound](y)
    return Problem(kind, SETS[constraint], bounds, 10, P, adjacency, fit_intercept)


def targets(problem, rng, n):
    if isinstance(problem.loss, OneAgainstRest | Weighted):
        return rng.integers(0, 3, n).astype(float)
    y = problem.bounds.y
    return np.where(rng.random(n) < 0.7, rng.choice([-y, y], n), rng.uniform(-y, y, n))


def points_and_pairs(problem, rng, n):
    """Points of the set, and two rows at each: random ones, and mirror images around the point."""
    size = problem.set.radius_in("l2")
    points = rng.standard_normal((n, P)) * (size * 10.0 ** rng.uniform(-2, 1, (n, 1)))
    points[::3] *= np.eye(P)[rng.integers(0, P, len(points[::3]))]
    points = np.array([problem.set.project(v) for v in points])
    limit = problem.bounds.row_norm("l2", P)
    rows = [limit * rng.standard_normal((n, P)) * 10.0 ** rng.uniform(-1, 1, (n, 1)) for _ in "ab"]
    if problem.bounds.norm == "inf":
        rows = [r * 10.0 ** rng.integers(0, 3, (n, P)) for r in rows]
    # Half of the second rows: the first one symmetric at the point, or its opposite symmetric.
    unit = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300)
    symmetric = 2 * np.sum(rows[0] * unit, axis=1, keepdims=True) * unit - rows[0]
    sign = rng.choice([-1.0, 1.0], (n, 1))
    rows[1] = np.where(rng.random((n, 1)) < 0.6, sign * symmetric, rows[1])
    rows[1] = np.where(rng.random((n, 1)) < 0.1, rows[0], rows[1])
    return points, [problem.bounds.clip_x(r) for r in rows]


def measured(problem, seed, n=600):
    """The change of the gradient, the margin's curvature and the slopes, for many pairs."""
    rng = np.random.default_rng(seed)
    points, rows = points_and_pairs(problem, rng, n)
    query = Minimum(problem)
    loss, limit = query.loss, query.offset_bound  # a table of it, if it is not riata's own
    offset = rng.choice([-limit, limit, 0.0], n) * rng.choice([1.0, rng.random()], n)
    whole = [np.hstack([r, np.ones((n, 1))]) if problem.fit_intercept else r for r in rows]
    margins = [np.sum(r * points, axis=1) + offset for r in rows]
    y = [targets(problem, rng, n) for _ in "ab"]
    slopes = [loss.slope(m, t) for m, t in zip(margins, y, strict=True)]
    change = slopes[0][:, None] * whole[0]
    if problem.adjacency == REPLACE_ONE:
        change = change - slopes[1][:, None] * whole[1]
    curvature = loss.curvature(margins[0], y[0]) * np.square(whole[0]).sum(axis=1)
    return np.linalg.norm(change, axis=1), curvature, np.abs(slopes)


@every_loss
@every_set
@every_bound
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_no_pair_of_rows_moves_the_gradient_by_more(loss, constraint, bound, fit_intercept):
    for adjacency in (REPLACE_ONE, ADD_REMOVE):
        problem = problem_of(loss, constraint, bound, fit_intercept, adjacency)
        query = Minimum(problem)
        moved, _, _ = measured(problem, seed=60)
        assert moved.max() <= query.sensitivity("l2") <= query.sensitivity("l2", 1)


@every_loss
@every_set
@pytest.mark.parametrize("bound", ["entries", "length", "long"])
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_no_pair_costs_more_in_gradient_and_determinant_at_once(loss, constraint, bound, adjacency):
    """For each pair the stretch that it realises, less what it lacks in the loss of the term."""
    problem = problem_of(loss, constraint, bound, True, adjacency)
    query = Minimum(problem)
    moved, curvature, slopes = measured(problem, seed=61)
    free = slopes[0] + (query.slope_bound if adjacency == REPLACE_ONE else 0.0)
    shares = {
        1: free * query.row_length / query.sensitivity("l2", 1),
        2: moved / query.sensitivity("l2", 2),
    }
    for part, above, directions in itertools.product((0.03, 1.0, 30.0), (0.1, 1.0, 9.0), (1, 2)):
        regularisation = part * query.row_curvature
        left = np.log1p(curvature / regularisation) - above * (1 - shares[directions])
        claimed = query.stretch(regularisation, above, directions)
        assert left.max() <= claimed <= query.stretch(regularisation)
        assert query.stretch(regularisation, 2 * above, directions) <= claimed * (1 + 1e-9)


@pytest.mark.parametrize(
    ("loss", "radius", "fit_intercept"),
    [
        (Squared(), 1.0, False), (Squared(), 1.0, True), (Squared(), 10.0, True),
        (Logistic(), 1.0, False), (Logistic(), 1.0, True), (Logistic(), 10.0, False),
    ],
)  # fmt: skip
def test_searched_pairs_come_near_the_sensitivity(loss, radius, fit_intercept):
    """Rows at an angle on both sides of the point, or of what is against it, in a plane."""
    problem = Problem(loss, L2Ball(radius), Bounds(1.0, 1.0, norm="l2"), 10, 2,
                      fit_intercept=fit_intercept)  # fmt: skip
    query = Minimum(problem)
    limit = query.offset_bound
    best = 0.0
    angles = np.linspace(0, np.pi, 181)
    for y, z, offset in itertools.product((-1, 1), (-1, 1), np.linspace(-limit, limit, 9)):
        ours, theirs = np.meshgrid(angles, -angles)
        change = np.zeros((2 + fit_intercept, *ours.shape))
        for angle, target, sign in ((ours, y, 1), (theirs, z, -1)):
            margin = radius * np.cos(angle) + offset
            slope = sign * loss.slope(margin, np.full(margin.shape, float(target)))
            change[0] += slope * np.cos(angle)
            change[1] += slope * np.sin(angle)
            if fit_intercept:
                change[2] += slope
        best = max(best, float(np.sqrt(np.square(change).sum(axis=0)).max()))
    assert 0.9 <= best / query.sensitivity("l2") <= 1
    assert best / query.sensitivity("l2", 1) < 0.96


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=repr)
@pytest.mark.parametrize("scales", list(itertools.product((1e-60, 1.0, 1e60), repeat=3)))
def test_bounds_of_every_size_have_a_sensitivity(loss, scales):
    """Neither 0, which would mean no noise, nor infinite, nor a warning. Or they are refused."""
    x, y, radius = scales
    y = 1.0 if isinstance(loss, Logistic) else y
    for norm, fit_intercept in itertools.product(("inf", "l2"), (False, True)):
        bounds = Bounds(x, y, norm=norm)
        query = Minimum(Problem(loss, L2Ball(radius), bounds, 10, 2, fit_intercept=fit_intercept))
        slope = loss.slope_bound(query.margin_bound, y)
        if not 1e-99 < 10 * slope * query.row_length < 1e99:
            with pytest.raises(InvalidArgument, match="units"):
                query.sensitivity("l2")
            continue
        tight, free = query.sensitivity("l2"), query.sensitivity("l2", 1)
        assert 0.2 * free <= tight <= free < math.inf
        whole = query.stretch(query.row_curvature)
        assert 0 <= query.stretch(query.row_curvature, 1.0) <= whole


def test_what_a_loss_says_about_its_slopes_and_curvatures_holds_for_every_target():
    margins = np.concatenate(
        [-np.geomspace(1e-3, 1e3, 200)[::-1], [0.0], np.geomspace(1e-3, 1e3, 200)]
    )
    for loss, y in LOSSES.values():
        lowest, highest = loss.slope_range(margins, y)
        assert np.all(np.diff(lowest) >= 0)
        assert np.all(np.diff(highest) >= -1e-15 * np.abs(highest[:-1]))
        beyond = loss.curvature_beyond(np.abs(margins), y)
        tries = (
            np.arange(3.0)
            if isinstance(loss, OneAgainstRest | Weighted)
            else y * np.linspace(-1, 1, 401)
        )
        for target in tries:
            codes = np.full(margins.shape, target)
            slope, curvature = loss.slope(margins, codes), loss.curvature(margins, codes)
            # The logistic function is a series, off by no more than this.
            tiny = SLOPE_ERROR * (loss.slope_bound(0.0, y) + np.abs(slope))
            assert np.all(lowest - tiny <= slope)
            assert np.all(slope <= highest + tiny)
            assert np.all(curvature <= beyond + SLOPE_ERROR * loss.curvature_bound(y))
            assert curvature.max() <= loss.curvature_bound(y) * (1 + 1e-12)
        assert math.isclose(beyond[200], loss.curvature_bound(y))
