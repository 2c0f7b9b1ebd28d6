"""Draws have exactly the distribution that is claimed for them, down to the last digit.

The fast path is float64 arithmetic on the first 52 bits of a uniform variable. It may be used only
where the whole cell of those bits leads to one outcome: so its functions are checked against
mpmath, its outcomes against those of the slow path, and the slow path against thresholds that are
computed here with thousands of digits. Laws are tested with fixed seeds; each such test would
reject a correct mechanism with probability at most `FALSE_ALARM` over the choice of its seed, and
all of them together with less than 1e-6.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logsumexp, ndtri

from riata.errors import InvalidArgument
from riata.mechanisms import (
    ExponentialMechanism,
    PermuteAndFlip,
    ReportNoisyMax,
    TopK,
    additive,
    exact,
    noisy_max,
)
from riata.mechanisms.additive import LaplaceDraws, NormalDraws
from riata.mechanisms.engine import Engine
from riata.mechanisms.exact import BITS, TRUSTED, Refined, Uniforms
from riata.mechanisms.noise import Noise
from riata.privacy.events import BoundedRange, leaves

from goodness_of_fit import pvalue

pytestmark = pytest.mark.matrix(one_in=11)

FALSE_ALARM = 1e-9
MP = mpmath.MPContext()
MP.prec = 200


# The float functions that the fast path trusts.


def cell_midpoints():
    """Middles of cells: the first and last ones, powers of two and a thousand at random."""
    cells = 2**BITS
    near_ends = np.r_[0:300, np.logspace(2.5, np.log10(cells / 4), 700)].astype(np.int64)
    halves = cells // 2 + np.r_[-300:300]
    random = np.random.default_rng(61).integers(0, cells, 1_001)
    found = np.unique(np.r_[near_ends, cells - 1 - near_ends, halves, random])
    return (found + 0.5) * 2.0**-BITS


def relative_error(found, meant):
    """The largest error, relative to each value, that a vectorised function makes anywhere."""
    return max(abs((MP.mpf(float(f)) - m) / m) for f, m in zip(found, meant, strict=True))


def in_every_way(function, x):
    """`function` over one array, over a view with gaps, and one number at a time."""
    gaps = np.repeat(x, 3)[::3]
    return [function(x), function(gaps), np.array([function(v) for v in x])]


def test_logarithms_are_as_accurate_as_trusted():
    u = cell_midpoints()
    meant = [MP.log(MP.mpf(float(v))) for v in u]
    for found in in_every_way(np.log, u):
        assert relative_error(found, meant) <= TRUSTED


def test_exponentials_are_as_accurate_as_trusted():
    x = np.r_[np.linspace(-690, 0, 3_001), -np.logspace(-18, 2.8, 1_001)]
    meant = [MP.exp(MP.mpf(float(v))) for v in x]
    for found in in_every_way(np.exp, x):
        assert relative_error(found, meant) <= TRUSTED


def test_logistic_functions_are_as_accurate_as_trusted():
    x = np.r_[
        np.linspace(-690, 690, 3_001), np.logspace(-18, 2.8, 500), -np.logspace(-18, 2.8, 500)
    ]
    meant = [1 / (1 + MP.exp(-MP.mpf(float(v)))) for v in x]
    for found in in_every_way(expit, x):
        assert relative_error(found, meant) <= TRUSTED


def test_normal_quantiles_are_as_accurate_as_trusted():
    u = cell_midpoints()
    for found in in_every_way(ndtri, u):
        for value, at in zip(found, u, strict=True):
            x = MP.mpf(float(value))
            below = MP.erfc(-x / MP.sqrt(2)) / 2  # not 1 - erfc: that would cancel
            missed = (below - MP.mpf(float(at))) / MP.npdf(x)  # to first order, the error of x
            assert abs(missed) <= TRUSTED * abs(x)


def test_the_middles_of_cells_are_what_the_words_say():
    words = Noise(seed=62).words(1_000)
    middle = Uniforms(1_000, Noise(seed=62)).middle()
    for word, found in zip(words, middle, strict=True):
        assert MP.mpf(float(found)) == (MP.mpf(int(word) >> 12) + 0.5) * MP.mpf(2) ** -52


# Queries with known answers.


@dataclass
class Known(Engine):
    """A query and its engine at epsilon 1 and sensitivity 1/2: a utility is its scaled value."""

    utilities: Any
    symmetric: bool = False

    def sensitivity(self, norm):
        return 0.5

    def total(self, query):
        return np.array(self.utilities, dtype=float)

    def from_total(self, total):
        return total


def chosen(mechanism, utilities, noise, symmetric=False):
    """The selected candidates as a tuple."""
    query = Known(utilities, symmetric)
    return tuple(np.atleast_1d(mechanism.release(query, query, noise)).tolist())


SELECTIONS = [
    ExponentialMechanism(1.0),
    PermuteAndFlip(1.0),
    ReportNoisyMax(1.0),
    TopK(1.0, 1),
    TopK(1.0, 3),
]
every_selection = pytest.mark.parametrize("mechanism", SELECTIONS, ids=repr)
every_kind = pytest.mark.parametrize("draws", [NormalDraws, LaplaceDraws])


# The fast path and the slow one.


def always_refined(monkeypatch):
    monkeypatch.setattr(noisy_max, "_BAND", 1e300)
    monkeypatch.setattr(additive, "_BAND", 1.0)


UTILITIES = {
    "flat": np.zeros(7),
    "near": np.array([0.1, -0.2, 0.0, 0.3, -0.3]),
    "spread": np.array([5.0, 0.0, -2.0, 1.0]),
    "peaked": np.array([300.0, 299.0, -300.0, 298.5]),
    "high up": 2.0**40 + np.array([0.5, 0.0, 1.5]),
    "far down": -(2.0**40) - np.array([0.5, 0.0, 1.5]),
    "huge": np.array([1e20, 1e20, -1e20, 1e20]),
    "tiny": np.array([5e-324, -5e-324, 0.0]),
}


@every_selection
@pytest.mark.parametrize("symmetric", [False, True], ids=["listed", "symmetric"])
@pytest.mark.parametrize("case", UTILITIES)
def test_a_selection_is_the_same_on_the_fast_and_the_slow_path(
    monkeypatch, mechanism, symmetric, case
):
    seeds = range(100)
    fast = [chosen(mechanism, UTILITIES[case], Noise(seed), symmetric) for seed in seeds]
    always_refined(monkeypatch)
    slow = [chosen(mechanism, UTILITIES[case], Noise(seed), symmetric) for seed in seeds]
    assert fast == slow
    assert len(set(fast)) > 1 or case == "peaked"


SCALES = [1e-3, 0.3, 1.0, 7.7, 1023.9, 2048.0, 1e6, 1e12, 1e18, 9.9e18, 1e19, 1e20, 1e22]
TOTALS = [0, 1, -1, 12345, 2**31 + 1, -(2**53) - 1, 2**62, -(2**62), 2**62 - 1]


def rounded(total, scale, draws):
    return additive.rounded(np.array([total]), np.array(scale), draws)[0]


@every_kind
@pytest.mark.parametrize("scale", SCALES)
def test_a_release_is_the_same_on_the_fast_and_the_slow_path(monkeypatch, draws, scale):
    cases = [(total, seed) for seed, total in enumerate(TOTALS * 5)]
    fast = [rounded(total, scale, draws(1, Noise(seed))) for total, seed in cases]
    always_refined(monkeypatch)
    slow = [rounded(total, scale, draws(1, Noise(seed))) for total, seed in cases]
    assert fast == slow


@every_kind
def test_a_scale_for_each_coordinate_gives_what_each_would_get_alone(draws):
    scale = np.array(SCALES)
    total = np.array((TOTALS * 2)[: len(SCALES)])
    together = additive.rounded(total, scale, draws(len(SCALES), Noise(63)))

    class Only(draws):
        """Draws of which only number `i` is looked at."""

        def pick(self, i):
            self.only = slice(i, i + 1)
            self.uniforms._words = self.uniforms._words[self.only]
            return self

        def at(self, middle, part):
            return super().at(middle, self.only)

    for i in range(len(SCALES)):
        alone = Only(len(SCALES), Noise(63)).pick(i)
        assert rounded(total[i], scale[i], alone) == together[i]


# Forced cells. Each variable gets bits of its own, so that its value is known here.


class Scripted(Noise):
    """The words that the first calls give, whatever they ask for."""

    def __init__(self, words):
        super().__init__(seed=0)
        self._script = list(words)

    def words(self, n):
        given, self._script = self._script[:n], self._script[n:]
        assert len(given) == n, "a draw asked for more bits than it needs"
        return np.array(given, dtype="<u8")


def as_words(u, refinements):
    """A number in (0, 1) as the first word and those that refine it."""
    bits = int(MP.floor(u * MP.mpf(2) ** (BITS + 64 * refinements)))
    rest = [(bits >> (64 * k)) & (2**64 - 1) for k in reversed(range(refinements))]
    return (bits >> (64 * refinements)) << (64 - BITS), rest


@pytest.fixture
def script(monkeypatch):
    """Chooses every uniform variable: `script(values)` is noise whose variables have them."""
    MP.prec = 3_000
    asked = []

    def prepare(values, before=(), refinements=40):
        first, rest = zip(*(as_words(MP.mpf(u), refinements) for u in values), strict=True)
        own = [Scripted(words) for words in rest]

        def take(uniforms, i):
            asked.append(i)
            return Refined(int(uniforms._words[i]) >> (64 - BITS), own[i])

        monkeypatch.setattr(exact.Uniforms, "__getitem__", take)
        return Scripted([*before, *first])

    prepare.asked = asked
    yield prepare
    MP.prec = 200


#: Words that make a Laplace variable of a selection positive or negative.
PLUS, MINUS = 0, 2**63


def gumbel(u):
    return -MP.log(-MP.log(MP.mpf(u)))


#: Each mechanism that adds noise and takes the largest: its noise as a function of u, and the
#: words that it draws before the uniform variables of two candidates.
KEYS = {
    "exponential": (ExponentialMechanism(1.0), gumbel, ()),
    "top 1": (TopK(1.0, 1), gumbel, ()),
    "top 2": (TopK(1.0, 2), gumbel, ()),
    "permute-and-flip": (PermuteAndFlip(1.0), lambda u: -MP.log(MP.mpf(u)), ()),
    "noisy max": (ReportNoisyMax(1.0), lambda u: -MP.log(MP.mpf(u)), (PLUS, PLUS)),
}
every_key = pytest.mark.parametrize("name", KEYS)

#: Chosen for the better candidate.
VALUES = [
    mpmath.mpf(2) ** -300,
    mpmath.mpf(2) ** -53,
    mpmath.mpf(0.01),
    mpmath.mpf(0.7),
    1 - mpmath.ldexp(1, -31),
]


def uniform_with(noise, key):
    """The u at which a monotone `noise` has the value `key`, or None if there is none."""
    if noise is gumbel:
        return MP.exp(-MP.exp(-key))
    return MP.exp(-key) if key > 0 else None


@every_key
@pytest.mark.parametrize("better", VALUES, ids=lambda u: mpmath.nstr(u, 3))
@pytest.mark.parametrize("gap", [0.0, 1.0, 36.2, 200.0, 691.0, 800.0])
def test_a_selection_turns_at_exactly_the_right_uniform_variable(script, name, better, gap):
    # The worse candidate, `gap` units below, wins if its noise exceeds that of the better one by
    # the gap. So its uniform variable is put just below and just above where that happens.
    mechanism, noise, before = KEYS[name]
    turn = uniform_with(noise, noise(better) + MP.mpf(gap))
    if turn is None or not MP.mpf(2) ** -1_500 < turn < 1 - MP.mpf(2) ** -1_500:
        pytest.skip("beyond the bits that are scripted")
    for step in (MP.ldexp(1, -1_600), min(turn, 1 - turn) / 2**10, min(turn, 1 - turn) / 2):
        for below in (True, False):
            worse = turn - step if below else turn + step
            wins = noise(worse) > noise(better) + MP.mpf(gap)
            values = [better, worse]
            found = chosen(mechanism, [gap, 0.0], script(values, before))
            assert found[0] == int(wins), f"{'below' if below else 'above'} by {float(step)}"


@every_key
def test_equal_cells_of_equal_candidates_are_told_apart_by_later_bits(script, name):
    mechanism, noise, before = KEYS[name]
    base = MP.mpf(0.3)
    for bits in (60, 200, 2_000):
        for sign in (1, -1):
            values = [base, base + sign * MP.ldexp(1, -bits)]
            best = int(noise(values[1]) > noise(values[0]))
            assert chosen(mechanism, [2.0, 2.0], script(values, before))[0] == best
            assert set(script.asked) == {0, 1}


def test_negative_laplace_noise_is_compared_with_its_sign(script):
    # Minus an exponential variable for both: the larger u wins.
    for u, best in [((0.3, 0.3 + 2.0**-53), 1), ((0.3 + 2.0**-53, 0.3), 0)]:
        noise = script([mpmath.mpf(v) for v in u], (MINUS, MINUS))
        assert chosen(ReportNoisyMax(1.0), [0.0, 0.0], noise) == (best,)


@pytest.mark.parametrize("value", [0.0, 0.4, -3.0, 40.0, -40.0, 400.0])
def test_the_sign_of_a_mirrored_column_turns_at_exactly_the_right_uniform_variable(script, value):
    chance = 1 / (1 + MP.exp(-2 * MP.mpf(value)))
    for bits in (55, 100, 2_000):
        for positive in (True, False):
            u = chance - MP.ldexp(1, -bits) if positive else chance + MP.ldexp(1, -bits)
            if not 0 < u < 1:
                continue
            # The column's own variable comes first, and one column has no rival.
            noise = script([u], before=(2**63,))
            assert chosen(ExponentialMechanism(1.0), [value], noise, True) == (int(not positive),)


#: Epsilon 1 and sensitivity 1/2.
UNITS = noisy_max.Scale(1.0, 0.5)


@pytest.mark.parametrize("symmetric", [False, True], ids=["listed", "symmetric"])
@pytest.mark.parametrize("gap", [0.0, 3.0, 35.0, 300.0])
def test_the_mirrored_column_turns_at_exactly_the_right_uniform_variable(script, gap, symmetric):
    # Rates exp(v), or exp(v) + exp(-v) for a column that stands for two opposite candidates.
    second = 0.25

    def rate(v):
        return MP.exp(v) + symmetric * MP.exp(-v)

    better = MP.mpf(0.3)
    turn = MP.exp(MP.log(better) * rate(MP.mpf(second)) / rate(MP.mpf(gap)))
    for bits in (60, 500, 2_000):
        for above in (True, False):
            worse = turn + MP.ldexp(1, -bits) if above else turn - MP.ldexp(1, -bits)
            if not 0 < worse < 1:
                continue
            sizes = noisy_max.Candidates(np.array([gap, second]), UNITS, both_signs=symmetric)
            first = noisy_max.largest(sizes, noisy_max.Gumbel(), script([better, worse]))
            assert first == [int(above)]


@pytest.mark.parametrize("utilities", [(2_000.0, 1_000.0, 0.0), (0.0, -700.0, -1_500.0, -800.0)])
def test_top_k_orders_candidates_however_far_they_are_below_the_best(utilities):
    # 100 units apart, the chance of another order is below 1e-40.
    order = tuple(np.argsort(utilities)[::-1].tolist())
    for k in range(1, len(utilities) + 1):
        for seed in range(30):
            assert chosen(TopK(1.0, k), utilities, Noise(seed)) == order[:k]


def test_top_k_orders_by_exact_keys(script):
    # Values so that the keys are at most 2^-200 apart, in an order that float64 cannot see.
    utilities, key = np.array([0.0, 0.7, -1.3, 2.0]), MP.mpf(1.5)
    for order in itertools.permutations(range(4)):
        place = {i: rank for rank, i in enumerate(order)}
        keys = [key - place[i] * MP.ldexp(1, -200) for i in range(4)]
        values = [uniform_with(gumbel, keys[i] - MP.mpf(utilities[i])) for i in range(4)]
        for k in (1, 2, 4):
            assert chosen(TopK(1.0, k), utilities, script(values)) == order[:k]


@every_kind
@pytest.mark.parametrize("scale", [1e-3, 1.0, 7.7, 3_000.5, 1e12, 1e22])
@pytest.mark.parametrize("total", [0, 5, -(2**53) - 1, 2**62])
def test_a_release_turns_at_exactly_the_right_uniform_variable(script, draws, scale, total):
    # Between two neighbouring multiples of the grid, with u just below and just above.
    MP.prec = 1_500
    grid = 2 ** max(int(np.frexp(scale)[1]) - 11, 0)
    laplace = draws is LaplaceDraws
    for z in (0.01, 1.3, 5.5, 12.0, 17.0):  # the middle, both tails, and far out
        # The boundary nearest above total + scale * z, and the noise that leads to it.
        place = MP.floor((total + MP.mpf(scale) * z) / grid)
        boundary = (place + MP.mpf(0.5)) * grid
        meant = (boundary - total) / MP.mpf(scale)
        if not 0 < meant < 30:
            continue
        if laplace:
            turn, rising = MP.exp(-meant), False
        else:
            turn, rising = MP.ncdf(meant), True
        for step in (min(turn, 1 - turn) / 2**20, MP.ldexp(1, -300)):
            for up in (True, False):
                u = turn + (step if up == rising else -step)
                noise = script([u], before=(0,) if laplace else ())
                found = rounded(total, scale, draws(1, noise))
                assert found == float(int(place + up) * grid)


@every_kind
@pytest.mark.parametrize("first", [0, 2**64 - 1], ids=["zeros", "ones"])
def test_the_outermost_cells_are_refined_until_they_say_enough(draws, first):
    class Outermost(Noise):
        """The first uniform variable is in the first or last cell; all other bits are real."""

        calls = 0

        def words(self, n):
            self.calls += 1
            uniform = self.calls == (2 if draws is LaplaceDraws else 1)
            return np.full(n, first, dtype="<u8") if uniform else super().words(n)

    for seed in range(40):
        noise = Outermost(seed)
        size = abs(rounded(0, 1_000.0, draws(1, noise))) / 1_000.0
        if draws is LaplaceDraws and first != 0:
            assert size == 0.0  # the whole cell rounds to the same multiple
            continue
        assert noise.calls >= (3 if draws is LaplaceDraws else 2)
        low, high = (8.1, 12) if draws is NormalDraws else (36, 90)
        assert low < size < high


# Laws.


def peeling_law(utilities, k):
    """k rounds of the exponential mechanism, each without those already chosen."""
    law = {}
    for order in itertools.permutations(range(len(utilities)), k):
        left, chance = list(range(len(utilities))), 1.0
        for i in order:
            chance *= np.exp(utilities[i] - logsumexp([utilities[j] for j in left]))
            left.remove(i)
        law[order] = chance
    return law


LISTS = [(0.0, 0.0, 0.0), (1.0, 0.0, -1.0, 0.5), (3.0, -2.0, 0.0), (6.0, 0.0, -1.0, 2.0)]


@pytest.mark.parametrize("symmetric", [False, True], ids=["listed", "symmetric"])
@pytest.mark.parametrize("utilities", LISTS, ids=str)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_top_k_has_the_law_of_peeling(utilities, k, symmetric):
    noise, law = Noise(64), peeling_law(np.abs(utilities) if symmetric else utilities, k)
    query, counts = Known(utilities, symmetric), dict.fromkeys(law, 0)
    for _ in range(15_000):
        counts[tuple(TopK(1.0, k).release(query, query, noise).tolist())] += 1
    assert pvalue(list(counts.values()), list(law.values())) >= FALSE_ALARM


def test_top_k_costs_as_many_bounded_range_events_as_it_selects():
    assert leaves(TopK(0.3, 5).event) == {BoundedRange(0.3): 5}


@pytest.mark.parametrize("k", [0, -1, 4])
def test_top_k_refuses_more_than_there_is(k):
    with pytest.raises(InvalidArgument, match="k="):
        chosen(TopK(1.0, k), [1.0, 2.0, 3.0], Noise(0))


@pytest.mark.parametrize("symmetric", [False, True], ids=["listed", "symmetric"])
@pytest.mark.parametrize("gap", [7.0, 8.5])
def test_rare_candidates_of_the_exponential_mechanism_have_their_weight(gap, symmetric):
    # Expected some 36 or 8 times each, and 4e-5 of the time in the symmetric list's far corner.
    draws, noise = 40_000, Noise(65)
    query = Known((gap / (1 + symmetric), 0.0), symmetric)
    signed = np.concatenate([query.utilities, -np.array(query.utilities)])
    values = signed if symmetric else np.array(query.utilities)
    law = np.exp(values - logsumexp(values))
    found = [ExponentialMechanism(1.0).release(query, query, noise) for _ in range(draws)]
    counts = np.bincount(found, minlength=len(law))
    for count, chance in zip(counts, law, strict=True):
        assert stats.binomtest(int(count), draws, chance).pvalue >= FALSE_ALARM / len(law)


LAWS = {NormalDraws: stats.norm, LaplaceDraws: stats.laplace}


@every_kind
@pytest.mark.parametrize("scale", [0.1, 1.0, 2.3, 40.0, 1_500.0, 1e6 + 0.3, 1e15, 1e22])
@pytest.mark.parametrize("total", [0, 3, -777_777, 2**52 - 12_345])
def test_rounded_noise_has_exactly_the_weight_of_each_cell(draws, scale, total):
    n = 200_000
    grid = 2 ** max(int(np.frexp(scale)[1]) - 11, 0)
    found = additive.rounded(np.full(n, total), np.array(scale), draws(n, Noise(66)))
    below = total // grid  # the multiple of the grid below the total
    place = np.rint(found / grid) - below
    inside = float(total - below * grid) / grid
    width = max(1, int(scale / grid / 8))
    edges = np.arange(-60 * width, 60 * width + 1, width) - 0.5
    counts, _ = np.histogram(place, edges)
    cdf = LAWS[draws](scale=scale / grid).cdf
    law = np.diff(cdf(edges - inside))
    outside = n - counts.sum()
    assert (
        pvalue(np.append(counts, outside), np.append(law, max(1 - law.sum(), 1e-300)))
        >= FALSE_ALARM
    )


@every_kind
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e9, 1e22])
def test_noise_has_the_tails_of_its_law(draws, scale):
    n, law = 1_000_000, LAWS[draws]
    found = additive.rounded(np.zeros(n, dtype=np.int64), np.array(scale), draws(n, Noise(67)))
    grid = 2 ** max(int(np.frexp(scale)[1]) - 11, 0)
    cuts = [1e-2, 1e-3, 1e-4, 1e-5]
    for weight in cuts:
        edge = (np.ceil(law.isf(weight) * scale / grid) + 0.5) * grid  # between two multiples
        chance = law.sf(edge / scale)
        for count in ((found > edge).sum(), (found < -edge).sum()):
            assert stats.binomtest(int(count), n, chance).pvalue >= FALSE_ALARM / (2 * len(cuts))
