"""Black-box audits: sound mechanisms are never accused, and broken ones are caught.

Each audit runs two neighbouring data sets through a curator and bounds epsilon from below by the
outputs alone (`riata.audit`). Seeds are fixed; over the choice of a seed, one audit accuses a
sound mechanism with probability at most 1e-9.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import laplace, norm

from riata import PrivateLasso, audit
from riata.bounds import Bounds
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.grid import X_STEPS
from riata.losses import Squared
from riata.mechanisms import (
    Exact,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    Mechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    Selection,
)
from riata.mechanisms.additive import LaplaceDraws, NormalDraws
from riata.mechanisms.exact import Uniforms
from riata.mechanisms.noise import Noise
from riata.privacy import Budget, calibrate
from riata.privacy.budget import ADD_REMOVE, REPLACE_ONE
from riata.privacy.events import Gaussian, compose
from riata.problem import Problem
from riata.queries import Gradient, MeanSlope, VertexUtilities
from riata.sets import L1Ball, Simplex
from riata.solvers import PrivateFrankWolfe

pytestmark = pytest.mark.matrix(one_in=11)

#: Even; enough that a balance (below) of a few rows to either side exists.
N_ROWS = 8

#: The delta of the Gaussian mechanism: large, so that its worst events are not too rare to count.
DELTA = 0.01


#: The probability that one audit accuses a sound mechanism. With fewer than a thousand audits the
#: whole suite stays below 1e-6.
FAILURE = 1e-9


def epsilon_lower_bound(ours, theirs, delta=0.0):
    return audit.epsilon_lower_bound(ours, theirs, delta, failure=FAILURE)


def releases(mechanism, query, engine, draws, seed):
    """`draws` releases of one query through a curator that has been paid for them."""
    curator = Curator.open(
        compose((mechanism.event, draws)),
        read=lambda: engine,
        noise=Noise(seed),
        adjacency=REPLACE_ONE,
    )
    return np.array([curator.release(query, mechanism) for _ in range(draws)])


def unit_problem(n_rows=N_ROWS, adjacency=REPLACE_ONE):
    return Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), n_rows, 1, adjacency)


def with_balance(balance, n_rows=N_ROWS):
    """Rows with x = 1 and y = -1 or 1 that sum to `balance`.

    With theta = 0, the utility of the vertex +1 exceeds that of -1 by balance * epsilon / 2 in
    units of a selection's scale. Replacing one row moves the balance by 2: one utility rises by
    the whole sensitivity and the other falls by it, the worst that a pair can do.
    """
    ups = (n_rows + balance) // 2
    y = np.repeat([1.0, -1.0], [ups, n_rows - ups])
    return LocalEngine(np.ones((n_rows, 1)), y, Bounds(1.0, 1.0))


def query_for(mechanism, problem):
    """Utilities for a selection, one number for additive noise."""
    start = problem.set.start()
    if isinstance(mechanism, Selection):
        return VertexUtilities(problem, start)
    return MeanSlope(problem, start)


def outputs(mechanism, query, engine, draws, seed):
    """Selected candidates, or the one released number."""
    drawn = releases(mechanism, query, engine, draws, seed)
    return drawn if drawn.ndim == 1 else drawn[:, 0]


def gaussian(epsilon):
    """The Gaussian mechanism that is exactly (epsilon, DELTA)-private."""
    return GaussianMechanism(1 / calibrate(lambda s: Gaussian(1 / s), Budget(epsilon, DELTA)))


#: Each mechanism with the balance from which two rows fewer is its worst pair: a rare candidate
#: loses the whole epsilon in the limit, but must be seen often enough to be counted.
MECHANISMS = {
    "exponential": (ExponentialMechanism, 0.0, -2),
    "permute-and-flip": (PermuteAndFlip, 0.0, 0),
    "noisy max": (ReportNoisyMax, 0.0, -2),
    "laplace": (LaplaceMechanism, 0.0, N_ROWS),
    "gaussian": (gaussian, DELTA, N_ROWS),
}
every_mechanism = pytest.mark.parametrize("name", MECHANISMS)


def bound(mechanism, query, balance, draws, delta, seed):
    """The lower bound for `balance` against two less."""
    pair = [with_balance(b) for b in (balance, balance - 2)]
    ours, theirs = (
        outputs(mechanism, query, engine, draws, seed + i) for i, engine in enumerate(pair)
    )
    return epsilon_lower_bound(ours, theirs, delta)


def audit_honest(name, draws, balance=None):
    make, delta, usual = MECHANISMS[name]
    mechanism = make(1.0)
    query = query_for(mechanism, unit_problem())
    balance = usual if balance is None else balance
    return bound(mechanism, query, balance, draws, delta, seed=100)


@pytest.mark.parametrize(
    ("name", "draws", "informative"),
    [
        pytest.param("exponential", 40_000, 0.5, marks=pytest.mark.slow),
        ("permute-and-flip", 12_000, 0.6),
        pytest.param("noisy max", 60_000, 0.5, marks=pytest.mark.slow),
        ("laplace", 12_000, 0.6),
        ("gaussian", 16_000, 0.3),
    ],
)
def test_a_sound_mechanism_is_not_accused_on_its_worst_pair(name, draws, informative):
    assert informative <= audit_honest(name, draws) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "balance", "informative"),
    [
        ("exponential", -4, 0.65),
        ("permute-and-flip", 0, 0.85),
        ("noisy max", -4, 0.55),
        ("laplace", N_ROWS, 0.85),
        ("gaussian", N_ROWS, 0.5),
    ],
)
def test_a_sound_mechanism_is_not_accused_in_a_long_audit(name, balance, informative):
    assert informative <= audit_honest(name, 150_000, balance) <= 1.0


@every_mechanism
def test_equal_data_sets_look_equal(name):
    make, delta, _ = MECHANISMS[name]
    mechanism = make(1.0)
    query = query_for(mechanism, unit_problem())
    same = [outputs(mechanism, query, with_balance(0), 3_000, seed) for seed in (1, 2)]
    assert epsilon_lower_bound(*same, delta) == 0.0


# Broken twins, at a claimed epsilon of 2: few draws are enough to see a loss of 4.


@dataclass(frozen=True)
class Twin(Mechanism):
    """Claims the cost of one mechanism and releases through another."""

    claimed: Mechanism
    actual: Mechanism

    @property
    def event(self):
        return self.claimed.event

    def release(self, query, engine, noise):
        return self.actual.release(query, engine, noise)

    def describe(self, times):
        return self.claimed.describe(times)


def audit_twin(name, actual=None, query=None, draws=12_000, balance=0):
    """The lower bound for a twin of `name` that claims epsilon 2."""
    make, delta, _ = MECHANISMS[name]
    claimed = make(2.0)
    twin = Twin(claimed, claimed if actual is None else actual(claimed))
    query = query_for(claimed, unit_problem()) if query is None else query(claimed)
    return bound(twin, query, balance, draws, delta, seed=200)


@every_mechanism
def test_the_twins_are_sound_before_they_are_broken(name):
    assert 0.5 <= audit_twin(name, draws=6_000) <= 2.0


@every_mechanism
def test_half_the_noise_is_caught(name):
    def half(mechanism):
        if isinstance(mechanism, GaussianMechanism):
            return replace(mechanism, noise_multiplier=mechanism.noise_multiplier / 2)
        return replace(mechanism, epsilon=2 * mechanism.epsilon)

    assert audit_twin(name, actual=half) > 2.0


@every_mechanism
def test_no_noise_is_caught(name):
    def silent(mechanism):
        return replace(mechanism, epsilon=1e9) if isinstance(mechanism, Selection) else Exact()

    assert audit_twin(name, actual=silent, draws=1_500) > 2.0


@every_mechanism
def test_a_missing_factor_two_in_the_sensitivity_is_caught(name):
    # What is right when a row is added or removed is half of what replacing one needs.
    def query(mechanism):
        return query_for(mechanism, unit_problem(adjacency=ADD_REMOVE))

    assert audit_twin(name, query=query) > 2.0


class UtilitiesOverNTwice(VertexUtilities):
    def sensitivity(self, norm):
        return super().sensitivity(norm) / self.n_rows


class SlopeOverNTwice(MeanSlope):
    def sensitivity(self, norm):
        return super().sensitivity(norm) / self.n_rows


@every_mechanism
def test_a_sensitivity_divided_by_n_twice_is_caught(name):
    problem = unit_problem()

    def query(mechanism):
        right = query_for(mechanism, problem)
        if isinstance(right, VertexUtilities):
            return UtilitiesOverNTwice(problem, right.theta)
        return SlopeOverNTwice(problem, right.theta)

    assert audit_twin(name, query=query, draws=1_500) > 2.0


class Unclipped(LocalEngine):
    """An engine that believes the rows, and puts them on the grid as they are."""

    def __init__(self, x, y, bounds, **options):
        super().__init__(x * (X_STEPS / bounds.x), y, None)


def as_they_are(values, limit, most):
    """Steps of the grid without the clipping that makes them bounded."""
    return np.rint(values * (most / limit))


@every_mechanism
def test_skipped_clipping_is_caught(name, monkeypatch):
    # The same rows through the right engine are clipped back to an honest pair. Targets and
    # slopes are clipped one after the other, and either would be enough.
    make, delta, _ = MECHANISMS[name]
    mechanism = make(2.0)
    query = query_for(mechanism, unit_problem())
    x, y = np.ones((N_ROWS, 1)), np.zeros(N_ROWS)
    found = {}
    for engine in (LocalEngine, Unclipped):
        drawn = []
        if engine is Unclipped:
            monkeypatch.setattr("riata.queries.gradient.to_steps", as_they_are)
        for i, target in enumerate((50.0, -50.0)):
            y[0] = target
            rows = engine(x, y.copy(), Bounds(1.0, 1.0))
            drawn.append(outputs(mechanism, query, rows, 1_500, 300 + i))
        found[engine] = epsilon_lower_bound(*drawn, delta)
    assert found[LocalEngine] <= 2.0 < found[Unclipped]


# The digits of a number (Mironov 2012). An attacker who knows the code knows which numbers the
# noise can be: if the exact answer is 0, only these are released. Other answers shift them, and
# then mostly to other numbers.


def grid_of_uniforms():
    """The spacing of the uniform draws, found by looking at them."""
    draws = Uniforms(1_000, Noise(seed=0)).middle()
    bits = [b for b in range(30, 54) if np.all(draws * 2.0**b % 1 == 0.5)]
    assert len(bits) == 1, "the uniform draws are no longer midpoints of a grid"
    return 2.0 ** -bits[0]


def could_be_noise(released, scale, law):
    """Which of the released numbers are `scale` times a draw from `law`, digit for digit."""
    grid = grid_of_uniforms()
    size = np.abs(released) / scale
    guess = np.exp(-size) if law is laplace else law.cdf(released / scale)
    nearest = np.rint(guess / grid - 0.5)
    found = np.zeros(released.shape, dtype=bool)
    for step in range(-6, 7):
        u = np.clip((nearest + step + 0.5) * grid, grid / 2, 1 - grid / 2)
        draw = -np.sign(released) * np.log(u) if law is laplace else ndtri(u)
        found |= scale * draw == released
    return found


DRAWS = {laplace: LaplaceDraws, norm: NormalDraws}


@dataclass(frozen=True)
class Naive(Mechanism):
    """The answer plus floating-point noise, as every textbook has it: the attack's control."""

    claimed: Mechanism
    scale: float
    law: Any

    @property
    def event(self):
        return self.claimed.event

    def release(self, query, engine, noise):
        answer = query.from_total(engine.total(query))
        return answer + self.scale * DRAWS[self.law](len(answer), noise).values

    def describe(self, times):
        return self.claimed.describe(times)


@pytest.mark.parametrize("columns", [1, 30])
@pytest.mark.parametrize("shipped", [False, True], ids=["textbook", "shipped"])
@pytest.mark.parametrize(
    ("name", "norm_name", "law"),
    [("laplace", "l1", laplace), ("gaussian", "l2", norm)],
    ids=["laplace", "gaussian"],
)
def test_the_last_digits_tell_about_textbook_noise_only(name, norm_name, law, shipped, columns):
    make, delta, _ = MECHANISMS[name]
    honest = make(1.0)
    problem = Problem(Squared(), L1Ball(1.0), Bounds(1.0, 1.0), 1, columns)
    query = Gradient(problem, problem.set.start())
    scale = getattr(honest, "noise_multiplier", 1.0) * query.sensitivity(norm_name)
    mechanism = honest if shipped else Naive(honest, scale, law)
    telling = []
    for seed, target in enumerate((0.0, 1.0)):
        engine = LocalEngine(np.ones((1, columns)), np.array([target]), problem.bounds)
        released = releases(mechanism, query, engine, 6_000 // columns + 2_000, seed)
        telling.append(could_be_noise(released, scale, law).sum(axis=1))
    assert (epsilon_lower_bound(*telling, delta) <= 1.0) == shipped


# Whole fits.


def labels(thetas):
    """Models as whole numbers: Frank-Wolfe from the start has few possible outcomes."""
    return np.rint(1e9 * np.array([theta.dense() @ [1, 7, 49][: theta.size] for theta in thetas]))


def fits(solver, plan, problem, engine, draws, seed):
    """Independent runs of a solver on the same rows."""
    events = [(m.event, draws * plan.steps) for m in plan.mechanisms.values()]
    curator = Curator.open(
        compose(*events), read=lambda: engine, noise=Noise(seed), adjacency=problem.adjacency
    )
    thetas = [solver.run(plan, problem, curator).theta for _ in range(draws)]
    return labels(thetas).astype(np.int64)


def audit_fits(budget, steps, draws, planned=None):
    """The lower bound for the unit LASSO with one column; only `planned` steps are paid for.

    With two rows, what one of them pulls is not soon pushed back by the others: the loss of the
    first step is the whole epsilon of a step, and that of the later ones about 0.6 of it.
    """
    n_rows = 2
    problem = unit_problem(n_rows)
    solver = PrivateFrankWolfe(steps)
    plan = PrivateFrankWolfe(planned or steps).plan(problem, budget)
    plan = replace(plan, steps=steps)
    pair = [with_balance(b, n_rows) for b in (0, -2)]
    drawn = [fits(solver, plan, problem, rows, draws, 400 + i) for i, rows in enumerate(pair)]
    return epsilon_lower_bound(*drawn, budget.delta)


def simplex_pair(n_heavy, n_tilted):
    """Unit-LASSO rows over the simplex, where a step starts at ||theta||_1 = 1.

    The row in question has x_1 = -x_2, and turning their signs moves the scores of both vertices
    by 8 / n, one up and one down: the largest change that any row can make. Heavy rows make the
    first vertex unlikely; tilted rows favour the third.
    """
    heavy, tilted = [[1.0, 0.0, 0.0]] * n_heavy, [[1.0, 1.0, -1.0]] * n_tilted
    pair = []
    for sign in (1.0, -1.0):
        x = np.array([*heavy, *tilted, [1.0, -sign, sign]])
        pair.append(LocalEngine(x, -np.ones(len(x)), Bounds(1.0, 1.0)))
    problem = Problem(Squared(), Simplex(1.0), Bounds(1.0, 1.0), n_heavy + n_tilted + 1, 3)
    return problem, pair


def audit_simplex_step(budget, draws, n_tilted, strength=1.0):
    """One step on the pair that moves a score by 8 / n."""
    problem, pair = simplex_pair(30, n_tilted)
    start = problem.set.start()
    scores = VertexUtilities(problem, start)
    ours, theirs = (scores.from_total(rows.total(scores)) for rows in pair)
    np.testing.assert_allclose(problem.n_rows * (ours - theirs), [0, 8, -8], atol=1e-12)
    solver = PrivateFrankWolfe(1)
    plan = solver.plan(problem, budget)
    actual = replace(plan["select"], epsilon=strength * plan["select"].epsilon)
    plan = replace(plan, mechanisms={"select": Twin(plan["select"], actual)})
    drawn = [fits(solver, plan, problem, rows, draws, 500 + i) for i, rows in enumerate(pair)]
    return epsilon_lower_bound(*drawn, budget.delta)


@pytest.mark.slow
def test_one_step_on_the_worst_pair_is_not_accused_and_half_its_noise_is():
    assert 0.5 <= audit_simplex_step(Budget(1.0), 10_000, n_tilted=1) <= 1.0
    assert audit_simplex_step(Budget(2.0), 6_000, n_tilted=1, strength=2.0) > 2.0


@pytest.mark.slow
def test_a_few_steps_are_not_accused_and_forgotten_composition_is():
    assert 0.4 <= audit_fits(Budget(2.0), steps=3, draws=4_000) <= 2.0
    assert audit_fits(Budget(2.0), steps=5, draws=4_000, planned=1) > 2.0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("budget", "n_tilted", "informative"),
    [(Budget(1.0), 1, 0.75), (Budget(1.0, 1e-6), 5, 0.5)],
    ids=["pure", "approximate"],
)
def test_one_step_is_not_accused_in_a_long_audit(budget, n_tilted, informative):
    assert informative <= audit_simplex_step(budget, 50_000, n_tilted) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "informative"), [(2, 0.15), (4, 0.1), (8, 0.0)])
@pytest.mark.parametrize("budget", [Budget(1.0), Budget(1.0, 1e-3)], ids=str)
def test_many_steps_are_not_accused_in_a_long_audit(budget, steps, informative):
    # More steps have more outcomes, and each of them is rarer: the bound gets weaker.
    assert informative <= audit_fits(budget, steps, 20_000) <= 1.0


@pytest.mark.slow
def test_forgotten_composition_of_many_steps_is_caught_in_a_long_audit():
    assert audit_fits(Budget(1.0, 1e-3), 8, 20_000, planned=1) > 1.0


@pytest.mark.slow
def test_a_whole_estimator_is_not_accused_in_a_long_audit():
    x, y = np.ones((N_ROWS, 1)), np.repeat([1.0, -1.0], N_ROWS // 2)
    drawn = []
    for first, target in ((0, 1.0), (10**6, -1.0)):
        y[0] = target
        coefficients = [
            PrivateLasso(
                1.0,
                0.0,
                bounds=Bounds(1.0, 1.0),
                solver=PrivateFrankWolfe(1),
                fit_intercept=False,
                random_state=first + i,
            )
            .fit(x, y)
            .coef_[0]
            for i in range(12_000)
        ]
        drawn.append(np.sign(coefficients).astype(np.int64))
    assert 0.6 <= epsilon_lower_bound(*drawn) <= 1.0
