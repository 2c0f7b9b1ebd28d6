"""A Frank-Wolfe path over sparse columns, step by step in compiled code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from riata.engines.compiled import bounds as drift
from riata.engines.compiled import hot, losses, moves, selection, snapshot, state
from riata.engines.compiled.codes import known_loss
from riata.engines.compiled.entries import Entries, in_threads
from riata.engines.compiled.self_check import Evaluated, SelfCheck, evaluated
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


class CompiledFrankWolfe(CompiledPath):
    """Selects along a path until it needs something from outside.

    `epsilon` is that of each selection, and targets `y` are inside the bounds.
    """

    def __init__(
        self,
        entries: Entries,
        y: np.ndarray,
        query: FrankWolfePath,
        epsilon: float,
        check: SelfCheck | None = None,
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
        slope_curvature = losses.slope_curvature(code, y_bound)
        self._columns, self._query, self._check = entries.columns, query, check
        level, kind = entries.level or 1.0, np.dtype(np.int32 if entries.level else np.float64)
        if float(query.gains.sum()) + 1 > np.iinfo(np.int32).max:
            kind = np.dtype(np.float64)
        self._facts = state.Facts(
            code, parameter, math.isfinite(slope_curvature), query.polytope.symmetric,
            query.polytope.reach(query.bounds), y_bound, query.strength(epsilon),
            losses.steepest(code, parameter, y_bound),
            slope_curvature if math.isfinite(slope_curvature) else 0.0,
            float(query.slope_steps), level, 1.0 if entries.level else float(X_STEPS),
            entries.signed, math.sqrt(n), WEIGHT_STEP,
        )  # fmt: skip
        self._rows = state.RowArrays(
            np.zeros(n, kind), np.zeros(n, kind),
            y.astype(targets),
            np.zeros(n if self._facts.slope_curvature > 0 else 0, np.float32),
            np.empty((3, _ROWS_TOGETHER)),
        )  # fmt: skip
        # Only the last path over the entries writes to these.
        self._known, self._classes = entries.known, entries.classes
        self._classes &= np.uint8(state.HOT - 1)  # none is hot
        few = min(state.MOST_HOT, p)
        self._groups = state.new_groups(p, snapshot.BINS * snapshot.LENGTHS, few)
        self._hot = state.new_hot(few)
        self._across = state.Across(
            np.zeros(1, np.uint32), np.empty(0, np.uint16), np.empty(0, np.float32), np.empty(few)
        )
        slots = 1 << max(8, (4 * query.steps + 4).bit_length())
        self._path = state.PathArrays(
            query.scales, query.margin_units, query.gains, np.empty(query.steps, np.int64),
            np.full(slots, -1), np.zeros(slots),
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
        picked, p = self._path.picked[: self.step], len(self._known)
        return np.where(picked >= 0, picked, p - 1 - picked)

    def advance(self, until: int) -> str | None:
        if until > self._query.steps:
            raise ValueError(f"The path has {self._query.steps} steps, and no step {until}.")
        stop = until if self._check is None else self._check.stop(self.step, until)
        while True:
            if self._state["snapshots"][0] == 0:
                self._snapshot()
            found = selection.advance(
                stop, self._columns, self._rows, self._known, self._classes, self._groups,
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
            if found == selection.DONE and stop < until:
                assert self._check is not None
                self._check.compare(self._evaluated(), self._query, self.vertices)
                stop = until
                continue
            self._question = found
            return {selection.DONE: None, selection.WORDS: "words"}.get(found, "decide")

    def _evaluated(self) -> Evaluated:
        now = drift.numbers_now(self._facts, self._path, self._state)
        return evaluated(
            self._columns, self._rows, self._known, self._hot, self._facts, now,
            int(self._state["n_hot"][0]),
        )  # fmt: skip

    def refill(self, words: np.ndarray) -> None:
        left = self._words[int(self._state["next_word"][0]) :]
        self._words = np.concatenate([left, words.astype(np.uint64)])
        self._state["next_word"] = 0

    @property
    def coin(self) -> int:
        return int(self._state["coin"][0])

    def exact_chance(self, mp: Any, epsilon: float) -> Any:
        """Of the utility and the sensitivity that single selections have."""
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
        if facts.slope_curvature > 0:
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
