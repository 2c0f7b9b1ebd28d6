"""The compiled path: its bounds hold at every step, and its selections have exactly their law.

`Truth` computes with NumPy what the kernels should know: margins, slopes in steps, totals of all
columns. `check` compares a path's whole state with it, between steps and in the middle of one. The
broken twins at the end show that a wrong state is noticed.

Seeds are fixed. Each statistical test would reject correct code with probability at most
`FALSE_ALARM` over the choice of its seed.
"""

import subprocess
import sys
from dataclasses import dataclass, field, replace

import mpmath
import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import logsumexp

from riata.bounds import Bounds
from riata.curator import Curator
from riata.engines import LocalEngine
from riata.losses import Huber, Logistic, OneAgainstRest, SmoothedHinge, Squared
from riata.mechanisms import CompiledSelections, ExponentialMechanism
from riata.mechanisms.exact import Refined, decide
from riata.mechanisms.noise import Noise
from riata.mechanisms.noisy_max import Scale
from riata.privacy.budget import Budget
from riata.problem import Problem
from riata.queries import FrankWolfePath
from riata.queries.coefficients import WEIGHT_STEP
from riata.sets import L1Ball, Simplex
from riata.solvers import PrivateFrankWolfe

from goodness_of_fit import pvalue

pytestmark = pytest.mark.matrix(one_in=7)

numba = pytest.importorskip("numba")

from riata.engines.compiled import bounds as drift  # noqa: E402
from riata.engines.compiled import moves, snapshot, transpose  # noqa: E402
from riata.engines.compiled import selection as kernel  # noqa: E402
from riata.engines.compiled import state as kinds  # noqa: E402
from riata.engines.compiled.entries import entries_by_column  # noqa: E402
from riata.engines.compiled.frank_wolfe import CompiledFrankWolfe  # noqa: E402
from riata.engines.compiled.self_check import SelfCheck  # noqa: E402
from riata.errors import InternalError  # noqa: E402

FALSE_ALARM = 1e-9
STEPS = 2.0**16
LOSSES = [
    Squared(),
    Logistic(),
    Huber(0.05),
    Huber(3.0),
    SmoothedHinge(0.05),
    SmoothedHinge(2.0),
    OneAgainstRest(Logistic(), 1),
    OneAgainstRest(SmoothedHinge(0.5), 0),
]
named = {"ids": repr}

#: The fourth kind of kernels, of one class among several and entries that are alike, takes as long
#: to be compiled as the others: not in `make test`.
LAST = pytest.mark.long


@pytest.fixture(autouse=True)
def unchecked(monkeypatch):
    """Tests here compare everything themselves, and break things on purpose."""
    monkeypatch.delenv("RIATA_SELF_CHECK", raising=False)


@dataclass
class Case:
    """A problem, its rows, and what a path on them is asked for."""

    x: object
    y: np.ndarray
    loss: object = field(default_factory=Squared)
    bounds: Bounds = field(default_factory=lambda: Bounds(1.0, 1.0))
    set: object = field(default_factory=lambda: L1Ball(2.0))
    epsilon: float = 1.0
    steps: int = 30
    adjacency: str = "replace-one"

    def problem(self):
        n, p = self.x.shape
        return Problem(self.loss, self.set, self.bounds, n, p, self.adjacency, False)

    def engine(self, kernels="numba"):
        return LocalEngine(self.x, self.y, self.bounds, kernels=kernels)

    def frank_wolfe(self):
        """A path at its beginning, with its snapshot taken."""
        frank_wolfe = self.engine().compiled_path(
            FrankWolfePath(self.problem(), self.steps), self.epsilon
        )
        return watched(frank_wolfe)


def watched(frank_wolfe):
    """Have a path remember the margins of its last snapshot, for `check`."""
    take = frank_wolfe._snapshot

    def snapshot():
        take()
        frank_wolfe.seen = frank_wolfe._rows.v.copy()

    frank_wolfe._snapshot = snapshot
    return frank_wolfe


def product_with_w(frank_wolfe):
    """v in steps of the grid of entries."""
    return frank_wolfe._rows.v * frank_wolfe._facts.level


class Truth:
    """What is so, computed without the kernels, from the rows and the vertices that were picked."""

    def __init__(self, case):
        self.case, self.query = case, FrankWolfePath(case.problem(), case.steps)
        x = case.x.toarray() if sparse.issparse(case.x) else case.x
        self.x = case.bounds.grid_x(np.asarray(x, dtype=np.float64))
        self.n, self.p = self.x.shape
        limits = np.broadcast_to(np.asarray(case.bounds.x, dtype=np.float64), self.p)
        self.relative = limits / limits.max()
        self.y = case.bounds.clip_y(case.y)
        self.slope_steps = self.query.slope_steps
        self.symmetric = self.query.polytope.symmetric
        self.strength = self.query.strength(case.epsilon)
        self.reach = self.query.polytope.reach(case.bounds)

    def w(self, vertices):
        """The path's coordinates, without scale and radius."""
        w = np.zeros(self.p)
        if not self.symmetric:
            w[0] = 1.0
        for t, vertex in enumerate(vertices):
            w[vertex % self.p] += (t + 2.0) * (1 if vertex < self.p else -1)
        return w

    def rounded(self, vertices):
        """The path's coordinates in units of the largest bound, on their grid."""
        return np.rint(self.w(vertices) * self.relative / WEIGHT_STEP) * WEIGHT_STEP

    def slopes(self, vertices, v=None):
        """Slopes and the largest one; margins from `v` where it is given."""
        w, t = self.rounded(vertices), len(vertices)
        v = self.x @ w if v is None else v
        unit = 2 / ((t + 1.0) * (t + 2.0)) * self.case.set.radius * self.case.bounds.largest / STEPS
        largest = self.case.loss.slope_bound(np.abs(w).sum() * (unit * STEPS), self.case.bounds.y)
        return self.case.loss.slope(v * unit, self.y), largest

    def totals(self, vertices, v=None):
        """The exact integers of all columns."""
        slopes, largest = self.slopes(vertices, v)
        most = self.slope_steps
        steps = np.clip(np.rint(slopes * (most / largest)), -most, most)
        return self.x.astype(np.int64).T @ steps.astype(np.int64)

    def values(self, vertices, v=None):
        """The logarithms of the weights of the vertices with a positive sign."""
        total = self.totals(vertices, v).astype(np.longdouble)
        return -np.longdouble(self.strength) * total * self.relative / (STEPS * self.slope_steps)

    def log_weights(self, values):
        if not self.symmetric:
            return values
        return np.abs(values) + np.log1p(np.exp(-2 * np.abs(values)))

    def law(self, vertices):
        """The probabilities of all vertices."""
        values = self.values(vertices).astype(np.float64)
        values = np.concatenate([values, -values]) if self.symmetric else values
        return np.exp(values - logsumexp(values))


@numba.njit  # not cached: the cache would not notice a change of the kernels
def all_bounds(now, known, hot, facts, n_hot, lows, highs):
    """The bounds of all columns, those of hot ones in place of their other bounds."""
    for k in range(len(lows)):
        lows[k], highs[k] = drift.between(k, now, known)
    for h in range(n_hot):
        k = hot.columns[h]
        low, high = drift.hot_between(h, now, known, hot, facts)
        lows[k], highs[k] = low, high


def envelope_of(frank_wolfe, now, asked=False):
    """Heights as the next proposal would have them: copies, nothing is changed.

    If the path has just `asked` for words, it has itself decided whether it keeps its envelope.
    """
    groups = kinds.Groups(*(part.copy() for part in frank_wolfe._groups))
    state = frank_wolfe._state.copy()
    st = state[0]
    outgrown = any(
        getattr(now, name) > st[allowed]
        for name, allowed in (
            ("drift2", "allowed2"),
            ("drift_max", "allowed_max"),
            ("rounding", "allowed_rounding"),
            ("strength", "allowed_strength"),
        )
    )
    if not asked and (st["n_hot"] > 0 or not frank_wolfe._facts.symmetric or outgrown):
        st["envelope"] = 0
    if st["envelope"] == 0:
        kernel.set_envelope(
            now, frank_wolfe._known, groups, frank_wolfe._hot, frank_wolfe._facts, state
        )
    return groups, state[0]


def check(frank_wolfe, truth, asked=False):
    """Compare the whole state of a path with the truth."""
    if frank_wolfe.step == truth.case.steps:
        return
    check_place(frank_wolfe, truth)
    if frank_wolfe._state["snapshots"][0] > 0:
        now = drift.numbers_now(frank_wolfe._facts, frank_wolfe._path, frank_wolfe._state)
        check_moves(frank_wolfe, truth, now)
        check_columns(frank_wolfe, truth)
        values = truth.values(frank_wolfe.vertices, product_with_w(frank_wolfe))
        check_bounds(frank_wolfe, now, values)
        check_envelope(frank_wolfe, truth, now, values, asked)
        check_hot(frank_wolfe, truth)


def check_place(frank_wolfe, truth):
    """Margins, and the sum of the sizes of the coordinates."""
    t, w = frank_wolfe.step, truth.rounded(frank_wolfe.vertices)
    assert np.array_equal(product_with_w(frank_wolfe), truth.x @ w)
    assert frank_wolfe._state["w_sum"][0] == np.abs(w).sum()
    assert frank_wolfe._path.scales[t] == pytest.approx(2 / ((t + 1) * (t + 2)), rel=1e-15)


def check_moves(frank_wolfe, truth, now):
    """How far margins went since the snapshot, and the largest slope."""
    st, rows = frank_wolfe._state[0], frank_wolfe._rows
    assert np.array_equal(rows.v0, frank_wolfe.seen)
    v, v0 = rows.v.astype(np.longdouble), rows.v0.astype(np.longdouble)
    assert st["v_largest"] >= np.abs(v - v0).max(initial=0) * (1 - 1e-15)
    assert st["v0_square"] >= (v0**2).sum()
    far = v * np.longdouble(now.factor) - v0 * np.longdouble(now.factor0)
    length, largest = np.sqrt((far**2).sum()), np.abs(far).max(initial=0)
    assert now.far2 >= length * (1 - 1e-12)
    # Three numbers that nearly cancel leave some 2^-20 of the length of m0.
    slack = (
        1e-4 * now.far_max * frank_wolfe._facts.root_n + 1e-5 * now.factor0 * st["v0_square"] ** 0.5
    )
    assert now.far2 <= length * 1.001 + slack
    assert now.far_max >= largest * (1 - 1e-12)
    right = truth.slopes(frank_wolfe.vertices, product_with_w(frank_wolfe))[1]
    assert now.largest == right


def check_columns(frank_wolfe, truth):
    """Lengths and sums of sizes are not smaller than they are, and hardly larger."""
    entries = (np.abs(truth.x) * truth.relative / STEPS).astype(np.longdouble)
    for place, right in (
        (kinds.LENGTH, np.sqrt((entries**2).sum(axis=0))),
        (kinds.SIZE, entries.sum(axis=0)),
    ):
        assert np.all(frank_wolfe._known[:, place] >= right)
        assert np.all(frank_wolfe._known[:, place] <= right * (1 + 2.0**-18) + 1e-30)


def check_bounds(frank_wolfe, now, values):
    """The value of each column lies within its bounds."""
    lows, highs = np.empty(len(values)), np.empty(len(values))
    n_hot = int(frank_wolfe._state["n_hot"][0])
    all_bounds(now, frank_wolfe._known, frank_wolfe._hot, frank_wolfe._facts, n_hot, lows, highs)
    assert np.all(-now.strength * highs <= values)
    assert np.all(-now.strength * lows >= values)


def check_envelope(frank_wolfe, truth, now, values, asked):
    """Each column is in one place, and its height at least its weight."""
    groups, state = envelope_of(frank_wolfe, now, asked)
    n_groups, n_hot = int(state["n_groups"]), int(state["n_hot"])
    hot, counts = frank_wolfe._hot.columns[:n_hot], groups.counts[:n_groups]
    held = [
        groups.order[start : start + count]
        for start, count in zip(groups.starts, counts, strict=False)
    ]
    held = np.concatenate([*held, hot]).astype(np.int64)
    assert np.array_equal(np.sort(held), np.arange(truth.p))
    assert np.array_equal(np.flatnonzero(frank_wolfe._classes >= kinds.HOT), np.sort(hot))
    counts = np.append(counts, np.ones(n_hot, dtype=np.int64))
    heights = groups.heights[: len(counts)]
    assert np.array_equal(groups.ends[: len(counts)], np.cumsum(heights * counts))
    assert 0 < groups.ends[len(counts) - 1] < 2**62
    # In logarithms, with room for what longdouble rounds.
    logs = truth.log_weights(values)[held] - np.longdouble(state["top"])
    room = np.log(np.repeat(heights, counts).astype(np.longdouble))
    room -= int(state["bits"]) * np.log(np.longdouble(2))
    assert np.all(room >= logs - np.longdouble(2.0) ** -55 * (1 + abs(state["top"])))


def check_hot(frank_wolfe, truth):
    """What moves did to the hot columns, and the inner products that were learned."""
    n_hot, facts, hot = int(frank_wolfe._state["n_hot"][0]), frank_wolfe._facts, frank_wolfe._hot
    if not facts.smooth or n_hot == 0:
        return
    columns, rows = hot.columns[:n_hot], frank_wolfe._rows
    scaled = (truth.x * truth.relative)[:, columns].astype(np.longdouble) / STEPS
    y = truth.y
    if isinstance(truth.case.loss, OneAgainstRest):
        y = truth.case.loss.inner_targets(y)
    margins = rows.v0 * facts.level * (frank_wolfe._state["scale0"][0] * facts.reach / STEPS)
    omega = np.full(len(y), 2.0)
    if facts.slope_curvature > 0:
        omega = rows.omega.astype(np.longdouble)
        assert np.allclose(rows.omega, y**2 / (2 * np.cosh(y * margins / 2)) ** 2, rtol=1e-6)
    effects = scaled.T @ (omega * rows.v)
    assert np.all(np.abs(hot.effect[:n_hot] - effects) <= hot.open[:n_hot])
    # Scores without margins, if slopes were as straight as they are at the snapshot.
    at_zero = scaled.T @ (truth.case.loss.slope(margins, truth.y) - omega * margins)
    known = hot.score[:n_hot] - hot.start[:n_hot]
    assert np.all(np.abs(known - at_zero) <= hot.doubt[:n_hot] + 1e-12)
    products = scaled.T @ (omega[:, None] * scaled) * (STEPS / facts.level)
    moved = np.flatnonzero(hot.slot[:n_hot] >= 0)
    found = hot.products[hot.slot[moved], :n_hot]
    wrong = np.abs(found - products[moved]) <= hot.errors[hot.slot[moved], :n_hot]
    assert np.all(wrong | np.isnan(found))


def checked_run(case, seed, pieces=None, every=1):
    """Go to the end with `check` between steps, and after each proposal with `pieces`."""
    frank_wolfe, truth, noise = case.frank_wolfe(), Truth(case), Noise(seed)
    selection = CompiledSelections(ExponentialMechanism(case.epsilon), 1)
    check(frank_wolfe, truth)
    while frank_wolfe.step < case.steps:
        until = frank_wolfe.step + 1
        while (question := frank_wolfe.advance(until)) is not None:
            if pieces is not None:
                check(frank_wolfe, truth, asked=question == "words")
            if question == "words":
                frank_wolfe.refill(noise.words(pieces or 64))
            else:
                frank_wolfe.answer(selection._decided(frank_wolfe, noise))
        if frank_wolfe.step % every == 0:
            check(frank_wolfe, truth)
    return frank_wolfe


# (a) The bounds hold at every step of random paths.


def rows_of(rng, n, p, kind):
    """Sparse rows of a kind, many of them beyond bounds of 1."""
    x = np.where(rng.random((n, p)) < rng.choice([0.05, 0.3, 0.9]), rng.normal(size=(n, p)), 0.0)
    if kind == "alike":
        return np.where(x != 0, rng.choice([0.3, 1.0, 9.0]), 0.0)
    x *= rng.choice([0.1, 0.5, 3.0])
    if kind == "common part":
        x += np.outer(rng.normal(size=n), rng.normal(size=p)) * 0.3
    x[:, rng.random(p) < 0.1] = 0.0  # empty columns
    odd = rng.random((n, p)) < 0.01
    x[odd] = rng.choice([np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-30], odd.sum())
    return x


def sparse_of(rng, x, layout, kind):
    """The same rows in a layout, with explicit zeros."""
    zeros = (rng.random(x.shape) < 0.02) & (kind != "alike")
    stored = sparse.coo_array((x != 0) | zeros)
    rows, columns = stored.coords
    data = x[rows, columns]
    if layout == "csc32":
        return sparse.csc_array((data.astype(np.float32), (rows, columns)), shape=x.shape)
    return sparse.coo_array((data, (rows, columns)), shape=x.shape).asformat(layout)


def random_case(seed, steps=40):
    rng = np.random.default_rng(seed)
    n, p = int(rng.choice([1, 7, 80, 250])), int(rng.choice([1, 2, 9, 40]))
    layout = str(rng.choice(["csc32", "csc", "csr", "coo"]))
    kind = rng.choice(["alone", "common part", "alike"])
    x = rows_of(rng, n, p, kind)
    limits = float(rng.choice([0.5, 1.0, 7.0]))
    if rng.random() < 0.5:
        limits = limits * rng.choice([1.0, 0.3, 0.01, 1e-6], p)
    bounds = Bounds(
        limits, float(rng.choice([0.1, 1.0, 2.0])), nonnegative=bool(rng.random() < 0.3)
    )
    y = rng.choice([-1.0, 1.0, 0.3, -5.0, np.nan, np.inf], n, p=[0.4, 0.4, 0.1, 0.05, 0.03, 0.02])
    return Case(
        sparse_of(rng, x, layout, kind), y, LOSSES[int(rng.integers(len(LOSSES)))], bounds,
        (L1Ball if rng.random() < 0.6 else Simplex)(float(rng.choice([0.2, 2.0, 30.0]))),
        float(10.0 ** rng.uniform(-3, 3)), steps, str(rng.choice(["replace-one", "add-remove"])),
    )  # fmt: skip


@pytest.mark.parametrize("seed", [*range(63), pytest.param(63, marks=LAST), *range(64, 80)])
def test_bounds_hold_on_random_paths(seed):
    checked_run(random_case(seed), seed)


@pytest.mark.parametrize("seed", range(120, 132))
def test_bounds_hold_after_every_proposal(seed):
    checked_run(random_case(seed, steps=15), seed, pieces=2)


@pytest.mark.parametrize("epsilon", [0.03, 0.5])
@pytest.mark.parametrize("loss", LOSSES, **named)
def test_an_envelope_that_is_kept_holds(loss, epsilon):
    frank_wolfe = checked_run(small_case(loss, epsilon, 50, 30, 80), 11, pieces=2)
    assert frank_wolfe._state["n_hot"][0] == 0
    if epsilon < 0.1 and not isinstance(loss, (Huber, SmoothedHinge, OneAgainstRest)):
        assert frank_wolfe._state["rebuilt"][0] < 75


def dense_case(loss, epsilon, steps, seed=0, n=240, p=24, **more):
    """Columns with many entries and a common part, so that they can become hot."""
    rng = np.random.default_rng(seed)
    x = 0.3 * rng.normal(size=(n, p)) + 0.2 * np.outer(rng.normal(size=n), rng.normal(size=p))
    x[rng.random((n, p)) < 0.4] = 0.0
    y = np.sign(x[:, :4] @ [1.0, -1.0, 0.5, 0.5] + 0.2 * rng.normal(size=n))
    return Case(
        sparse.csc_array(x.astype(np.float32)), y, loss, epsilon=epsilon, steps=steps, **more
    )


@pytest.mark.parametrize("loss", LOSSES, **named)
@pytest.mark.parametrize("epsilon", [1.0, 20.0, 1000.0])
def test_bounds_hold_where_columns_are_hot_and_snapshots_many(loss, epsilon):
    rng = np.random.default_rng(3)
    uneven = Bounds(rng.choice([1.0, 0.7, 0.02], 24), 1.0)
    for bounds in (Bounds(1.0, 1.0), uneven):
        frank_wolfe = checked_run(dense_case(loss, epsilon, 60, bounds=bounds), 1)
        state = frank_wolfe._state[0]
        if frank_wolfe._facts.smooth:
            assert state["n_hot"] > 0
        assert state["snapshots"] > 1
        assert state["sweeps"] > 0


@pytest.mark.parametrize("loss", [*LOSSES[:-1], pytest.param(LOSSES[-1], marks=LAST)], **named)
def test_bounds_hold_where_all_entries_are_alike(loss):
    for value, epsilon in ((0.3, 20.0), (1.0, 300.0)):
        case = dense_case(loss, epsilon, 60)
        case.x.data[:] = value
        frank_wolfe = checked_run(case, 1)
        assert frank_wolfe._rows.v.dtype == np.int32
        assert frank_wolfe._state["snapshots"][0] > 1


def follow(frank_wolfe, vertices):
    """Take a path where selections lead, from its beginning."""
    p = len(frank_wolfe._known)
    for t, vertex in enumerate(vertices.tolist()):
        amount = (t + 2.0) * (1 if vertex < p else -1)
        moves.begin(
            vertex % p, amount, frank_wolfe._columns, frank_wolfe._rows, frank_wolfe._facts,
            frank_wolfe._path, frank_wolfe._state,
        )  # fmt: skip


def test_a_row_has_the_same_margin_whether_others_are_alike_or_not():
    case = dense_case(Squared(), 1.0, 60)
    case.x.data[:] = 0.3  # no power of two on the grid
    vertices = at_step(case, 60).vertices
    other = replace(case, x=case.x.copy())
    other.x.data[other.x.indices == 239] = 0.7
    found = []
    for each, kind in ((case, np.int32), (other, np.float64)):
        frank_wolfe = each.engine().compiled_path(FrankWolfePath(each.problem(), 60), 1.0)
        follow(frank_wolfe, vertices)
        assert frank_wolfe._rows.v.dtype == kind
        found.append(product_with_w(frank_wolfe))
    assert np.array_equal(found[0][:239], found[1][:239])
    assert found[0][239] != found[1][239]


def learned(frank_wolfe):
    """How many inner products are known."""
    n_hot, n_moved = (int(frank_wolfe._state[name][0]) for name in ("n_hot", "n_moved"))
    return int(np.isfinite(frank_wolfe._hot.products[:n_moved, :n_hot]).sum())


def test_inner_products_are_learned_and_used():
    frank_wolfe = checked_run(dense_case(Squared(), 20.0, 80), 1)
    assert learned(frank_wolfe) > 5
    for loss in (Logistic(), OneAgainstRest(Logistic(), 1)):
        case = dense_case(loss, 3.0, 300, n=2000, p=40)
        frank_wolfe, seen = case.frank_wolfe(), 0
        truth, noise = Truth(case), Noise(2)
        for t in range(1, 300):
            advanced(frank_wolfe, noise, t, case.epsilon)
            seen = max(seen, learned(frank_wolfe))
            if t % 20 == 0:
                check(frank_wolfe, truth)
        assert seen > 0


def crossed_path(loss, same, bounds):
    """A path whose hot columns are copied row by row, and met by every column that moves."""
    case = dense_case(loss, 20.0 if loss == Squared() else 60.0, 120, p=40, bounds=bounds)
    if same:
        case.x.data[:] = np.repeat(np.linspace(0.3, 0.9, 40), np.diff(case.x.indptr))
    frank_wolfe, noise = case.frank_wolfe(), Noise(21)
    for t in range(1, 120):
        advanced(frank_wolfe, noise, t, case.epsilon)
        if t == 60:
            frank_wolfe._copy_hot()
            if frank_wolfe._state["n_hot"][0] < 4 or (len(frank_wolfe._across.values) == 0) != same:
                raise ValueError("not the path that was meant")
        if t >= 60:
            frank_wolfe._state["unknown_rate"] = 1e15
            yield case, frank_wolfe


@pytest.mark.parametrize("loss", [Squared(), Logistic()], **named)
@pytest.mark.parametrize("same", [False, True], ids=["values", "levels"])
@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
def test_inner_products_with_all_hot_columns_are_right(loss, same, uneven):
    bounds = Bounds(np.linspace(0.5, 2, 40) if uneven else 1.0, 1.0)
    truth, met = None, 0
    for case, frank_wolfe in crossed_path(loss, same, bounds):
        truth = truth or Truth(case)
        check(frank_wolfe, truth)
        met = max(met, int((frank_wolfe._hot.met[: int(frank_wolfe._state["n_hot"][0])] > 0).sum()))
    assert met > 0


@pytest.mark.parametrize("same", [False, True], ids=["values", "levels"])
def test_wrong_inner_products_with_hot_columns_are_noticed(same):
    def broken_path():
        for t, (case, frank_wolfe) in enumerate(crossed_path(Squared(), same, Bounds(1.0, 1.0))):
            if t == 0:
                part = frank_wolfe._across.levels if same else frank_wolfe._across.values
                part *= 1.001
            check(frank_wolfe, Truth(case))

    with pytest.raises(AssertionError):
        broken_path()


def test_hot_columns_are_copied_when_much_was_read_for_what_is_unknown():
    frank_wolfe = checked_run(dense_case(Squared(), 20.0, 300, p=40), 3, every=10)
    assert frank_wolfe._state["n_across"][0] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_bounds_hold_on_many_longer_random_paths(seed):
    checked_run(random_case(seed, steps=300), seed)


def advanced(frank_wolfe, noise, until, epsilon):
    """Take a path to a step, as a release does."""
    selection = CompiledSelections(ExponentialMechanism(epsilon), 1)
    while (question := frank_wolfe.advance(until)) is not None:
        if question == "words":
            frank_wolfe.refill(noise.words(64))
        else:
            frank_wolfe.answer(selection._decided(frank_wolfe, noise))
    return frank_wolfe


# (b) The law of single selections, and of several in sequence.


def copied(frank_wolfe):
    """A path at the same place, with arrays of its own."""
    copy = object.__new__(CompiledFrankWolfe)
    copy.__dict__.update({k: v for k, v in frank_wolfe.__dict__.items() if k != "_snapshot"})
    for name in ("_rows", "_groups", "_path", "_hot"):
        parts = getattr(frank_wolfe, name)
        setattr(copy, name, type(parts)(*(np.empty_like(part) for part in parts)))
    copy._state = frank_wolfe._state.copy()
    restore(copy, frank_wolfe)
    return watched(copy)


def restore(copy, frank_wolfe):
    """Bring a copy back to where the path is. What lies beyond the groups in use may differ."""
    copy._known, copy._classes = frank_wolfe._known.copy(), frank_wolfe._classes.copy()
    copy._state[:], copy._words = frank_wolfe._state, frank_wolfe._words
    n_groups, n_hot = int(frank_wolfe._state["n_groups"][0]), int(frank_wolfe._state["n_hot"][0])
    for name, size in (
        ("_rows", None), ("_path", None), ("_groups", n_groups + n_hot), ("_hot", n_hot),
    ):  # fmt: skip
        for part, origin in zip(getattr(copy, name), getattr(frank_wolfe, name), strict=True):
            some = (slice(size),) * part.ndim
            part[some] = origin[some]
    copy._groups.order[:] = frank_wolfe._groups.order


def runs_with(frank_wolfe, steps, words, epsilon, seed=0):
    """The next selections of a path, once for each row of words: an array (runs, steps)."""
    frank_wolfe._words, frank_wolfe._state["next_word"] = np.empty(0, np.uint64), 0
    quiet(frank_wolfe)
    copy, start, more = copied(frank_wolfe), frank_wolfe.step, Noise(seed)
    picked = np.empty((len(words), steps), np.int64)
    for run, row in enumerate(words):
        restore(copy, frank_wolfe)
        copy.refill(row)
        picked[run] = advanced(copy, more, start + steps, epsilon).vertices[start:]
    return picked


def joint_law(truth, vertices, steps):
    """The probabilities of all sequences of the next selections."""
    law = truth.law(vertices)
    if steps == 1:
        return law
    return np.concatenate(
        [law[i] * joint_law(truth, np.append(vertices, i), steps - 1) for i in range(len(law))]
    )


def assert_next(frank_wolfe, truth, steps, runs, seed):
    """The law of the next selections of a path."""
    vertices = frank_wolfe.vertices
    words = Noise(seed).words(runs * 32).reshape(runs, 32)
    picked = runs_with(frank_wolfe, steps, words, truth.case.epsilon, seed + 1)
    assert pvalue(counted(picked, truth), joint_law(truth, vertices, steps)) >= FALSE_ALARM


def counted(picked, truth):
    """How often each sequence of vertices was selected."""
    size, steps = truth.p * (2 if truth.symmetric else 1), picked.shape[1]
    number = picked @ size ** np.arange(steps - 1, -1, -1)
    return np.bincount(number, minlength=size**steps)


def small_case(loss, epsilon, n, p, steps, seed=5, **more):
    rng = np.random.default_rng(seed)
    x = np.where(rng.random((n, p)) < 0.6, rng.normal(size=(n, p)) * 0.5, 0.0)
    y = np.where(x[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return Case(
        sparse.csc_array(x.astype(np.float32)), y, loss, epsilon=epsilon, steps=steps, **more
    )


#: Problem, earlier selections, and how many selections are looked at jointly.
LAWS = {
    "flat": (small_case(Squared(), 0.01, 40, 9, 10), 0, 1),
    "first of all": (small_case(Logistic(), 0.5, 40, 9, 10), 0, 1),
    "few entries": (small_case(Squared(), 0.3, 50, 3, 40), 25, 3),
    "hot": (small_case(Squared(), 0.15, 200, 4, 80), 60, 2),
    "hot, logistic": (small_case(Logistic(), 0.3, 200, 4, 80), 60, 2),
    "hot, peaked": (small_case(Squared(), 1.0, 200, 12, 80), 70, 2),
    "very peaked": (small_case(Logistic(), 30.0, 200, 12, 80), 50, 2),
    "corners": (small_case(Huber(0.3), 0.2, 200, 5, 80), 40, 2),
    "sharp hinge": (small_case(SmoothedHinge(0.1), 0.2, 200, 5, 80), 40, 2),
    "simplex": (
        small_case(OneAgainstRest(Logistic(), 1), 0.3, 200, 5, 60, set=Simplex(4.0)), 30, 3,
    ),
    "uneven": (
        small_case(
            Squared(), 0.3, 200, 5, 60, bounds=Bounds(np.array([1, 0.5, 0.3, 0.9, 0.1]), 1.0),
            adjacency="add-remove",
        ), 30, 2,
    ),
}  # fmt: skip


def at_step(case, step, seed=9):
    return advanced(case.frank_wolfe(), Noise(seed), step, case.epsilon)


def quiet(frank_wolfe):
    """Nothing is due: the next proposal comes from the envelope as it is."""
    for name in ("wasted", "strayed", "unknown_read"):
        frank_wolfe._state[name] = 0
    return frank_wolfe


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("runs", [3_000, pytest.param(60_000, marks=pytest.mark.slow)])
def test_selections_follow_their_exact_law(name, runs):
    case, before, steps = LAWS[name]
    frank_wolfe = at_step(case, before)
    assert (frank_wolfe._state["n_hot"][0] > 0) == (not name.startswith(("fl", "fi", "fe")))
    assert_next(frank_wolfe, Truth(case), steps, runs, seed=31)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_selections_of_random_paths_follow_their_exact_law(seed):
    case = random_case(2000 + seed, steps=60)
    case = replace(case, epsilon=case.epsilon / 20)
    frank_wolfe = at_step(case, int(seed % 50), seed)
    assert_next(frank_wolfe, Truth(case), 1, 30_000, seed=32)


def test_releases_from_the_beginning_follow_their_exact_law():
    case = small_case(Squared(), 1.0, 30, 2, 2)
    noise, query = Noise(33), FrankWolfePath(case.problem(), 2)
    mechanism = CompiledSelections(ExponentialMechanism(case.epsilon), 2)
    engine, truth = case.engine(), Truth(case)
    engine.compiled_path(query, case.epsilon)
    entries, y = engine._entries, engine._y
    counts = np.zeros(16, dtype=np.int64)
    for _ in range(1000):
        engine._frank_wolfe = (query, CompiledFrankWolfe(entries, y, query, case.epsilon))
        first, second = mechanism.release(query, engine, noise)
        counts[4 * first + second] += 1
    assert pvalue(counts, joint_law(truth, np.empty(0, dtype=np.int64), 2)) >= FALSE_ALARM


# (c) Without noise, the plain loop.


@pytest.mark.parametrize("set_", [L1Ball(2.0), Simplex(3.0)], **named)
@pytest.mark.parametrize("loss", LOSSES, **named)
def test_a_huge_epsilon_selects_the_best_vertex(loss, set_):
    # The worse of two vertices whose log-weights differ by 60 has probability less than 1e-26.
    case = dense_case(loss, 2e4, 25, n=80, p=20, set=set_)
    truth = Truth(case)
    vertices = at_step(case, case.steps).vertices
    best = 0
    for t, vertex in enumerate(vertices):
        values = truth.values(vertices[:t])
        values = np.concatenate([values, -values]) if truth.symmetric else values
        assert values[vertex] >= values.max() - 60
        best += values[vertex] == values.max()
    assert best >= 15


@pytest.mark.parametrize("loss", LOSSES, **named)
def test_utilities_are_those_of_single_selections(loss):
    case = dense_case(loss, 1.0, 20)
    truth, query = Truth(case), FrankWolfePath(case.problem(), 20)
    frank_wolfe = at_step(case, 15)
    utilities = query.utilities(query.theta(frank_wolfe.vertices))
    totals = case.engine("numpy").total(utilities)
    now = drift.numbers_now(frank_wolfe._facts, frank_wolfe._path, frank_wolfe._state)
    found = [kernel.total_of(k, frank_wolfe._columns, frank_wolfe._rows, now, frank_wolfe._facts)
             for k in range(truth.p)]  # fmt: skip
    assert np.array_equal(found, totals)
    assert np.array_equal(truth.totals(frank_wolfe.vertices), totals)
    factor = case.epsilon / (2 * utilities.sensitivity("linf"))
    values = truth.values(frank_wolfe.vertices).astype(float)
    assert np.allclose(utilities.from_total(totals) * factor, values, rtol=1e-12, atol=1e-15)


# (d) Decisions that float64 cannot make.


def near(chance, bits=52):
    """The coin whose cell holds a probability."""
    with mpmath.workprec(300):
        return int(mpmath.floor(chance * mpmath.mpf(2) ** bits))


def proposed(frank_wolfe, truth, k):
    """The words that propose column `k` next and leave open whether it is accepted."""
    now = drift.numbers_now(frank_wolfe._facts, frank_wolfe._path, frank_wolfe._state)
    groups, state = envelope_of(frank_wolfe, now)
    n_groups, n_hot = int(state["n_groups"]), int(state["n_hot"])
    hot = list(frank_wolfe._hot.columns[:n_hot])
    if k in hot:
        group, place = n_groups + hot.index(k), 0
    else:
        for group in range(n_groups):
            start = groups.starts[group]
            held = list(groups.order[start : start + groups.counts[group]])
            if k in held:
                place = held.index(k)
                break
    count = 1 if k in hot else int(groups.counts[group])
    height = int(groups.heights[group])
    number = int(groups.ends[group]) - height * (count - place)
    values = truth.values(frank_wolfe.vertices, product_with_w(frank_wolfe))
    total = int(truth.totals(frank_wolfe.vertices, product_with_w(frank_wolfe))[k])
    utilities = truth.query.utilities(truth.query.theta(frank_wolfe.vertices))
    scale = Scale(truth.case.epsilon, utilities.sensitivity("linf"))
    with mpmath.workprec(300):
        value = scale.exact(mpmath, utilities.utility(k, total))
        log = abs(value) + mpmath.log1p(mpmath.exp(-2 * abs(value))) if truth.symmetric else value
        chance = mpmath.exp(log - mpmath.mpf(float(state["top"])))
        chance *= mpmath.mpf(2) ** int(state["bits"]) / height
        sign = 1 / (1 + mpmath.exp(-2 * value))
    assert float(value) == pytest.approx(float(values[k]), rel=1e-12)
    assert chance <= 1
    return number, chance, sign


DECISIONS = [
    dense_case(Squared(), 0.3, 60),
    dense_case(Logistic(), 1.0, 60, bounds=Bounds(np.linspace(0.2, 1, 24), 1.0)),
    dense_case(Huber(0.3), 0.3, 60, adjacency="add-remove"),
    dense_case(Logistic(), 0.5, 60, set=Simplex(2.0)),
]


@pytest.mark.parametrize("case", DECISIONS, ids=["squared", "uneven", "huber", "simplex"])
def test_what_float64_cannot_decide_is_asked_for_and_goes_on_as_answered(case):
    truth, asked = Truth(case), 0
    frank_wolfe = quiet(at_step(case, 40))
    for k in range(truth.p):
        number, chance, sign = proposed(frank_wolfe, truth, k)
        if not 1e-6 < chance < 1 - 1e-6:
            continue
        for answer in (True, False):
            for positive in (True, False):
                run = copied(frank_wolfe)
                run._words, run._state["next_word"] = np.empty(0, np.uint64), 0
                words = [number, near(chance) << 12, near(sign) << 12]
                run.refill(np.array(words, dtype=np.uint64))
                assert run.advance(41) == "decide"
                assert run._question == kernel.DECIDE_COLUMN
                assert (run.coin, int(run._state["column"][0])) == (near(chance), k)
                with mpmath.workprec(300):
                    found = run.exact_chance(mpmath, case.epsilon)
                    assert abs(found - chance) < mpmath.mpf(2) ** -200
                run.answer(answer)
                check(run, truth)
                if not answer:  # the next proposal begins with the word that is left
                    assert run._state["pending"][0] == kernel.NOTHING
                    assert run.advance(41) == "words"
                    assert run._state["next_word"][0] == 2
                    continue
                asked += 1
                question = run.advance(41)
                if truth.symmetric:
                    assert question == "decide"
                    assert run._question == kernel.DECIDE_SIGN
                    with mpmath.workprec(300):
                        found = run.exact_chance(mpmath, case.epsilon)
                        assert abs(found - sign) < mpmath.mpf(2) ** -200
                    run.answer(positive)
                    question = run.advance(41)
                else:
                    positive = True
                assert question is None
                assert run.vertices[-1] == (k if positive else k + truth.p)
                check(run, truth)
    assert asked > 10


@pytest.mark.parametrize("case", DECISIONS, ids=["squared", "uneven", "huber", "simplex"])
def test_float64_decides_as_exact_arithmetic_does_beyond_a_band(case):
    """Coins just outside the band of a column's chance, and of its sign, are not asked about."""
    truth = Truth(case)
    frank_wolfe = quiet(at_step(case, 40))
    for k in range(truth.p):
        number, chance, sign = proposed(frank_wolfe, truth, k)
        top = abs(float(frank_wolfe._state["top"][0])) + 50
        band = kernel.BAND + 2.0**-46 * top
        for gap in (-2 * band, 2 * band):
            if not 0 < chance + gap < 1:
                continue
            for sign_gap in (-2 * kernel.BAND, 2 * kernel.BAND):
                run = copied(frank_wolfe)
                run._words, run._state["next_word"] = np.empty(0, np.uint64), 0
                low = min(max(sign + sign_gap, 0), 1 - mpmath.mpf(2) ** -52)
                words = [number, near(chance + gap) << 12, near(low) << 12]
                run.refill(np.array(words, dtype=np.uint64))
                question = run.advance(41)
                if gap > 0:
                    assert question == "words"
                    assert run.step == 40
                elif 1e-9 < sign < 1 - 1e-9:
                    assert question is None
                    positive = sign_gap < 0 or not truth.symmetric
                    assert run.vertices[-1] == (k if positive else k + truth.p)


def test_a_decision_takes_further_bits_from_the_noise():
    case = DECISIONS[0]
    truth, frank_wolfe = Truth(case), quiet(at_step(case, 40))
    number, chance, _ = proposed(frank_wolfe, truth, 0)
    selection, outcomes = CompiledSelections(ExponentialMechanism(case.epsilon), 1), []
    for seed in range(200):
        run = copied(frank_wolfe)
        run._words, run._state["next_word"] = np.empty(0, np.uint64), 0
        run.refill(np.array([number, near(chance) << 12], dtype=np.uint64))
        assert run.advance(41) == "decide"
        outcomes.append(selection._decided(run, Noise(seed)))
    # In its cell, the coin is below the chance with a probability that is no 0 and no 1.
    with mpmath.workprec(200):
        part = float(chance * mpmath.mpf(2) ** 52 - near(chance))
    assert stats.binomtest(sum(outcomes), 200, part).pvalue > FALSE_ALARM
    assert decide(Refined(near(chance) - 1, Noise(0)), lambda mp, u: chance - u, lambda g: g > 0)


# (e) Words.


def trace(case, pieces, noise):
    """Selections and unused words, refilled in pieces of given sizes."""
    frank_wolfe = case.frank_wolfe()
    sizes = iter(pieces)
    while frank_wolfe.advance(case.steps) is not None:
        assert frank_wolfe._question == kernel.WORDS
        frank_wolfe.refill(noise.words(next(sizes)))
    return frank_wolfe.vertices, frank_wolfe._words[int(frank_wolfe._state["next_word"][0]) :]


@pytest.mark.parametrize("loss", [Squared(), Logistic(), Huber(0.5)], **named)
def test_refilling_at_any_point_changes_nothing(loss):
    case = dense_case(loss, 2.0, 60)
    whole, left = trace(case, [2**15], Noise(4))
    used = 2**15 - len(left)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        pieces = rng.integers(1, [3, 10, 1000][seed % 3], 2**15)
        vertices, rest = trace(case, pieces, Noise(4))
        assert np.array_equal(vertices, whole)
        # What is left is the stream from the same place on: no word is used twice, none is skipped.
        assert np.array_equal(rest, left[: len(rest)])
    assert used > 3 * case.steps


def test_words_beyond_those_used_do_not_matter_and_each_used_one_does():
    case = dense_case(Squared(), 0.5, 30)
    noise = Noise(6).words(2**12).astype(np.uint64)

    def run(words):
        frank_wolfe = case.frank_wolfe()
        frank_wolfe.refill(words)
        assert frank_wolfe.advance(case.steps) is None
        state = frank_wolfe._state[0]
        return frank_wolfe.vertices, int(state["next_word"]), int(state["proposals"])

    vertices, used, proposals = run(noise)
    other = noise.copy()
    other[used:] = ~other[used:]
    assert np.array_equal(run(other)[0], vertices)
    # Two words for each proposal, one for each sign, and at most one in eight numbers is no use.
    needed = 2 * proposals + case.steps
    assert needed <= used <= needed + proposals


@pytest.mark.parametrize("pieces", [[1] * 40, [7] * 5 + [5], [33, 7]], ids=["1", "7", "33"])
@pytest.mark.parametrize("loss", [Squared(), SmoothedHinge(0.3)], **named)
def test_a_release_in_pieces_is_one_release(loss, pieces):
    case = dense_case(loss, 3.0, 40)

    def released(pieces):
        engine, noise, query = case.engine(), Noise(8), FrankWolfePath(case.problem(), 40)
        selection = ExponentialMechanism(case.epsilon)
        return np.concatenate(
            [CompiledSelections(selection, n).release(query, engine, noise) for n in pieces]
        )

    assert np.array_equal(released([40]), released(pieces))


def test_each_release_has_its_own_epsilon():
    case = small_case(Squared(), 1e-6, 100, 6, 400)
    engine, noise, query = case.engine(), Noise(9), FrankWolfePath(case.problem(), 400)
    flat = CompiledSelections(ExponentialMechanism(1e-6), 200).release(query, engine, noise)
    assert len(np.unique(flat)) == 12
    peaked = CompiledSelections(ExponentialMechanism(1e4), 100).release(query, engine, noise)
    truth = Truth(replace(case, epsilon=1e4))
    vertices = np.concatenate([flat, peaked])
    for t in range(200, 300):
        assert truth.law(vertices[:t])[vertices[t]] > 1e-12
    flat = CompiledSelections(ExponentialMechanism(1e-6), 100).release(query, engine, noise)
    assert len(np.unique(flat)) == 12
    with pytest.raises(ValueError, match="400 steps"):
        CompiledSelections(ExponentialMechanism(1.0), 1).release(query, engine, noise)


# (f) From rows to columns.


@pytest.fixture(params=["whole", "in blocks", "in small blocks"])
def blocks(request, monkeypatch):
    """Small data that is worth threads, and many blocks if that is asked for."""
    monkeypatch.setattr(transpose, "_WORTH_THREADS", 0)
    if request.param != "whole":
        monkeypatch.setattr(transpose, "_BLOCK", 16)
    if request.param == "in small blocks":
        monkeypatch.setattr(transpose, "_CELLS", 4)
        monkeypatch.setattr(transpose, "_LARGEST", 2)


def check_columns_of_rows(x, limits, threads):
    for lowest in (-STEPS, 0.0):
        found = transpose.columns_of_rows(x, STEPS / limits, lowest, threads)
        limit = limits if len(limits) > 1 else float(limits[0])
        right = sparse.csc_array(Bounds(limit, 1.0, nonnegative=lowest == 0).grid_x(x))
        right.sort_indices()
        assert np.array_equal(found[0], right.indptr)
        assert np.array_equal(found[1], right.indices)
        assert np.array_equal(found[2], right.data)
        assert found[1].dtype == np.int32
        assert found[2].dtype == np.float32


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("whole", [np.int32, np.int64])
def test_columns_of_rows_are_those_of_scipy(threads, whole, blocks):
    rng = np.random.default_rng(7)
    for n, p in [(1, 1), (1, 9), (9, 1), (60, 40), (500, 3), (3, 500), (40, 64)]:
        for filled in (0.0, 0.02, 0.4, 1.0):
            x = np.where(rng.random((n, p)) < filled, rng.normal(size=(n, p)), 0.0)
            x[rng.random(n) < 0.2] = 0.0
            x[:, rng.random(p) < 0.2] = 0.0
            x = sparse.csr_array(x.astype(rng.choice([np.float32, np.float64])))
            x.indptr, x.indices = x.indptr.astype(whole), x.indices.astype(whole)
            check_columns_of_rows(x, rng.choice([0.5, 2.0], p), threads)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("whole", [np.int32, np.int64])
@pytest.mark.parametrize("p", [2**14 - 1, 2**14, 2**14 + 1, 2**20, 2**20 + 12_345])
def test_many_columns_of_rows_in_any_order(threads, whole, p, blocks):
    rng = np.random.default_rng(9)
    n, entries = 50, 3_000
    columns = np.where(rng.random(entries) < 0.5, rng.integers(p, size=entries), p - 1)
    columns[::5] = rng.integers(12, size=len(columns[::5]))  # popular neighbours
    places = np.unique(rng.integers(n // 2, size=entries) * 2 * p + columns)  # and empty rows
    at, columns = np.divmod(places, p)
    order = np.lexsort((rng.random(len(at)), at))
    values = rng.normal(size=len(at))
    values[::7] = rng.choice([np.nan, np.inf, -np.inf, 1e300, -1e300, -0.0, 1e-9], len(at[::7]))
    starts = np.searchsorted(at, np.arange(n + 1))
    x = sparse.csr_array((values, columns[order].astype(np.int32), starts), shape=(n, p))
    x.indptr, x.indices = x.indptr.astype(whole), x.indices.astype(whole)
    assert not x.has_sorted_indices
    check_columns_of_rows(x, np.ones(1), threads)


def test_a_popular_column_beside_others_is_not_copied(monkeypatch):
    monkeypatch.setattr(transpose, "_BLOCK", 16)
    x = np.zeros((4_000, 12))
    x[:, 5], x[::500] = 1.0, 1.0
    copied, sort = [], transpose.sort
    monkeypatch.setattr(transpose, "sort", lambda *a: (copied.append(len(a[-1])), sort(*a)))
    check_columns_of_rows(sparse.csr_array(x), np.ones(1), 1)
    assert max(copied) <= 32


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, bool, np.longdouble])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_entries_are_those_of_the_plain_engine(dtype, layout):
    rng = np.random.default_rng(8)
    x = (rng.normal(size=(30, 12)) * 2).astype(dtype)
    x[rng.random(x.shape) < 0.5] = 0
    bounds = Bounds(rng.choice([0.3, 1.0], 12), 1.0)
    columns = entries_by_column(sparse.coo_array(x).asformat(layout), bounds).columns
    found = np.zeros(x.shape)
    for k in range(12):
        part = slice(int(columns.indptr[k]), int(columns.indptr[k + 1]))
        unit = columns.units[k] if len(columns.units) > 1 else columns.units[0]
        assert columns.stride == 1
        steps = [snapshot.on_grid(value, unit, columns.lowest) for value in columns.data[part]]
        found[columns.indices[part], k] = steps
    assert np.array_equal(found, bounds.grid_x(x.astype(np.float64)))


def test_duplicates_count_once_and_depend_on_their_row_alone():
    # Their sum depends on the order. Beside many other rows a sort by columns would change it.
    one = [(0, 0, 1e30), (0, 0, 0.25), (0, 0, -1e30), (0, 0, 0.5)]
    bounds, found = Bounds(1.0, 1.0), set()
    for others in (0, 3, 40, 200):
        rng = np.random.default_rng(others)
        places = [*one, *((int(i), 0, 0.1) for i in rng.permutation(others) + 1)]
        order = np.argsort(rng.random(len(places)) * 0 + [p[0] * 0 for p in places], kind="stable")
        rows, _, data = (np.array(part) for part in zip(*(places[i] for i in order), strict=True))
        x = sparse.csc_array(
            (data.astype(np.float32), rows.astype(np.int32), np.array([0, len(rows)])),
            shape=(others + 1, 1),
        )
        assert not x.has_canonical_format
        columns = entries_by_column(x, bounds).columns
        assert columns.indptr[1] == others + 1
        found.add(float(columns.data[0]))
        assert abs(columns.data[0]) <= STEPS
    assert len(found) == 1


# The self-check.


def test_a_self_check_changes_no_release_and_notices_wrong_sums(monkeypatch):
    case = small_case(Logistic(), 0.5, 50, 30, 80)

    def selections():
        release = CompiledSelections(ExponentialMechanism(case.epsilon), 40).release
        return release(FrankWolfePath(case.problem(), 40), case.engine(), Noise(8))

    plain, compare, steps = selections(), SelfCheck.compare, []
    monkeypatch.setattr(
        SelfCheck, "compare", lambda self, *a: (steps.append(len(a[-1])), compare(self, *a))
    )
    monkeypatch.setenv("RIATA_SELF_CHECK", "1")
    for _ in range(5):
        np.testing.assert_array_equal(selections(), plain)
    assert len(steps) == 5
    assert len(set(steps)) > 1
    total = LocalEngine.total
    monkeypatch.setattr(LocalEngine, "total", lambda self, query: total(self, query) + 1)
    with pytest.raises(InternalError, match="plain sums"):
        selections()


# (g) When a path is compiled.


def test_whether_a_path_is_compiled_depends_on_public_facts_alone():
    rng = np.random.default_rng(9)
    for steps in (10, 10**4, 2 * 10**5):
        for epsilon in (1e-3, 1.0, 1e6):
            answers = set()
            for filled in (0.0, 0.1, 1.0):
                x = sparse.csr_array(np.where(rng.random((50, 6)) < filled, np.inf, 0.0))
                case = Case(x, rng.normal(size=50) * 1e9, steps=steps)
                query = FrankWolfePath(case.problem(), steps)
                answers.add(LocalEngine(x, case.y, case.bounds).compiles(query, epsilon))
                assert not case.engine("numpy").compiles(query, epsilon)
                assert case.engine("numba").compiles(query, epsilon) == (epsilon < 1e6)
                dense = LocalEngine(x.toarray(), case.y, case.bounds, kernels="numba")
                assert not dense.compiles(query, epsilon)
            assert answers == {steps >= 10**5 and epsilon < 1e6}


@pytest.mark.parametrize("scale", [1e-50, 1e-13, 1e13, 1e50])
def test_paths_beyond_what_32_bits_hold_are_not_compiled(scale):
    case = small_case(Squared(), 1.0, 20, 3, 5)
    for changed in (
        replace(case, bounds=Bounds(1.0, scale)),
        replace(case, set=L1Ball(scale)),
        replace(case, loss=Huber(scale)),
    ):
        query = FrankWolfePath(changed.problem(), 5)
        assert not changed.engine().compiles(query, 1.0)
        with pytest.raises(ValueError, match="does not know"):
            changed.engine().compiled_path(query, 1.0)


def test_rows_without_entries_and_rows_that_are_missing_are_selected_from_at_random():
    for x in (sparse.csr_array((20, 6)), sparse.csc_array(np.full((20, 6), np.nan))):
        for set_ in (L1Ball(1.0), Simplex(1.0)):
            case = Case(x, np.ones(20), set=set_, epsilon=100.0, steps=60)
            vertices = checked_run(case, 3).vertices
            assert len(np.unique(vertices)) > 4


SMALL_FIT = """
import sys
import numpy as np
from scipy import sparse
from riata import Bounds, PrivateLasso
x = sparse.random_array((300, 20), density=0.3, rng=np.random.default_rng(0), format="csr")
PrivateLasso(1.0, 1e-6, radius=1.0, bounds=Bounds(1.0, 1.0), fit_intercept=False).fit(
    x, np.ones(300)
)
assert "numba" not in sys.modules
"""


def test_a_small_fit_does_not_import_the_compiler():
    subprocess.run([sys.executable, "-W", "ignore", "-c", SMALL_FIT], check=True, timeout=3600)


def solutions(case, kernels, seeds):
    """The mean losses that the solver reaches."""
    problem, solver = case.problem(), PrivateFrankWolfe(case.steps, "exponential")
    plan = solver.plan(problem, Budget(case.epsilon, 1e-6))
    x = case.bounds.grid_x(case.x.toarray()) / STEPS
    found = []
    for seed in seeds:
        engine = case.engine(kernels)
        curator = Curator.open(
            plan.event, read=lambda engine=engine: engine, noise=Noise(seed),
            adjacency=case.adjacency,
        )  # fmt: skip
        theta = solver.run(plan, problem, curator).theta.dense()
        found.append(float(case.loss.value(x @ theta, case.y).mean()))
    return np.array(found)


@pytest.mark.parametrize("loss", [Squared(), Logistic()], **named)
def test_both_ways_lead_to_the_same_losses(loss):
    """A rank test between the two: false alarms as for the others."""
    case = dense_case(loss, 30.0, 15, n=150, p=12)
    compiled, plain = (solutions(case, kernels, range(60)) for kernels in ("numba", "numpy"))
    assert stats.mannwhitneyu(compiled, plain).pvalue > FALSE_ALARM
    assert np.median(compiled) == pytest.approx(np.median(plain), rel=0.05)


# (h) Broken twins.


def broken(frank_wolfe, name):
    """Break the state of a path, in one of several ways."""
    state, hot, groups = frank_wolfe._state, frank_wolfe._hot, frank_wolfe._groups
    n_hot, n_groups = int(state["n_hot"][0]), int(state["n_groups"][0])
    full = int(np.argmax(groups.counts[:n_groups]))
    if name == "short columns":
        frank_wolfe._known[:, kinds.LENGTH] /= 2
    elif name == "small columns":
        frank_wolfe._known[:, kinds.SIZE] *= 0.9
    elif name == "wrong scores":
        frank_wolfe._known[:, kinds.SCORE] += 2.0 * frank_wolfe._known[:, kinds.SIZE]
    elif name == "wrong start":
        hot.start[:n_hot] += 0.01 * frank_wolfe._known[hot.columns[:n_hot], kinds.SIZE]
    elif name == "wrong effect":
        hot.effect[:n_hot] += 0.05 * STEPS * frank_wolfe._known[hot.columns[:n_hot], kinds.SIZE]
    elif name == "nothing open":
        hot.open[:n_hot] = 0
        hot.effect[:n_hot] *= 0.5
    elif name == "wrong products":
        hot.products[: int(state["n_moved"][0]), :n_hot] *= 1 + 1e-6
    elif name == "a column in no group":
        groups.counts[full] -= 1
    elif name == "a column twice":
        groups.order[groups.starts[full]] = groups.order[groups.starts[full] + 1]
    elif name == "low groups":
        groups.score[:n_groups] = groups.length[:n_groups] = groups.size[:n_groups] = 0
    elif name == "nothing moved":
        state["v_square"] = state["v_turnover"] = 0
    elif name == "small moves":
        state["v_largest"] = 0
    elif name == "a sweep that saw nothing":
        state["swept_largest"] = state["up"] = state["down"] = 0
        state["swept_scale"] = frank_wolfe._path.scales[frank_wolfe.step]
    elif name == "a margin":
        frank_wolfe._rows.v[3] += 1
    elif name == "the sum of sizes":
        state["w_sum"] *= 0.9
    elif name == "half the slope":
        frank_wolfe._facts = frank_wolfe._facts._replace(
            steep=frank_wolfe._facts.steep / 8, slope_curvature=0.0
        )
        hot.effect[:n_hot] = 0
    elif name == "another epsilon":
        frank_wolfe._facts = frank_wolfe._facts._replace(strength=3.0 * frank_wolfe._facts.strength)
    else:
        raise ValueError(name)


def twin(epsilon=20.0):
    """A path with hot columns, learned products, and moves since the snapshot."""
    case = dense_case(Squared(), epsilon, 80, p=40)
    frank_wolfe = case.frank_wolfe()
    noise = Noise(12)
    for t in range(1, 79):
        advanced(frank_wolfe, noise, t, case.epsilon)
        state = frank_wolfe._state[0]
        known = learned(frank_wolfe) > 0
        grouped = frank_wolfe._groups.counts[: int(state["n_groups"])].max() > 1
        if t > 20 and known and grouped and state["v_square"] > 0:
            return case, frank_wolfe
    raise AssertionError("no such state was met")


BROKEN = [
    "short columns", "small columns", "wrong scores", "wrong start", "wrong effect",
    "nothing open", "wrong products", "a column in no group", "a column twice", "low groups",
    "nothing moved", "small moves", "a sweep that saw nothing", "a margin", "the sum of sizes",
    "half the slope", "another epsilon",
]  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_state_is_noticed(name):
    case, frank_wolfe = twin()
    check(frank_wolfe, Truth(case))
    broken(frank_wolfe, name)
    with pytest.raises(AssertionError):
        check(frank_wolfe, Truth(case))


@pytest.mark.parametrize("name", ["a column twice", "a column in no group", "another epsilon"])
def test_a_broken_state_is_noticed_in_the_law(name):
    case = small_case(Squared(), 1.0, 50, 3, 40)
    frank_wolfe = at_step(case, 2)
    assert_next(copied(frank_wolfe), Truth(case), 1, 4_000, seed=34)
    broken(frank_wolfe, name)
    with pytest.raises(AssertionError):
        assert_next(frank_wolfe, Truth(case), 1, 4_000, seed=34)


def test_an_envelope_that_is_kept_too_long_is_noticed():
    case = small_case(Squared(), 0.5, 60, 20, 400)
    truth, noise = Truth(case), Noise(13)
    kept = ("allowed2", "allowed_max", "allowed_rounding", "allowed_strength")

    def go_on(allowed):
        frank_wolfe = at_step(case, 1)
        for t in range(2, 40):
            for name in kept:
                frank_wolfe._state[name] = max(frank_wolfe._state[name][0], allowed)
            advanced(frank_wolfe, noise, t, case.epsilon)
            check(frank_wolfe, truth)

    go_on(0.0)
    with pytest.raises(AssertionError):
        go_on(np.inf)


def test_a_snapshot_of_other_margins_is_noticed(monkeypatch):
    # A thread that was late: some rows look as they did one step before.
    case = dense_case(Logistic(), 5.0, 60)
    look = snapshot.look_at_rows

    def late(rows, facts, grid, slopes, begin, end):
        found = look(rows, facts, grid, slopes, begin, end)
        slopes[begin : begin + 20] *= 0.5
        return found

    monkeypatch.setattr(snapshot, "look_at_rows", late)
    with pytest.raises(AssertionError):
        checked_run(case, 14)


@pytest.mark.parametrize("name", ["drift2", "drift_max", "rounding", "strength", None])
def test_an_envelope_is_given_up_once_one_of_its_margins_is_outgrown(name):
    frank_wolfe = at_step(small_case(Logistic(), 0.03, 50, 30, 80), 20)
    frank_wolfe._words, frank_wolfe._state["next_word"] = np.empty(0, np.uint64), 0
    now = drift.numbers_now(frank_wolfe._facts, frank_wolfe._path, frank_wolfe._state)
    allowed = {
        "drift2": "allowed2", "drift_max": "allowed_max", "rounding": "allowed_rounding",
        "strength": "allowed_strength",
    }  # fmt: skip
    assert frank_wolfe._state["n_hot"][0] == 0
    frank_wolfe._state["envelope"] = 1
    for margin, place in allowed.items():
        frank_wolfe._state[place] = getattr(now, margin) * (0.99 if margin == name else 1.01)
    assert frank_wolfe.advance(21) == "words"
    assert frank_wolfe._state["envelope"][0] == (name is None)
