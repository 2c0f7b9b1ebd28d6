"""A saved model comes back as it was, and a file that `save` did not write is refused."""

import io
import json
import os
import pickle
import stat
import struct
import zipfile
from dataclasses import dataclass, fields, is_dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

import riata
import riata.losses
import riata.projections
import riata.sets
import riata.solvers
from riata import (
    Bounds,
    Budget,
    HeavyTailedRegression,
    Ledger,
    PrivateErm,
    PrivateLasso,
    PrivateLinearSVC,
    PrivateLogisticRegression,
    PrivateSparseRegression,
    ProjectedClassifier,
    ProjectedRegression,
)
from riata.errors import InvalidArgument, ModelFileError
from riata.losses import Huber, Logistic, OneAgainstRest, SmoothedHinge, Squared
from riata.projections import (
    GaussianProjection,
    GivenProjection,
    SparseSignProjection,
    StructuredProjection,
)
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, Simplex, SparseBall
from riata.solvers import (
    FrankWolfe,
    GaussianFrankWolfe,
    HardThresholding,
    NoisyGradient,
    PerturbedObjective,
    PosteriorSampling,
    PrivateFrankWolfe,
    PrivateHardThresholding,
    PrivatePeeling,
    Projected,
)

pytestmark = pytest.mark.matrix(one_in=11)

N, P = 60, 6
BOUNDS = Bounds(1.0, 1.0)
PER_COLUMN = Bounds(np.linspace(0.5, 1.5, P), 1.0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.riata"


def rows():
    rng = np.random.default_rng(7)
    return rng.uniform(-1, 1, (N, P)), rng.uniform(-1, 1, N)


def lasso(**parameters):
    given = {"epsilon": 1.0, "bounds": BOUNDS, "steps": 3, "solver": "frank-wolfe"} | parameters
    if given["epsilon"] == float("inf"):
        given["solver"] = "auto"
    return PrivateLasso(**given)


def fitted(model=None):
    model = lasso() if model is None else model
    return model.fit(*rows())


def dense_lasso():
    """A model with two arrays, none of its coefficients zero."""
    model = fitted(lasso(bounds=PER_COLUMN))
    model.coef_ = np.linspace(-0.1, 0.2, P)
    return model


def classifier(labels, **parameters):
    x, _ = rows()
    picks = np.arange(N) % len(labels)
    y = np.array(labels, dtype=object)[picks] if isinstance(labels, list) else labels[picks]
    common = {"bounds": Bounds(1.0), "classes": labels, "steps": 3} | parameters
    return PrivateLogisticRegression(1.0, 1e-6, **common).fit(x, y)


def same(a, b):
    """Equal in type and value, all the way down, and to the bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        alike = a.dtype == b.dtype and a.shape == b.shape
        if a.dtype.kind in "OT":
            return alike and same(a.tolist(), b.tolist())
        return alike and a.tobytes() == b.tobytes()
    if is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return repr(a) == repr(b)


def saved_and_loaded(model, path, x=None):
    """The loaded model, after checking that it is the saved one."""
    x = rows()[0] if x is None else x
    riata.save(model, path)
    again = riata.load(path)
    assert type(again) is type(model)
    assert again.ledger is None
    for name, value in vars(model).items():
        if name not in ("ledger", "random_state"):
            assert same(value, getattr(again, name)), name
    assert vars(again).keys() == vars(model).keys()
    assert again.privacy_ == model.privacy_
    assert str(again.privacy_) == str(model.privacy_)
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            assert same(getattr(model, method)(x), getattr(again, method)(x)), method
    return again


# Round trips.

LASSOS = {
    "default delta and steps": {"steps": "auto"},
    "pure": {"delta": 0},
    "a bound for each column": {"bounds": PER_COLUMN},
    "l2": {"bounds": Bounds(2, 1, norm="l2"), "solver": "gaussian-frank-wolfe"},
    "no intercept": {"fit_intercept": False},
    "not private": {"epsilon": float("inf"), "steps": 20},
    "add-remove": {"adjacency": "add-remove"},
    "solver object": {"solver": PrivateFrankWolfe(3, "laplace"), "steps": "auto"},
    "gaussian solver": {"solver": GaussianFrankWolfe(2), "steps": "auto"},
    "exact solver": {"epsilon": np.inf, "solver": FrankWolfe(9, 1e-3), "steps": "auto"},
    "numpy scalars": {
        "epsilon": np.float64(0.1),
        "radius": np.float32(0.1),
        "steps": np.int64(3),
        "fit_intercept": np.bool_(True),
        "adjacency": np.str_("replace-one"),
    },
    "seeded": {"random_state": 5},
    "seeded by a numpy integer": {"random_state": np.int32(5)},
}


@pytest.mark.parametrize("name", LASSOS)
def test_a_lasso_comes_back(name, path):
    saved_and_loaded(fitted(lasso(**LASSOS[name])), path)


SETS = [
    L1Ball(2.0),
    L1Ball(2.0, P),
    Simplex(1.0),
    GroupL1Ball(3, 1.0),
    GroupL1Ball([0, 0, 1, 1, 2, 2]),
    GroupL1Ball(np.array(["a", "b"] * 3), 2.0),
    GroupL1Ball(range(P)),
    L2Ball(1.0),
    LpBall(1.5),
    LpBall(float("inf"), 0.5),
    Polytope(np.eye(P)),
    Polytope(np.asfortranarray(np.arange(5.0 * P).reshape(5, P) / 30)),
]
LOSSES = [Squared(), Huber(0.3), Logistic(), SmoothedHinge(0.5)]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("number", range(len(SETS)))
def test_any_loss_over_any_set_comes_back(number, loss, path):
    model = PrivateErm(loss, SETS[number], 1.0, 1e-6, bounds=BOUNDS, steps=3)
    saved_and_loaded(fitted(model), path)


def test_an_object_inside_an_object_comes_back(path):
    loss = OneAgainstRest(SmoothedHinge(0.25), 1)
    saved_and_loaded(fitted(PrivateErm(loss, L1Ball(), 1.0, bounds=BOUNDS, steps=3)), path)


LENGTH = Bounds(1.0, 1.0, norm="l2")
WIDE = GaussianProjection(P, 9, seed=2)  # for rows of 9 columns that came here projected
REGRESSORS = {
    "sparse": PrivateSparseRegression(1.0, bounds=BOUNDS, sparsity=2),
    "sparse, by a numpy integer": PrivateSparseRegression(1.0, bounds=BOUNDS, sparsity=np.int64(2)),
    "sparse, pure": PrivateSparseRegression(1.0, 0.0, bounds=BOUNDS, sparsity=2),
    "sparse, length": PrivateSparseRegression(1.0, bounds=LENGTH, sparsity=2, radius=0.5),
    "sparse, not private": PrivateSparseRegression(np.inf, bounds=BOUNDS, sparsity=2),
    "sparse, reference": PrivateSparseRegression(
        np.inf, bounds=BOUNDS, sparsity=2, solver=HardThresholding(50, 0.3, 1e-3)
    ),
    "sparse, peeling": PrivateSparseRegression(
        1.0, bounds=BOUNDS, sparsity=2, solver=PrivatePeeling(3, 0.2, True, "laplace")
    ),
    "sparse, thresholding": PrivateSparseRegression(
        1.0, bounds=LENGTH, sparsity=2, solver=PrivateHardThresholding(3, 0.1)
    ),
    "heavy tails": HeavyTailedRegression(1.0, sparsity=2),
    "heavy tails, scale": HeavyTailedRegression(1.0, sparsity=2, scale=np.float32(0.3)),
    "heavy tails, cut": HeavyTailedRegression(1.0, sparsity=2, truncation=3),
    "heavy tails, cut by numpy": HeavyTailedRegression(1.0, sparsity=2, truncation=np.float64(3)),
    "heavy tails, split": HeavyTailedRegression(
        1.0, sparsity=2, solver=PrivatePeeling(4, split=True)
    ),
    "projected": ProjectedRegression(1.0, bounds=LENGTH, steps=3),
    "projected, sparse signs": ProjectedRegression(
        1.0, bounds=LENGTH, dimension=3, projection="sparse-sign", seed=4, steps=3
    ),
    "projected, structured": ProjectedRegression(
        1.0, bounds=BOUNDS, dimension=np.int64(2), projection="structured", clip=0.5, steps=3
    ),
    "projected, gaussian object": ProjectedRegression(
        1.0, bounds=LENGTH, projection=GaussianProjection(3, P, 5), steps=3
    ),
    "projected, sparse object": ProjectedRegression(
        1.0, bounds=LENGTH, projection=SparseSignProjection(3, P, 5), steps=3
    ),
    "projected, structured object": ProjectedRegression(
        1.0, bounds=LENGTH, projection=StructuredProjection(3, P, 5), steps=3
    ),
    "projected, matrix": ProjectedRegression(
        1.0, bounds=LENGTH, projection=np.asfortranarray(np.ones((2, P))), steps=3
    ),
    "projected, integers": ProjectedRegression(
        1.0, bounds=LENGTH, projection=np.ones((2, P), dtype=np.int8), steps=3
    ),
    "projected, list": ProjectedRegression(
        1.0, bounds=LENGTH, projection=[[1.0] * P, [0.5] * P], steps=3
    ),
    "projected, given": ProjectedRegression(
        1.0, bounds=LENGTH, projection=GivenProjection(np.ones((2, P))), steps=3
    ),
    "projected, pure": ProjectedRegression(1.0, 0.0, bounds=LENGTH, dimension=2),
    "projected, solver object": ProjectedRegression(
        1.0, bounds=LENGTH, solver=NoisyGradient(3, 0.5, 1.0, 0.5)
    ),
    "compressed by a matrix": ProjectedRegression(
        1.0, bounds=LENGTH, projection=WIDE.matrix(), compressed=True, steps=3
    ),
    "compressed by an object": ProjectedRegression(
        1.0, bounds=LENGTH, projection=WIDE, compressed=True, steps=3
    ),
    "compressed by a given object": ProjectedRegression(
        1.0, bounds=LENGTH, projection=GivenProjection(WIDE.matrix()), compressed=True, steps=3
    ),
    "lasso, projected": lasso(
        solver=Projected(2, 3, "structured", "noisy-gradient", 0.5, 7), steps="auto"
    ),
    "lasso, projected by a matrix": lasso(
        solver=Projected(projection=GivenProjection(np.ones((2, P))), inner=NoisyGradient(2)),
        steps="auto",
    ),
    "noisy gradient": PrivateErm(
        Huber(0.5), L2Ball(1.0), 1.0, bounds=LENGTH, solver=NoisyGradient(3, clip=None)
    ),
    "objective": PrivateErm(
        Squared(), L1Ball(1.0), 1.0, bounds=LENGTH, solver=PerturbedObjective(1, 2.0)
    ),
    "posterior": PrivateErm(
        Squared(), L2Ball(1.0), 1.0, 0.0, bounds=LENGTH, solver=PosteriorSampling(1)
    ),
    "sparse ball": PrivateErm(Huber(0.5), SparseBall(2, 0.7), 1.0, bounds=BOUNDS, steps=3),
}


@pytest.mark.parametrize("name", REGRESSORS)
def test_every_regressor_comes_back(name, path):
    model = fitted(clone(REGRESSORS[name]))
    again = saved_and_loaded(model, path)
    assert again.plan(N, P).summary() == model.plan(N, P).summary()
    assert clone(again).fit(*rows()).coef_.shape == model.coef_.shape


def test_a_saved_truncation_is_the_one_of_the_fit(path):
    model = fitted(HeavyTailedRegression(1.0, sparsity=2, scale=0.4))
    x = 100 * rows()[0]
    expected = np.clip(x, -model.truncation_, model.truncation_) @ model.coef_ + model.intercept_
    again = saved_and_loaded(model, path, x)
    assert again.truncation_ == model.truncation_ != 0.4
    np.testing.assert_allclose(again.predict(x), expected, rtol=1e-12)


@pytest.mark.parametrize("cut", [0, -1.0, "1", None, float("nan"), float("inf"), True])
def test_a_spoilt_truncation_is_refused(cut, path):
    model = fitted(HeavyTailedRegression(1.0, sparsity=2))
    model.truncation_ = cut
    with pytest.raises(InvalidArgument, match="cannot be saved"):
        riata.save(model, path)
    assert not path.exists()


CLASSIFIERS = {
    "svc": (PrivateLinearSVC, {"bounds": BOUNDS, "steps": 3}),
    "svc, length": (PrivateLinearSVC, {"bounds": LENGTH, "steps": 3, "smoothing": 0.5}),
    "svc, l2": (PrivateLinearSVC, {"bounds": LENGTH, "steps": 3, "penalty": "l2", "radius": 2.0}),
    "logistic, l1": (
        PrivateLogisticRegression,
        {"bounds": LENGTH, "steps": 3, "penalty": "l1", "radius": 2.0},
    ),
    "logistic, auto radius": (PrivateLogisticRegression, {"bounds": LENGTH, "steps": 3}),
    "projected": (ProjectedClassifier, {"bounds": LENGTH, "steps": 3, "dimension": 2}),
    "compressed": (
        ProjectedClassifier,
        {"bounds": LENGTH, "steps": 3, "projection": WIDE.matrix(), "compressed": True},
    ),
}


@pytest.mark.parametrize("labels", [[0, 1], ["a", "b", "c"]], ids=repr)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_classifier_comes_back(name, labels, path):
    kind, parameters = CLASSIFIERS[name]
    y = np.array(labels)[np.arange(N) % len(labels)]
    model = kind(1.0, 1e-6, classes=labels, **parameters).fit(rows()[0], y)
    saved_and_loaded(model, path)


def test_a_compressed_model_with_other_coefficients_than_its_matrix_says_is_refused(path):
    model = fitted(
        ProjectedRegression(1.0, bounds=LENGTH, projection=WIDE, compressed=True, steps=3)
    )
    model.coef_ = model.coef_[:P]
    with pytest.raises(InvalidArgument, match="cannot be saved"):
        riata.save(model, path)
    model = fitted(
        ProjectedRegression(1.0, bounds=LENGTH, projection=WIDE, compressed=True, steps=3)
    )
    with pytest.raises(InvalidArgument, match="cannot be saved"):
        riata.save(model.set_params(projection="gaussian"), path)


LABELS = {
    "ints": [0, 1],
    "three ints": [3, 1, 2],
    "a tuple": (0, 1, 2),
    "a range": range(3),
    "bools": [False, True],
    "text": ["no", "yes"],
    "three texts": ["a", "b", "ünlü"],
    "floats": [0.5, 1.5],
    "numpy text": [np.str_("abcd"), np.str_("b")],
    "int8": np.array([0, 1], dtype=np.int8),
    "big-endian": np.array([0, 1, 7], dtype=">i4"),
    "uint64": np.array([0, 2**64 - 1], dtype=np.uint64),
    "numpy bools": np.array([False, True]),
    "fixed-width text": np.array(["no", "yes", "perhaps"]),
    "bytes": np.array([b"no", b"yes"]),
    "objects": np.array(["no", "yes"], dtype=object),
    "variable-width text": np.array(["no", "yes"], dtype=np.dtypes.StringDType()),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_come_back_with_their_type(name, path):
    labels = LABELS[name]
    y = list(labels) if isinstance(labels, (tuple, range)) else labels
    saved_and_loaded(classifier(y, classes=labels), path)


def test_observed_and_boolean_labels_come_back(path):
    saved_and_loaded(classifier(np.array(["x", "y"]), classes="observed"), path)
    saved_and_loaded(classifier(np.array([False, True]), classes=None), path)


def test_column_names_come_back(path):
    x, y = rows()
    names = pd.Index(["age", "größe", "", "a\0", "\ud800", "名"], dtype=object)
    frame = pd.DataFrame(x, columns=names)
    again = saved_and_loaded(lasso().fit(frame, y), path, frame)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[frame.columns[::-1]])


def test_sparse_rows_are_predicted_alike(path):
    x, y = rows()
    model = lasso().fit(sparse.csr_array(x), y)
    saved_and_loaded(model, path, sparse.csr_array(x))


def test_a_negative_zero_and_the_smallest_number_come_back(path):
    model = fitted()
    model.coef_ = np.array([0.0, -0.0, 5e-324, 0.0, 0.0, 0.0])
    saved_and_loaded(model, path)
    model.coef_ = np.full(P, -0.0)
    saved_and_loaded(model, path)


def test_wide_models_are_stored_by_their_support(path):
    x = sparse.csr_array((N, 100_000))
    model = lasso().fit(x, rows()[1])
    saved_and_loaded(model, path, x)
    assert path.stat().st_size < 8_000
    wide = PrivateLogisticRegression(
        1.0, bounds=Bounds(1.0), classes=["a", "b", "c"], steps=2, fit_intercept=False
    )
    saved_and_loaded(wide.fit(x, np.full(N, "a")), path, x)
    assert path.stat().st_size < 8_000


def test_a_loaded_model_can_be_cloned_planned_fitted_and_saved_again(path, tmp_path):
    riata.save(fitted(), path)
    again = riata.load(path)
    assert str(again.plan(N, P)) == str(lasso().plan(N, P))
    riata.save(again, tmp_path / "second")
    assert (tmp_path / "second").read_bytes() == path.read_bytes()
    fitted(clone(again))
    again.coef_[0] = 1.0  # arrays are the model's own


# What is left out.


def test_the_ledger_is_not_saved(path, tmp_path):
    ledger = Ledger.create(tmp_path / "secret-study.db", dataset="claims-x", ceiling=Budget(9.0))
    model = fitted(lasso(delta=0.0, ledger=ledger))
    saved_and_loaded(model, path)
    assert b"secret-study" not in path.read_bytes()
    assert b"claims-x" not in path.read_bytes()
    assert len(ledger.charges) == 1


def test_the_state_of_a_generator_is_not_saved_but_the_statement_says_seeded(path):
    model = fitted(lasso(random_state=np.random.RandomState(3)))
    again = saved_and_loaded(model, path)
    assert again.random_state is None
    assert again.privacy_.seeded
    assert not again.privacy_.private


INSIDE, OUTSIDE, LABEL = 0.7310585786300049, 123456.789, "canary-7f3a"


def forms(number):
    yield from (struct.pack("<d", number), struct.pack(">d", number), float(number).hex().encode())
    yield f"{abs(number):.8g}"[:-1].encode()


@pytest.mark.parametrize("solver", ["frank-wolfe", "gaussian-frank-wolfe"])
def test_no_value_of_the_rows_is_in_the_file(solver, path):
    x, y = rows()
    x[3, 2], x[7, 1], y[4], y[8] = INSIDE, OUTSIDE, INSIDE, OUTSIDE
    secrets = [form for number in {*x.ravel(), *y} for form in forms(number)]
    labels = np.array(["no", "yes"] * (N // 2), dtype=object)
    labels[5] = LABEL
    words = [LABEL.encode(code) for code in ("utf-8", "utf-16-le", "utf-32-le")]
    logistic = PrivateLogisticRegression(
        1.0, 1e-6, bounds=BOUNDS, classes=["no", "yes"], solver=solver
    )
    for model in (lasso(solver=solver).fit(x, y), logistic.fit(x, labels)):
        riata.save(model, path)
        content = path.read_bytes()
        assert [secret for secret in [*secrets, *words] if secret in content] == []


# The bytes.


def test_equal_models_give_equal_bytes(path, tmp_path):
    for number, clock in enumerate((1e9, 2e9)):
        target = tmp_path / str(number)
        riata.save(fitted(lasso(random_state=1, bounds=PER_COLUMN)), target)
        os.utime(target, (clock, clock))
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()
    riata.save(fitted(lasso(random_state=2, bounds=PER_COLUMN)), path)
    assert path.read_bytes() != (tmp_path / "0").read_bytes()


@pytest.mark.parametrize("solver", ["greedy", "sufficient-statistics"])
@pytest.mark.parametrize("epsilon", [0.01, 1e4])
def test_errors_and_the_fit_come_back_as_they_were(solver, epsilon, path):
    model = fitted(lasso(solver=solver, steps="auto", epsilon=epsilon))
    riata.save(model, path)
    again = riata.load(path)
    names = ("coef_", "intercept_", "coef_error_", "intercept_error_")
    for name in (*names, "training_fit_", "training_fit_error_"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))


def with_covariances():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (2_000, 3))
    y = np.clip(x @ [0.5, 0.2, 0.0] + 0.1 * rng.standard_normal(2_000), -1, 1)
    return PrivateLasso(3.0, 1e-6, bounds=Bounds(1.0, 1.0), random_state=0).fit(x, y), x


def test_covariances_and_the_spread_of_residuals_come_back_as_they_were(path):
    model, x = with_covariances()
    riata.save(model, path)
    again = riata.load(path)
    np.testing.assert_array_equal(again.coef_covariance_, model.coef_covariance_)
    assert again.residual_spread_ == model.residual_spread_ > 0
    assert str(again.test([0, 1])) == str(model.test([0, 1]))
    assert again.augment(x, interval="prediction").equals(model.augment(x, interval="prediction"))


@pytest.mark.parametrize(
    "spoilt",
    [
        {"coef_covariance_": np.zeros((2, 3, 3))}, {"coef_covariance_": np.full((2, 4, 4), np.nan)},
        {"coef_covariance_": -np.ones((2, 4, 4))}, {"coef_covariance_": np.zeros((4, 4))},
        {"residual_spread_": -1.0}, {"residual_spread_": np.inf}, {"residual_spread_": 1},
    ],
)  # fmt: skip
def test_spoilt_covariances_and_spreads_are_refused(spoilt, path):
    model, _ = with_covariances()
    vars(model).update(spoilt)
    with pytest.raises(InvalidArgument, match="cannot be saved"):
        riata.save(model, path)


def test_other_programs_can_read_it(path):
    model = dense_lasso()
    riata.save(model, path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = {"model.json", "bounds.x.npy", "coef_.npy"}
        assert names <= set(archive.namelist())
        others = set(archive.namelist()) - names
        assert all(name.startswith(("coef_error_", "selection_order_")) for name in others)
        manifest = json.loads(archive.read("model.json"))
    assert manifest["riata"] == riata.__version__
    assert manifest["statement"]["epsilon"] == model.privacy_.epsilon
    arrays = np.load(path, allow_pickle=False)
    assert same(arrays["coef_"], model.coef_)
    assert same(arrays["bounds.x"], np.array(PER_COLUMN.x))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (1, 10**5)])
@pytest.mark.parametrize("code", ["<f8", ">i4", "|b1", "<U3", "|S2"])
def test_the_heads_are_numpys_own(code, shape):
    from riata.model_file.archive import head

    out = io.BytesIO(head(code, shape))
    assert np.lib.format.read_magic(out) == (1, 0)
    assert np.lib.format.read_array_header_1_0(out) == (shape, False, np.dtype(code))
    assert out.read() == b""
    assert len(out.getvalue()) % 64 == 0


def test_saving_replaces_a_file_and_leaves_nothing_beside_it(path):
    riata.save(fitted(), str(path))
    first = path.read_bytes()
    riata.save(fitted(lasso(radius=3.0)), path)
    assert path.read_bytes() != first
    assert os.listdir(path.parent) == [path.name]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_a_save_that_fails_keeps_the_old_file(path, monkeypatch):
    riata.save(fitted(), path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelFileError, match="No space left on device"):
        riata.save(fitted(), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_place_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(ModelFileError, match="Cannot write"):
        riata.save(fitted(), tmp_path / "nowhere" / "model")
    with pytest.raises(ModelFileError, match="Cannot write"):
        riata.save(fitted(), tmp_path)


# What cannot be saved.


class MyLoss(Squared):
    pass


@dataclass(frozen=True)
class Huber2(Huber):
    pass


Huber2.__name__ = "Huber"  # a name is not enough


@pytest.mark.parametrize("loss", [MyLoss(), Huber2(), OneAgainstRest(MyLoss(), 1)])
def test_a_loss_of_ones_own_is_refused(loss, path):
    model = fitted(PrivateErm(loss, L1Ball(), 1.0, bounds=BOUNDS, steps=3))
    with pytest.raises(InvalidArgument, match="would have to run code"):
        riata.save(model, path)
    assert not path.exists()


def test_an_array_like_of_another_library_is_refused_with_a_way_out(path):
    model = classifier(["a", "b"], classes=pd.Index(["a", "b"]))
    with pytest.raises(InvalidArgument, match=r"set_params\(classes=...\)"):
        riata.save(model, path)
    saved_and_loaded(model.set_params(classes=["a", "b"]), path)


class MyLasso(PrivateLasso):
    pass


@pytest.mark.parametrize("thing", [MyLasso(1.0), PrivateLasso, {"coef_": 1}, None])
def test_what_is_no_model_of_riata_is_refused(thing, path):
    with pytest.raises(InvalidArgument, match="a model file holds a fitted HeavyTailedRegression"):
        riata.save(thing, path)


def test_a_model_that_is_not_fitted_is_refused(path):
    with pytest.raises(InvalidArgument, match="Call fit first"):
        riata.save(lasso(), path)
    assert not path.exists()


def test_attributes_that_would_be_lost_are_refused(path):
    model = fitted()
    model.rows_ = rows()
    with pytest.raises(InvalidArgument, match=r"would be lost: \['rows_'\]"):
        riata.save(model, path)


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": -1.0},
        {"bounds": None},
        {"bounds": Bounds([1.0, 1.0], 1.0)},
        {"radius": 0.0},
        {"solver": None},
        {"engine": "elsewhere"},
        {"steps": 0},
        {"steps": None},
        {"bounds": L1Ball()},
    ],
)
def test_a_parameter_that_was_spoilt_after_the_fit_is_refused(change, path):
    model = fitted().set_params(**change)
    with pytest.raises(InvalidArgument, match="could not be loaded again"):
        riata.save(model, path)
    assert not path.exists()


def test_arrays_of_other_things_are_refused(path):
    model = classifier(["a", "b"])
    model.classes_ = np.array([1 + 2j, 3j])
    with pytest.raises(InvalidArgument, match="Cannot save classes_"):
        riata.save(model, path)
    model.classes_ = np.array([print, len])
    with pytest.raises(InvalidArgument, match="would have to run code"):
        riata.save(model, path)


# Hostile files.


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pack(path, members, kind=zipfile.ZIP_STORED):
    """Any members, in any order, also twice."""
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in members.items() if isinstance(members, dict) else members:
            archive.writestr(name, content)


def refused(path, match, **how):
    with pytest.raises(ModelFileError, match=match) as caught:
        riata.load(path, **how)
    assert str(path) in str(caught.value)


def example(name, path):
    model = {
        "sparse": lambda: fitted(lasso(bounds=PER_COLUMN, steps=1)),
        "dense": dense_lasso,
        "text": lambda: classifier(np.array(["a", "b", "c"])),
        "bools": lambda: classifier(np.array([False, True])),
        "erm": lambda: fitted(PrivateErm(Huber(), Polytope(np.eye(P)), 1.0, bounds=BOUNDS)),
    }[name]()
    riata.save(model, path)
    members = members_of(path)
    return members, json.loads(members["model.json"])


class Payload:
    """Pickled bytes that leave a mark when they are loaded."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (os.mkdir, (str(self.mark),))


def npy(array, **how):
    out = io.BytesIO()
    np.lib.format.write_array(out, array, **how)
    return out.getvalue()


@pytest.mark.parametrize("declared", ["<f8", "|O", "|O8", "O", "object"])
def test_a_pickle_in_an_array_is_never_loaded(declared, path, tmp_path):
    members, manifest = example("dense", path)
    mark = tmp_path / "ran"
    bomb = np.array([Payload(mark)] * P, dtype=object)
    members["coef_.npy"] = npy(bomb, allow_pickle=True)
    manifest["fitted"]["coef_"]["array"][0] = declared
    members["model.json"] = json.dumps(manifest).encode()
    pack(path, members)
    refused(path, "coef_")
    assert not mark.exists()


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickled_model_is_refused(protocol, path, tmp_path):
    path.write_bytes(pickle.dumps(Payload(tmp_path / "ran"), protocol))
    refused(path, "not a model file")
    path.write_bytes(pickle.dumps(fitted(), protocol))
    refused(path, "not a model file")
    assert not (tmp_path / "ran").exists()


def put(*where):
    """An edit of the JSON: the last argument at the place that the others name."""
    *keys, last, value = where

    def edit(manifest):
        for key in keys:
            manifest = manifest[key]
        if value is DELETED:
            del manifest[last]
        else:
            manifest[last] = value

    return edit


DELETED = object()
EDITS = {
    "format": (put("format", "riata models"), "does not say"),
    "no format": (put("format", DELETED), "does not say"),
    "newer version": (put("version", 2), "reads version 1"),
    "version that equals 1": (put("version", True), "reads version 1"),
    "no version": (put("version", DELETED), "reads version 1"),
    "riata": (put("riata", 1), "which riata"),
    "estimator": (put("estimator", "os.system"), "riata loads a HeavyTailedRegression, Local"),
    "estimator of another kind": (put("estimator", ["PrivateLasso"]), "riata loads"),
    "estimator that has classes": (put("estimator", "PrivateLogisticRegression"), "radius|has"),
    "extra entry": (put("code", "print(1)"), "does not have the entries"),
    "missing entry": (put("fitted", DELETED), "does not have the entries"),
    "no parameters": (put("parameters", []), "no parameters"),
    "ledger": (put("parameters", "ledger", None), r"no parameters \['ledger'\]"),
    "unknown parameter": (put("parameters", "coef_", 1), r"no parameters \['coef_'\]"),
    "missing parameter": (put("parameters", "epsilon", DELETED), "epsilon"),
    "epsilon": (put("parameters", "epsilon", "1.0"), "epsilon must be a number"),
    "huge epsilon": (put("parameters", "epsilon", 10**400), "does not fit"),
    "radius": (put("parameters", "radius", -1.0), "radius"),
    "adjacency": (put("parameters", "adjacency", "none"), "adjacency"),
    "bounds of the wrong kind": (put("parameters", "bounds", 1.0), "bounds must be a Bounds"),
    "bounds of the wrong class": (
        put("parameters", "bounds", {"Squared": {}}),
        "bounds must be a Bounds",
    ),
    "class outside the list": (put("parameters", "bounds", {"Ledger": {"path": "x"}}), "'Ledger'"),
    "class by path": (put("parameters", "bounds", {"os.system": {"command": "x"}}), "'os.system'"),
    "estimator as a parameter": (put("parameters", "bounds", {"PrivateLasso": {}}), "does not"),
    "two kinds": (put("parameters", "bounds", {"Squared": {}, "Huber": {}}), "2 kinds"),
    "unknown field": (put("parameters", "bounds", "Bounds", "_x", 1), "fields of Bounds"),
    "fields that are no dict": (put("parameters", "bounds", "Bounds", [1]), "fields of Bounds"),
    "bound": (put("parameters", "bounds", "Bounds", "y", 0.0), "Bounds y"),
    "solver": (put("parameters", "solver", 3), "solver"),
    "solver of the wrong class": (put("parameters", "solver", {"L1Ball": {}}), "solver"),
    "bad float": (put("parameters", "epsilon", {"float": "1"}), "does not fit"),
    "bad tuple": (put("parameters", "steps", {"tuple": 3}), "not a list"),
    "long range": (put("parameters", "steps", {"range": [0, 10**12, 1]}), "max_bytes"),
    "bad range": (put("parameters", "steps", {"range": [0, 1, 0]}), "does not fit"),
    "bad dict": (put("parameters", "steps", {"dict": [1]}), "not a dict"),
    "bad scalar": (put("parameters", "steps", {"scalar": ["|O8", 1]}), "type"),
    "void scalar": (put("parameters", "steps", {"scalar": ["|S4", "a"]}), "type"),
    "scalar out of range": (put("parameters", "steps", {"scalar": ["|i1", 999]}), "does not fit"),
    "short scalar": (put("parameters", "steps", {"scalar": ["|i1"]}), "does not fit"),
    "nested labels": (put("parameters", "steps", {"objects": [[1]]}), "more than labels"),
    "missing attribute": (put("fitted", "n_iter_", DELETED), "fitted PrivateLasso has"),
    "extra attribute": (put("fitted", "predict", 1), "fitted PrivateLasso has"),
    "fitted is no dict": (put("fitted", [1]), "fitted PrivateLasso has"),
    "more columns": (put("fitted", "n_features_in_", P + 1), "shape"),
    "no columns": (put("fitted", "n_features_in_", 0), "number of columns"),
    "columns as text": (put("fitted", "n_features_in_", "6"), "number of columns"),
    "columns as bool": (put("fitted", "n_features_in_", True), "number of columns"),
    "steps": (put("fitted", "n_iter_", 1.5), "number of steps"),
    "intercept": (put("fitted", "intercept_", "0"), "intercept"),
    "infinite intercept": (put("fitted", "intercept_", {"float": "inf"}), "intercept"),
    "too few names": (put("fitted", "feature_names_in_", {"objects": ["a"]}), "one name"),
    "names that are no text": (
        put("fitted", "feature_names_in_", {"objects": [1] * P}),
        "one name",
    ),
    "names of another type": (put("fitted", "feature_names_in_", ["a"] * P), "one name"),
    "coef as a list": (put("fitted", "coef_", [0.0] * P), "not an array"),
    "coef of another type": (put("fitted", "coef_", {"array": ["<f4", [P]]}), r"coef_\.npy is not"),
    "coef of another shape": (put("fitted", "coef_", {"array": ["<f8", [P, 1]]}), "not an array"),
    "negative shape": (put("fitted", "coef_", {"array": ["<f8", [-P]]}), "shape"),
    "shape of floats": (put("fitted", "coef_", {"array": ["<f8", [6.0]]}), "shape"),
    "huge shape": (put("fitted", "coef_", {"array": ["<f8", [10**30]]}), "not an array"),
    "array without a type": (put("fitted", "coef_", {"array": [[P]]}), "does not fit"),
    "no width": (put("fitted", "coef_", {"array": ["<U0", [10**12]]}), "type"),
    "records": (put("fitted", "coef_", {"array": ["<f8,<f8", [P]]}), "type"),
    "statement": (put("statement", []), "fields of Statement"),
    "statement's field": (put("statement", "certified", True), "fields of Statement"),
    "missing in the statement": (put("statement", "epsilon", DELETED), "does not fit"),
    "statement's epsilon": (put("statement", "epsilon", "0.1"), "Statement"),
    "negative epsilon": (put("statement", "epsilon", -1.0), "Statement"),
    "nan epsilon": (put("statement", "epsilon", {"float": "nan"}), "Statement"),
    "delta above 1": (put("statement", "delta", 2.0), "Statement"),
    "statement's adjacency": (put("statement", "adjacency", "x"), "Statement"),
    "adjacency as a list": (put("statement", "adjacency", []), "does not fit"),
    "seeded": (put("statement", "seeded", 0), "Statement"),
    "releases": (put("statement", "releases", ["x"]), "Statement"),
    "notes": (put("statement", "notes", {"tuple": [1]}), "Statement"),
    "public facts": (put("statement", "public", ["rows"]), "Statement"),
    "public lists": (put("statement", "public", {"dict": {"rows": [1]}}), "Statement"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_json_is_refused(name, path):
    edit, match = EDITS[name]
    members, manifest = example("dense", path)
    edit(manifest)
    members["model.json"] = json.dumps(manifest).encode()
    pack(path, members)
    refused(path, match)


SPARSE = {
    "outside": ("support", np.array([P]), "places"),
    "negative": ("support", np.array([-1]), "places"),
    "longer": ("support", np.array([0, 1]), "not an array"),
    "floats": ("support", np.array([0.0]), "not an array"),
    "infinite": ("values", np.array([np.inf]), "not finite"),
    "single precision": ("values", np.array([1.0], dtype="<f4"), "not an array"),
}


def replace_array(path, members, manifest, place, node, array):
    """An array with a description that agrees with it, both wrong."""
    node["array"] = [array.dtype.str, list(array.shape)]
    members[f"{place}.npy"] = npy(array, version=(1, 0))
    members["model.json"] = json.dumps(manifest).encode()
    pack(path, members)


@pytest.mark.parametrize("name", SPARSE)
def test_a_wrong_support_is_refused(name, path):
    part, array, match = SPARSE[name]
    members, manifest = example("sparse", path)
    node = manifest["fitted"]["coef_"]["sparse"][1 if part == "support" else 2]
    replace_array(path, members, manifest, f"coef_.{part}", node, array)
    refused(path, match)


@pytest.mark.parametrize("support", [[1, 0], [1, 1]])
def test_a_support_out_of_order_is_refused(support, path):
    members, manifest = example("sparse", path)
    _, places, values = manifest["fitted"]["coef_"]["sparse"]
    replace_array(path, members, manifest, "coef_.support", places, np.array(support))
    replace_array(path, members, manifest, "coef_.values", values, np.array([1.0, 2.0]))
    refused(path, "places")


CLASSES_GIVEN = {
    "one": (np.array(["a"]), "two different labels"),
    "equal": (np.array(["a", "a", "b"]), "two different labels"),
    "two": (np.array(["a", "b"]), "intercept_ is not an array"),
    "a table": (np.array([["a", "b", "c"]]), "two different labels"),
}


@pytest.mark.parametrize("name", CLASSES_GIVEN)
def test_wrong_classes_are_refused(name, path):
    array, match = CLASSES_GIVEN[name]
    members, manifest = example("text", path)
    replace_array(path, members, manifest, "classes_", manifest["fitted"]["classes_"], array)
    refused(path, match)


def test_bytes_that_are_no_character_or_boolean_are_refused(path):
    members, _ = example("text", path)
    members["classes_.npy"] = members["classes_.npy"][:-4] + b"\xff\xff\xff\x7f"
    pack(path, members)
    refused(path, "no characters")
    members, _ = example("bools", path)
    members["classes_.npy"] = members["classes_.npy"][:-1] + b"\x02"
    pack(path, members)
    refused(path, "True and False")


def test_coefficients_that_are_not_finite_are_refused(path):
    members, _ = example("dense", path)
    members["coef_.npy"] = members["coef_.npy"][:-8] + struct.pack("<d", np.nan)
    pack(path, members)
    refused(path, "not finite")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b"\xff",
        "{'format': 1}".encode("utf-16"),
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"format": NaN}',
        b'{"format": 1, "format": "riata model"}',
        b'{"format": ' + b"9" * 5000 + b"}",
    ],
    ids=range(11),
)
def test_what_is_not_the_json_of_a_model_is_refused(text, path):
    pack(path, {"model.json": text})
    refused(path, r"model\.json")


def test_deep_nesting_below_the_limits_of_json_is_refused(path):
    members, manifest = example("dense", path)
    text = json.dumps(manifest).replace('"steps": 3', '"steps": @', 1)
    members["model.json"] = text.replace("@", "[" * 900 + "]" * 900).encode()
    pack(path, members)
    refused(path, "Cannot load")


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "evil.npy", "coef_.npy/", "a\\b"])
def test_members_that_no_array_needs_are_refused(name, path):
    members, _ = example("dense", path)
    pack(path, {**members, name: b"x"})
    refused(path, "no array needs")
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("name", ["model.json", "coef_.npy", "bounds.x.npy"])
def test_a_missing_or_renamed_member_is_refused(name, path):
    members, _ = example("dense", path)
    content = members.pop(name)
    pack(path, members)
    refused(path, "missing|no member")
    pack(path, {**members, f"../{name}": content})
    refused(path, "missing|no member")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["model.json", "coef_.npy"])
def test_a_member_that_occurs_twice_is_refused(name, path):
    members, _ = example("dense", path)
    pack(path, [*members.items(), (name, members[name])])
    refused(path, "same name")


@pytest.mark.parametrize("change", ["shorter", "longer", "fortran", "other shape", "version 2"])
def test_an_array_that_is_not_as_described_is_refused(change, path):
    members, _ = example("dense", path)
    coef = np.load(io.BytesIO(members["coef_.npy"]))
    members["coef_.npy"] = {
        "shorter": members["coef_.npy"][:-8],
        "longer": members["coef_.npy"] + bytes(8),
        "fortran": npy(np.asfortranarray(coef.reshape(2, 3))),
        "other shape": npy(coef.reshape(1, -1)),
        "version 2": npy(coef, version=(2, 0)),
    }[change]
    pack(path, members)
    refused(path, r"coef_\.npy is not an array")


@pytest.mark.parametrize("kind", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compressed_file_is_refused_before_it_is_unpacked(kind, path):
    members, _ = example("dense", path)
    pack(path, {**members, "coef_.npy": bytes(10**7)}, kind)
    refused(path, "compressed")


def test_few_bytes_that_describe_many_zeros_are_refused(path):
    members, manifest = example("sparse", path)
    size = 10**12
    manifest["fitted"]["n_features_in_"] = size
    manifest["fitted"]["coef_"]["sparse"][0] = [size]
    manifest["parameters"]["bounds"] = {"Bounds": {"x": 1.0, "y": 1.0}}
    del members["bounds.x.npy"]
    members["model.json"] = json.dumps(manifest).encode()
    pack(path, members)
    refused(path, "max_bytes")


def test_the_limit_can_be_raised_and_lowered(path):
    x = sparse.csr_array((N, 50_000))
    riata.save(lasso().fit(x, np.zeros(N)), path)
    refused(path, "coefficients would take more than max_bytes=600000", max_bytes=600_000)
    refused(path, "list of its members would take more than max_bytes=1000", max_bytes=1000)
    refused(path, r"model\.json would take more", max_bytes=10 * path.stat().st_size)
    assert riata.load(path, max_bytes=2**63).n_features_in_ == 50_000


def test_too_many_members_are_refused(path):
    members, _ = example("dense", path)
    pack(path, {**members, **{f"{i}.npy": b"" for i in range(100)}})
    refused(path, "more than it can have")


def test_every_cut_is_refused(path):
    example("dense", path)
    content = path.read_bytes()
    for end in [*range(0, len(content), 97), len(content) - 1]:
        path.write_bytes(content[:end])
        refused(path, "damaged")


@pytest.mark.not_quick
@pytest.mark.parametrize("which", ["sparse", "text", "erm"])
def test_no_changed_byte_gives_anything_but_a_model_or_the_error(which, path):
    example(which, path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    refusals = 0
    for position in rng.choice(len(content), 500):
        changed = bytearray(content)
        changed[position] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            riata.load(path)  # a date or a permission in the archive may change
        except ModelFileError:
            refusals += 1
    assert refusals > 400


def test_something_before_or_after_the_archive_is_refused(path):
    example("dense", path)
    content = path.read_bytes()
    before = (b"#!", b"PK\x03\x04")
    after = (content + b"x", content[:-2] + b"\x01\x00x")
    for changed in (*(start + content for start in before), *after):
        path.write_bytes(changed)
        refused(path, "damaged")


def test_a_name_that_is_no_text_is_refused(path):
    members, _ = example("dense", path)
    pack(path, {**members, "ü": b""})
    path.write_bytes(path.read_bytes().replace("ü".encode(), b"\xff\xff"))
    refused(path, "damaged")


def test_a_damaged_member_is_refused(path):
    example("dense", path)
    content = bytearray(path.read_bytes())
    content[content.index(b"\x93NUMPY") + 130] ^= 1
    path.write_bytes(content)
    refused(path, "damaged")


def test_a_large_kind_of_archive_is_refused(path):
    example("dense", path)
    content = path.read_bytes()
    end = len(content) - 22
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)
    size, offset = struct.unpack_from("<2L", content, end + 12)
    tail = content[end : end + 12] + struct.pack("<2L", size + 20, offset) + content[-2:]
    path.write_bytes(content[:end] + locator + tail)
    refused(path, "damaged")


def test_what_is_no_file_is_refused(tmp_path):
    refused(tmp_path / "nothing", "There is no file")
    refused(tmp_path, "There is no file")
    empty = tmp_path / "empty"
    empty.touch()
    refused(empty, "damaged")


def test_an_edited_statement_is_a_claim_and_not_a_certificate(path):
    """What docs/sharp_edges.md says: nothing is signed."""
    members, manifest = example("dense", path)
    manifest["statement"]["epsilon"] = 0.001
    members["model.json"] = json.dumps(manifest).encode()
    pack(path, members)
    assert riata.load(path).privacy_.epsilon == 0.001
