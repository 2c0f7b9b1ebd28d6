"""A loss whose mean is not the margin: predictions, files and what refuses it, uncharged."""

from dataclasses import dataclass

import numpy as np
import pytest

from riata import Bounds, PrivateErm, PrivateSearch, export_onnx, forecast
from riata.errors import Incompatible
from riata.losses import Logistic, Loss, OneAgainstRest, Squared, Weighted
from riata.sets import L1Ball


@dataclass(frozen=True)
class Counts(Loss):
    """exp(margin) - y margin: a curvature that nothing bounds, and negative values."""

    name = "counts"
    link = "log"
    twice_differentiable = True

    def value(self, margin, y):
        return np.exp(margin) - y * margin

    def slope(self, margin, y):
        return np.exp(margin) - y

    def curvature(self, margin, y):
        return np.exp(margin)

    def slope_bound(self, margin, y):
        return float(np.exp(margin)) + y

    def curvature_bound(self, y):
        return np.inf

    def offset_bound(self, y):
        return float(np.log(max(y, 2.0)))


RNG = np.random.default_rng(7)
X = RNG.uniform(-1, 1, (20_000, 6))
Y = np.minimum(RNG.poisson(np.exp(0.9 * X[:, 2])), 8).astype(float)
BOUNDS = Bounds(1.0, 8.0)


def model(**more):
    given = {"epsilon": 5.0, "delta": 1e-6, "bounds": BOUNDS, "random_state": 3, **more}
    return PrivateErm(Counts(), L1Ball(1.0), **given)


@pytest.mark.parametrize("solver", ["auto", "noisy-gradient", "gaussian-frank-wolfe"])
def test_counts_are_fitted_and_predicted_by_their_means(solver):
    fitted = model(solver=solver).fit(X, Y)
    assert np.argmax(np.abs(fitted.coef_)) == 2
    assert fitted.coef_[2] > 0.2
    margins = X @ fitted.coef_ + fitted.intercept_
    np.testing.assert_allclose(fitted.predict(X), np.exp(margins), rtol=1e-9)
    assert abs(fitted.predict(X).mean() - Y.mean()) < 0.4


def test_a_curvature_without_bound_is_refused_where_it_is_needed():
    with pytest.raises(Incompatible, match="curvature"):
        model(solver="greedy").fit(X, Y)


def test_a_graph_predicts_means_too(tmp_path):
    onnx = pytest.importorskip("onnx.reference")
    fitted = model().fit(X, Y)
    export_onnx(fitted, tmp_path / "model.onnx")
    graph = onnx.ReferenceEvaluator(str(tmp_path / "model.onnx"))
    found = graph.run(None, {graph.input_names[0]: X[:9]})[0]
    np.testing.assert_allclose(found, fitted.predict(X[:9]), rtol=1e-9)


def test_what_knows_identity_links_only_says_so():
    with pytest.raises(Incompatible, match="mean is the margin"):
        forecast(model(), 1_000, 6)
    search = PrivateSearch(
        model(epsilon=None, delta=None, random_state=None), {"steps": [1, 2]}, 1.0
    )
    with pytest.raises(Incompatible, match="compares targets with margins"):
        search.fit(X, Y)


def test_links_of_losses():
    assert (Squared().link, Logistic().link) == ("identity", "logit")
    one = OneAgainstRest(Logistic(), 1)
    assert (one.link, Weighted(one, (1.0, 2.0)).link) == ("logit", "identity")
    margins = np.array([-1.0, 0.5])
    np.testing.assert_array_equal(Logistic().predict(margins), [-1.0, 1.0])
    np.testing.assert_array_equal(Squared().predict(margins), margins)
