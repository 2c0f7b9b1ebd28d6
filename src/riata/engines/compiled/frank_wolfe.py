"""A Frank-Wolfe path over sparse columns, step by step in compiled code."""

from __future__ import annotations

import hashlib
import logging
import math
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from riata.bounds import Bounds, canonical_rows
from riata.engines.compiled import bounds as drift
from riata.engines.compiled import hot, jit, losses, moves, selection, snapshot, state, transpose
from riata.engines.compiled.codes import known_loss
from riata.grid import X_STEPS
from riata.losses import OneAgainstRest
from riata.mechanisms.engine import CompiledPath
from riata.mechanisms.noisy_max import Scale
from riata.queries import FrankWolfePath
from riata.queries.coefficients import WEIGHT_STEP
from riata.sets import Simplex

#: One column for so many entries gets bounds of its own at the second snapshot.
_ENTRIES_A_HOT = 2**16

#: So many entries of hot columns may be copied.
_MOST_COPIED = 2**31

#: Slopes are computed for so many rows at once.
_ROWS_TOGETHER = 256

#: So many rows of them at a time, whose entries fit into the cache of a processor.
_ROWS_AT_ONCE = 2**14

#: All modules of compiled code.
KERNELS = (jit, losses, state, snapshot, drift, hot, moves, selection, transpose)

#: Rows and columns are looked at by so many threads, where they have at least so many entries:
#: threads take a millisecond to begin.
THREADS = 2
_WORTH_THREADS = 2**22


class Entries(NamedTuple):
    """The entries by columns, how long the columns are, and which class of lengths they are in.

    `level` is the one entry on the grid that all are like, or 0, and `signed` whether some are
    negative and others positive.
    """

    columns: state.ColumnArrays
    known: np.ndarray
    classes: np.ndarray
    longest: float
    level: float
    signed: bool


@cache
def tell_of_compilation() -> None:
    """Say that the first fit waits for the compiler, if nothing compiled is kept from before."""
    folder = selection.advance.stats.cache_path
    if folder is None or not _kept(Path(folder)):
        logging.getLogger("riata").warning(
            "Compiling for large sparse data: this takes about half a minute, once."
        )


def _kept(folder: Path) -> bool:
    """Whether compiled kernels are kept; those of other sources, that numba may trip on, go."""
    sources = (Path(module.__file__ or "").read_bytes() for module in KERNELS)
    digest = hashlib.sha256(b"".join(sources)).hexdigest()
    try:
        stamp = folder / "riata-kernels"
        if not stamp.exists() or stamp.read_text() != digest:
            for module in KERNELS:
                for old in folder.glob(f"{module.__name__.rpartition('.')[2]}.*.nb[ic]"):
                    old.unlink()
            folder.mkdir(parents=True, exist_ok=True)
            stamp.write_text(digest)
    except OSError:  # a folder that cannot be written to: numba says so itself
        pass
    return any(folder.glob("selection.advance-*.nbi"))


def in_threads(work: Any, size: int, entries: int) -> list[Any]:
    """Call `work(begin, end)` for all parts of 0, ..., size, if there are entries enough."""
    if entries < _WORTH_THREADS or THREADS == 1:
        return [work(0, size)]
    parts = 4 * THREADS
    ends = [size * i // parts for i in range(parts + 1)]
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, ends[:-1], ends[1:]))


def entries_by_column(x: Any, bounds: Bounds) -> Entries:
    """The entries for the kernels: CSC rows of 32-bit numbers as they are, others as a copy."""
    limits = np.atleast_1d(np.asarray(bounds.x, dtype=np.float64))
    units, lowest = X_STEPS / limits, 0.0 if bounds.nonnegative else -float(X_STEPS)
    relative = limits / limits.max()
    if x.format not in ("csr", "csc"):
        x = canonical_rows(x)
    if x.dtype not in (np.float32, np.float64):
        x = x.astype(np.float64)
    if x.format == "csc":
        indptr, indices, data = x.indptr, x.indices, x.data
        if data.dtype != np.float32:
            data, units = transpose.on_grid_of_columns(indptr, data, units, lowest), np.ones(1)
    else:
        x = sparse.csr_array(x)
        if not x.has_canonical_format:
            x = canonical_rows(x)
        indptr, indices, data = transpose.columns_of_rows(x, units, lowest, THREADS)
        units = np.ones(1)
    columns = state.ColumnArrays(
        np.asarray(indptr).astype(np.uint64, copy=False),
        np.ascontiguousarray(indices, np.int32).view(np.uint32),
        np.ascontiguousarray(data),
        units, relative, lowest, np.uint64(1),
    )  # fmt: skip
    p = len(indptr) - 1
    known, classes = np.zeros((p, 3), np.float32), np.empty(p, np.uint8)

    def measure(begin: int, end: int) -> np.ndarray:
        seen = np.empty(5)
        snapshot.measure_columns(columns, x.shape[0], known, seen, begin, end)
        return seen

    seen = np.array(in_threads(measure, p, len(data)))
    in_order, on_grid, inside = seen[:, :3].min(axis=0) > 0
    least, largest = seen[:, snapshot.LEAST].min(), seen[:, snapshot.LARGEST].max()
    if not in_order:  # two entries at one place would escape the clipping
        return entries_by_column(canonical_rows(x), bounds)
    if inside:
        columns = columns._replace(lowest=state.READY if on_grid else state.INSIDE)
    level = float(least) if least == largest > 0 and len(relative) == 1 else 0.0
    if level:
        one = np.full(1, level, np.float32)
        columns = columns._replace(
            data=one, units=np.ones(1), lowest=state.READY, stride=np.uint64(0)
        )
    longest = snapshot.classify_lengths(known, known.view(np.uint32), classes)
    return Entries(columns, known, classes, longest, level, bool(least < 0 < largest))


class CompiledFrankWolfe(CompiledPath):
    """Selects along a path until it needs something from outside.

    Parameters
    ----------
    entries : Entries
    y : ndarray of shape (n_rows,)
        Inside the bounds.
    query : FrankWolfePath
    epsilon : float
        Of each selection.
    """

    def __init__(
        self, entries: Entries, y: np.ndarray, query: FrankWolfePath, epsilon: float
    ) -> None:
        n, p = len(y), len(entries.known)
        found = known_loss(query.loss)
        assert found is not None
        assert query.bounds.y is not None
        code, parameter = found
        y_bound = query.bounds.y
        targets: Any = np.float64
        if isinstance(query.loss, OneAgainstRest):
            y, y_bound, targets = query.loss.inner_targets(y), 1.0, np.float32
        bend = losses.bend(code, y_bound)
        self._columns, self._query = entries.columns, query
        level, kind = entries.level or 1.0, np.dtype(np.int32 if entries.level else np.float64)
        if float(query.gains.sum()) + 1 > np.iinfo(np.int32).max:
            kind = np.dtype(np.float64)
        self._facts = state.Facts(
            code, parameter, math.isfinite(bend), query.polytope.symmetric,
            query.polytope.reach(query.bounds), y_bound, query.strength(epsilon),
            losses.steepest(code, parameter, y_bound), bend if math.isfinite(bend) else 0.0,
            float(query.slope_steps), level, 1.0 if entries.level else float(X_STEPS),
            entries.signed, math.sqrt(n), WEIGHT_STEP,
        )  # fmt: skip
        self._rows = state.RowArrays(
            np.zeros(n, kind), np.zeros(n, kind),
            y.astype(targets),
            np.zeros(n if self._facts.bend > 0 else 0, np.float32),
            np.empty((3, _ROWS_TOGETHER)),
        )  # fmt: skip
        # Only the last path over the entries writes to these.
        self._known, self._classes = entries.known, entries.classes
        self._classes &= np.uint8(state.HOT - 1)  # none is hot
        most = snapshot.BINS * snapshot.LENGTHS
        whole, number = np.int64, np.float64
        few = min(state.MOST_HOT, p)
        several = most + few
        self._groups = state.Groups(
            np.empty(p, np.int32), np.empty(most, whole), np.empty(most, whole),
            np.empty(most, number), np.empty(most, number), np.empty(most, number),
            np.empty(several, whole), np.empty(several, whole), np.empty(several, number),
            np.empty(several, number), np.empty(several, number),
        )  # fmt: skip
        self._hot = state.Hot(
            np.empty(few, whole), np.empty(few), np.empty(few), np.empty(few), np.empty(few),
            np.empty(few), np.empty(few), np.empty(few), np.empty(few), np.empty(few),
            np.empty(few), np.empty(few, whole), np.empty(few), np.empty(few, whole),
            np.empty((state.MOST_MOVED, few)), np.empty((state.MOST_MOVED, few)),
            np.empty(few, whole), np.empty(few, whole), np.empty(few),
        )  # fmt: skip
        self._across = state.Across(
            np.zeros(1, np.uint32), np.empty(0, np.uint16), np.empty(0, np.float32), np.empty(few)
        )
        slots = 1 << max(8, (4 * query.steps + 4).bit_length())
        self._path = state.PathArrays(
            query.scales, query.margin_units, query.gains, np.empty(query.steps, whole),
            np.full(slots, -1, whole), np.zeros(slots),
        )  # fmt: skip
        self._state = np.zeros(1, state.STATE)
        self._words = np.empty(0, np.uint64)
        self._state["longest"] = entries.longest
        self._question = selection.DONE
        if isinstance(query.polytope, Simplex):  # which starts at its first vertex, and not at 0
            moves.begin(0, 1.0, self._columns, self._rows, self._facts, self._path, self._state)

    # What the mechanism does.

    def set_epsilon(self, epsilon: float) -> None:
        """Of each selection from here on. No score and no bound on one depends on it."""
        strength = self._query.strength(epsilon)
        if strength != self._facts.strength:
            self._facts = self._facts._replace(strength=strength)
            self._state["envelope"] = 0

    @property
    def step(self) -> int:
        return int(self._state["t"][0])

    @property
    def vertices(self) -> np.ndarray:
        """The numbers of the vertices that were selected."""
        picked, p = self._path.picked[: self.step], len(self._known)
        return np.where(picked >= 0, picked, p - 1 - picked)

    def advance(self, until: int) -> str | None:
        """Go on to step `until`, or to a question: for "words", or to "decide" something."""
        if until > self._query.steps:
            raise ValueError(f"The path has {self._query.steps} steps, and no step {until}.")
        while True:
            if self._state["snapshots"][0] == 0:
                self._snapshot()
            found = selection.advance(
                until, self._columns, self._rows, self._known, self._classes, self._groups,
                self._hot, self._across, self._path, self._facts, self._words, self._state,
            )  # fmt: skip
            if found == selection.SNAPSHOT:
                self._snapshot()
                continue
            if found == selection.CHOOSE:
                self._choose_hot(*self._drift())
                self._group()
                continue
            if found == selection.ACROSS:
                self._copy_hot()
                continue
            self._question = found
            return {selection.DONE: None, selection.WORDS: "words"}.get(found, "decide")

    def refill(self, words: np.ndarray) -> None:
        """More random words."""
        left = self._words[int(self._state["next_word"][0]) :]
        self._words = np.concatenate([left, words.astype(np.uint64)])
        self._state["next_word"] = 0

    @property
    def coin(self) -> int:
        """The first bits of the uniform variable that a question is about."""
        return int(self._state["coin"][0])

    def exact_chance(self, mp: Any, epsilon: float) -> Any:
        """The probability that a question is about, in the precision of a context.

        Of the utility and the sensitivity that single selections have.
        """
        st = self._state[0]
        query = self._query.utilities(self._query.theta(self.vertices))
        utility = query.utility(int(st["column"]), int(st["total"]))
        value = Scale(epsilon, query.sensitivity("linf")).exact(mp, utility)
        if self._question == selection.DECIDE_SIGN:
            return 1 / (1 + mp.exp(-2 * value))
        log = abs(value) + mp.log1p(mp.exp(-2 * abs(value))) if self._facts.symmetric else value
        height = mp.ldexp(int(st["height"]), -int(st["bits"]))
        return mp.exp(log - mp.mpf(float(st["top"]))) / height

    def answer(self, positive: bool) -> None:
        """What was decided: accepted or not, or the sign."""
        if self._question == selection.DECIDE_SIGN:
            self._state["sign"] = 1 if positive else -1
            self._state["pending"] = selection.MOVE
        elif positive:
            self._state["pending"] = selection.SIGN

    # The snapshot.

    def _snapshot(self) -> None:
        st, facts, rows, columns = self._state[0], self._facts, self._rows, self._columns
        n, p, known = len(rows.v), len(self._known), self._known
        drift2, drift_max = self._drift()
        scale, grid = self._scale, float(self._query.margin_units[self.step])
        slopes = np.empty(n, np.float32)
        found = in_threads(
            lambda b, e: snapshot.look_at_rows(rows, facts, grid, slopes, b, e), n, n
        )
        squares, largest, steepest = zip(*found, strict=True)
        in_threads(
            lambda b, e: snapshot.look_at_columns(columns, known, slopes, b, e),
            p, len(columns.indices),
        )  # fmt: skip
        st["scale0"] = st["swept_scale"] = scale
        st["margin_unit0"] = grid
        st["v0_square"] = sum(squares) * (1 + (n + 16) * 2.0**-52)
        st["m0_largest"] = max(largest) * grid * facts.level * (1 + 2.0**-30)
        st["largest0"] = max(steepest)
        for name in (
            "v_square", "v_turnover", "v_cross", "cross_turnover", "v_largest", "swept_largest",
            "up", "down", "way", "wasted", "strayed",
        ):  # fmt: skip
            st[name] = 0
        if facts.bend > 0:
            n_hot = int(st["n_hot"])
            # They depend on where the margins are.
            self._hot.products[: int(st["n_moved"]), :n_hot] = math.nan
            self._hot.met[:] = 0
            self._look_at_hot(0)
        if st["snapshots"] > 0:
            self._choose_hot(drift2, drift_max)
        self._group()
        st["snapshots"] += 1

    def _look_at_hot(self, first: int) -> None:
        hot.look_at_all_hot(
            first, self._columns, self._rows, self._known, self._hot, self._across, self._facts,
            self._state,
        )  # fmt: skip

    def _drift(self) -> tuple[float, float]:
        """How far slopes went since the last snapshot."""
        if self._state["snapshots"][0] == 0:
            return 0.0, 0.0
        now = drift.numbers_now(self._facts, self._path, self._state)
        return now.drift2, now.drift_max

    def _choose_hot(self, drift2: float, drift_max: float) -> None:
        """Bounds of their own for the columns that could win after moves like the last ones."""
        st, known = self._state[0], self._known
        st["chosen"] = 1
        before, entries = int(st["n_hot"]), len(self._columns.indices)
        more = min(len(self._hot.columns), entries // _ENTRIES_A_HOT, len(known) // 8) - before
        if more <= 0:
            return
        large = np.flatnonzero(np.diff(self._columns.indptr) >= state.LARGE)
        large = large[self._classes[large] < state.HOT]
        few = known[large]
        likely = np.minimum(drift2 * few[:, state.LENGTH], drift_max * few[:, state.SIZE])
        likely += np.abs(few[:, state.SCORE])
        if len(large) > more:
            large = large[np.argpartition(likely, -more)[-more:]]
        if not len(large):
            return
        hot.add_several_hot(np.sort(large), self._classes, self._hot, self._state)
        if self._facts.smooth:
            self._copy_hot()
            self._look_at_hot(before)

    def _copy_hot(self) -> None:
        """The hot columns once more, row by row: then a column that moves knows whom it meets."""
        n_hot, n = int(self._state["n_hot"][0]), len(self._rows.v)
        columns, levels = self._hot.columns[:n_hot], np.zeros(n_hot)
        reached = self._columns.indptr[columns]
        sizes = np.cumsum(self._columns.indptr[columns + 1] - reached)
        fitting = int(np.searchsorted(sizes, _MOST_COPIED, side="right"))
        same = self._columns.stride == 0
        if same:
            levels[:] = self._facts.level
        else:
            same = hot.find_levels(self._columns, columns, fitting, levels)
        starts, few = np.empty(n + 1, np.uint32), np.empty(_ROWS_AT_ONCE, np.uint32)
        places = np.empty(int(sizes[fitting - 1]) if fitting else 0, np.uint16)
        values = np.empty(0 if same else len(places), np.float32)
        hot.copy_across(self._columns, columns, fitting, reached, few, starts, places, values)
        self._across = state.Across(starts, places, values, levels)
        self._hot.met[:] = 0
        self._state["n_across"] = fitting
        self._state["unknown_read"] = 0 if fitting == n_hot else -(2**62)  # all that fit are there

    def _group(self) -> None:
        """Groups of columns with similar bounds, without those that are hot."""
        st, facts = self._state[0], self._facts
        reach = float(st["w_sum"]) * float(self._query.margin_units[self.step]) * X_STEPS
        bound = losses.slope_bound(facts.loss, facts.parameter, reach, facts.y_bound)
        n_groups = snapshot.BINS * snapshot.LENGTHS
        snapshot.group_columns(
            self._known, self._classes, self._groups, np.empty(len(self._known), np.uint16),
            np.empty(n_groups, np.int64), np.empty((n_groups, 3)), facts.strength / bound, facts,
            self._state,
        )  # fmt: skip

    @property
    def _scale(self) -> float:
        return float(self._path.scales[self.step])
