"""Losses: slopes are derivatives, and the bounds that noise is scaled to are valid and tight."""

import numpy as np
import pytest

from riata import Bounds, PrivateErm, losses
from riata.errors import Incompatible, InvalidArgument
from riata.losses import (
    Absolute,
    Hinge,
    Huber,
    Linear,
    Logistic,
    NuisanceLoss,
    OneAgainstRest,
    Quantile,
    SmoothedHinge,
    Squared,
    Weighted,
)
from riata.sets import L1Ball, L2Ball

pytestmark = pytest.mark.matrix(one_in=11)

NUMERIC = [Squared(), Huber(0.1), Huber(1.0), Huber(7.0)]
LABELLED = [Logistic(), SmoothedHinge(0.25), SmoothedHinge(1.0), SmoothedHinge(5.0)]
LIMITS = [(0.0, 1.0), (0.3, 0.2), (1.0, 1.0), (4.0, 1.0), (2.0, 3.0), (50.0, 0.5)]

PLAIN = [loss for loss in losses.REGISTRY.complete(NUMERIC + LABELLED) if loss.inner is None]

every_loss = pytest.mark.parametrize("loss", PLAIN, ids=repr)
#: Those whose bounds are reached by targets of any size. Targets of the others are codes, and
#: tests/sensitivity/test_nuisance_sums.py reaches their bounds.
REACHED = [loss for loss in PLAIN if not isinstance(loss, NuisanceLoss)]
#: Those with a bounded, positive second derivative: no corner, and not straight.
SMOOTH = [loss for loss in PLAIN if 0 < loss.curvature_bound(1.0) < np.inf]
every_smooth_loss = pytest.mark.parametrize("loss", SMOOTH, ids=repr)
every_limit = pytest.mark.parametrize(("margin", "y"), LIMITS)


def inside(margin, y, n=4_000):
    """Random (margin, y) inside the limits, with the four corners and the edges among them."""
    rng = np.random.default_rng(20_150)
    m, t = rng.uniform(-margin, margin, n), rng.uniform(-y, y, n)
    m[: n // 4] = rng.choice([-margin, margin], n // 4)
    t[n // 8 : n // 2] = rng.choice([-y, y], n // 2 - n // 8)
    return m, t


@every_loss
def test_slope_is_the_derivative_of_value(loss):
    rng = np.random.default_rng(1)
    margin, y = rng.uniform(-6, 6, 3_000), rng.choice([-1.0, 1.0], 3_000)
    h = 1e-5
    measured = (loss.value(margin + h, y) - loss.value(margin - h, y)) / (2 * h)
    # A central difference across a corner of the slope errs by at most h * curvature.
    np.testing.assert_allclose(measured, loss.slope(margin, y), atol=h * 10, rtol=0)


@every_smooth_loss
def test_curvature_is_the_derivative_of_slope(loss):
    rng = np.random.default_rng(2)
    margin, y = rng.uniform(-6, 6, 20_000), rng.choice([-1.0, 1.0], 20_000)
    h = 1e-5
    measured = (loss.slope(margin + h, y) - loss.slope(margin - h, y)) / (2 * h)
    found = loss.curvature(margin, y)
    bent = np.abs(measured) > 1e-9  # elsewhere a parabola that lies above has some curvature
    wrong = np.abs(measured - found)[bent] > 1e-6 * loss.curvature_bound(1.0)
    assert wrong.mean() <= 1e-3  # next to a corner of the slope, of which there are two
    if loss.twice_differentiable:
        assert not wrong.any()


@pytest.mark.parametrize(
    "loss", [Huber(0.5), SmoothedHinge(0.7), Absolute(), Quantile(0.9), Hinge()], ids=repr
)
def test_where_a_loss_is_straight_a_parabola_of_its_curvature_lies_above(loss):
    rng = np.random.default_rng(3)
    margin, y = rng.uniform(-6, 6, 2_000), rng.choice([-1.0, 1.0], 2_000)
    at, slope, bend = loss.value(margin, y), loss.slope(margin, y), loss.curvature(margin, y)
    for move in np.linspace(-1, 1, 41)[:, None] * np.abs(slope / np.maximum(bend, 1e-9)):
        above = at + slope * move + bend * move**2 / 2
        toward = slope * move <= 0  # where a Newton step goes, and half way there
        assert np.all((loss.value(margin + move, y) <= above + 1e-9)[toward])


@every_smooth_loss
def test_curvature_keeps_its_bound_and_reaches_it(loss):
    for margin, y in LIMITS:
        found = loss.curvature(*inside(margin, y))
        assert found.min() >= 0
        assert found.max() <= loss.curvature_bound(y) * (1 + 1e-12)
    ends = np.array([0.0, getattr(loss, "low", 0.0), getattr(loss, "high", 0.0)])
    reached = max(loss.curvature(*inside(4.0, 1.0)).max(), *loss.curvature(ends, np.ones(3)))
    assert loss not in REACHED or reached == pytest.approx(loss.curvature_bound(1.0), rel=1e-6)


def test_one_against_rest_bends_like_its_loss():
    rng = np.random.default_rng(3)
    margin, codes = rng.uniform(-3, 3, 500), rng.integers(-1, 3, 500).astype(float)
    for loss in LABELLED:
        found = OneAgainstRest(loss, 2).curvature(margin, codes)
        labels = np.where(codes == 2, 1.0, -1.0)
        np.testing.assert_array_equal(found, loss.curvature(margin, labels))


@every_loss
def test_curvature_of_hostile_margins_is_a_number_for_each_row(loss):
    hostile = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, -0.0])
    with np.errstate(all="ignore"):
        for y in (1.0, 0.0, np.nan):
            assert loss.curvature(hostile, np.full(7, y)).shape == (7,)


@every_loss
def test_value_is_continuous_and_convex_and_not_negative_unless_straight(loss):
    margin = np.linspace(-8, 8, 20_001)
    for y in (-1.0, -0.4, 0.0, 1.0):
        value = loss.value(margin, np.full_like(margin, y))
        slope = loss.slope(margin, np.full_like(margin, y))
        assert value.min() >= 0 or loss.curvature_bound(1.0) == 0
        assert np.diff(slope).min() >= -1e-12
        # The trapezoid rule between grid points, which errs at a corner: no jump anywhere.
        step = margin[1] - margin[0]
        corner = step * loss.slope_bound(8.0, 1.0) if loss not in SMOOTH else 0.0
        np.testing.assert_allclose(
            np.diff(value), step * (slope[1:] + slope[:-1]) / 2, atol=10 * step**2 + corner
        )


@every_limit
@every_loss
def test_slope_bound_holds_inside_the_limits_and_is_reached(loss, margin, y):
    bound = loss.slope_bound(margin, y)
    largest = np.abs(loss.slope(*inside(margin, y))).max()
    assert largest <= bound * (1 + 1e-12)
    assert loss not in REACHED or largest >= bound * (1 - 1e-9)


@every_limit
@every_loss
def test_slope_bound_grows_with_both_limits(loss, margin, y):
    assert loss.slope_bound(margin * 1.1 + 0.1, y) >= loss.slope_bound(margin, y)
    assert loss.slope_bound(margin, y * 1.1) >= loss.slope_bound(margin, y)


@pytest.mark.parametrize("y", [0.2, 1.0, 3.0])
@every_smooth_loss
def test_curvature_bound_holds_everywhere_and_is_reached(loss, y):
    rng = np.random.default_rng(2)
    margin = np.concatenate([np.linspace(-12, 12, 60_001), rng.uniform(-1e3, 1e3, 2_000)])
    h = 1e-4
    largest = 0.0
    for target in (-y, y, 0.3 * y):
        targets = np.full_like(margin, target)
        change = loss.slope(margin + h, targets) - loss.slope(margin - h, targets)
        largest = max(largest, np.max(change) / (2 * h))
    bound = loss.curvature_bound(y)
    assert largest <= bound * (1 + 1e-6)
    assert loss not in REACHED or largest >= bound * (1 - 1e-3)


def test_squared_loss_has_no_factor_one_half():
    margin, y = np.array([3.0]), np.array([1.0])
    assert Squared().value(margin, y) == 4.0
    assert Squared().slope(margin, y) == 4.0
    assert Squared().slope_bound(1.0, 1.0) == 4.0  # L_1 of the unit LASSO


def test_huber_with_a_large_threshold_is_the_squared_loss():
    margin, y = inside(4.0, 3.0)
    wide = Huber(7.0)  # no residual is larger
    np.testing.assert_allclose(wide.value(margin, y), Squared().value(margin, y), rtol=1e-14)
    np.testing.assert_array_equal(wide.slope(margin, y), Squared().slope(margin, y))
    assert wide.slope_bound(4.0, 3.0) == Squared().slope_bound(4.0, 3.0)
    assert wide.curvature_bound(3.0) == Squared().curvature_bound(3.0)


def test_huber_is_straight_beyond_its_threshold():
    margin = np.array([10.0, 11.0, 1e6])
    value = Huber(0.5).value(margin, np.zeros(3))
    np.testing.assert_allclose(value, 2 * 0.5 * margin - 0.25, rtol=1e-14)
    assert Huber(0.5).slope_bound(1e9, 1e9) == 1.0


def test_smoothed_hinge_tends_to_the_hinge():
    margin = np.linspace(-3, 3, 101)
    y = np.ones_like(margin)
    hinge = np.maximum(1 - margin, 0)
    for smoothing in (1e-1, 1e-3, 1e-6):
        value = SmoothedHinge(smoothing).value(margin, y)
        assert np.all(value <= hinge + 1e-12)
        assert np.abs(value - hinge).max() <= smoothing / 2 + 1e-12


@pytest.mark.parametrize(
    "loss", [Absolute(), Quantile(0.5), Quantile(0.1), Quantile(0.9)], ids=repr
)
def test_the_best_constant_is_a_quantile(loss):
    y = np.random.default_rng(5).exponential(size=501)
    found = y[np.argmin([loss.value(np.full_like(y, m), y).mean() for m in y])]
    assert found == np.quantile(y, getattr(loss, "quantile", 0.5))


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, np.nan, "a", None, True])
def test_a_quantile_lies_between_0_and_1(bad):
    with pytest.raises(InvalidArgument, match="quantile"):
        Quantile(bad)


@pytest.mark.not_quick
@pytest.mark.parametrize("loss", [Absolute(), Quantile(0.9), Hinge(), Linear()], ids=repr)
def test_a_loss_without_a_curvature_is_fitted_or_refused_before_the_charge(loss):
    rng = np.random.default_rng(6)
    x = rng.uniform(-1, 1, (500, 4)) / 2
    y = np.sign(x[:, 0] + 0.1 * rng.standard_normal(500))
    bounds = Bounds(1.0, 1.0, norm="l2")
    for solver in ("frank-wolfe", "gaussian-frank-wolfe", "noisy-gradient"):
        model = PrivateErm(
            loss, L1Ball(1.0), 50.0, 1e-6, bounds=bounds, solver=solver, fit_intercept=False,
            random_state=7,
        ).fit(x, y)  # fmt: skip
        assert model.coef_[0] > max(0.2, *np.abs(model.coef_[1:]))
    for delta in (0.0, 1e-6):
        model = PrivateErm(
            loss, L2Ball(1.0), 50.0, delta, bounds=bounds, solver="objective-perturbation",
            fit_intercept=False, random_state=7,
        ).fit(x, y)  # fmt: skip
        assert model.coef_[0] > max(0.2, *np.abs(model.coef_[1:]))
    with pytest.raises(Incompatible, match="curvature"):
        PrivateErm(loss, L2Ball(1.0), 1.0, 1e-6, bounds=bounds, solver="scaled-gradient").fit(x, y)


@pytest.mark.parametrize("loss", [Hinge(), Absolute(), Quantile(0.9)], ids=repr)
def test_a_rounded_corner_is_a_mean_over_an_interval(loss):
    """The smoothed loss by quadrature, its error, and where it is the loss itself."""
    margins, width = np.linspace(-3, 3, 401), 0.3
    for y in (-1.0, 0.4, 1.0):
        smooth, targets = loss.smoothed(width), np.full(401, y)
        beyond, rate, _, rise = loss.corner(margins, targets)
        around = np.linspace(-0.5, 0.5, 2001) * width
        scale = np.where(np.broadcast_to(rate, 401) == 0, 1.0, rate)
        mean = np.mean([loss.value(margins + a / scale, targets) for a in around], axis=0)
        np.testing.assert_allclose(smooth.value(margins, targets), mean, atol=2e-4)
        more = smooth.value(margins, targets) - loss.value(margins, targets)
        assert more.min() >= -1e-12
        assert more.max() <= smooth.smoothing_error == rise * width / 8
        far = np.abs(beyond) > width / 2
        np.testing.assert_allclose(
            smooth.slope(margins, targets)[far], loss.slope(margins, targets)[far], atol=1e-12
        )
        fastest = np.abs(np.diff(smooth.slope(margins, targets))).max() / (margins[1] - margins[0])
        assert fastest <= smooth.curvature_bound(abs(y)) * (1 + 1e-9)
    coded = Weighted(OneAgainstRest(Hinge(), 1), (0.5, 3.0))
    assert coded.smoothed(0.2).curvature_bound(1.0) == 15.0
    assert coded.smoothed(0.2).smoothing_error == pytest.approx(3 * 0.2 / 8)
    assert Squared().smoothed(0.2) is None
    assert OneAgainstRest(Logistic(), 1).smoothed(0.2) is None


def test_losses_of_extreme_margins_are_finite():
    margin = np.array([-1e3, -40.0, 0.0, 40.0, 1e3])
    for loss in NUMERIC + LABELLED:
        for y in (-1.0, 1.0):
            assert np.all(np.isfinite(loss.value(margin, np.full(5, y))))
            assert np.all(np.isfinite(loss.slope(margin, np.full(5, y))))
        assert np.isfinite(loss.slope_bound(1e3, 1.0))
        assert np.isfinite(loss.slope_bound(1e60, 1.0))


@pytest.mark.parametrize("loss", LABELLED, ids=repr)
def test_one_against_rest_reads_codes_as_labels(loss):
    rng = np.random.default_rng(3)
    codes, margin = rng.integers(-1, 4, 200).astype(float), rng.uniform(-3, 3, 200)
    wrapped = OneAgainstRest(loss, 2)
    labels = np.where(codes == 2, 1.0, -1.0)
    np.testing.assert_array_equal(wrapped.value(margin, codes), loss.value(margin, labels))
    np.testing.assert_array_equal(wrapped.slope(margin, codes), loss.slope(margin, labels))
    assert wrapped.classifies
    assert wrapped.name == loss.name


@pytest.mark.parametrize("loss", LABELLED, ids=repr)
def test_one_against_rest_takes_its_bounds_from_labels_and_not_from_codes(loss):
    wrapped = OneAgainstRest(loss, 0)
    for n_classes in (2.0, 9.0):
        assert wrapped.slope_bound(1.5, n_classes) == loss.slope_bound(1.5, 1.0)
        assert wrapped.curvature_bound(n_classes) == loss.curvature_bound(1.0)
        assert wrapped.offset_bound(n_classes) == loss.offset_bound(1.0)
    margin, codes = np.full(40, -1.5), np.arange(-10.0, 30.0)
    largest = np.abs(wrapped.slope(margin, codes)).max()
    assert largest <= wrapped.slope_bound(1.5, 9.0) * (1 + 1e-12)


def test_one_against_rest_gives_one_row_to_one_class_only():
    codes = np.arange(4.0)
    slopes = np.array([OneAgainstRest(Logistic(), k).slope(np.zeros(4), codes) for k in range(4)])
    np.testing.assert_array_equal(slopes < 0, np.eye(4, dtype=bool))


def test_which_losses_classify():
    assert not any(loss.classifies for loss in NUMERIC)
    assert all(loss.classifies for loss in LABELLED)


@pytest.mark.parametrize("bad", [0, 0.0, -1.0, np.nan, np.inf, -np.inf, "a", None, True, [1.0]])
@pytest.mark.parametrize("loss", [Huber, SmoothedHinge])
def test_a_bad_scale_is_refused_by_name(loss, bad):
    name = "threshold" if loss is Huber else "smoothing"
    with pytest.raises(InvalidArgument, match=name):
        loss(bad)


def test_numpy_numbers_are_good_scales():
    assert Huber(np.float32(0.5)).slope_bound(9.0, 9.0) == 1.0
    assert SmoothedHinge(np.int64(2)).curvature_bound(1.0) == 0.5


def test_losses_are_values():
    assert Huber(0.5) == Huber(0.5) != Huber(0.6)
    assert Squared() == Squared()
    assert len({Logistic(), Logistic(), SmoothedHinge(1.0), SmoothedHinge(2.0)}) == 3


def test_the_logistic_loss_is_made_of_ieee_operations_alone(monkeypatch):
    """Its value is summed too, so it must have the same bits on every machine."""
    z = np.r_[np.linspace(-60, 60, 4_001), 0.0, 1e300, -1e300]
    meant = np.logaddexp(0.0, z)
    for name in ("exp", "log", "log1p", "logaddexp", "expm1"):
        monkeypatch.setattr(np, name, None)
    found = Logistic().value(-z, np.ones_like(z))
    assert (np.abs(found - meant) / (1 + np.abs(z))).max() <= 2.0**-40
    one_by_one = [float(Logistic().value(np.array([-v]), np.ones(1))[0]) for v in z]
    np.testing.assert_array_equal(found, one_by_one)
