"""Pieces that do not fit together are refused with a reason, unread and uncharged.

The rows of these tests cannot be read: they know their shape and type, and everything else that is
asked of them is a failure.
"""

import math
import re

import numpy as np
import pytest
from scipy import sparse

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
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import Incompatible, InvalidArgument
from riata.losses import Huber, Logistic, OrderedLogistic, Squared
from riata.mechanisms.noise import Noise
from riata.mechanisms.posterior import MOST_INFORMATION
from riata.projections import GaussianProjection, Projection
from riata.sets import GroupL1Ball, L1Ball, L2Ball, Simplex, SparseBall
from riata.solvers import (
    SOLVERS,
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
    ScaledGradient,
    WhitenedGradient,
)
from riata.solvers.posterior_sampling import MOST_COLUMNS

pytestmark = pytest.mark.matrix(one_in=13)

INF = math.inf
EXPLAINED = re.compile(r"Cannot use .+ with .+\. This is because .+\. (Use|Pass) .+\.")
ENTRIES = Bounds(x=1.0, y=1.0)
LENGTH = Bounds(x=1.0, y=1.0, norm="l2")
N, P = 20, 6
GIVEN = {"epsilon": 1.0, "delta": 1e-6}


class Untouchable(sparse.csr_array):
    """Rows with a shape and a type whose every other access is a failure."""

    def __init__(self, n, p):
        vars(self)["size"] = (n, p)

    def __getattribute__(self, name):
        shape = super().__getattribute__("__dict__")["size"] if name == "shape" else None
        answers = {"shape": shape, "dtype": np.dtype(float), "format": "csr", "ndim": 2}
        if name in answers:
            return answers[name]
        if name == "__class__":
            return Untouchable
        if name.startswith("__"):  # what a library looks for before it does anything
            return super().__getattribute__(name)
        if not hasattr(sparse.csr_array, name) and name not in ("data", "indices", "indptr"):
            raise AttributeError(name)  # what other containers have
        raise AssertionError(f"a row was read: {name}")


@pytest.fixture
def ledger():
    return Ledger.create(":memory:", dataset="d", ceiling=Budget(1e9, 1e-3))


@pytest.fixture(autouse=True)
def nothing_may_be_read(monkeypatch):
    def read(*_, **__):
        raise AssertionError("a row was read, or noise was drawn")

    owners = [(LocalEngine, "__init__"), (LocalEngine, "total"), (Curator, "__init__")]
    owners += [(Bounds, name) for name in ("clip_x", "clip_y", "grid_x", "grid_rows")]
    owners += [(Projection, "rows"), (Noise, "words")]
    for owner, name in owners:
        monkeypatch.setattr(owner, name, read)


def refused(model, ledger, n=N, p=P, kind=Incompatible):
    """The message with which both `fit` and `plan` refuse, before anything else happens."""
    said = []
    with pytest.raises(kind) as caught:
        model.set_params(ledger=ledger).fit(Untouchable(n, p), np.zeros(n))
    said.append(str(caught.value))
    with pytest.raises(kind) as caught:
        model.plan(n, p)
    said.append(str(caught.value))
    assert said[0] == said[1]
    assert ledger.charges == []
    fitted = [name for name in vars(model) if name.endswith("_") and not name.endswith("__")]
    assert fitted in ([], ["n_features_in_"])
    return said[0]


def erm(**changes):
    facts = {"loss": Squared(), "set": L2Ball(1.0), "bounds": LENGTH} | GIVEN
    return PrivateErm(**facts | changes)


def sparse_model(**changes):
    return PrivateSparseRegression(**GIVEN | {"bounds": ENTRIES, "sparsity": 2} | changes)


def heavy(**changes):
    return HeavyTailedRegression(**GIVEN | {"sparsity": 2} | changes)


def projected(**changes):
    return ProjectedRegression(**GIVEN | {"bounds": LENGTH} | changes)


def projected_labels(**changes):
    return ProjectedClassifier(**GIVEN | {"bounds": LENGTH, "classes": [0, 1]} | changes)


def logistic(**changes):
    given = {"bounds": ENTRIES, "classes": [0, 1]}
    return PrivateLogisticRegression(**GIVEN | given | changes)


def svc(**changes):
    return PrivateLinearSVC(**GIVEN | {"bounds": ENTRIES, "classes": [0, 1]} | changes)


def three_classes(**changes):
    facts = GIVEN | {"bounds": LENGTH, "classes": [0, 1, 2]}
    return PrivateLogisticRegression(**facts | changes)


def lasso(**changes):
    return PrivateLasso(**GIVEN | {"bounds": ENTRIES} | changes)


def test_the_rows_of_these_tests_cannot_be_read(monkeypatch):
    rows = Untouchable(N, P)
    for read in (
        lambda: rows.data,
        lambda: rows @ np.ones(P),
        lambda: rows.toarray(),
        lambda: rows[0],
    ):
        with pytest.raises(AssertionError, match="a row was read"):
            read()
    # A good fit gets as far as the curator, and there it fails.
    with pytest.raises(AssertionError, match="a row was read"):
        sparse_model().fit(rows, np.zeros(N))


OBJECTIVE = {"solver": "objective-perturbation"}
POSTERIOR = {"solver": "posterior-sampling", "delta": 0.0}
NOISY = {"solver": "noisy-gradient"}

PAIRS = {
    # objective perturbation
    "perturbed over sparse": (erm(set=SparseBall(2), **OBJECTIVE), "SparseBall"),
    "perturbed sparse regression": (sparse_model(**OBJECTIVE), "SparseBall"),
    "perturbed heavy tails": (heavy(**OBJECTIVE), "SparseBall"),
    # pure differential privacy
    "pure samples": (erm(delta=0.0, solver=NoisyGradient(sampling=0.5)), "delta=0"),
    "pure thresholding": (sparse_model(delta=0.0, solver="hard-thresholding"), "delta=0"),
    "pure Gaussian values": (
        sparse_model(delta=0.0, solver=PrivatePeeling(values="gaussian")),
        'values="gaussian"',
    ),
    "pure Gaussian values, heavy tails": (
        heavy(delta=0.0, solver=PrivatePeeling(values="gaussian")),
        'values="gaussian"',
    ),
    "pure Gaussian Frank-Wolfe": (erm(delta=0.0, solver="gaussian-frank-wolfe"), "delta=0"),
    # sparse solvers and sets
    "peeling over l1": (erm(set=L1Ball(1.0), solver="peeling"), "L1Ball"),
    "peeling over l2": (erm(solver="peeling"), "L2Ball"),
    "peeling labels": (logistic(solver="peeling"), "L1Ball"),
    "thresholding over l1": (lasso(solver="hard-thresholding"), "L1Ball"),
    "exact thresholding over l1": (
        lasso(solver=HardThresholding(), epsilon=INF), "HardThresholding()",
    ),
    "exact thresholding with a budget": (sparse_model(solver=HardThresholding()), "epsilon=1"),
    "exact Frank-Wolfe with a budget": (erm(solver=FrankWolfe()), "epsilon=1"),
    "Frank-Wolfe over sparse": (sparse_model(solver="frank-wolfe"), "SparseBall"),
    "Gaussian Frank-Wolfe over sparse": (sparse_model(solver="gaussian-frank-wolfe"), "SparseBall"),
    "exact Frank-Wolfe over sparse": (
        sparse_model(solver=FrankWolfe(), epsilon=INF), "SparseBall",
    ),
    "noisy gradient over sparse": (sparse_model(**NOISY), "SparseBall"),
    "too sparse": (sparse_model(sparsity=P + 1), "sparsity=7"),
    "too sparse, heavy tails": (heavy(sparsity=P + 1), "sparsity=7"),
    "too sparse, any loss": (erm(set=SparseBall(P + 1)), "sparsity=7"),
    "more parts than rows": (sparse_model(solver=PrivatePeeling(N + 1, split=True)), "steps=21"),
    "more parts than rows, heavy tails": (
        heavy(solver=PrivatePeeling(N + 1, split=True)), "20 rows",
    ),
    # posterior sampling
    "posterior of Huber": (erm(loss=Huber(), **POSTERIOR), "huber loss"),
    "posterior of labels": (erm(loss=Logistic(), **POSTERIOR), "logistic loss"),
    "posterior over l1": (erm(set=L1Ball(1.0), **POSTERIOR), "L1Ball"),
    "posterior over groups": (erm(set=GroupL1Ball(2), **POSTERIOR), "GroupL1Ball"),
    "posterior over sparse": (sparse_model(**POSTERIOR), "SparseBall"),
    "posterior, entry by entry": (erm(bounds=ENTRIES, **POSTERIOR), "norm='inf'"),
    "posterior of projected labels": (projected_labels(**POSTERIOR), "logistic"),
    # projections
    "projected over sparse": (sparse_model(solver="projected"), "SparseBall"),
    "projected to too many": (projected(dimension=P + 1), "dimension=7"),
    "projected to too many, labels": (projected_labels(dimension=P + 1), "dimension=7"),
    "projected by a narrow matrix": (projected(projection=np.ones((2, P - 1))), "5 columns"),
    "projected by a wide matrix": (projected(projection=np.ones((2, P + 1))), "7 columns"),
    "projected by a wide projection": (projected(projection=GaussianProjection(2, 9)), "9 columns"),
    "projected lasso by a wide matrix": (
        lasso(solver=Projected(projection=GaussianProjection(2, 9))), "9 columns",
    ),
    "projected to two dimensions and to three": (
        projected(projection=GaussianProjection(2, P), dimension=3), "dimension=3",
    ),
    "projected with selection inside": (projected(solver=PrivateFrankWolfe()), "L2Ball"),
    "projected with peeling inside": (projected(solver=PrivatePeeling()), "L2Ball"),
    "projected with a projection inside": (projected(solver=Projected()), "projection inside"),
}  # fmt: skip


@pytest.mark.parametrize("case", PAIRS)
def test_an_incompatible_pair_is_explained_and_nothing_is_read_or_charged(case, ledger):
    model, names = PAIRS[case]
    kind = InvalidArgument if case.startswith("too sparse") else Incompatible
    message = refused(model, ledger, kind=kind)
    assert EXPLAINED.fullmatch(message), message
    assert names in message


def test_compressed_rows_of_another_width_are_explained(ledger):
    for make in (projected, projected_labels):
        model = make(projection=np.ones((P - 1, 9)), compressed=True)
        message = refused(model, ledger, kind=InvalidArgument)
        assert EXPLAINED.fullmatch(message)
        assert "6 columns" in message
        assert "5 dimensions" in message


def test_too_many_columns_and_too_much_information_for_a_posterior_are_explained(ledger):
    wide = refused(erm(**POSTERIOR), ledger, p=MOST_COLUMNS + 1)
    assert EXPLAINED.fullmatch(wide)
    assert "257 columns" in wide
    erm(**POSTERIOR).plan(N, MOST_COLUMNS)
    sharp = refused(erm(**POSTERIOR | {"epsilon": MOST_INFORMATION}), ledger)
    assert EXPLAINED.fullmatch(sharp)
    assert "20 rows at epsilon=4.29497e+09" in sharp
    erm(**POSTERIOR | {"epsilon": MOST_INFORMATION / N}).plan(N, P)
    message = refused(projected(**POSTERIOR | {"epsilon": MOST_INFORMATION}), ledger)
    assert EXPLAINED.fullmatch(message)


#: A model that each private solver can fit.
SUITED = {
    "greedy": lambda **c: lasso(solver="greedy", **c),
    "refitted-frank-wolfe": lambda **c: lasso(solver="refitted-frank-wolfe", **c),
    "sufficient-statistics": lambda **c: lasso(solver="sufficient-statistics", **c),
    "frank-wolfe": lambda **c: lasso(solver="frank-wolfe", **c),
    "gaussian-frank-wolfe": lambda **c: erm(solver="gaussian-frank-wolfe", **c),
    "noisy-gradient": lambda **c: erm(**NOISY, **c),
    "scaled-gradient": lambda **c: erm(solver="scaled-gradient", **c),
    "whitened-gradient": lambda **c: erm(solver="whitened-gradient", **c),
    "public-design": lambda **c: lasso(solver="public-design", adjacency="replace-label", **c),
    "averaged-gradient": lambda **c: erm(solver="averaged-gradient", **c),
    "profile-gradient": lambda **c: erm(loss=OrderedLogistic(3), solver="profile-gradient", **c),
    "class-sums": lambda **c: erm(loss=Logistic(), solver="class-sums", **c),
    "joint-class-sums": lambda **c: three_classes(solver="joint-class-sums", **c),
    "softmax-gradient": lambda **c: three_classes(solver="softmax-gradient", **c),
    "objective-perturbation": lambda **c: erm(**OBJECTIVE, **c),
    "hard-thresholding": lambda **c: sparse_model(solver="hard-thresholding", **c),
    "peeling": lambda **c: sparse_model(solver="peeling", **c),
    "projected": lambda **c: lasso(solver="projected", **c),
    "posterior-sampling": lambda **c: erm(solver="posterior-sampling", **c),
}


def test_every_private_solver_is_tried():
    assert SUITED.keys() == SOLVERS.keys()
    for make in SUITED.values():
        make().plan(N, P)


@pytest.mark.parametrize("name", SUITED)
def test_no_private_solver_runs_without_noise(name, ledger):
    message = refused(SUITED[name](epsilon=INF), ledger)
    assert EXPLAINED.fullmatch(message)
    assert "epsilon=inf" in message


def test_estimators_with_one_private_solver_refuse_infinity(ledger):
    for model in (
        heavy(epsilon=INF, truncation=1.0),
        projected(epsilon=INF),
        projected_labels(epsilon=INF),
    ):
        message = refused(model, ledger)
        assert EXPLAINED.fullmatch(message)
        assert "epsilon=inf" in message
    message = refused(heavy(epsilon=INF), ledger, kind=InvalidArgument)
    assert "truncation" in message
    assert "Pass a number" in message


@pytest.mark.parametrize("name", ["objective-perturbation", "posterior-sampling"])
@pytest.mark.parametrize("steps", [2, 3, 100])
def test_one_step_is_all_that_a_single_release_takes(name, steps, ledger):
    message = refused(SUITED[name](steps=steps), ledger, kind=InvalidArgument)
    assert f"steps={steps} must be 1" in message
    inside = refused(projected(solver=name, steps=steps), ledger, kind=InvalidArgument)
    assert f"steps={steps} must be 1" in inside
    SUITED[name](steps=1).plan(N, P)


def test_steps_beside_a_solver_object_are_refused_also_inside_a_projection(ledger):
    for model in (
        erm(solver=NoisyGradient(3), steps=4),
        sparse_model(solver=PrivatePeeling(3), steps=4),
        heavy(solver=PrivatePeeling(3), steps=4),
        projected(solver=NoisyGradient(3), steps=4),
    ):
        assert "given twice" in refused(model, ledger, kind=InvalidArgument)
    assert projected(solver=NoisyGradient(3)).plan(N, P).steps == 3


NUMBERS = [0, -1.0, math.nan, INF, "big", None, True, 1e-300]
BAD = {
    **{f"clip={v!r}": (projected(clip=v), "clip") for v in NUMBERS},
    **{f"scale={v!r}": (heavy(scale=v), "scale") for v in NUMBERS},
    **{f"truncation={v!r}": (heavy(truncation=v), "truncation") for v in [*NUMBERS, [1.0]]},
    **{f"radius={v!r}": (sparse_model(radius=v), "radius") for v in NUMBERS},
    **{f"radius={v!r}, heavy": (heavy(radius=v), "radius") for v in NUMBERS},
    **{f"radius={v!r}, svc": (svc(radius=v), "radius") for v in NUMBERS},
    **{f"radius={v!r}, l2": (logistic(radius=v, penalty="l2"), "radius") for v in NUMBERS},
    **{f"radius={v!r}, projected": (projected(radius=v), "radius") for v in NUMBERS},
    **{f"smoothing={v!r}": (svc(smoothing=v), "smoothing") for v in NUMBERS},
    **{
        f"sparsity={v!r}": (make(sparsity=v), "sparsity")
        for make in (sparse_model, heavy)
        for v in [0, -1, 1.5, 2.0, True, "2", None, math.nan]
    },
    **{
        f"penalty={v!r}": (make(penalty=v), "penalty")
        for make in (logistic, svc)
        for v in ["l3", "L1", None, 1, "elasticnet"]
    },
    **{
        f"dimension={v!r}": (projected(dimension=v), "dimension")
        for v in [0, -3, 1.5, 2.0, True, "many", None]
    },
    **{f"seed={v!r}": (projected(seed=v), "seed") for v in [1.5, "a", True]},
    "projection by no name": (projected(projection="fourier"), "projection='fourier'"),
    "projection of one dimension": (projected(projection=np.ones(P)), "two-dimensional"),
    "projection of text": (projected(projection=[["a"] * P]), "matrix of numbers"),
    "projection with NaN": (projected(projection=np.full((2, P), math.nan)), "finite"),
    "projection that widens": (projected(projection=np.ones((P + 1, P))), "smaller dimension"),
    "projection of nothing": (projected(projection=None), "two-dimensional"),
    "compressed without a matrix": (projected(compressed=True), "needs the matrix"),
    "compressed without a matrix, labels": (projected_labels(compressed=True), "needs the matrix"),
    "compressed, entry by entry": (
        projected(projection=np.ones((P, 9)), compressed=True, bounds=ENTRIES),
        "bound on their length",
    ),
    "solver inside by no name": (projected(solver="frank-wolfe"), "'frank-wolfe' is not known"),
    "solver by no name": (sparse_model(solver="iht"), "solver='iht' is not known"),
    "no bounds": (sparse_model(bounds=None), "needs bounds"),
    "no bounds, projected": (projected(bounds=None), "needs bounds"),
    "no bounds, labels": (svc(bounds=None), "needs bounds"),
    "no bound on y": (sparse_model(bounds=Bounds(1.0)), "say nothing about y"),
    "no bound on y, projected": (projected(bounds=Bounds(1.0, norm="l2")), "say nothing about y"),
    "too many bounds": (sparse_model(bounds=Bounds([1.0, 2.0], 1.0)), "2 entries"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_value_is_named_and_nothing_is_read_or_charged(case, ledger):
    model, name = BAD[case]
    assert name in refused(model, ledger, kind=InvalidArgument)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        *((lambda v=v: NoisyGradient(sampling=v), "sampling") for v in [0, -0.1, 1.1, math.nan]),
        *((lambda v=v: NoisyGradient(sampling=v), "sampling") for v in ["half", None, True]),
        *((lambda v=v: NoisyGradient(clip=v), "clip") for v in [0, -1, math.nan, INF, "no", True]),
        *((lambda v=v: NoisyGradient(step_size=v), "step_size") for v in [0, -1, "a", None, True]),
        *((lambda v=v: PrivatePeeling(step_size=v), "step_size") for v in [0, INF, "a", None]),
        *((lambda v=v: PrivatePeeling(split=v), "split") for v in [0, 1, 2, "yes", None, "True"]),
        *((lambda v=v: PrivatePeeling(split=v), "split") for v in [[True], 0.0, np.int64(1)]),
        *((lambda v=v: PrivatePeeling(values=v), "values") for v in ["normal", None, True, 1]),
        *((lambda v=v: HardThresholding(tolerance=v), "tolerance") for v in [-1, math.nan, "a"]),
        *(
            (lambda v=v: PerturbedObjective(1, v), "regularisation")
            for v in [0, -1, INF, "a", None]
        ),
        *((lambda v=v: Projected(clip=v), "clip") for v in [0, -1, INF, "no", None, True]),
        *((lambda v=v: Projected(inner=v), "inner") for v in ["peeling", "frank-wolfe", None, 3]),
        *((lambda v=v: Projected(projection=v), "projection") for v in ["pca", None, 3]),
        (lambda: Projected(projection=np.eye(3)), "GivenProjection"),
        (lambda: Projected(projection=[[1.0, 2.0]]), "GivenProjection"),
        (lambda: Projected(compressed=True), "needs the matrix"),
    ],
)
def test_a_solver_object_refuses_a_bad_value_by_name(make, name):
    with pytest.raises(InvalidArgument, match=name):
        make()


SOLVERS_WITH_STEPS = [
    NoisyGradient,
    ScaledGradient,
    WhitenedGradient,
    PrivateHardThresholding,
    HardThresholding,
    PrivatePeeling,
    Projected,
    PerturbedObjective,
    PosteriorSampling,
]


@pytest.mark.parametrize("steps", [0, -1, 2.5, "many", None, True, INF, math.nan, [3]], ids=repr)
@pytest.mark.parametrize("solver", SOLVERS_WITH_STEPS)
def test_bad_steps_are_refused_by_every_solver(solver, steps):
    with pytest.raises(InvalidArgument, match="steps"):
        solver(steps=steps)


def test_numpy_values_are_good_values():
    assert PrivatePeeling(3, split=np.True_).plan(problem_of(N), Budget(1.0, 1e-6)).parts == 3
    assert PrivatePeeling(3, split=np.False_).plan(problem_of(N), Budget(1.0, 1e-6)).parts == 1
    assert NoisyGradient(np.int64(3), clip=np.float32(1), sampling=np.float64(0.5)).steps == 3
    assert (
        Projected(dimension=np.int64(2))
        .plan(problem_of(N, set=L1Ball(1.0)), Budget(1.0, 1e-6))
        .projection.dimension
        == 2
    )
    assert SparseBall(np.int64(2)).sized(5).radius_in("l1") == math.sqrt(2)


def problem_of(n, **changes):
    from riata.problem import Problem

    facts = {"loss": Squared(), "set": SparseBall(2), "bounds": ENTRIES}
    return Problem(**facts | changes, n_rows=n, n_features=P)


def test_a_split_that_was_not_asked_for_never_stops_a_fit():
    """More steps than rows: only split=True is refused, "auto" takes all rows in each step."""
    for n, steps in ((1, 2), (3, 5), (20, 60)):
        plan = PrivatePeeling(steps).plan(problem_of(n), Budget(1.0, 1e-6))
        assert (plan.parts, plan.steps) == (1, steps)
        assert PrivatePeeling(steps, split=False).plan(problem_of(n), Budget(1.0, 1e-6)) == plan
        with pytest.raises(Incompatible, match="split=False"):
            PrivatePeeling(steps, split=True).plan(problem_of(n), Budget(1.0, 1e-6))


def test_incompatibilities_of_labels_are_found_before_codes_are_made(ledger, monkeypatch):
    from riata.estimators import classifier

    def read(*_, **__):
        raise AssertionError("labels were read")

    monkeypatch.setattr(classifier, "labels_as_codes", read)
    for model in (svc(solver="peeling"), logistic(solver="peeling"), projected_labels(**POSTERIOR)):
        refused(model, ledger)


def test_gaussian_frank_wolfe_inside_a_projection_is_allowed():
    assert projected(solver="gaussian-frank-wolfe", steps=3).plan(N, P).steps == 3
    assert projected(solver=GaussianFrankWolfe(3)).plan(N, P).steps == 3
    assert erm(set=Simplex(1.0), solver="projected", steps=2).plan(N, P).steps == 2
