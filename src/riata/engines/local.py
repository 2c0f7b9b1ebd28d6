"""The engine of this process: the rows in memory, dense or sparse."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse

from riata.bounds import Bounds
from riata.engines.columns import SparseColumns
from riata.engines.compiled.codes import known_loss
from riata.engines.dense import DenseColumns, DenseRows
from riata.engines.followed_scores import FollowedScores
from riata.engines.gram import Gram
from riata.engines.margins import ColumnBlock, DenseBlock, Margins, RowBlock
from riata.engines.scores import LazyScores, ordinary
from riata.engines.shard import blocks_of, sum_over
from riata.grid import BLOCK_ROWS, X_STEPS, slices
from riata.losses import Squared
from riata.mechanisms.engine import Engine, Scores
from riata.queries import Block, Correlations, FrankWolfePath, Gradient, Query, Reads

#: About what a step takes without a compiler, and from when on it is worth to compile.
_SECONDS, _SECONDS_A_ROW, _WORTH_COMPILING = 3e-4, 2e-8, 5.0

#: Compiled code keeps slopes in 32 bits, so bounds must be numbers of ordinary size.
_ORDINARY = (1e-12, 1e12)

#: The largest logarithm of a weight that the rounding of bounds on scores may leave open.
_MOST_OPEN = 8.0

#: Dense rows of up to so many entries are kept on the grid, as a copy. Others are put there again
#: and again, a block at a time: what queries are summed over in one go.
MOST_KEPT, BLOCK_ENTRIES = 2**27, 2**20

#: Rows with fewer entries than this are summed so quickly that bounds on scores gain nothing. How
#: many sparse rows have is not public: they count as if so many of a hundred places were filled.
FEW_ENTRIES, PERCENT_FILLED = 2**18, 6

#: All inner products of up to so many dense columns are kept, for the squared loss, once so many
#: passes were taken that to compute them takes no longer: BLAS does so many columns in a pass. And
#: where the rounding of slopes leaves less than a small part of a log-weight open.
GRAM_COLUMNS, GRAM_COLUMNS_A_PASS, GRAM_MOST = 2048, 12, 2.0**14


def compilable(query: FrankWolfePath) -> bool:
    """Whether compiled code knows the loss, the vertices and the bounds of a path."""
    found = known_loss(query.loss)
    if found is None:
        return False
    # The numbers that margins and slopes are made of.
    sizes = [query.polytope.reach(query.bounds), query.y_bound or 1.0, found[1] or 1.0]
    return (
        not query.bounds.shortens
        and query.exact
        and query.n_rows < 2**31
        and all(_ORDINARY[0] <= size <= _ORDINARY[1] for size in sizes)
    )


def _open(query: FrankWolfePath, epsilon: float) -> float:
    """What rounding leaves open of a column's log-weight in compiled code, at most.

    Proposals are accepted with a probability that falls with its exponential.
    """
    loss, y = query.loss, query.y_bound or 1.0
    margins = loss.curvature_bound(y) * 3 * query.polytope.reach(query.bounds)
    relative = 0.54 / query.slope_steps + 2.0**-19
    relative += 2.0**-22 * margins / loss.slope_bound(0.0, y)
    return query.strength(epsilon) * query.n_rows * relative


class LocalEngine(Engine):
    """Sums a query over the rows, clipped and on the grid, without rounding.

    Large dense rows stay where they are, and only a few at a time are put on the grid.

    Parameters
    ----------
    x : ndarray or scipy sparse of shape (n_rows, n_features)
        Sparse rows stay sparse.
    y : ndarray of shape (n_rows,)
    bounds : Bounds or None
        What the rows are clipped to, or None if they are on the grid already.
    block_rows : int, optional
        How many rows are summed at a time. The result does not depend on it.
    kernels : {"auto", "numba", "numpy"}, default="auto"
        Whether long paths over sparse rows are compiled: if that takes less time than it saves,
        always, or never.
    """

    def __init__(
        self,
        x: Any,
        y: np.ndarray,
        bounds: Bounds | None,
        block_rows: int = BLOCK_ROWS,
        kernels: str = "auto",
    ) -> None:
        self._given, self._bounds, self._block_rows = x, bounds, block_rows
        self._y = y if bounds is None else bounds.clip_y(y)
        self._kernels = "numpy" if bounds is None else kernels
        self._scores: dict[int, LazyScores] = {}
        self._frank_wolfe: tuple[FrankWolfePath, Any] | None = None

    @cached_property
    def _x(self) -> Any:
        """The rows on the grid."""
        if not self._is_sparse:
            return self._dense.kept
        return self._given if self._bounds is None else self._bounds.grid_x(self._given)

    @cached_property
    def _blocks(self) -> Sequence[Block]:
        if not self._is_sparse:
            several = max(1, BLOCK_ENTRIES // max(self._given.shape[1], 1))
            # no rows at all are a block too: a sum has a shape
            cut = slices(len(self._y), min(self._block_rows, several)) or [slice(0, 0)]
            return [DenseBlock(self._dense, self._margins, self._y, few) for few in cut]
        blocks = blocks_of(self._x, self._y, self._block_rows)
        return [RowBlock(block, self._margins) for block in blocks]

    @cached_property
    def _dense(self) -> DenseRows:
        """Dense rows, as if all of them were on the grid."""
        return DenseRows(self._given, self._bounds)

    @property
    def _in_pieces(self) -> bool:
        """Whether the rows are put on the grid a few at a time: by their shape alone."""
        return isinstance(self._given, np.ndarray) and self._given.size > MOST_KEPT

    def total(self, query: Query) -> np.ndarray:
        """The exact sum of the query's integers over all rows."""
        by_columns = self._by_columns(query)
        if not by_columns and (self._in_pieces or (query.asked_once and self._is_dense_anew)):

            def summed(few: slice, x: np.ndarray) -> np.ndarray:
                return query.block_sum(Block(x, self._y[few], few.start)).astype(np.int64)

            return self._dense.each(summed, BLOCK_ENTRIES)
        blocks = self._column_blocks if by_columns else self._blocks
        return sum_over(query, blocks)

    @property
    def _is_dense_anew(self) -> bool:
        """Whether rows are dense, and no copy of them on the grid was made so far."""
        return not self._is_sparse and not self._dense.is_kept

    def scores(self, query: Any, factor: float) -> Scores | None:
        """The utilities of a query, known up to bounds, if that is quicker than to sum them all.

        `factor` times a utility is the logarithm of a candidate's weight.
        """
        if not (query.by_column and self._many(query.source) and ordinary(query, factor)):
            return None
        if isinstance(query, Correlations) and not self._in_pieces:
            if not self._is_sparse:
                return None  # a look at a kept copy of clipped rows takes one pass
            block = ColumnBlock(self._columns, self._margins, self._y)
            self._followed.at(query, query.slopes(block), factor)
            return self._followed
        known = self._margins.of(query.source)
        if query.most not in self._scores:
            self._scores = {query.most: LazyScores(self._columns.clipped(query.most))}
        scores = self._scores[query.most]
        if not self._margins.followed:
            scores.forget()
        sums = self._gram.sums(query.source) if self._by_gram(query, scores, factor) else None
        scores.at(query, query.source.slopes_at(known, self._y), factor, sums)
        return scores

    def _by_gram(self, query: Any, scores: LazyScores, factor: float) -> bool:
        """Whether inner products of all columns are worth it: a question of time alone."""
        return (
            not self._is_sparse
            and type(query.source) is Gradient
            and isinstance(query.source.loss, Squared)
            and query.most == X_STEPS
            and query.source.theta.size <= GRAM_COLUMNS
            and scores.passes > query.source.theta.size / GRAM_COLUMNS_A_PASS
            and factor * query.row_bound("linf") < GRAM_MOST
        )

    @cached_property
    def _followed(self) -> FollowedScores:
        return FollowedScores(self._columns)

    @cached_property
    def _gram(self) -> Gram:
        return Gram(self._dense, self._y)

    def part(self, part: int, parts: int) -> LocalEngine:
        """An engine for every row whose number leaves the rest `part` when divided by `parts`."""
        rows = slice(part, None, parts)
        x, bounds = (self._given, self._bounds) if self._in_pieces else (self._x, None)
        return LocalEngine(x[rows], self._y[rows], bounds, self._block_rows)

    def compiles(self, query: FrankWolfePath, epsilon: float) -> bool:
        """Whether a path is to be taken by compiled code. Says nothing about the rows.

        `epsilon` is that of each selection.
        """
        possible = (
            self._kernels != "numpy"
            and self._is_sparse
            and compilable(query)
            and _open(query, epsilon) <= _MOST_OPEN
            and find_spec("numba") is not None
        )
        if not possible:
            return False
        seconds = query.steps * (_SECONDS + query.n_rows * _SECONDS_A_ROW)
        return self._kernels == "numba" or seconds > _WORTH_COMPILING

    def compiled_path(self, query: FrankWolfePath, epsilon: float) -> Any:
        """What takes a path: the same as before, for the same path."""
        from riata.engines.compiled.frank_wolfe import CompiledFrankWolfe
        from riata.engines.compiled.self_check import SelfCheck

        if not compilable(query):
            raise ValueError("Compiled code does not know this path: see `compiles`.")
        if self._frank_wolfe is None or self._frank_wolfe[0] is not query:
            check = SelfCheck.if_wanted(self.total)
            self._frank_wolfe = (
                query,
                CompiledFrankWolfe(self._entries, self._y, query, epsilon, check),
            )
        frank_wolfe = self._frank_wolfe[1]
        frank_wolfe.set_epsilon(epsilon)
        return frank_wolfe

    @cached_property
    def _entries(self) -> Any:
        """The columns for compiled code."""
        from riata.engines.compiled.compilation import announce_compilation
        from riata.engines.compiled.entries import entries_by_column

        assert self._bounds is not None
        announce_compilation()
        return entries_by_column(self._given, self._bounds)

    @cached_property
    def _margins(self) -> Margins:
        return Margins(self._x if self._is_sparse else self._dense, self._columns)

    @cached_property
    def _columns(self) -> Any:
        return SparseColumns(self._x) if self._is_sparse else DenseColumns(self._dense)

    @property
    def _is_sparse(self) -> bool:
        return sparse.issparse(self._given)

    def _by_columns(self, query: Query) -> bool:
        """Whether the query reads few columns, and inner products that are followed."""
        if query.reads is not Reads.COLUMNS:
            return False
        return self._is_sparse if query.model is None else self._many(query)

    @cached_property
    def _column_blocks(self) -> list[ColumnBlock]:
        step = self._block_rows
        return [
            ColumnBlock(self._columns, self._margins, self._y[i : i + step], i, i)
            for i in range(0, len(self._y), step)
        ]

    def _many(self, query: Query) -> bool:
        """Whether margins are followed: by public numbers, as they round as the moves go."""
        assert query.model is not None
        places = query.n_rows * query.model.size
        filled = places * PERCENT_FILLED // 100 if self._is_sparse else places
        return filled >= FEW_ENTRIES
