"""The learners of Zheng, Mou and Wang (2017): laws, unbiasedness, convergence and audits.

Seeds are fixed, so a verdict never changes from run to run. Over the choice of its seed each test
would reject correct code with probability at most `FALSE_ALARM`. That is proven but for two kinds
of limits, which are several times wider than what seeds change: how fast Algorithm 3 converges, and
how much an audit must find at least.
"""

import math

import numpy as np
import pytest
from scipy import stats

from riata.audit import epsilon_lower_bound
from riata.bounds import Bounds
from riata.grid import X_STEPS
from riata.local.paper import (
    Moments,
    PaperKernelRidge,
    PaperL1Regression,
    PaperSmoothGLM,
    PrivateVector,
    Reports,
    simulated_moments,
)
from riata.mechanisms.noise import Noise
from riata.privacy.accountants import GaussianAccountant, spent
from riata.privacy.events import Gaussian
from riata.projections import GaussianProjection

FALSE_ALARM = 1e-9


def unit_rows(n, d, seed=0):
    x = np.random.default_rng(seed).standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1)[:, None]


def on_the_grid(rows, reach=1.0):
    """What the devices send, less the noise."""
    return Bounds(reach, norm="l2").grid_x(rows) * (reach / X_STEPS)


def directions(width, count, seed=0):
    return np.vstack([np.eye(width), unit_rows(count, width, seed)])


# Algorithm 1.


@pytest.mark.parametrize(("multiplier", "reach"), [(4.2, 1.0), (0.3, 1.37), (60.0, 1.0)])
def test_the_noise_of_a_private_vector_is_normal(multiplier, reach):
    vector, rows = PrivateVector(multiplier, reach), unit_rows(40_000, 5) * 2
    noise = (vector.reports(rows, Noise(1)) - on_the_grid(rows, reach)) / vector.sigma
    assert stats.kstest(noise.ravel(), "norm").pvalue >= FALSE_ALARM / 2
    total = float(np.sum(noise**2) * vector.sigma**2 / vector.variance)
    assert 2 * min(stats.chi2.cdf(total, noise.size), stats.chi2.sf(total, noise.size)) >= (
        FALSE_ALARM / 2
    )


def test_the_rounding_to_the_grid_is_part_of_the_variance():
    # Noise of little more than a step of the grid, far below what any budget asks for.
    vector, rows = PrivateVector(1e-5), np.zeros((100_000, 2))
    assert 1.2 * vector.grid < vector.sigma < 1.5 * vector.grid
    squares = vector.reports(rows, Noise(9)).ravel() ** 2
    deviation = math.sqrt(2 / squares.size) * vector.variance
    assert abs(squares.mean() - vector.variance) <= 7 * deviation
    assert abs(squares.mean() - vector.sigma**2) > 7 * deviation


def test_the_coordinates_of_a_private_vector_are_independent():
    vector = PrivateVector(4.2)
    noise = vector.reports(np.zeros((100_000, 4)), Noise(2)) / math.sqrt(vector.variance)
    for u in directions(4, 8):
        total = float(np.sum((noise @ u) ** 2))
        tails = stats.chi2.cdf(total, len(noise)), stats.chi2.sf(total, len(noise))
        assert 2 * min(tails) >= FALSE_ALARM / 12


# The debiased Gram matrix. For a direction u, ||Z u||^2 / sigma^2 has a non-central chi-square law.


def squares_are_right(total, scale, n, centre, share):
    law = stats.ncx2(n, centre / scale)
    value = total / scale
    assert 2 * min(law.cdf(value), law.sf(value)) >= FALSE_ALARM / share


@pytest.mark.parametrize("dimension", [None, 3])
def test_the_debiased_gram_is_unbiased(dimension):
    n, d = 20_000, 5
    X, y = 0.9 * unit_rows(n, d), np.linspace(-1, 1, n)
    model = PaperL1Regression(epsilon=4, delta=1e-6, dimension=dimension)
    projection = model.projection(d)
    vector, _ = model.vectors(projection)
    total = Moments.of(model._reports(X, y, projection, Noise(3)))
    small = X if dimension is None else projection.rows(X)
    rows = on_the_grid(small, vector.reach)
    checks = directions(rows.shape[1], 10)
    found = total.debiased(vector.variance) + n * vector.variance * np.eye(rows.shape[1])
    for u in checks:
        centre = float(np.sum((rows @ u) ** 2))
        squares_are_right(u @ found @ u, vector.variance, n, centre, len(checks))


def test_another_sigma_in_the_debiasing_is_seen():
    # The printed sigma of line 5 where the noise that was used is right: 3 n sigma^2 too much.
    n, d, epsilon, delta = 20_000, 3, 4.0, 1e-6
    vector = PrivateVector(2 * math.sqrt(2 * math.log(2.5 / delta)) / epsilon)  # diameter 2
    printed = 2 * math.sqrt(2 * math.log(2.5 / delta)) / epsilon
    rows = unit_rows(n, d)
    total = Moments.of(Reports(vector.reports(rows, Noise(4)), np.zeros(n)))
    bias = (total.debiased(printed**2) - rows.T @ rows) / (n * printed**2)
    assert np.diag(bias) == pytest.approx(3, abs=0.3)  # seven standard deviations
    right = (total.debiased(vector.variance) - rows.T @ rows) / (n * printed**2)
    assert np.abs(right).max() < 0.3


def test_features_of_the_kernel_are_unbiased_too():
    n = 20_000
    X, y = unit_rows(n, 2), np.ones(n)
    model = PaperKernelRidge(epsilon=4, delta=1e-6, n_components=6)
    features = model.features(2)
    vector, _ = model.vectors(features)
    total = Moments.of(model._reports(X, y, features, Noise(5)))
    rows = on_the_grid(features.rows(X))
    checks = directions(6, 6)
    for u in checks:
        centre = float(np.sum((rows @ u) ** 2))
        squares_are_right(u @ total.gram @ u, vector.variance, n, centre, len(checks))


# The aggregate of huge n.


def moments_of(rows, y):
    return rows.T @ rows / len(y), rows.T @ y / len(y), float(y @ y / len(y))


@pytest.mark.parametrize("n", [40, 3_000])
def test_the_simulated_aggregate_has_the_law_of_the_reports(n):
    # Rows that are already on the grid, so that both have the same moments.
    vector, target = PrivateVector(0.4), PrivateVector(0.9)
    X = on_the_grid(0.9 * unit_rows(n, 3))
    y = on_the_grid(np.linspace(-0.9, 0.7, n)[:, None])[:, 0]
    noise, draws = Noise(6), 1_500
    at_once = [simulated_moments(n, *moments_of(X, y), vector, target, noise) for _ in range(draws)]
    one_by_one = [
        Moments.of(Reports(vector.reports(X, noise), target.reports(y[:, None], noise)[:, 0]))
        for _ in range(draws if n == 40 else 200)
    ]
    checks = directions(3, 5)
    tests = 2 * len(checks) + 2 * 3
    law = stats.ncx2
    for u in checks:
        meant = law(n, float(np.sum((X @ u) ** 2)) / vector.variance)
        for found in (at_once, one_by_one):
            values = [u @ each.gram @ u / vector.variance for each in found]
            assert stats.kstest(values, meant.cdf).pvalue >= FALSE_ALARM / tests
    for j in range(3):
        values = [[each.cross[j] for each in found] for found in (at_once, one_by_one)]
        assert stats.ks_2samp(*values).pvalue >= FALSE_ALARM / tests
        together = [[each.cross[j] + each.gram[0, j] for each in f] for f in (at_once, one_by_one)]
        assert stats.ks_2samp(*together).pvalue >= FALSE_ALARM / tests


@pytest.mark.parametrize("n", [10**7, 10**9, 10**12])
def test_the_simulated_aggregate_is_unbiased_for_huge_n(n):
    # So many degrees of freedom are normal.
    vector, noise, repeats = PrivateVector(8.0), Noise(7), 200
    second = np.diag([0.5, 0.3, 0.1])
    cross = np.array([0.2, -0.1, 0.0])
    totals = [
        simulated_moments(n, second, cross, 0.4, vector, vector, noise) for _ in range(repeats)
    ]
    v = vector.variance
    limit = stats.norm.isf(FALSE_ALARM / 30)
    gram = np.array([(t.debiased(v) / n - second) for t in totals]) * math.sqrt(n)
    s = np.diag(second)
    variance = v * v + v * (s[:, None] + s[None, :])
    variance[np.diag_indices(3)] *= 2
    assert np.abs(gram.mean(axis=0) / np.sqrt(variance / repeats)).max() <= limit
    crosses = np.array([(t.cross / n - cross) for t in totals]) * math.sqrt(n)
    cross_variance = v * v + v * (0.4 + s)
    assert np.abs(crosses.mean(axis=0) / np.sqrt(cross_variance / repeats)).max() <= limit
    for sample, size in ((gram, variance), (crosses, cross_variance)):
        ratio = (sample**2).sum(axis=0) / size
        tails = np.minimum(stats.chi2.cdf(ratio, repeats), stats.chi2.sf(ratio, repeats))
        assert tails.min() >= FALSE_ALARM / 60


def excess(n, seed, **options):
    """The excess risk of Algorithm 3 over that of the truth, relative to the risk of 0."""
    spectrum = 1 / np.arange(1, 21.0)
    second = np.diag(0.9 * spectrum / spectrum.sum())
    w = np.zeros(20)
    w[[0, 2, 5]] = [0.5, -0.3, 0.15]
    model = PaperL1Regression(delta=1e-6, random_state=seed, **options)
    model.fit_moments(n, second, second @ w, float(w @ second @ w) + 0.01)
    return (model.coef_ - w) @ second @ (model.coef_ - w) / (w @ second @ w)


@pytest.mark.parametrize(("epsilon", "first"), [(1.0, 10**9), (4.0, 10**7)])
def test_algorithm_3_converges_as_people_join(epsilon, first):
    found = [
        np.median([excess(first * k, seed, epsilon=epsilon, dimension=None) for seed in range(5)])
        for k in (1, 10, 100, 1_000)
    ]
    assert found[0] > 0.01
    assert found[1] < found[0]
    assert found[2] < found[1] / 3
    assert found[3] < 0.005


def test_projected_rows_are_debiased_with_their_own_noise():
    # With 10^15 people what is left is the minimum of the projected objective itself.
    second = np.diag(np.linspace(0.2, 0.02, 8))
    w = np.array([0.5, 0, 0, -0.2, 0, 0, 0, 0])
    model = PaperL1Regression(epsilon=1, delta=1e-6, dimension=5, random_state=0)
    model.fit_moments(10**15, second, second @ w, 0.5)
    phi = model.projection(8).matrix()
    assert model.sigma_ > 2 * model.target_sigma_  # projected rows reach further

    def objective(v):
        small = phi @ v
        return small @ (phi @ second @ phi.T) @ small / 2 - small @ phi @ second @ w

    best = min(
        objective(v) for v in (model.coef_, *(0.99 * model.coef_ + 0.01 * directions(8, 500)))
    )
    assert objective(model.coef_) - best < 1e-4
    assert objective(model.coef_) < -0.01


def test_algorithm_3_learns_nothing_from_a_million_people():
    assert np.median([excess(10**6, s, epsilon=1.0, dimension=None) for s in range(5)]) > 0.5


def test_the_fit_of_people_and_of_their_moments_agree():
    n = 60_000
    X = 0.99 * unit_rows(n, 3)
    w = np.array([0.6, -0.3, 0.0])
    y = X @ w
    options = {"epsilon": 40, "delta": 1e-6, "dimension": None}
    people = [PaperL1Regression(random_state=s, **options).fit(X, y).coef_ for s in range(3)]
    at_once = [
        PaperL1Regression(random_state=s, **options).fit_moments(n, *moments_of(X, y)).coef_
        for s in range(3)
    ]
    assert np.mean(people, axis=0) == pytest.approx(w, abs=0.05)
    assert np.mean(at_once, axis=0) == pytest.approx(w, abs=0.05)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_algorithm_4_converges_as_people_join(kernel):
    X = np.random.default_rng(0).uniform(-1, 1, (4_000, 2))
    y = 0.9 * np.sin(3 * X[:, 0])

    def error(n):
        model = PaperKernelRidge(
            epsilon=4, delta=1e-6, n_components=40, kernel=kernel, C=1e4, random_state=0
        )
        moments = moments_of(model.features(2).rows(X), y)
        model.fit_moments(n, *moments, n_features=2)
        return np.mean((model.predict(X) - y) ** 2) / np.var(y)

    found = [error(n) for n in (10**6, 10**8, 10**12)]
    assert found[0] > found[1] > found[2]
    assert found[2] < 0.1


# The gradient oracle of Algorithm 6. Medians of group means: a mean of a group is further than
# three standard deviations away with probability at most 1/9 (Chebyshev), and half of 50 groups
# are with less than 1e-11.

GROUPS, AWAY = 50, 3.0
assert stats.binom.sf(GROUPS // 2 - 1, GROUPS, 1 / AWAY**2) * 10 < FALSE_ALARM


@pytest.mark.parametrize("copies", ["paper", "needed"])
@pytest.mark.parametrize(
    ("loss", "degree", "y"),
    [("logistic", 1, 1.0), ("logistic", 3, -1.0), ("squared", 1, 0.4), ("poisson", 2, 0.7)],
)
def test_the_gradient_is_unbiased_for_that_of_the_polynomial(loss, degree, y, copies):
    model = PaperSmoothGLM(
        epsilon=400, delta=1e-6, loss=loss, degree=degree, radius=2.0, copies=copies
    )
    expansion = model.expansion()
    x, w = on_the_grid(np.array([[0.6, -0.5, 0.3]]))[0], np.array([0.7, -0.5, 0.2])
    n = GROUPS * 1_200
    sent = model._reports(np.tile(x, (n, 1)), np.full(n, y), expansion, Noise(8))
    found = expansion.gradients(w, sent)
    t = float(x @ w)
    mean = float(expansion.slope(np.array([t]), np.array([y]))[0])
    z0, zy, z = (v.variance for v in expansion.vectors)
    squares = mean**2
    for k in {0, *expansion.x_powers}:
        term = expansion.c2[k] - expansion.c1[k] * y
        second = (term**2 + expansion.c1[k] ** 2 * zy) * (t * t + z * (w @ w)) ** k
        squares += second - (term * t**k) ** 2
    deviation = 2.0 * np.sqrt(squares * (x**2 + z0) - (mean * x) ** 2)
    medians = np.median(found.reshape(GROUPS, -1, 3).mean(axis=1), axis=0)
    limit = AWAY * deviation / math.sqrt(n / GROUPS)
    y_rounding = 1e-4  # the devices put y on a grid
    assert np.all(np.abs(medians - 2.0 * mean * x) <= limit + y_rounding)
    assert np.all(limit < 0.5)
    assert deviation @ deviation <= expansion.gradient_sigma(3) ** 2


# Audits: the outputs on two opposite rows, seen along the line between them.

DELTA = 0.01


def audited(vector, row, draws, seed, delta=DELTA):
    rows = np.tile(row, (draws, 1))
    ours, theirs = (vector.reports(s * rows, Noise(seed + s)) @ row for s in (1, -1))
    return epsilon_lower_bound(ours, theirs, delta, failure=FALSE_ALARM, ordered=True)


@pytest.mark.parametrize(("epsilon", "informative"), [(1.0, 0.6), (4.0, 2.5)])
def test_a_private_vector_keeps_its_epsilon(epsilon, informative):
    vector = PrivateVector.calibrated(epsilon, DELTA)
    row = np.array([0.6, -0.8, 0.0])
    found = audited(vector, row, 150_000, 20)
    assert informative <= found <= epsilon


@pytest.mark.parametrize("claimed", [1.0, 2.0, 4.0])
def test_the_printed_calibration_is_caught(claimed):
    sigma = math.sqrt(2 * math.log(1.25 / DELTA)) / claimed
    twin = PrivateVector(sigma / 2)
    assert spent(twin.event, DELTA).epsilon > 1.2 * claimed
    assert audited(twin, np.array([1.0]), 600_000 if claimed == 1 else 150_000, 30) > claimed


def test_a_projected_row_that_is_not_clipped_is_caught():
    # Algorithm 2 as printed, with noise for the unit ball on G x.
    G = GaussianProjection(10, 400).matrix()
    row = np.linalg.svd(G, full_matrices=False)[2][0]
    stretched = G @ row
    assert np.linalg.norm(stretched) > 5
    vector = PrivateVector.calibrated(1.0, DELTA)
    rows = np.zeros((20_000, 10))
    along = stretched / np.linalg.norm(stretched)
    ours, theirs = ((s * stretched + vector.reports(rows, Noise(40 + s))) @ along for s in (1, -1))
    assert epsilon_lower_bound(ours, theirs, DELTA, failure=FALSE_ALARM, ordered=True) > 3


@pytest.mark.parametrize("composition", ["basic", "exact"])
def test_the_report_of_algorithm_3_keeps_its_epsilon(composition):
    n, row = 100_000, np.array([0.6, 0.8])
    model = PaperL1Regression(epsilon=2, delta=DELTA, dimension=None, composition=composition)
    projection = model.projection(2)
    vector, target = model.vectors(projection)
    losses = []
    for s in (1, -1):
        sent = model._reports(np.tile(s * row, (n, 1)), np.full(n, s), projection, Noise(50 + s))
        losses.append(2 * (sent.z @ row / vector.sigma**2 + sent.v / target.sigma**2))
    found = epsilon_lower_bound(*losses, DELTA, failure=FALSE_ALARM, ordered=True)
    shift = 2 * math.hypot(1 / vector.sigma, 1 / target.sigma)
    assert GaussianAccountant().epsilon(Gaussian(1 / shift), DELTA) <= 2
    assert (1.2 if composition == "exact" else 0.6) <= found <= 2
