"""Parameters of the papers at and beyond the ends of their ranges: an answer that is right, or an
error that says what is wrong. Nothing else: no other exception, no NaN, no silent surprise."""

import math
import warnings

import numpy as np
import pytest

from riata import Bounds, Budget, PrivateErm, PrivateSparseRegression, ProjectedRegression, peel
from riata.embedding import (
    embedding_dimension,
    embedding_failure,
    expected_margin_distortion,
    lift_error,
    margin_distortion,
    psi2_norm,
)
from riata.errors import RiataError
from riata.geometry import row_norm, set_norm, smoothness_curvature
from riata.hard_instances import HardInstance
from riata.local.paper import (
    GeneralisedLinear,
    PaperKernelRidge,
    PaperL1Regression,
    PaperSmoothGLM,
    PaperSparseMean,
    PrivateVector,
    degree_by_lemma_8,
    log_people_by_theorem_6,
)
from riata.losses import Hinge, Logistic, RowLoss, Squared
from riata.mechanisms.noise import Noise
from riata.privacy import spent
from riata.problem import Problem
from riata.sets import GroupL1Ball, L1Ball, L2Ball, LpBall, Polytope, Simplex, SparseBall
from riata.solvers import GaussianFrankWolfe, PerturbedObjective
from riata.solvers.projected import theorem_dimension
from riata.solvers.risk_range import risk_range

N, P = 60, 4
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (N, P)) / 2
Y = np.clip(X @ [0.5, -0.4, 0.0, 0.0], -1, 1)
Z = np.where(Y > 0, 1, -1)
BALL, CUBE = Bounds(1.0, 1.0, norm="l2"), Bounds(1.0, 1.0)
INF, NAN = float("inf"), float("nan")

#: Rows that are poorer than they look: all the same, of one direction, and nothing at all.
POOR = {
    "rank one": np.outer(np.linspace(-1, 1, N), [0.5, -0.5, 0.1, 0.0]),
    "one row": np.tile(X[:1], (N, 1)),
    "zeros": np.zeros((N, P)),
}


def erm(solver, C, bounds=BALL, epsilon=1.0, delta=1e-6, loss=None, **more):
    return PrivateErm(
        loss or Squared(), C, epsilon, delta, bounds=bounds, solver=solver, fit_intercept=False,
        random_state=0, **more,
    )  # fmt: skip


#: What learns from rows, with the set that its answer must lie in.
LEARNERS = {
    "T Algorithm 2": (lambda: erm("frank-wolfe", L1Ball(1.0), CUBE, steps=5), L1Ball(1.0)),
    "T Algorithm 3": (lambda: erm("gaussian-frank-wolfe", L2Ball(1.0), steps=5), L2Ball(1.0)),
    "W Algorithm 4": (
        lambda: PrivateSparseRegression(
            1.0, 1e-6, bounds=BALL, sparsity=2, solver="hard-thresholding", random_state=0
        ),
        None,
    ),
    "W Algorithm 6": (
        lambda: PrivateSparseRegression(
            1.0, 1e-6, bounds=CUBE, sparsity=2, solver="peeling", random_state=0
        ),
        None,
    ),
    "W Algorithm 7": (lambda: erm("objective-perturbation", LpBall(1.5)), LpBall(1.5)),
    "W Algorithm 7 pure": (
        lambda: erm("objective-perturbation", L2Ball(1.0), delta=0.0, loss=Hinge()), L2Ball(1.0),
    ),
    "K Theorem 3.6": (lambda: erm("noisy-gradient", L2Ball(1.0), steps=5), L2Ball(1.0)),
    "K Theorem 3.6 pure": (
        lambda: erm("posterior-sampling", L2Ball(1.0), delta=0.0), L2Ball(1.0),
    ),
    "K Mechanism 2": (
        lambda: ProjectedRegression(
            1.0, 1e-6, bounds=BALL, radius=1.0, dimension=2, fit_intercept=False, random_state=0
        ),
        L1Ball(1.0),
    ),
    "Z Algorithm 3": (
        lambda: PaperL1Regression(epsilon=1.0, delta=1e-6, dimension=2, random_state=0),
        L1Ball(1.0),
    ),
    "Z Algorithm 4": (
        lambda: PaperKernelRidge(epsilon=1.0, delta=1e-6, n_components=4, random_state=0), None,
    ),
    "Z Algorithm 6": (
        lambda: PaperSmoothGLM(epsilon=1.0, delta=1e-6, random_state=0), L2Ball(1.0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("rows", POOR)
@pytest.mark.parametrize("name", LEARNERS)
def test_rows_without_full_rank_have_an_answer_inside_the_set(name, rows):
    make, C = LEARNERS[name]
    labels = ("6" in name and name[0] == "Z") or ("pure" in name and name[0] == "W")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coef = np.ravel(make().fit(POOR[rows], Z if labels else Y).coef_)
    assert np.isfinite(coef).all()
    if C is not None:
        assert C.sized(len(coef)).contains(coef, 1e-6)


def problem(C=None, n=1000, bounds=BALL, loss=None):
    return Problem(loss or Squared(), C or L1Ball(1.0), bounds, n, P)


#: Functions of one parameter, and values at and beyond the ends of its range.
CALLS = {
    "T plan, epsilon": (
        lambda e: GaussianFrankWolfe().plan(problem(), Budget(e, 1e-6)).excess_risk,
        [0.0, -1.0, 1e-300, 1e-6, 20.0, 1e6, INF, NAN],
    ),
    "T plan, delta": (
        lambda d: GaussianFrankWolfe().plan(problem(), Budget(1.0, d)).excess_risk,
        [0.0, -1e-6, 1e-300, 0.5, 0.999, 1.0, NAN],
    ),
    "T lq": (
        lambda q: smoothness_curvature(problem(LpBall(1.5)), q),
        [0.5, 1.0, 1.0000001, 1e9, INF, NAN],
    ),
    "T set norm": (lambda q: set_norm(LpBall(1.5, 1.0, 8), q), [0.0, 1.0, 1e12, INF, NAN]),
    "T row norm": (lambda r: row_norm(BALL, r, 8), [0.0, 1.0, 1e12, INF, NAN]),
    "T bounds": (
        lambda r: Bounds(1.0, norm=r).row_norm("l2", 8),
        [0.0, 1.0, 1.0000001, 1024.0, 1025.0, NAN],
    ),
    "T Lipschitz": (
        lambda c: RowLoss(lambda t, x, y: x, c).gradient_bounds.x,
        [0.0, -1.0, 1e-70, 1e-30, 1.0, 1e70, INF, NAN],
    ),
    "T lower bound": (
        lambda e: HardInstance.hardest(n_rows=256, epsilon=e, delta=1e-6).lower_bound(e, 1e-6),
        [0.1, 20.0],
    ),
    "T risk range": (
        lambda e: risk_range(problem(), Budget(e, 1e-6)).upper,
        [1e-6, 0.1, 20.0, 1e4],
    ),
    "W sparsity": (lambda s: SparseBall(s, 1.0).sized(4).radius_in("l1"), [0, 1, 4, 5, 2.5]),
    "W peel": (
        lambda s: float(
            peel(X, s, epsilon=1.0, delta=1e-6, bounds=CUBE, random_state=0).indices[0]
        ),
        [0, 1, P, P + 1, 1.5],
    ),
    "W Algorithm 7, lambda": (
        lambda r: erm(PerturbedObjective(regularisation=r), L2Ball(1.0)).plan(1000, P).excess_risk,
        [0.0, -1.0, 1e-30, 1e30, INF, NAN],
    ),
    "W risk bound": (
        lambda f: GaussianFrankWolfe().plan(problem(), Budget(1.0, 1e-6)).risk_bound(f),
        [0.0, 1e-300, 0.5, 1.0, NAN],
    ),
    "K gamma": (lambda g: embedding_dimension(1.0, g, 0.1), [0.0, -1.0, 1e-12, 0.5, 1.0, NAN]),
    "K beta": (lambda b: embedding_dimension(1.0, 0.5, b), [0.0, 1e-300, 0.5, 1.0, NAN]),
    "K failure": (lambda g: embedding_failure(100, 1.0, g), [0.0, 1e-12, 0.999, 1.0, NAN]),
    "K width": (lambda w: lift_error(100, w, 1.0, 0.1), [0.0, -1.0, 1e300, INF, NAN]),
    "K dimension": (lambda m: lift_error(m, 1.0, 1.0, 0.1), [0, 1, 10**12, -1, NAN]),
    "K rows": (lambda n: margin_distortion(100, 1.0, 1.0, n, 0.1), [1, 10**15]),
    "K radius": (lambda r: expected_margin_distortion(100, 1.0, r), [0.0, -1.0, 1e300, INF, NAN]),
    "K psi": (lambda a: psi2_norm([a, -a]), [0.0, 1.0, 1e-100, 1e100, INF, NAN]),
    "K epsilon": (lambda e: theorem_dimension(problem(), Budget(e, 0.0)), [1e-9, 20.0, 1e6]),
    "Z epsilon": (
        lambda e: PrivateVector.calibrated(e, 1e-6).sigma,
        [0.0, -1.0, 1e-6, 20.0, 1e3, INF, NAN],
    ),
    "Z delta": (lambda d: PrivateVector.calibrated(1.0, d).sigma, [0.0, 1e-300, 0.5, 1.0, NAN]),
    "Z gamma": (
        lambda g: (
            PaperKernelRidge(epsilon=1.0, delta=1e-6, n_components=4, gamma=g)
            .features(4)
            .rows(X)
            .sum()
        ),
        [0.0, -1.0, 1e-300, 1e6, INF, NAN],
    ),
    "Z C": (
        lambda C: (
            PaperKernelRidge(epsilon=1.0, delta=1e-6, n_components=4, C=C, random_state=0)
            .fit(X, Y)
            .coef_[0]
        ),
        [0.0, -1.0, 1e-12, 1e12, INF, NAN],
    ),
    "Z floor": (
        lambda f: (
            PaperKernelRidge(epsilon=1.0, delta=1e-6, n_components=4, floor=f, random_state=0)
            .fit(X, Y)
            .coef_[0]
        ),
        [0.0, -1.0, 1e6, NAN],
    ),
    "Z Lambda": (
        lambda L: (
            PaperSparseMean(epsilon=1.0, delta=1e-6, l1_norm=L, random_state=0).fit(X).mean_[0]
        ),
        [0.0, -1.0, 1e-9, 1e6, INF, NAN],
    ),
    "Z failure": (
        lambda f: PaperSparseMean(epsilon=1.0, delta=1e-6, failure=f).error_bound(10**6, 4),
        [0.0, 1e-9, 0.5, 0.999, 1.0, NAN],
    ),
    "Z radius": (
        lambda r: PaperL1Regression(epsilon=1.0, delta=1e-6, radius=r, dimension=None).risk_bound(
            10**6, 4
        ),
        [0.0, -1.0, 1e-9, 1e6, NAN],
    ),
    "Z risk": (
        lambda f: PaperL1Regression(epsilon=1.0, delta=1e-6, dimension=2).risk_bound(10**6, 4, f),
        [0.0, 1e-12, 0.999, 1.0, NAN],
    ),
    "Z alpha": (lambda a: degree_by_lemma_8(a, 1.0), [0.0, 1e-12, 0.999, 1.5, NAN]),
    "Z smooth alpha": (
        lambda a: GeneralisedLinear(np.ones_like, np.tanh).degree(1.0, a),
        [0.0, 1e-12, 0.5, 10.0],
    ),
    "Z r": (
        lambda r: (
            PaperSmoothGLM(epsilon=1.0, delta=1e-6, radius=r, random_state=0).fit(X, Z).coef_[0]
        ),
        [0.0, -1.0, 1e-6, 30.0, INF, NAN],
    ),
    "Z people": (
        lambda a: PaperSmoothGLM(epsilon=20.0, delta=1e-6).sample_size(a, 4).people,
        [0.0, 0.1, 5.0, NAN],
    ),
    "Z theorem 6": (
        lambda e: log_people_by_theorem_6(0.5, e, 1.0),
        [0.0, 1e-6, 20.0, 1e6, NAN],
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_parameter_at_the_ends_of_its_range_has_an_answer_or_an_error(name):
    function, values = CALLS[name]
    answered = refused = 0
    for value in values:
        message = ""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                found = float(function(value))
            except RiataError as error:
                found, message = 0.0, str(error)
        assert not message or len(message) > 20, value
        assert not math.isnan(found), value
        answered, refused = answered + (not message), refused + bool(message)
    assert answered, f"{name}: {refused} values, and none has an answer"


@pytest.mark.parametrize("epsilon", [8.8, 20.0, 100.0])
def test_a_large_epsilon_costs_what_it_says(epsilon):
    """The formula of Lemma 1 does not: 20 would be 24.4."""
    vector = PrivateVector.calibrated(epsilon, 1e-6)
    assert spent(vector.event, 1e-6).epsilon == pytest.approx(epsilon, rel=1e-6)
    model = PaperSmoothGLM(epsilon=epsilon, delta=1e-6, random_state=0).fit(X, Z)
    assert model.privacy_.epsilon == epsilon
    sent = PaperL1Regression(epsilon=epsilon, delta=1e-6, dimension=None).report(
        X[0], 0.5, noise=Noise(0)
    )
    assert np.isfinite(sent.z).all()


@pytest.mark.parametrize(
    "make",
    [L1Ball, Simplex, L2Ball, lambda r: LpBall(1.5, r), lambda r: GroupL1Ball(2, r),
     lambda r: SparseBall(2, r)],
)  # fmt: skip
def test_a_set_of_size_zero_is_refused_and_one_point_is_a_polytope(make):
    for radius in (0.0, -1.0, NAN, INF):
        with pytest.raises(RiataError, match="radius"):
            make(radius)
    only = Polytope(np.full((1, P), 0.25))
    for solver in ("frank-wolfe", "gaussian-frank-wolfe"):
        found = erm(solver, only, CUBE, steps=3, loss=Logistic()).fit(X, Z).coef_
        np.testing.assert_allclose(np.ravel(found), 0.25)
