"""Weights and exposures of rows: no row adds more than the largest weight allows.

Codes hold a target, a weight and an exposure. Whatever a code is, and whatever the numbers are that
it was made of, what is read from it lies inside the bounds, and the slope within its bound; see
docs/privacy/sensitivity.md.
"""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from test_queries import exact_change, squared_length

from riata import Bounds
from riata.engines import LocalEngine
from riata.errors import InvalidArgument
from riata.losses import (
    Gamma,
    Huber,
    Logistic,
    NegativeBinomial,
    Poisson,
    Quantile,
    Smoothed,
    Softmax,
    Squared,
    Tweedie,
    WeightedRows,
)
from riata.losses.weighted_rows import CODES
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.problem import Problem
from riata.queries import Gradient, MeanCurvature
from riata.queries.minimum import SLOPE_ERROR
from riata.sets import GroupL1Ball, L1Ball, L2Ball, Simplex
from riata.vectors import Vector

pytestmark = pytest.mark.matrix(one_in=5)

#: Counts, weights and exposures that no honest row has.
HOSTILE = [1e300, -1e300, np.inf, -np.inf, np.nan, -3.0, 0.0, 1e-300, 0.7, 1.0, 2.0, 50.0]
LOSSES = [
    WeightedRows(Squared(), 2.0, 3.0),
    WeightedRows(Huber(0.5), 2.0, 0.3),
    WeightedRows(Smoothed(Quantile(0.9), 0.2), 2.0, 3.0),
    WeightedRows(Poisson(4.0), 2.0, 3.0, 2.0),
    WeightedRows(Poisson(), 2.0, 1.0, 0.5),
    WeightedRows(Gamma(0.2), 2.0, 3.0, 1.0),
    WeightedRows(Tweedie(1.5, 0.2, 9.0), 2.0, 0.7, 5.0),
    WeightedRows(NegativeBinomial(0.5), 2.0, 3.0, 1.0),
]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=repr)


def hostile_codes(loss):
    """Codes of hostile numbers, codes that nobody made, and what is no code."""
    exposures = HOSTILE if loss.exposure is not None else [1.0]
    rows = np.array(list(itertools.product(HOSTILE, HOSTILE, exposures)))
    exposure = rows[:, 2] if loss.exposure is not None else None
    made = loss.encode(rows[:, 0], rows[:, 1], exposure)
    others = [0.0, -1.0, 0.5, 1e300, -np.inf, np.inf, np.nan, CODES, CODES - 1, 2.0**38 - 1]
    return np.concatenate([made, others, np.random.default_rng(1).integers(0, CODES, 50)])


@every_loss
def test_codes_hold_what_they_were_made_of(loss):
    y = np.array([0.0, 1.0, 2.0, -1.0, 0.123])
    weight = np.array([0.0, 0.1, 0.2, 0.3, 0.25])
    exposure = None if loss.exposure is None else loss.exposure * np.array([1, 0.9, 0.5, 0.01, 1])
    targets, weights, offsets = loss._decode(loss.encode(y, weight, exposure))
    np.testing.assert_array_equal(targets[:4], y[:4])  # whole numbers are exact
    np.testing.assert_allclose(targets, y, atol=2e-6)
    np.testing.assert_allclose(weights, weight, atol=3e-5)
    expected = np.zeros(5) if exposure is None else np.log(exposure)
    np.testing.assert_allclose(offsets, expected, atol=6e-4)


@every_loss
def test_whatever_a_code_is_what_is_read_lies_inside_the_bounds(loss):
    codes = hostile_codes(loss)
    with np.errstate(all="ignore"):
        y, weight, offset = loss._decode(codes)
    assert np.all(np.abs(y) <= loss.y)
    assert np.all((weight >= 0) & (weight <= loss.weight))
    top = 0.0 if loss.exposure is None else math.log(loss.exposure)
    assert np.all((offset <= top + 1e-6) & (offset >= top - (8 if loss.exposure else 0)))
    made = loss.encode(np.array(HOSTILE), np.array(HOSTILE), np.array(HOSTILE))
    assert np.all((made >= 0) & (made < CODES) & (made == np.rint(made)))


@every_loss
def test_what_is_missing_or_negative_has_no_weight(loss):
    none = loss.encode(np.ones(4), np.array([np.nan, -1.0, -np.inf, 0.0]))
    with np.errstate(all="ignore"):
        assert np.all(loss.slope(np.linspace(-1, 1, 4), none) == 0)


def exactly(loss, margin, y, weight, offset):
    """The slope of a row of a log link in 200 bits, with the tails that the loss has."""
    mp = mpmath.mp.clone()
    mp.prec = 200
    inner, z = loss.loss, mp.mpf(margin) + mp.mpf(offset)
    up, down = min(z, mp.mpf(inner.high)), max(z, mp.mpf(inner.low))

    def power(t):
        return mp.exp(min(max(t, mp.mpf(-40)), mp.mpf(40)))

    if isinstance(inner, Poisson):
        rise, fall = power(up), mp.mpf(1)
    elif isinstance(inner, Gamma):
        rise, fall = mp.mpf(1), power(-down)
    elif isinstance(inner, Tweedie):
        rise, fall = power((2 - inner.power) * up), power((1 - inner.power) * down)
    else:
        rise, fall = (power(up) / (1 + inner.dispersion * power(up)),
                      1 / (1 + inner.dispersion * power(down)))  # fmt: skip
    return mp.mpf(weight) * (rise - max(mp.mpf(y), 0) * fall)


@pytest.mark.not_quick
@pytest.mark.parametrize("loss", [
    *(loss for loss in LOSSES if loss.exposure is not None),
    WeightedRows(Poisson(), 1e3, 3.0, 1e15),
    WeightedRows(Gamma(), 1e3, 3.0, 1e-15),
    WeightedRows(Tweedie(1.999), 2.0, 3.0, 1e-40),
    WeightedRows(Tweedie(1.001), 2.0, 3.0, 1e40),
    WeightedRows(NegativeBinomial(1e-3), 1e3, 3.0, 1e15),
], ids=repr)  # fmt: skip
def test_float64_knows_the_slope_of_an_exposed_row_as_well_as_it_is_trusted(loss):
    """Margins and offsets of any size, that cancel or not: the sum of both is rounded."""
    rng = np.random.default_rng(3)
    codes = np.concatenate([rng.integers(0, CODES, 60).astype(float), hostile_codes(loss)[::200]])
    y, weight, offset = loss._decode(codes)
    ends = np.array([-1e6, -50.0, -40.0, -1e-3, 0.0, 1e-9, 7.0, 40.0, 1e6])
    near = rng.choice(ends, len(codes)) * (1 + 1e-3 * rng.standard_normal(len(codes)))
    wide = rng.uniform(-45, 45, len(codes))
    for margins in (near, wide, near - offset, wide - offset):
        slopes = loss.slope(margins, codes)
        for m, code, found, *row in zip(margins, codes, slopes, y, weight, offset, strict=True):
            error = abs(exactly(loss, m, *row) - mpmath.mpf(float(found)))
            assert error <= SLOPE_ERROR * loss.slope_bound(abs(m), CODES), (m, code)


@every_loss
@pytest.mark.parametrize("margin", [0.0, 0.5, 3.0])
def test_slopes_keep_their_bound_and_reach_it(loss, margin):
    codes = hostile_codes(loss)
    codes = np.concatenate([
        codes,
        loss.encode(*np.array([[sign * loss.y, loss.weight, e] for sign in (1, -1, 0)
                               for e in (loss.exposure or 1.0, 1e-300)]).T),
    ])  # fmt: skip
    with np.errstate(all="ignore"):
        slopes = np.concatenate([
            loss.slope(np.full(len(codes), m), codes) for m in np.linspace(-margin, margin, 9)
        ])  # fmt: skip
    bound = loss.slope_bound(margin, CODES)
    assert np.abs(slopes).max() <= bound * (1 + 1e-12)
    assert np.abs(slopes).max() >= bound * (1 - 1e-9)


@every_loss
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("bounds", [Bounds(1.0, CODES), Bounds(1.3, CODES, norm="l2")], ids=repr)
@pytest.mark.parametrize("C", [L1Ball(1.0), L2Ball(0.5), GroupL1Ball(1, 1.0), Simplex()], ids=repr)
def test_no_neighbour_exceeds_the_sensitivity(loss, adjacency, bounds, C):
    problem = Problem(loss, C, bounds, 3, 2, adjacency)
    heavy = loss.encode(np.array([loss.y, -loss.y, 0.0]), np.full(3, loss.weight), np.ones(3))
    codes = np.concatenate([hostile_codes(loss)[-60:-48], heavy])
    rows = [(x, y) for x in ([1e300, -np.inf], [1.0, 1.0], [np.nan, -0.3]) for y in codes]
    theta = Vector.of(problem.set.project(np.array([0.6, -0.4]))).with_offset(0.2)
    for query in (Gradient(problem, theta), MeanCurvature(problem, theta, 0.7)):
        sums = np.array([
            LocalEngine(np.array([x]), np.array([y]), bounds).total(query) for x, y in rows
        ])  # fmt: skip
        ends = np.unique([end for each in sums.T for end in (each.argmin(), each.argmax())])
        others = [0 * sums[0]] if adjacency == ADD_REMOVE else sums[ends]
        for one, other in itertools.product(sums[ends], others):
            change = exact_change(query, one, other)
            for norm in ("l1", "l2", "linf"):
                most = Fraction(query.sensitivity(norm)) ** 2
                assert squared_length(change, norm) <= most


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_a_pair_of_the_heaviest_rows_reaches_the_sensitivity(adjacency):
    loss, bounds = WeightedRows(Squared(), 2.0, 3.0), Bounds(1.0, CODES)
    problem = Problem(loss, L1Ball(1.0), bounds, 3, 2, adjacency)
    query = Gradient(problem, Vector.zero(2))
    up, down = (
        LocalEngine(np.ones((1, 2)), loss.encode(np.array([y]), np.array([1e9])), bounds).total(
            query
        )
        for y in (1e9, -1e9)
    )
    change = exact_change(query, up, down if adjacency == REPLACE_ONE else 0 * down)
    share = math.sqrt(squared_length(change, "l2")) / query.sensitivity("l2")
    assert 0.9999 <= share <= 1


@pytest.mark.parametrize("loss", [Poisson(4.0), Gamma(0.2), Tweedie(1.5, 0.2, 4.0),
                                  NegativeBinomial(0.5), Poisson(), Gamma()], ids=repr)  # fmt: skip
def test_hostile_counts_are_clipped(loss):
    """No count of any size has a steeper slope than one at the bound, and none below 0 counts."""
    bounds = Bounds(1.0, 3.0)
    y = bounds.clip_y(np.array(HOSTILE))
    for margin in (-2.0, 0.0, 2.0):
        slope = loss.slope(np.full(len(y), margin), y)
        assert np.all(np.isfinite(slope))
        assert np.abs(slope).max() <= loss.slope_bound(2.0, 3.0) * (1 + 1e-12)
        zero = loss.slope(np.array([margin]), np.zeros(1))
        np.testing.assert_array_equal(slope[[1, 3, 4, 5]], np.repeat(zero, 4))
    raw = loss.slope(np.zeros(3), np.array([np.nan, -5.0, 0.0]))
    assert raw[0] == raw[1] == raw[2]


def test_what_cannot_have_weights_says_so():
    for loss in (Logistic(), Softmax(3)):
        with pytest.raises(InvalidArgument, match="numbers"):
            WeightedRows(loss, 1.0)
    with pytest.raises(InvalidArgument, match="log link"):
        WeightedRows(Squared(), 1.0, 1.0, 2.0)
    for wrong in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidArgument, match="weight"):
            WeightedRows(Squared(), 1.0, wrong)
