"""The compiled walk: its bounds hold at every step, and its selections have exactly their law.

`Truth` computes with NumPy what the kernels should know: margins, slopes in steps, the totals of all
columns. `check` compares a walk's whole state with it, between steps and in the middle of one. The
broken twins at the end show that a wrong state is noticed.

Seeds are fixed. Each statistical test would reject correct code with probability at most
`FALSE_ALARM` over the choice of its seed.
"""

import math
import subprocess
import sys
from dataclasses import dataclass, field, replace

import mpmath
import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import logsumexp

from riata.bounds import Bounds
from riata.engines import LocalEngine
from riata.losses import Huber, Logistic, OneAgainstRest, SmoothedHinge, Squared
from riata.mechanisms import ExponentialMechanism, SelectionsAlong
from riata.mechanisms.exact import Refined, decide
from riata.mechanisms.noise import Noise
from riata.problem import Problem
from riata.sets import L1Ball, Simplex

numba = pytest.importorskip("numba")

from riata.engines.kernels import walk as kernel  # noqa: E402
from riata.engines.kernels.transpose import columns_of_rows  # noqa: E402
from riata.engines.walker import Walker, entries_by_column  # noqa: E402

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


@dataclass
class Case:
    """A problem, its rows, and what a walk on them is asked for."""

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

    def walker(self):
        """A walk at its beginning, with its snapshot taken."""
        walker = self.engine().walker(self.problem().walk(self.steps), self.epsilon)
        return watched(walker)


def watched(walker):
    """Have a walk remember the margins of its last snapshot, for `check`."""
    take = walker._snapshot

    def snapshot():
        take()
        walker.v0 = walker._rows.v.copy()

    walker._snapshot = snapshot
    return walker


class Truth:
    """What is so, computed without the kernels, from the rows and the vertices that were picked."""

    def __init__(self, case):
        self.case, self.query = case, case.problem().walk(case.steps)
        x = case.x.toarray() if sparse.issparse(case.x) else case.x
        self.x = case.bounds.grid_x(np.asarray(x, dtype=np.float64))
        self.n, self.p = self.x.shape
        limits = np.broadcast_to(np.asarray(case.bounds.x, dtype=np.float64), self.p)
        self.relative = limits / limits.max()
        self.y = case.bounds.clip_y(case.y)
        self.mirrored = self.query.polytope.mirrored
        self.strength = case.epsilon / (2 * self.query.changed)
        self.reach = self.query.polytope.reach(case.bounds)

    def w(self, vertices):
        """The walk's coordinates, without scale and radius."""
        w = np.zeros(self.p)
        if not self.mirrored:
            w[0] = 1.0
        for t, vertex in enumerate(vertices):
            w[vertex % self.p] += (t + 2.0) * (1 if vertex < self.p else -1)
        return w

    def slopes(self, vertices, v=None):
        """Slopes and the largest one; margins from `v` where it is given."""
        w, t = self.w(vertices), len(vertices)
        v = self.x @ (w * self.relative) if v is None else v
        scale = 2 / ((t + 1.0) * (t + 2.0))
        bound = scale * self.reach * float(np.abs(w) @ self.relative)
        largest = self.case.loss.slope_bound(bound, self.case.bounds.y)
        margins = v * (scale * self.reach / STEPS)
        return self.case.loss.slope(margins, self.y), largest

    def totals(self, vertices, v=None):
        """The exact integers of all columns."""
        slopes, largest = self.slopes(vertices, v)
        steps = np.clip(np.rint(slopes * (STEPS / largest)), -STEPS, STEPS)
        assert self.n < 2**20  # so that float64 adds them without rounding
        return self.x.T @ steps

    def values(self, vertices, v=None):
        """The logarithms of the weights of the vertices with a positive sign."""
        total = self.totals(vertices, v).astype(np.longdouble)
        return -np.longdouble(self.strength) * total * self.relative / STEPS**2

    def log_weights(self, values):
        if not self.mirrored:
            return values
        return np.abs(values) + np.log1p(np.exp(-2 * np.abs(values)))

    def law(self, vertices):
        """The probabilities of all vertices."""
        values = self.values(vertices).astype(np.float64)
        values = np.concatenate([values, -values]) if self.mirrored else values
        return np.exp(values - logsumexp(values))


@numba.njit  # not cached: the cache would not notice a change of the kernels
def all_bounds(now, known, hot, facts, n_hot, lows, highs):
    """The bounds of all columns, those of hot ones in place of their other bounds."""
    for k in range(len(lows)):
        lows[k], highs[k] = kernel.between(k, now, known, facts)
    for h in range(n_hot):
        k = hot.columns[h]
        low, high = kernel.hot_between(h, now, known, hot, facts)
        lows[k], highs[k] = low, high


def envelope_of(walker, now):
    """Heights as the next proposal would have them: copies, nothing is changed."""
    groups = kernel.Groups(*(part.copy() for part in walker._groups))
    state = walker._state.copy()
    st = state[0]
    outgrown = any(
        getattr(now, name) > st[allowed]
        for name, allowed in (
            ("drift2", "allowed2"),
            ("drift_max", "allowed_max"),
            ("rest", "allowed_rest"),
            ("rest_max", "allowed_rest_max"),
            ("rounding", "allowed_rounding"),
            ("strength", "allowed_strength"),
        )
    )
    if st["n_hot"] > 0 or not walker._facts.mirrored or outgrown:
        st["envelope"] = 0
    if st["envelope"] == 0:
        kernel.set_envelope(now, walker._known, groups, walker._hot, walker._facts, state)
    return groups, state[0]


def check(walker, truth):
    """Compare the whole state of a walk with the truth."""
    if walker.step == truth.case.steps:
        return
    check_place(walker, truth)
    if walker._state["snapshots"][0] > 0:
        now = kernel.numbers_now(walker._facts, walker._walk, walker._state)
        check_moves(walker, truth, now)
        check_columns(walker, truth)
        values = truth.values(walker.vertices, walker._rows.v)
        check_bounds(walker, now, values)
        check_envelope(walker, truth, now, values)
        check_hot(walker, truth)


def check_place(walker, truth):
    """Margins, and the sum of the sizes of the coordinates."""
    t, w = walker.step, truth.w(walker.vertices)
    v, found = truth.x @ (w * truth.relative), walker._rows.v
    if np.all(truth.relative == 1):
        assert np.array_equal(found, v)
    assert np.allclose(found, v, rtol=0, atol=1e-12 * STEPS * (t + 2) ** 2)
    right = np.abs(w) @ truth.relative
    assert walker._state["w_sum"][0] == pytest.approx(right, rel=1e-12, abs=1e-12 * (t + 1))
    assert walker._walk.scales[t] == pytest.approx(2 / ((t + 1) * (t + 2)), rel=1e-15)


def check_moves(walker, truth, now):
    """How far margins went since the snapshot, and the largest slope."""
    st, facts = walker._state[0], walker._facts
    moved, v = walker._rows.moved, walker._rows.v
    assert np.allclose(moved, v - walker.v0, rtol=1e-12, atol=1e-9)
    assert st["v_largest"] >= np.abs(moved).max(initial=0)
    square = (moved.astype(np.longdouble) ** 2).sum()
    assert st["v_square"] + st["v_turnover"] * 2.0**-52 >= square
    length = float(np.sqrt(square)) * now.factor
    assert now.moved2 >= length * (1 - 1e-15)
    assert now.moved2 <= length * 1.001 + 1e-4 * now.moved_max * facts.root_n
    assert now.largest == pytest.approx(truth.slopes(walker.vertices, v)[1], rel=1e-12)


def check_columns(walker, truth):
    """Lengths and sums of sizes are not smaller than they are, and hardly larger."""
    entries = (np.abs(truth.x) * truth.relative / STEPS).astype(np.longdouble)
    for place, right in (
        (kernel.LENGTH, np.sqrt((entries**2).sum(axis=0))),
        (kernel.SIZE, entries.sum(axis=0)),
    ):
        assert np.all(walker._known[:, place] >= right)
        assert np.all(walker._known[:, place] <= right * (1 + 2.0**-18) + 1e-30)


def check_bounds(walker, now, values):
    """The value of each column lies within its bounds."""
    lows, highs = np.empty(len(values)), np.empty(len(values))
    n_hot = int(walker._state["n_hot"][0])
    all_bounds(now, walker._known, walker._hot, walker._facts, n_hot, lows, highs)
    assert np.all(-now.strength * highs <= values)
    assert np.all(-now.strength * lows >= values)


def check_envelope(walker, truth, now, values):
    """Each column is in one place, and its height at least its weight."""
    groups, state = envelope_of(walker, now)
    n_groups, n_hot = int(state["n_groups"]), int(state["n_hot"])
    hot, counts = walker._hot.columns[:n_hot], groups.counts[:n_groups]
    held = [
        groups.order[start : start + count]
        for start, count in zip(groups.starts, counts, strict=False)
    ]
    held = np.concatenate([*held, hot]).astype(np.int64)
    assert np.array_equal(np.sort(held), np.arange(truth.p))
    assert np.array_equal(np.flatnonzero(walker._classes >= kernel.HOT), np.sort(hot))
    counts = np.append(counts, np.ones(n_hot, dtype=np.int64))
    heights = groups.heights[: len(counts)]
    assert np.array_equal(groups.ends[: len(counts)], np.cumsum(heights * counts))
    assert 0 < groups.ends[len(counts) - 1] < 2**62
    # In logarithms, with room for what longdouble rounds.
    logs = truth.log_weights(values)[held] - np.longdouble(state["top"])
    room = np.log(np.repeat(heights, counts).astype(np.longdouble))
    room -= int(state["bits"]) * np.log(np.longdouble(2))
    assert np.all(room >= logs - np.longdouble(2.0) ** -55 * (1 + abs(state["top"])))


def check_hot(walker, truth):
    """What moves did to the hot columns, and the inner products that were learned."""
    n_hot, facts, hot = int(walker._state["n_hot"][0]), walker._facts, walker._hot
    if not facts.smooth or n_hot == 0:
        return
    columns = hot.columns[:n_hot]
    scaled = (truth.x * truth.relative)[:, columns].astype(np.longdouble)
    omega, moved = walker._rows.omega, walker._rows.moved
    margins = walker.v0 * (walker._state["scale0"][0] * facts.reach / STEPS)
    y = truth.y
    if isinstance(truth.case.loss, OneAgainstRest):
        y = truth.case.loss.labels(y)
    right = y**2 / (2 * np.cosh(y * margins / 2)) ** 2
    assert np.allclose(omega, 2.0 if facts.bend == 0 else right, rtol=1e-6)
    effects = scaled.T @ (omega * moved) / STEPS
    assert np.all(np.abs(hot.effect[:n_hot] - effects) <= hot.open[:n_hot])
    products = scaled.T @ (omega[:, None] * scaled) / STEPS
    known = ~np.isnan(hot.products[:n_hot, :n_hot])
    wrong = np.abs(hot.products[:n_hot, :n_hot] - products)
    assert np.all((wrong <= hot.errors[:n_hot, :n_hot])[known])


def checked_run(case, seed, pieces=None, every=1):
    """Walk to the end with `check` between steps, and after each proposal if `pieces` is given."""
    walker, truth, noise = case.walker(), Truth(case), Noise(seed)
    selection = SelectionsAlong(ExponentialMechanism(case.epsilon), 1)
    check(walker, truth)
    while walker.step < case.steps:
        until = walker.step + 1
        while (question := walker.advance(until)) is not None:
            if question == "words":
                walker.refill(noise.words(pieces or 64))
            else:
                walker.answer(selection._decided(walker, noise))
            if pieces is not None:
                check(walker, truth)
        if walker.step % every == 0:
            check(walker, truth)
    return walker


# (a) The bounds hold at every step of random walks.


def rows_of(rng, n, p, kind):
    """Sparse rows of a kind, many of them beyond bounds of 1."""
    x = np.where(rng.random((n, p)) < rng.choice([0.05, 0.3, 0.9]), rng.normal(size=(n, p)), 0.0)
    x *= rng.choice([0.1, 0.5, 3.0])
    if kind == "common part":
        x += np.outer(rng.normal(size=n), rng.normal(size=p)) * 0.3
    x[:, rng.random(p) < 0.1] = 0.0  # empty columns
    odd = rng.random((n, p)) < 0.01
    x[odd] = rng.choice([np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-30], odd.sum())
    return x


def sparse_of(rng, x, layout):
    """The same rows in a layout, with explicit zeros."""
    stored = sparse.coo_array((x != 0) | (rng.random(x.shape) < 0.02))
    rows, columns = stored.coords
    data = x[rows, columns]
    if layout == "csc32":
        return sparse.csc_array((data.astype(np.float32), (rows, columns)), shape=x.shape)
    return sparse.coo_array((data, (rows, columns)), shape=x.shape).asformat(layout)


def random_case(seed, steps=40):
    rng = np.random.default_rng(seed)
    n, p = int(rng.choice([1, 7, 80, 250])), int(rng.choice([1, 2, 9, 40]))
    layout = str(rng.choice(["csc32", "csc", "csr", "coo"]))
    x = rows_of(rng, n, p, rng.choice(["alone", "common part"]))
    limits = float(rng.choice([0.5, 1.0, 7.0]))
    if rng.random() < 0.5:
        limits = limits * rng.choice([1.0, 0.3, 0.01, 1e-6], p)
    bounds = Bounds(
        limits, float(rng.choice([0.1, 1.0, 2.0])), nonnegative=bool(rng.random() < 0.3)
    )
    y = rng.choice([-1.0, 1.0, 0.3, -5.0, np.nan, np.inf], n, p=[0.4, 0.4, 0.1, 0.05, 0.03, 0.02])
    return Case(
        sparse_of(rng, x, layout), y, LOSSES[int(rng.integers(len(LOSSES)))], bounds,
        (L1Ball if rng.random() < 0.6 else Simplex)(float(rng.choice([0.2, 2.0, 30.0]))),
        float(10.0 ** rng.uniform(-3, 3)), steps, str(rng.choice(["replace-one", "add-remove"])),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(120))
def test_bounds_hold_on_random_walks(seed):
    checked_run(random_case(seed), seed)


@pytest.mark.parametrize("seed", range(120, 140))
def test_bounds_hold_after_every_proposal(seed):
    checked_run(random_case(seed, steps=15), seed, pieces=2)


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
        walker = checked_run(dense_case(loss, epsilon, 60, bounds=bounds), 1)
        state = walker._state[0]
        assert state["n_hot"] > 0
        assert state["snapshots"] > 1
        if walker._facts.smooth and epsilon < 1000:
            assert state["regroupings"] > 0


def test_inner_products_are_learned_and_used():
    walker = checked_run(dense_case(Squared(), 20.0, 80), 1)
    assert np.isfinite(walker._hot.products).sum() > 5
    for loss in (Logistic(), OneAgainstRest(Logistic(), 1)):
        case = dense_case(loss, 3.0, 300, n=2000, p=40)
        walker, seen = case.walker(), 0
        truth, noise = Truth(case), Noise(2)
        for t in range(1, 300):
            advanced(walker, noise, t, case.epsilon)
            seen = max(seen, int(np.isfinite(walker._hot.products).sum()))
            if t % 20 == 0:
                check(walker, truth)
        assert seen > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_bounds_hold_on_many_longer_random_walks(seed):
    checked_run(random_case(seed, steps=300), seed)


def advanced(walker, noise, until, epsilon):
    """Take a walk to a step, as a release does."""
    selection = SelectionsAlong(ExponentialMechanism(epsilon), 1)
    while (question := walker.advance(until)) is not None:
        if question == "words":
            walker.refill(noise.words(64))
        else:
            walker.answer(selection._decided(walker, noise))
    return walker
