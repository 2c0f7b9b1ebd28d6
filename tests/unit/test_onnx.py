"""An exported graph predicts what the model predicts, for hostile rows too."""

import json
import math
import sys

import numpy as np
import pytest

import riata
from riata import (
    Bounds,
    HeavyTailedRegression,
    LocalKernelRidge,
    LocalLasso,
    LocalLogisticRegression,
    LocalSparseMean,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSparseRegression,
    ProjectedClassifier,
    ProjectedRegression,
)
from riata.errors import InvalidArgument
from riata.losses import Huber, Logistic
from riata.projections import GaussianProjection
from riata.sets import L1Ball, L2Ball

onnx = pytest.importorskip("onnx")

N, P = 400, 6
LENGTH = Bounds(1.0, 1.0, norm="l2")
EACH = Bounds(np.linspace(0.3, 1.2, P), 1.0)
PHI = GaussianProjection(P, 9, seed=2).matrix()


def rows(seed=3, n=N):
    return np.random.default_rng(seed).uniform(-1, 1, (n, P))


def hostile():
    """Rows that are missing, infinite, huge, tiny and outside of every bound."""
    x = 3 * rows(4, 60)
    x[0] = np.nan
    x[1] = np.inf
    x[2] = -np.inf
    x[3], x[4] = 1e300, 5e-324
    x[5, ::2] = np.nan
    x[6] = 0.0
    return x


REGRESSORS = {
    "lasso": PrivateLasso(1.0, bounds=Bounds(1.0, 1.0)),
    "each column": PrivateLasso(1.0, bounds=EACH, fit_intercept=False),
    "not negative": PrivateLasso(1.0, bounds=Bounds(1.0, 1.0, nonnegative=True)),
    "length": PrivateLasso(1.0, bounds=LENGTH),
    "sparse": PrivateSparseRegression(1.0, bounds=Bounds(1.0, 1.0), sparsity=2),
    "heavy": HeavyTailedRegression(1.0, sparsity=2),
    "projected": ProjectedRegression(1.0, bounds=LENGTH, dimension=3),
    "compressed": ProjectedRegression(1.0, bounds=LENGTH, projection=PHI, compressed=True),
    "erm": PrivateErm(Huber(0.5), L1Ball(), 1.0, bounds=Bounds(1.0, 1.0)),
    "local": LocalLasso(8.0, bounds=LENGTH),
    "local, each column": LocalLasso(8.0, bounds=EACH, fit_intercept=False),
}
CLASSIFIERS = {
    "logistic": PrivateLogisticRegression(1.0, bounds=Bounds(1.0)),
    "logistic, length": PrivateLogisticRegression(1.0, bounds=LENGTH),
    "svm": PrivateLinearSVC(1.0, bounds=Bounds(1.0)),
    "projected": ProjectedClassifier(1.0, bounds=LENGTH, dimension=3),
}
LABELS = {
    "texts": np.array(["a", "ü"]),
    "objects": np.array(["a", "b", "c"], dtype=object),
    "numbers": np.array([3, 5, 9], dtype=np.int32),
    "booleans": np.array([False, True]),
    "floats": np.array([0.5, 1.5]),
}


def outputs(model, path, x):
    """What the graph computes, by ONNX's own reference."""
    from onnx.reference import ReferenceEvaluator

    riata.export_onnx(model, path)
    session = ReferenceEvaluator(onnx.load(path))
    with np.errstate(all="ignore"):
        found = session.run(None, {"X": x})
    return dict(zip(session.output_names, found, strict=True))


def spread(model):
    """The model with numbers that noise did not choose, so that every one of them counts."""
    shape = np.shape(model.coef_)
    model.coef_ = np.cos(np.arange(math.prod(shape))).reshape(shape)
    model.intercept_ = (0.1 + np.zeros(shape[:-1]))[()]
    if hasattr(model, "calibration_"):
        model.calibration_ = np.tile([1.5, -0.1], (len(model.coef_), 1))
    return model


@pytest.mark.parametrize("name", REGRESSORS)
def test_numbers_are_predicted_alike(name, tmp_path):
    x = rows()
    model = REGRESSORS[name].fit(x, x[:, 0])
    if not name.startswith("local"):
        spread(model)
    for some in (x, hostile()):
        found = outputs(model, tmp_path / "model.onnx", some)
        assert found.keys() == {"prediction"}
        assert found["prediction"].dtype == np.float64
        expected = model.predict(some)
        np.testing.assert_allclose(found["prediction"], expected, rtol=1e-12, atol=1e-13)
        assert expected.shape == found["prediction"].shape


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_labels_are_predicted_alike(name, labels, tmp_path):
    x, classes = rows(), LABELS[labels]
    model = CLASSIFIERS[name].set_params(classes=classes).fit(x, classes[np.arange(N) % 2])
    spread(model)
    for some in (x, hostile()):
        found = outputs(model, tmp_path / "model.onnx", some)
        assert found["label"].tolist() == model.predict(some).tolist()
        assert len({*found["label"].tolist()}) > 1
        decision = model.decision_function(some)
        np.testing.assert_allclose(found["decision"], decision, rtol=1e-12, atol=1e-13)
        assert ("probabilities" in found) == hasattr(model, "predict_proba")
        if "probabilities" in found:
            np.testing.assert_allclose(
                found["probabilities"], model.predict_proba(some), rtol=1e-11, atol=1e-300
            )


def test_signs_are_predicted_alike(tmp_path):
    x = rows()
    model = PrivateErm(Logistic(), L2Ball(), 1.0, bounds=LENGTH).fit(x, np.sign(x[:, 0]))
    found = outputs(spread(model), tmp_path / "model.onnx", hostile())
    assert found["label"].tolist() == model.predict(hostile()).tolist()


@pytest.mark.not_quick
def test_a_local_classifier_is_exported(tmp_path):
    x = rows(n=3000)
    model = LocalLogisticRegression(8.0, bounds=EACH, random_state=1).fit(x, x[:, 1] > 0)
    assert np.any(model.coef_)
    found = outputs(model, tmp_path / "model.onnx", hostile())
    assert found["label"].tolist() == model.predict(hostile()).tolist()
    np.testing.assert_allclose(
        found["probabilities"], model.predict_proba(hostile()), rtol=1e-12, atol=1e-15
    )


def test_probabilities_of_many_classes_do_not_vanish(tmp_path):
    x = rows()
    model = PrivateLogisticRegression(1.0, bounds=Bounds(1.0), classes=[0, 1, 2])
    model.fit(x, np.arange(N) % 3)
    model.coef_ = np.full((3, P), -1000.0)
    model.intercept_ = np.array([-5000.0, -5001.0, -5002.0])
    model.calibration_ = np.array([[1.0, 0.0]] * 3)
    found = outputs(model, tmp_path / "model.onnx", np.ones((1, P)))["probabilities"]
    np.testing.assert_allclose(found, model.predict_proba(np.ones((1, P))), rtol=1e-9)
    assert np.all(np.isfinite(found))


def test_the_statement_travels_with_the_file(tmp_path):
    x = rows()
    model = PrivateLasso(1.0, bounds=Bounds(1.0, 1.0)).fit(x, x[:, 0])
    riata.export_onnx(model, tmp_path / "a.onnx")
    riata.export_onnx(model, tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    made = onnx.load(tmp_path / "a.onnx")
    (prop,) = made.metadata_props
    assert json.loads(prop.value)["epsilon"] == model.privacy_.epsilon
    assert made.doc_string == model.privacy_.sentence


@pytest.mark.parametrize(
    "model",
    [LocalSparseMean(1.0, bounds=LENGTH), LocalKernelRidge(1.0, bounds=LENGTH), "a text"],
)
def test_what_is_not_linear_is_refused(model, tmp_path):
    with pytest.raises(InvalidArgument, match="holds a fitted linear model"):
        riata.export_onnx(model, tmp_path / "model.onnx")


def test_a_model_that_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(InvalidArgument, match="Fit it"):
        riata.export_onnx(PrivateLasso(1.0), tmp_path / "model.onnx")


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    model = PrivateLasso(1.0, bounds=Bounds(1.0, 1.0)).fit(rows(), rows()[:, 0])
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InvalidArgument, match=r"riata\[onnx\]"):
        riata.export_onnx(model, tmp_path / "model.onnx")
