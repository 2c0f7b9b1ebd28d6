"""The losses of compiled code are those of riata.losses, bit for bit.

Compiled code repeats the arithmetic of the losses that it knows, because NumPy functions cannot be
compiled. Slopes and their bounds decide what is released, so they agree to the last bit; bounds on
derivatives decide how long it takes, and must not be too small.
"""

import inspect

import numpy as np
import pytest

pytest.importorskip("numba")

from riata import losses
from riata.engines.compiled import losses as kernels
from riata.engines.compiled.codes import known_loss
from riata.engines.compiled.jit import compiled

SIZES = [0.0, -0.0, 5e-324, 1e-300, 2.0**-30, 0.3, 1.0, 1.5, 7.0, 39.9, 40.0, 41.0, 1e6]
MARGINS = np.unique([*SIZES, *np.negative(SIZES), *np.random.default_rng(0).normal(0, 4, 2_000)])


def known():
    """Every example of every loss that compiled code knows."""
    kinds = [getattr(losses, name) for name in losses.__all__]
    kinds = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, losses.Loss)]
    examples = [loss for kind in kinds if not inspect.isabstract(kind) for loss in kind.examples()]
    return [loss for loss in examples if known_loss(loss) is not None and loss.inner is None]


@compiled
def slopes(code, parameter, margins, y, out):
    for i in range(len(margins)):
        out[i] = kernels.slope(code, parameter, margins[i], y[i])


@compiled
def derivatives(code, margins, y, out):
    for i in range(len(margins)):
        out[i] = kernels.derivative(code, margins[i], y[i])


def test_all_losses_that_compiled_code_has_a_number_for_are_compared():
    assert {known_loss(loss)[0] for loss in known()} == {0, 1, 2, 3}


@pytest.mark.not_quick
@pytest.mark.parametrize("loss", known(), ids=repr)
def test_slopes_and_their_bounds_are_the_same_bits(loss):
    code, parameter = known_loss(loss)
    targets = (-1.0, 1.0) if loss.classifies else (-1.0, -0.3, 0.0, 0.7, 1.0)
    for y in targets:
        found, of_rows = np.empty(len(MARGINS)), np.full(len(MARGINS), y)
        slopes(code, parameter, MARGINS, of_rows, found)
        np.testing.assert_array_equal(found, loss.slope(MARGINS, of_rows))
    for margin in np.abs(MARGINS):
        assert kernels.slope_bound(code, parameter, margin, 1.0) == loss.slope_bound(margin, 1.0)


@pytest.mark.parametrize("loss", known(), ids=repr)
def test_derivatives_are_those_of_the_loss_and_below_their_bounds(loss):
    code, parameter = known_loss(loss)
    assert kernels.steepest(code, parameter, 1.0) == loss.curvature_bound(1.0)
    if not np.isfinite(kernels.slope_curvature(code, 1.0)):
        return
    found, y = np.empty(len(MARGINS)), np.ones(len(MARGINS))
    derivatives(code, MARGINS, y, found)
    np.testing.assert_allclose(found, loss.curvature(MARGINS, y), rtol=1e-14, atol=1e-15)
    assert found.max() <= kernels.steepest(code, parameter, 1.0)
    changes = np.abs(np.diff(found)) / np.maximum(np.diff(MARGINS), 1e-3)
    assert changes.max() <= kernels.slope_curvature(code, 1.0) + 1e-9
