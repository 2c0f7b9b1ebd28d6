"""Posterior samples have exactly the exponential mechanism's distribution and privacy loss.

Laws are compared with densities that are integrated here, from the rows and not from their moments.
Decisions are compared with thresholds computed here with hundreds of digits. Each test of a law
would reject a correct sampler with probability below 1e-8 over the choice of its seed;
`FALSE_ALARM` leaves room for the approximation of the chi-square law.
"""

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from riata.bounds import Bounds
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.errors import InvalidArgument
from riata.grid import X_STEPS
from riata.mechanisms import posterior
from riata.mechanisms.additive import NormalDraws
from riata.mechanisms.exact import BITS, Refined, Uniforms
from riata.mechanisms.noise import Noise
from riata.mechanisms.posterior import Envelope, PosteriorSample, Target
from riata.privacy.budget import ADD_REMOVE, CHANGED_CONTRIBUTIONS, REPLACE_ONE
from riata.privacy.events import BoundedRange
from riata.queries.moments import SquaredMoments

pytestmark = pytest.mark.matrix(one_in=11)

FALSE_ALARM = 1e-9
MP = mpmath.MPContext()
MP.prec = 1_200


def both(one, other):
    return zip(one, other, strict=True)


# Data sets, each with an epsilon at which its law is flat, inside the ball, or at its edge.


BOUNDS = Bounds(2.0, 1.5, "l2")


@dataclass
class Case:
    """Rows, and the least squares problem on them."""

    x: np.ndarray
    y: np.ndarray
    epsilon: float
    bounds: Bounds = BOUNDS
    radius: float = 0.7
    adjacency: str = REPLACE_ONE
    intercept: bool = False

    @property
    def engine(self):
        return LocalEngine(self.x, self.y, self.bounds)

    @property
    def query(self):
        n, p = self.x.shape
        return SquaredMoments(self.bounds, self.radius, n, self.adjacency, p, self.intercept)

    @property
    def target(self):
        return PosteriorSample(self.epsilon).target(self.query, self.engine.total(self.query))

    def log_density(self, theta):
        """-eta * the sum of squared losses at the rows of `theta`, from the rows on the grid."""
        longest = 2.0 * np.sqrt(1 + self.intercept) * self.query.ball_radius
        most = (longest + 1.5) ** 2 if longest >= 1.5 else 4 * longest * 1.5
        eta = self.epsilon / (CHANGED_CONTRIBUTIONS[self.adjacency] * most)
        x = self.bounds.grid_x(self.x) * 2.0 / X_STEPS
        x = np.c_[x, np.full((len(x), int(self.intercept)), 2.0)]
        y = np.rint(self.bounds.clip_y(self.y) / 1.5 * X_STEPS) * 1.5 / X_STEPS
        gram, cross = x.T @ x, x.T @ y
        return -eta * (np.einsum("ij,jk,ik->i", theta, gram, theta) - 2 * theta @ cross)


def rows(n, p, seed, slope, spread=0.3):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, p))
    return x, x @ np.full(p, slope) + spread * rng.standard_normal(n)


ONE = {
    "flat": Case(*rows(3, 1, 1, 0.3), 0.05),
    "inside": Case(*rows(200, 1, 2, 0.2), 20.0),
    "edge": Case(*rows(60, 1, 3, 3.0), 8.0),
    "added": Case(*rows(40, 1, 4, 0.3), 3.0, adjacency=ADD_REMOVE),
    "small ball": Case(*rows(40, 1, 5, 0.3), 3.0, radius=0.2),
}
TWO = {
    "flat": Case(*rows(3, 2, 11, 0.3), 0.05),
    "inside": Case(*rows(300, 2, 12, 0.2), 30.0),
    "edge": Case(*rows(100, 2, 13, 2.0), 10.0),
    "one column": Case(rows(80, 2, 14, 0.2)[0] * [1, 0], rows(80, 2, 14, 0.2)[1], 30.0),
    "intercept": Case(*rows(80, 1, 15, 0.3), 20.0, intercept=True),
}
every_one = pytest.mark.parametrize("case", ONE.values(), ids=ONE)
every_two = pytest.mark.parametrize("case", TWO.values(), ids=TWO)
every_case = pytest.mark.parametrize("case", [*ONE.values(), *TWO.values()], ids=[*ONE, *TWO])


# The law.


def midpoints(low, high, n):
    edges = np.linspace(low, high, n + 1)
    return (edges[1:] + edges[:-1]) / 2, edges


def p_value_in_one_dimension(case, found):
    """Kolmogorov and Smirnov's test against the integrated density."""
    middle, edges = midpoints(-case.query.ball_radius, case.query.ball_radius, 40_000)
    weight = case.log_density(middle[:, None])
    weight = np.exp(weight - weight.max())
    cdf = np.append(0, np.cumsum(weight)) / weight.sum()
    return stats.kstest(found.ravel(), lambda t: np.interp(t, edges, cdf)).pvalue


def p_value_in_two_dimensions(case, found):
    """A chi-square test over a grid of bins, each with the same part of either marginal law."""
    bins, fine = 3 if len(found) < 5_000 else 12, 1_200
    radius, target = case.query.ball_radius, case.target
    precision = 2 * target.quadratic * target.gram + 2 * np.eye(2)
    mean = np.linalg.solve(precision, target.linear * target.cross)
    mean /= max(1.0, np.linalg.norm(mean))
    wide = 6 / np.sqrt(np.linalg.eigvalsh(precision)[0])  # the bulk of the law is nearer
    axes = [midpoints(max(-1, c - wide) * radius, min(1, c + wide) * radius, fine) for c in mean]
    points = np.stack(np.meshgrid(axes[0][0], axes[1][0], indexing="ij"), axis=-1)
    weight = case.log_density(points.reshape(-1, 2)).reshape(fine, fine)
    weight = np.where(np.square(points).sum(axis=-1) <= radius**2, np.exp(weight - weight.max()), 0)
    law, edges = weight / weight.sum(), []
    for axis in (0, 1):
        marginal = np.cumsum(weight.sum(axis=1 - axis)) / weight.sum()
        cuts = np.append(0, np.searchsorted(marginal, np.arange(1, bins) / bins))
        law = np.add.reduceat(law, cuts, axis=axis)
        edges.append(np.append(axes[axis][1][cuts], axes[axis][1][-1]))
    counts = np.histogram2d(*found.T, edges)[0].ravel()
    assert len(found) - counts.sum() <= 0.001 * len(found)
    law = law.ravel() * counts.sum()
    order = np.argsort(law)
    rare = order[: np.searchsorted(np.cumsum(law[order]), 20) + 1]  # taken together: 20 or more
    rare = np.union1d(rare, np.flatnonzero(law < 20))
    law, counts = (np.append(np.delete(v, rare), v[rare].sum()) for v in (law, counts))
    assert len(law) >= 4
    return stats.chisquare(counts, law).pvalue


def p_value(case, found):
    one = case.query.n_coefficients == 1
    return (p_value_in_one_dimension if one else p_value_in_two_dimensions)(case, found)


def released(case, draws, seed, mechanism=None):
    mechanism, engine, noise = mechanism or PosteriorSample(case.epsilon), case.engine, Noise(seed)
    return np.array([mechanism.release(case.query, engine, noise) for _ in range(draws)])


@every_case
def test_a_release_has_the_law_of_the_exponential_mechanism(case):
    assert p_value(case, released(case, 220, seed=91)) >= FALSE_ALARM


def proposals_that_stay(case, envelope, draws, seed):
    """Proposals that float64 cannot reject, many at once: nearly all of them are accepted."""
    noise, found, m = Noise(seed), [], len(envelope.centre)
    while sum(map(len, found)) < draws:
        normals, coins = NormalDraws(20_000 * m, noise), Uniforms(20_000, noise)
        stay = ~envelope.clearly_rejected(normals, coins.middle())
        z = normals.values.reshape(-1, m)[stay]
        found.append(envelope.centre + (1 + 2.0**-envelope.widening) * z @ envelope.factor.T)
    return np.vstack(found) * case.query.ball_radius


@every_case
def test_many_proposals_that_stay_have_the_law_too(case):
    # The few that an exact decision would reject are fewer than one in 10,000.
    found = proposals_that_stay(case, Envelope.of(case.target), 40_000, seed=92)
    assert p_value(case, found) >= FALSE_ALARM


@pytest.mark.parametrize("case", [ONE["inside"], ONE["edge"], TWO["inside"], TWO["edge"]])
def test_an_eta_that_is_a_quarter_too_large_is_noticed(case):
    wrong = replace(case, epsilon=1.25 * case.epsilon)
    found = proposals_that_stay(case, Envelope.of(wrong.target), 40_000, seed=93)
    assert p_value(case, found) < FALSE_ALARM


@pytest.mark.parametrize("case", [ONE["inside"], TWO["inside"], TWO["edge"]])
def test_the_law_does_not_rest_on_linear_algebra(case, monkeypatch):
    def careless(matrix, eigh=np.linalg.eigh):
        values, basis = eigh(matrix)
        wrong = np.random.default_rng(94).standard_normal(basis.shape)
        return values * 1.002, basis + 0.003 * wrong

    monkeypatch.setattr(np.linalg, "eigh", careless)
    assert Envelope.of(case.target).widening < 10
    assert p_value(case, released(case, 220, seed=94)) >= FALSE_ALARM


# The envelope.


def careful(matrix, eigh=np.linalg.eigh):
    return eigh(matrix)


def turned(matrix):
    return np.linalg.eigvalsh(matrix), np.eye(len(matrix))


def noisy(matrix, eigh=np.linalg.eigh):
    values, basis = eigh(matrix)
    return values, basis + 3e-3 * np.random.default_rng(95).standard_normal(basis.shape)


def excess(target, envelope, z):
    """By how much the logarithm of a chance of acceptance exceeds -tau (1 - |phi|^2) / 2."""
    z = [Fraction(float(v)) for v in z]
    stretch = 1 + Fraction(1, 2**envelope.widening)
    phi = [
        Fraction(float(c)) + stretch * sum(Fraction(float(f)) * v for f, v in both(row, z))
        for c, row in both(envelope.centre, envelope.factor)
    ]
    square = sum(p * p for p in phi)
    linear = sum(int(c) * p for c, p in both(target.cross, phi))
    quadratic = sum(int(g) * p * q for row, p in both(target.gram, phi) for g, q in both(row, phi))
    log = Fraction(target.linear) * linear - Fraction(target.quadratic) * quadratic
    log += sum(v * v for v in z) / 2 - Fraction(envelope.level)
    return log + Fraction(envelope.tau) / 2 * (1 - square)


@pytest.mark.parametrize("eigh", [careful, noisy, turned])
@every_case
def test_the_envelope_is_nowhere_below_the_density(case, eigh, monkeypatch):
    monkeypatch.setattr(np.linalg, "eigh", eigh)
    envelope, rng = Envelope.of(case.target), np.random.default_rng(96)
    m, largest = len(envelope.centre), []
    assert envelope.tau >= 1
    precision = 2 * case.target.quadratic * case.target.gram + envelope.tau * np.eye(m)
    left = case.target.linear * case.target.cross - precision @ envelope.centre
    worst = envelope.factor.T @ left * 2.0**envelope.widening  # where a wrong centre matters most
    for size in (0, 0.1, 1, 10, 1e3, 1e6):
        for z in (worst, *rng.standard_normal((20, m))):
            largest.append(excess(case.target, envelope, size * z))
    assert max(largest) <= 0
    if eigh is careful:
        assert max(largest) > -1e-6  # and it touches it, at the centre


def test_a_harder_problem_has_an_envelope_too():
    # As informative as it may become, with eigenvalues from nothing to everything.
    rng = np.random.default_rng(97)
    x = rng.standard_normal((60, 30)) * 10.0 ** -np.arange(0, 15, 0.5)
    x = np.rint(x / np.linalg.norm(x, axis=1)[:, None] * 65_000).astype(np.int64)
    for y in (x @ rng.standard_normal(30) / 60, np.sign(x[:, 0]) * 2**16):
        y = np.rint(y).astype(np.int64)
        scale = 2.0**32 / 60 / 8 * 2.0**-32  # 2^32 rows times epsilon, over these 60
        target = Target(x.T @ x, x.T @ y, scale, 2 * scale)
        envelope = Envelope.of(target)
        for size in (0, 1, 100, 1e5):
            assert excess(target, envelope, size * rng.standard_normal(30)) <= 0


# Decisions.


class Scripted(Noise):
    """Gives the words of a list, one at a time."""

    def __init__(self, words):
        super().__init__(seed=0)
        self._script = iter(words)

    def words(self, n):
        return np.array([next(self._script) for _ in range(n)], dtype="<u8")


def variable(u, refinements=16):
    """A uniform variable whose value is `u`."""
    bits = int(MP.floor(MP.mpf(u) * MP.mpf(2) ** (BITS + 64 * refinements)))
    rest = [(bits >> (64 * k)) & (2**64 - 1) for k in reversed(range(refinements))]
    return Refined(bits >> (64 * refinements), Scripted(rest))


def place(envelope, z):
    """phi, with many digits."""
    stretch = 1 + MP.mpf(2) ** -envelope.widening
    return [
        MP.mpf(float(c)) + stretch * MP.fdot([MP.mpf(float(f)) for f in row], z)
        for c, row in both(envelope.centre, envelope.factor)
    ]


def log_chance(target, envelope, z):
    """The logarithm of the probability that a proposal in the ball is accepted."""
    phi = place(envelope, z)
    linear = MP.fdot([MP.mpf(int(c)) for c in target.cross], phi)
    through = [MP.fdot([MP.mpf(int(g)) for g in row], phi) for row in target.gram]
    log = MP.mpf(target.linear) * linear - MP.mpf(target.quadratic) * MP.fdot(through, phi)
    return log + MP.fdot(z, z) / 2 - MP.mpf(envelope.level)


def inside(envelope, seed):
    """Some normal variables whose proposal lies well in the ball."""
    rng = np.random.default_rng(seed)
    while True:
        z = [MP.mpf(float(v)) for v in rng.standard_normal(len(envelope.centre))]
        if MP.fdot(place(envelope, z), place(envelope, z)) < 0.98:
            return z


def decision(case, envelope, z, coin):
    return envelope.decide(case.target, [variable(MP.ncdf(v)) for v in z], variable(coin))


@every_case
@pytest.mark.parametrize("bits", [60, 300])
def test_acceptance_turns_at_exactly_the_right_coin(case, bits):
    envelope = Envelope.of(case.target)
    z = inside(envelope, 98)
    turn = MP.exp(log_chance(case.target, envelope, z))
    assert 0 < turn < 1
    assert decision(case, envelope, z, turn * (1 + MP.ldexp(1, -bits))) is None
    found = decision(case, envelope, z, turn * (1 - MP.ldexp(1, -bits)))
    assert found == [int(MP.floor(MP.ldexp(v, 30) + 0.5)) for v in place(envelope, z)]


@every_one
@pytest.mark.parametrize("bits", [60, 300])
def test_rounding_and_the_sphere_turn_at_exactly_the_right_place(case, bits):
    envelope = Envelope.of(case.target)
    stretch = (1 + MP.mpf(2) ** -envelope.widening) * MP.mpf(float(envelope.factor[0, 0]))
    for start in (*inside(envelope, 98), *inside(envelope, 99)):
        below = int(MP.floor(MP.ldexp(place(envelope, [start])[0], 30)))
        boundary = MP.ldexp(MP.mpf(below) + 0.5, -30)
        for side in (-1, 1):
            phi = boundary + side * MP.ldexp(1, -bits)
            z = (phi - MP.mpf(float(envelope.centre[0]))) / stretch
            coin = MP.exp(log_chance(case.target, envelope, [z])) / 2
            assert decision(case, envelope, [z], coin) == [below + (side > 0)]
    for end, side in itertools.product((-1, 1), (-1, 1)):
        phi = end * (1 + side * MP.ldexp(1, -bits))
        z = (phi - MP.mpf(float(envelope.centre[0]))) / stretch
        if abs(z) > 20:
            continue  # beyond the bits that are scripted
        coin = MP.exp(log_chance(case.target, envelope, [z])) / 2
        assert decision(case, envelope, [z], coin) == (None if side > 0 else [end * 2**30])


def test_the_outermost_cells_are_refined_until_they_say_enough():
    case = ONE["flat"]
    envelope = Envelope.of(case.target)
    for cell in (0, 2**BITS - 1):
        for seed in range(5):
            # A normal variable beyond 8 is far outside the ball, and a coin of nearly 0 accepts.
            far = envelope.decide(case.target, [Refined(cell, Noise(seed))], variable(0.5))
            assert far is None
            normal, coin = variable(MP.ncdf(0.1)), Refined(cell, Noise(seed))
            near = envelope.decide(case.target, [normal], coin)
            assert (near is None) == (cell > 0)


@every_case
def test_what_float64_rejects_is_rejected(case):
    envelope, noise, m = Envelope.of(case.target), Noise(100), case.query.n_coefficients
    normals, coins = NormalDraws(40 * m, noise), Uniforms(40, noise)
    for i in np.flatnonzero(envelope.clearly_rejected(normals, coins.middle()))[:20]:
        own = [normals.uniforms[j] for j in range(i * m, i * m + m)]
        assert envelope.decide(case.target, own, coins[int(i)]) is None


@every_one
def test_float64_decides_neither_near_the_sphere_nor_near_the_coin_nor_in_tails(case):
    envelope = Envelope.of(case.target)
    coefficient = float(envelope.factor[0, 0]) * (1 + 2.0**-envelope.widening)

    def rejected(phi, head, tail=False):
        draws = NormalDraws(1, Noise(0))
        draws.values = np.array([(phi - envelope.centre[0]) / coefficient])
        draws.tails = lambda: np.array([tail])
        return bool(envelope.clearly_rejected(draws, np.array([head]))[0])

    for end in (1, -1):
        assert not rejected(end * (1 + 2.0**-26), 0.5)
        assert rejected(end * (1 + 2.0**-22), 0.5)
        assert not rejected(end * 1.5, 0.5, tail=True)
        assert not rejected(end * 1.5, 2.0**-20)
        assert not rejected(end * 1.5, 1 - 2.0**-20)
    head = 0.9
    square = 1 + 2 / envelope.tau * np.log(head)
    assert not rejected(np.sqrt(square - 2.0**-25), head)
    assert rejected(np.sqrt(square - 2.0**-22), head)


# The privacy loss.


def log_ratio(case, neighbour, mechanism):
    """The logarithm of the ratio of two densities, at many points of the ball."""
    m = case.query.n_coefficients
    if m == 1:
        points, area = np.linspace(-1, 1, 4_001)[:, None], 1.0
    else:
        r, angle = np.meshgrid(np.linspace(0, 1, 301), np.linspace(0, 2 * np.pi, 400))
        points, area = np.c_[(r * np.cos(angle)).ravel(), (r * np.sin(angle)).ravel()], r.ravel()
    logs = []
    for member in (case, neighbour):
        target = mechanism.target(case.query, member.engine.total(case.query))
        quadratic = np.einsum("ij,jk,ik->i", points, target.gram.astype(float), points)
        log = target.linear * points @ target.cross - target.quadratic * quadratic
        logs.append(log - log.max() - np.log(np.mean(area * np.exp(log - log.max()))))
    return logs[0] - logs[1]


HOSTILE = [
    (np.nan, np.nan),
    (np.inf, -np.inf),
    (-np.inf, np.inf),
    (1e300, 1e300),
    (-1e300, 1.5),
    (2.0, 1.5),
    (-2.0, 1.5),
    (0.0, 1.5),
    (1.0, -0.2),
]


def pairs(m, adjacency, intercept=False, radius=0.75):
    """Neighbours that differ in hostile rows, beside rows that pull to one end of the ball."""

    def case(*lone):
        x = np.zeros((30 + len(lone), m))
        x[:, 0] = [2.0] * 30 + [entry for entry, _ in lone]
        y = np.array([1.5] * 30 + [target for _, target in lone])
        return Case(x, y, 1.0, BOUNDS, radius, adjacency, intercept)

    if adjacency == ADD_REMOVE:
        return [(case(lone), case()) for lone in HOSTILE]
    return [(case(ours), case(theirs)) for ours, theirs in itertools.combinations(HOSTILE, 2)]


def worst_loss(m, adjacency, mechanism, **kind):
    """The longest interval of the privacy loss over all pairs, and the largest loss."""
    ratios = [log_ratio(*pair, mechanism) for pair in pairs(m, adjacency, **kind)]
    return max(np.ptp(r) for r in ratios), max(np.abs(r).max() for r in ratios)


class TwiceTheEta(PosteriorSample):
    def target(self, query, total):
        target = super().target(query, total)
        return replace(target, quadratic=2 * target.quadratic, linear=2 * target.linear)


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize(
    ("m", "kind"),
    [(1, {}), (1, {"radius": 0.1}), (1, {"radius": 5.0}), (2, {}), (1, {"intercept": True})],
    ids=["1", "1, small", "1, large", "2", "intercept"],
)
def test_the_privacy_loss_has_range_epsilon(m, kind, epsilon, adjacency):
    longest, largest = worst_loss(m, adjacency, PosteriorSample(epsilon), **kind)
    assert longest <= epsilon
    assert largest <= epsilon * (1 + 1e-4)  # the densities are normalised by sums


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_twice_the_eta_is_caught(epsilon, adjacency):
    # Here R r = Y, and one pair turns the sign of x: the bound is reached.
    honest, _ = worst_loss(1, adjacency, PosteriorSample(epsilon))
    assert honest >= 0.99 * epsilon
    longest, largest = worst_loss(1, adjacency, TwiceTheEta(epsilon))
    assert longest > 1.9 * epsilon
    if adjacency == REPLACE_ONE:
        assert largest > 1.2 * epsilon


def test_adjacency_decides_eta():
    case = ONE["inside"]
    replaced = PosteriorSample(1.0).target(case.query, case.engine.total(case.query))
    added = replace(case, adjacency=ADD_REMOVE)
    added = PosteriorSample(1.0).target(added.query, added.engine.total(added.query))
    assert added.quadratic == 2 * replaced.quadratic
    assert added.linear == 2 * replaced.linear


# What is released.


@every_case
def test_a_release_lies_on_a_public_grid(case):
    found = released(case, 3, seed=101)
    unit = case.query.ball_radius * 2.0**-30
    assert np.array_equal(np.rint(found / unit) * unit, found)
    assert found.shape == (3, case.query.n_coefficients)
    assert np.linalg.norm(found, axis=1).max() <= case.query.ball_radius * (1 + 2.0**-29)
    assert np.array_equal(found, released(case, 3, seed=101))
    assert not np.array_equal(found, released(case, 3, seed=102))


def test_a_release_of_hostile_rows_is_like_any_other():
    x = np.array([[np.nan, 1e300], [np.inf, -np.inf], [-1e300, 0.0], [5e-324, np.nan]])
    y = np.array([np.nan, np.inf, -np.inf, 1e300])
    case = Case(x, y, 5.0, intercept=True)
    found = released(case, 5, seed=103)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found, axis=1).max() <= case.query.ball_radius * (1 + 2.0**-29)


def test_no_rows_at_all_give_uniform_points_of_the_ball():
    case = Case(np.zeros((1, 3)), np.zeros(1), 1.0)
    square = np.square(released(case, 120, seed=104)).sum(axis=1) / 0.7**2
    assert stats.kstest(square**1.5, "uniform").pvalue >= FALSE_ALARM


def test_many_coefficients():
    x, y = rows(2_000, 30, 105, 0.1)
    found = released(Case(x, y, 1e5), 1, seed=105)[0]
    np.testing.assert_allclose(found, np.linalg.lstsq(x / 3, y / 3)[0], atol=0.15)


def test_its_cost_is_a_bounded_range():
    case, mechanism = ONE["inside"], PosteriorSample(0.5)
    assert mechanism.event == BoundedRange(0.5)
    assert "epsilon 0.5" in mechanism.describe(1)
    curator = Curator.open(
        mechanism.event, read=lambda: case.engine, noise=Noise(0), adjacency=REPLACE_ONE
    )
    assert curator.release(case.query, mechanism).shape == (1,)


def test_more_information_than_can_be_drawn_from_is_refused_before_a_row_is_read():
    query = SquaredMoments(Bounds(1.0, 1.0, "l2"), 1.0, 2**30, REPLACE_ONE, 2)
    with pytest.raises(InvalidArgument, match="smaller epsilon"):
        PosteriorSample(5.0).release(query, None, Noise(0))


def test_the_constants_are_those_of_the_proof():
    assert posterior._FACTOR_BITS == 60
    assert posterior._BAND == 2.0**-24
    assert posterior._TAIL == 2.0**-19
