"""The laws of reports, and what the server may conclude from them.

Seeds are fixed. Over the choice of a seed, each test rejects sound code with probability at most
`FALSE_ALARM`, or a few times that where it says so.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from riata.local import Aggregator, Task
from riata.local.channel import Channel, channel
from riata.local.learners.moments import joint_moments
from riata.local.questions import join
from riata.local.randomize import choose_questions, draw_seeds, randomize
from riata.mechanisms.noise import Noise

pytestmark = pytest.mark.matrix(one_in=11)

FALSE_ALARM = 1e-9
#: Standard deviations that a normal number exceeds, to either side, with this probability.
FAR = float(stats.norm.isf(FALSE_ALARM / 2))


SPLIT = {"gram": 0.5, "cross": 0.5}


def vector_task(kind, epsilon, size, **more):
    table = {
        "kind": kind,
        "epsilon": epsilon,
        "features": [{"name": "v", "kind": "vector", "size": size, "bounds": [-1, 1]}],
        "length": 1.0,
        **more,
    }
    if kind not in ("mean", "sparse-mean"):
        table["target"] = {"name": "t", "kind": "number", "bounds": [-1, 1]}
    return Task.from_table(table)


def held(task, row, target, seeds):
    """What each report's seed was held against, and its normal vector, question by question."""
    for number, question in enumerate(task.questions):
        own = seeds[choose_questions(task, seeds) == number]
        prepared = question.prepare(task.vectors(np.array([row])), np.array([target]))
        directions = question.directions(np.repeat(prepared, len(own), axis=0), own)
        yield question.channel, directions, task.generator.normals(own, question.channel.size)


def law(used, z):
    """The distribution function of <g, v> for accepted g."""
    other, t = used.coin / 2**64, used.threshold
    sure = np.maximum(ndtr(z) - ndtr(t), 0.0)
    if used.degree == 2:
        sure = sure + ndtr(np.minimum(z, -t))
    return (other * ndtr(z) + (1 - other) * sure) / used.acceptance


ROWS = {
    "inside": [0.3, -0.2, 0.1],
    "on the sphere": [0.6, 0.0, -0.8],
    "in the middle": [0.0, 0.0, 0.0],
    "along an axis": [0.0, 1.0, 0.0],
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_products_have_the_exact_law_and_the_rest_is_normal(row, epsilon):
    task = vector_task("linear", epsilon, 3, intercept=0.2)
    x = np.array(ROWS[row])
    seeds = randomize(task, np.repeat(x[None], 16_000, axis=0), np.full(16_000, 0.7), Noise(11))
    for used, directions, normals in held(task, x, 0.7, seeds):
        products = (normals * directions).sum(axis=1)
        assert stats.kstest(products, lambda z, used=used: law(used, z)).pvalue >= FALSE_ALARM
        beside = np.linalg.svd(directions[:1])[2][1:]  # what is orthogonal to the direction
        for direction in beside:
            assert stats.kstest(normals @ direction, "norm").pvalue >= FALSE_ALARM
        together = normals @ beside[0] * products
        assert abs(together.mean()) <= FAR * together.std() / math.sqrt(len(together))


def test_products_have_the_exact_law_through_a_sketch():
    task = vector_task("mean", 1.0, 2500)
    x = np.random.default_rng(12).normal(size=2500)
    x /= np.linalg.norm(x)  # the part that a seed picks is sometimes longer than 1
    seeds = randomize(task, np.repeat(x[None], 2000, axis=0), None, Noise(12))
    ((used, directions, normals),) = held(task, x, 0.0, seeds)
    assert np.abs(np.linalg.norm(directions, axis=1) - 1).max() < 1e-12
    assert len(np.unique(directions[:, 0])) > 2  # it depends on the seed
    products = (normals * directions).sum(axis=1)
    assert stats.kstest(products, lambda z: law(used, z)).pvalue >= FALSE_ALARM


@pytest.mark.parametrize("size", [3, 2500])
def test_acceptance_does_not_depend_on_the_row(size):
    """Neither does the number of tries, then, nor the time that they take."""
    task = vector_task("mean" if size > 3 else "linear", 2.0, size)
    candidates = 8000 if size > 3 else 100_000
    words = Noise(13).words(2 * candidates)
    rng = np.random.default_rng(0)
    rows = [np.zeros(size), np.eye(size)[0], np.full(size, size**-0.5), rng.normal(size=size) / 99]
    for question in task.questions:
        for row in rows:
            prepared = question.prepare(task.vectors(row[None]), np.ones(1))
            good = 0
            for part in np.array_split(np.arange(candidates), 4):
                many = np.repeat(prepared, len(part), axis=0)
                seeds = question.seeds_from(words[0::2][part])
                good += question.accepts(task.generator, many, seeds, words[1::2][part]).sum()
            test = stats.binomtest(int(good), candidates, question.channel.acceptance)
            assert test.pvalue >= FALSE_ALARM


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_signal_and_lengthening_are_integrals_of_the_law(degree, epsilon):
    used = channel(degree, 5, epsilon)
    cuts = [-40.0, -used.threshold, used.threshold, 40.0]
    z = np.concatenate([np.linspace(a, b, 200_001)[:-1] for a, b in itertools.pairwise(cuts)])
    steps = np.diff(np.append(z, 40.0))
    z = z + steps / 2
    density = np.where(used.accepts_surely(z), 1.0, used.coin / 2**64) * stats.norm.pdf(z) * steps
    assert density.sum() == pytest.approx(used.acceptance, rel=1e-7)
    polynomial = z if degree == 1 else z**2 - 1
    assert (polynomial * density).sum() / density.sum() == pytest.approx(used.signal, rel=1e-6)
    excess = ((z**2 - 1) * density).sum() / density.sum()
    assert excess == pytest.approx(used.length_excess, rel=1e-6)


def test_no_other_acceptance_has_a_stronger_signal():
    """The threshold rule against random rules between the coin and 1."""
    rng = np.random.default_rng(3)
    z = np.linspace(-8, 8, 4001)
    weight = stats.norm.pdf(z)
    for degree, polynomial in ((1, z), (2, z**2 - 1)):
        for epsilon in (1.0, 4.0):
            used = channel(degree, 5, epsilon)
            other = used.coin / 2**64
            for _ in range(50):
                rule = rng.uniform(other, 1.0, z.size) if rng.random() < 0.5 else np.where(
                    rng.normal(size=3) @ np.vstack([np.ones_like(z), z, z**2]) > 0, 1.0, other
                )  # fmt: skip
                signal = (polynomial * rule * weight).sum() / (rule * weight).sum()
                assert abs(signal) <= used.signal * (1 + 1e-3) or signal < 0


def test_arms_are_asked_in_their_shares():
    task = vector_task("linear", 1.0, 2, arms={"gram": 0.3, "cross": 0.7})
    seeds = randomize(task, np.zeros((20_000, 2)), np.zeros(20_000), Noise(14))
    asked = int((choose_questions(task, seeds) == 0).sum())
    assert stats.binomtest(asked, 20_000, 0.3).pvalue >= FALSE_ALARM


# What the server estimates


def chi_square_fits(errors, noise):
    """Errors that have mean 0 and at most this standard deviation; twice the false alarm."""
    scaled = np.ravel(errors) / noise
    assert abs(scaled.mean()) <= FAR * 1.1 / math.sqrt(scaled.size)
    assert (scaled**2).sum() <= 1.2 * stats.chi2.isf(FALSE_ALARM, scaled.size)


def mixed_rows(devices, size, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(devices, size)) * np.linspace(1, 0.2, size) + 0.4
    return rows / np.maximum(np.linalg.norm(rows, axis=1), 1.0)[:, None], rng.uniform(
        -1, 1, devices
    )


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_moments_are_unbiased(epsilon):
    """Rows of all lengths inside the ball, with an intercept and targets."""
    task = vector_task("linear", epsilon, 12, intercept=0.15, arms=SPLIT)
    rows, targets = mixed_rows(40_000, 12, 21)
    aggregator = Aggregator(task, expected=10**6).add(randomize(task, rows, targets, Noise(22)))
    vectors = task.vectors(rows)
    matrix, noise = aggregator.sums["gram"].matrix()
    gram = vectors.T @ vectors / len(vectors)
    upper = np.triu_indices(13, 1)
    chi_square_fits((matrix - gram)[upper], noise)
    chi_square_fits(
        np.diag(matrix - gram), noise * math.sqrt(2 + 4 * task.questions[0].channel.signal)
    )
    cross, noise = aggregator.sums["cross"].vector()
    chi_square_fits(cross - (vectors * targets[:, None]).mean(axis=0), noise)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_joint_moments_are_unbiased_also_of_rows_that_are_shortened(epsilon):
    task = vector_task("linear", epsilon, 12, intercept=0.15)
    rows, targets = mixed_rows(40_000, 12, 21)
    rows = 2.0 * rows
    aggregator = Aggregator(task, expected=10**6).add(randomize(task, rows, targets, Noise(22)))
    (question,) = task.questions
    z = join(task.vectors(rows), targets)
    assert np.linalg.norm(z, axis=1).max() <= 1.0 + 1e-12
    assert np.mean(np.linalg.norm(rows, axis=1) > 1.0) > 0.2
    matrix, noise = aggregator.sums["joint"].matrix()
    second = z.T @ z / len(z)
    chi_square_fits((matrix - second)[np.triu_indices(14, 1)], noise)
    chi_square_fits(np.diag(matrix - second), noise * math.sqrt(2 + 4 * question.channel.signal))
    moments = joint_moments(task, second, 1e-9)
    weights = (z[:, -2] / math.sqrt(0.6 * 0.15)) ** 2  # what shortening left of each row
    vectors = task.vectors(rows)
    np.testing.assert_allclose(moments.cross, (weights * targets) @ vectors / weights.sum())
    np.testing.assert_allclose(moments.gram, (vectors.T * weights) @ vectors / weights.sum())
    assert task.least_weight <= weights.mean() < 1.0


def test_the_noise_is_as_large_as_it_says():
    task = vector_task("mean", 1.0, 200)
    aggregator = Aggregator(task).add(randomize(task, np.zeros((10_000, 200)), None, Noise(23)))
    mean, noise = aggregator.sums["mean"].vector()
    total = (mean**2).sum() / noise**2
    assert stats.chi2.isf(1 - FALSE_ALARM, 200) <= total <= stats.chi2.isf(FALSE_ALARM, 200)


@pytest.mark.parametrize("shape", ["one-hot", "few", "dense"])
def test_means_through_a_sketch_are_unbiased(shape):
    """Exactly for one entry; what is shortened costs dense rows less than 1% of their length."""
    size, devices = 2500, 1500
    task = vector_task("sparse-mean", 3.0, size)
    row = np.zeros(size)
    row[{"one-hot": [7], "few": [1, 700, 2400], "dense": slice(None)}[shape]] = 1.0
    row /= np.linalg.norm(row)
    seeds = randomize(task, np.repeat(row[None], devices, axis=0), None, Noise(24))
    sums = Aggregator(task).add(seeds).sums["mean"]
    mean, noise = sums.vector()
    chi_square_fits(mean - row, noise * math.sqrt(1 + sums.question.sketch.scale**2))
    along = (mean @ row - 1.0) / noise
    assert abs(along) <= 1.5 * FAR + (0 if shape == "one-hot" else 0.01 / noise)


def test_a_matrix_at_few_places_is_unbiased():
    task = vector_task("sparse-linear", 3.0, 4200, intercept=0.1)
    row = np.zeros(4200)
    row[[5, 4000]] = 0.6, -0.5
    aggregator = Aggregator(task)
    sums = aggregator.add(accept_gram(task, row, 700, 25)).sums["gram"]
    places = np.array([5, 9, 4000, 4200])
    matrix, noise = sums.matrix(places)
    vector = task.vectors(row[None])[0][places]
    chi_square_fits((matrix - np.outer(vector, vector))[np.triu_indices(4)], noise * 4)


def accept_gram(task, row, devices, seed):
    question = task.question("gram")
    prepared = np.repeat(task.vectors(row[None]), devices, axis=0)
    return draw_seeds(question, task.generator, prepared, Noise(seed))


# Honesty


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("honest", [1.0, 0.5, 0.0])
def test_the_trace_shows_the_share_of_honest_reports(honest, epsilon):
    task = vector_task("linear", epsilon, 6, arms=SPLIT)
    rows, targets = mixed_rows(60_000, 6, 31)
    many = int(honest * 60_000)
    sent = randomize(task, rows[:many], targets[:many], Noise(32))
    made_up = Noise(33).words(60_000 - many)
    checks = Aggregator(task).add(np.concatenate([sent, made_up])).honesty()
    assert checks.keys() == {"gram", "cross"}
    for check in checks.values():
        assert abs(check.share - honest) <= 1.2 * FAR * check.error
    if honest == 0.0 or epsilon == 4.0:
        assert checks["gram"].suspicious == (honest < 1.0)


@pytest.mark.parametrize("size", [2, 40])
def test_the_error_of_the_honest_share_is_what_it_says(size):
    task = vector_task("linear", 2.0, size)
    away = []
    for seed in range(30):
        sent = randomize(task, np.zeros((600, size)), np.zeros(600), Noise(100 + seed))
        away += [(c.share - 1) / c.error for c in Aggregator(task).add(sent).honesty().values()]
    total = float(np.square(away).sum())
    assert total <= 1.3 * stats.chi2.isf(FALSE_ALARM, len(away))
    assert total >= 0.5 * stats.chi2.isf(1 - FALSE_ALARM, len(away))


def test_the_longest_report_is_as_long_as_the_docs_say():
    """What a liar gains from trying many seeds grows like sqrt(2 log seeds)."""
    task = vector_task("mean", 1.0, 7)
    found = task.generator.normals(np.arange(1 << 17, dtype=np.uint64), 8)[:, 0].max()
    expected = stats.norm.isf(2.0**-17)
    assert abs(found - expected) <= 21 / expected  # a Gumbel variable of this scale, beyond e^-21


def test_a_channel_without_a_coin_costs_infinity():
    assert Channel(1, 5, 0.4, 0).epsilon() == math.inf
