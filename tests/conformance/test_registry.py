"""Every loss, set, solver and projection is registered, listed in the API pages, saved in model
files and tested: a new class needs no line here.

The checks of losses and sets know nothing about the class. What they find by search they find in
random points, so they may miss an error and never report one that is none.
"""

import importlib
import inspect
import json
import pkgutil
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from riata import Bounds, Budget, losses, projections, sets, solvers
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import Incompatible, InvalidArgument
from riata.identity import unnamed
from riata.losses import Logistic, Loss, Squared
from riata.losses.base import INVERSE_LINKS
from riata.losses.tabulated import Tabulated
from riata.mechanisms.noise import Noise
from riata.model_file.values import CLASSES, Writer
from riata.problem import Problem
from riata.projections import GaussianProjection, Projection
from riata.sets import ConstraintSet, L1Ball, L2Ball, PolytopeSet, SparseBall
from riata.sets.lift import Liftable, lift_or_nearest
from riata.solvers import SOLVERS, Solver, choose_solver

pytestmark = pytest.mark.matrix(one_in=11)

P = 5
KINDS = {Loss: losses, ConstraintSet: sets, Solver: solvers, Projection: projections}
#: What stands in for objects of other people inside a release: nobody passes one.
MADE = {Tabulated}
EXPLAINED = re.compile(r"Cannot use .+ with .+\. This is because .+\. (Use|Pass) .+\.", re.S)
DOCS = Path(__file__).parents[2] / "docs"

every_loss = pytest.mark.parametrize("loss", losses.REGISTRY.examples(), ids=repr)
every_set = pytest.mark.parametrize("C", sets.REGISTRY.examples(P), ids=repr)
every_solver = pytest.mark.parametrize("name", SOLVERS)


def concrete(base, registered):
    """All classes of the package that are no base classes, or registered all the same."""
    for each in base.__subclasses__():
        yield from concrete(each, registered)
        ours = each.__module__.startswith("riata.") and not each.__name__.startswith("_")
        last = not any(sub.__module__.startswith("riata.") for sub in each.__subclasses__())
        if ours and not inspect.isabstract(each) and (last or each.__name__ in registered):
            yield each


@pytest.mark.parametrize("base", KINDS, ids=lambda base: base.__name__)
def test_every_class_is_registered_and_listed(base):
    package = KINDS[base]
    for module in pkgutil.iter_modules(getattr(package, "__path__", []), package.__name__ + "."):
        importlib.import_module(module.name)
    found = {each.__name__ for each in concrete(base, package.REGISTRY) if each not in MADE}
    assert found == set(package.REGISTRY)
    pages = "\n".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    listed = set(re.findall(r"^   (\w+)$", pages, re.M))
    assert found <= listed, f"docs/api does not list {found - listed}"
    assert found <= set(CLASSES)
    assert found <= set(package.__all__)


@pytest.mark.parametrize(
    "example",
    [*losses.REGISTRY.examples(), *sets.REGISTRY.examples(P), *solvers.REGISTRY.examples()],
    ids=repr,
)
def test_an_example_has_an_identity_and_the_class_that_made_it(example):
    assert unnamed(example) == []
    assert isinstance(example, CLASSES[type(example).__name__])
    json.dumps(Writer().node(example, "example"))


def test_names_are_different():
    assert len(SOLVERS) == sum(kind.private for kind in solvers.REGISTRY.values())
    assert len({kind.name for kind in solvers.REGISTRY.values()}) == len(solvers.REGISTRY)


# Losses.


def targets(loss, rng, n, y=1.0):
    return rng.integers(0, 3, n).astype(float) if loss.inner else rng.uniform(-y, y, n)


@every_loss
def test_slope_and_curvature_are_derivatives(loss):
    rng = np.random.default_rng(1)
    margin, y = rng.uniform(-4, 4, 4_000), targets(loss, rng, 4_000)
    h = 1e-5
    numeric = (loss.value(margin + h, y) - loss.value(margin - h, y)) / (2 * h)
    steepest = max(loss.slope_bound(4.0, 1.0), 1.0)
    np.testing.assert_allclose(numeric, loss.slope(margin, y), atol=1e-4 * steepest)
    if loss.twice_differentiable:
        numeric = (loss.slope(margin + h, y) - loss.slope(margin - h, y)) / (2 * h)
        np.testing.assert_allclose(numeric, loss.curvature(margin, y), atol=1e-4 * steepest)


@every_loss
@pytest.mark.parametrize(("most", "y"), [(0.0, 1.0), (0.5, 0.3), (4.0, 1.0), (2.0, 3.0)])
def test_the_bounds_of_a_loss_hold(loss, most, y):
    rng = np.random.default_rng(2)
    y = 1.0 if loss.classifies else y
    margin, target = rng.uniform(-most, most, 4_000), targets(loss, rng, 4_000, y)
    slope, curvature = loss.slope(margin, target), loss.curvature(margin, target)
    tiny = 1e-9
    assert np.abs(slope).max() <= loss.slope_bound(most, y) * (1 + tiny)
    assert curvature.min() >= 0
    assert curvature.max() <= loss.curvature_bound(y) * (1 + tiny)
    low, high = loss.slope_range(margin, y)
    assert np.all(low - tiny <= slope)
    assert np.all(slope <= high + tiny)
    if loss.twice_differentiable:
        assert np.all(curvature <= loss.curvature_beyond(margin, y) + tiny)
    assert loss.offset_bound(y) >= 0


@every_loss
def test_a_loss_is_convex_and_predicts(loss):
    rng = np.random.default_rng(3)
    a, b = rng.uniform(-4, 4, (2, 1_000))
    y = targets(loss, rng, 1_000)
    middle = loss.value((a + b) / 2, y)
    assert np.all(middle <= (loss.value(a, y) + loss.value(b, y)) / 2 + 1e-9)
    assert loss.link in INVERSE_LINKS
    assert loss.predict(a).shape == a.shape
    assert loss.innermost.inner is None


# Sets.


def points(C, n=60, seed=0):
    """Points of a set: projections of near and far ones."""
    rng = np.random.default_rng(seed)
    scales = np.geomspace(0.01, 100, n)[:, None]
    return np.array([C.project(v) for v in scales * rng.standard_normal((n, P))])


@every_set
def test_the_pieces_of_a_set_agree(C):
    rng = np.random.default_rng(4)
    inside = points(C)
    assert C.size == P
    assert C.contains(C.start().dense())
    assert all(C.contains(w, 1e-7) for w in inside)
    for norm, order in (("l1", 1), ("l2", 2), ("linf", np.inf)):
        lengths = np.linalg.norm(inside, order, axis=1)
        assert lengths.max() <= C.radius_in(norm) * (1 + 1e-9)
    for v in rng.standard_normal((40, P)):
        best = C.minimiser(v)
        assert C.contains(best.dense(), 1e-7)
        assert best.dot(v) <= (inside @ v).min() + 1e-9
        assert np.abs(inside @ v).max() <= C.dual_norm(v) + 1e-9
        assert (np.abs(inside) @ np.abs(v)).max() <= C.weighted_reach(np.abs(v)) + 1e-9
        if C.convex:  # nothing in the set lies beyond the nearest point
            nearest = C.project(3 * v)
            assert ((inside - nearest) @ (3 * v - nearest)).max() <= 1e-6
        if C.max_nonzeros is not None:
            assert np.count_nonzero(best.dense()) <= C.max_nonzeros
    width = C.gaussian_width()
    assert width.value > 0
    assert width.error < 0.2 * width.value


@every_set
def test_the_vertices_of_a_polytope_are_what_it_says(C):
    if not isinstance(C, PolytopeSet):
        pytest.skip("no vertices")
    vertices = np.array([C.vertex(i).dense() for i in range(C.n_vertices)])
    for v in np.random.default_rng(5).standard_normal((20, P)):
        found = C.utilities(v)
        found = np.append(found, -found) if C.symmetric else found
        np.testing.assert_allclose(found, -vertices @ v, atol=1e-9)


@every_set
def test_a_liftable_set_finds_a_way_back(C):
    if not isinstance(C, Liftable):
        pytest.skip("no way back from a projection")
    phi = GaussianProjection(3, P, seed=2)
    for theta in points(C, 8):
        back = lift_or_nearest(C, phi, phi.forward(theta))
        assert C.contains(back, 1e-6)
        np.testing.assert_allclose(phi.forward(back), phi.forward(theta), atol=1e-6)
        assert np.linalg.norm(phi.forward(theta)) <= C.image_radius(phi) * (1 + 1e-9)


# Solvers.

BOUNDS = Bounds(1.0, 1.0, norm="l2")
N = 40
RNG = np.random.default_rng(6)
X = RNG.standard_normal((N, P)) / np.sqrt(P)
Y = RNG.choice([-1.0, 1.0], N)


def fitted(solver, problem, budget):
    """The model of a fit, or None if the solver refuses the problem before anything is charged."""
    refused = ""
    try:
        plan = solver.plan(problem, budget)
    except Incompatible as refusal:
        refused = str(refusal)
    if refused:
        assert EXPLAINED.fullmatch(refused)
        return None
    assert plan.spent.epsilon <= budget.epsilon * (1 + 1e-9)
    ready = plan.preparation
    engine = LocalEngine(ready.project(X), Y, ready.bounds)
    event = plan.event
    curator = Curator(engine, event, Noise(1), adaptive=plan.adaptive)
    asked = problem if plan.compressed is None else plan.compressed
    assert asked.n_rows == N
    theta = solver.run(plan, problem, curator).theta
    assert np.all(np.isfinite(theta.dense()))
    assert np.isfinite(theta.offset)
    return theta


def few_steps(name, delta=1e-6):
    """Two steps, unless there is but one."""
    try:
        return SOLVERS[name](steps=2 if delta else "auto")
    except InvalidArgument:
        return SOLVERS[name]()


@every_solver
@pytest.mark.parametrize("delta", [1e-6, 0.0])
def test_a_solver_fits_a_problem_or_says_why_not(name, delta):
    adjacency = "replace-label" if name == "public-design" else "replace-one"
    solver, budget = few_steps(name, delta), Budget(1.0, delta, adjacency)
    over = [(loss, L1Ball()) for loss in losses.REGISTRY.examples()]
    over += [(Squared(), C) for C in sets.REGISTRY.examples(P)]
    fits = 0
    for loss, C in over:
        problem = Problem(loss, C, BOUNDS, N, P, adjacency, fit_intercept=True)
        theta = fitted(solver, problem, budget)
        if theta is not None:
            fits += 1
            assert problem.set.contains(theta.dense(), 1e-6)
    if delta:
        assert fits or solver.joint  # which are for several margins: tests/unit/test_softmax.py


@dataclass(frozen=True)
class Linear(Loss):
    """-y margin: straight, and negative where the model is right."""

    name = "linear"

    def value(self, margin, y):
        return -y * margin

    def slope(self, margin, y):
        return -y + 0 * margin

    def curvature(self, margin, y):
        return 0 * margin

    def slope_bound(self, margin, y):
        return y

    def curvature_bound(self, y):
        return 0.0

    def offset_bound(self, y):
        return y


@dataclass(frozen=True)
class Absolute(Linear):
    """|margin - y|: a slope that jumps, so that no curvature bounds its growth."""

    name = "absolute"

    def value(self, margin, y):
        return np.abs(margin - y)

    def slope(self, margin, y):
        return np.sign(margin - y)

    def slope_bound(self, margin, y):
        return 1.0

    def curvature_bound(self, y):
        return np.inf


WITHOUT_CURVATURE = {"noisy-gradient", "frank-wolfe", "gaussian-frank-wolfe", "projected"}
WITH_CURVATURE = {
    "averaged-gradient", "class-sums", "greedy", "hard-thresholding", "peeling",
    "posterior-sampling", "refitted-frank-wolfe", "scaled-gradient", "sufficient-statistics",
    "whitened-gradient",
}  # fmt: skip


@every_solver
@pytest.mark.parametrize("loss", [Linear(), Absolute()], ids=repr)
def test_a_loss_without_curvature_fits_where_none_is_needed(name, loss):
    fits = [
        fitted(solver, Problem(loss, C, BOUNDS, N, P, fit_intercept=offset), Budget(1.0, 1e-6))
        for solver in (few_steps(name), SOLVERS[name]())
        for C in (L1Ball(), L2Ball(), SparseBall(2))
        for offset in (True, False)
    ]
    if name in WITHOUT_CURVATURE | WITH_CURVATURE:
        assert any(theta is not None for theta in fits) == (name in WITHOUT_CURVATURE)


@pytest.mark.parametrize("loss", [Linear(), Absolute()], ids=repr)
@pytest.mark.parametrize("bounds", [BOUNDS, Bounds(1.0, 1.0)], ids=repr)
def test_auto_passes_over_solvers_that_need_a_curvature(loss, bounds):
    for C in sets.REGISTRY.examples(P):
        problem = Problem(loss, C, bounds, N, P)
        chosen = choose_solver("auto", problem, Budget(1.0, 1e-6), "auto")
        if C.convex:
            assert chosen.name in WITHOUT_CURVATURE


def test_a_loss_with_curvature_keeps_the_solver_that_auto_takes():
    problem = Problem(Logistic(), L1Ball(), Bounds(1.0, 1.0), N, P)
    for budget in (Budget(1.0, 1e-6), Budget(1.0)):
        assert choose_solver("auto", problem, budget, "auto").name in WITH_CURVATURE
