"""Break the code in known ways and check that the tests notice.

Each mutant is one edit that would break the guarantee. It is made in a copy of the project, and the
tests named with it are run there: they must fail. A mutant that survives is a hole in the suite.

    python tools/mutants.py            # all of them
    python tools/mutants.py clipping   # those whose name contains "clipping"
"""

from __future__ import annotations

import argparse
import compileall
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from queue import Queue

from rich.console import Console
from rich.markup import escape
from rich.progress import track

ROOT = Path(__file__).parent.parent

BAD_FILES = ("tests/unit/test_bad_files.py",)
PLAIN = ("tests/unit/test_plain_fields.py",)
OF_PEOPLE = ("tests/unit/test_people.py",)
BARS = ("tests/unit/test_reading_bars.py",)
REPLIES = ("tests/unit/test_replies.py",)
CLOSED = ("tests/faults/test_dask_closed.py",)
ANSWERS = ("tests/faults/test_dask_answers.py",)
ON_WORKERS = ("tests/faults/test_dask_people.py",)
FROM_SOURCES = ("tests/conformance/test_fit_from_sources.py",)
SENSITIVITY = ("tests/sensitivity",)
ENCODER = ("tests/conformance/test_schema_encoder.py",)
FLAGS = ("tests/sensitivity/test_flag_counts.py",)
REPLAY = ("tests/audit/test_grey_box.py",)
AUDIT = ("tests/audit/test_mechanisms.py",)
DRAWS = ("tests/statistical/test_exact_draws.py",)
NOISE = ("tests/statistical/test_noise.py",)
ATTACKS = ("tests/statistical/test_peer_attacks.py",)
LEDGER = ("tests/unit/test_ledger.py", "tests/unit/test_chain.py")
FAULTS = ("tests/faults",)
CLIPS = ("tests/sensitivity/test_solver_queries.py",)
ENFORCED = ("tests/sensitivity/test_enforced_losses.py",)
OBJECTIVE = ("tests/statistical/test_objective.py",)
PEELING = ("tests/statistical/test_peeling.py",)
SAMPLED = ("tests/statistical/test_sampled.py",)
SOLVERS = ("tests/audit/test_solvers.py",)
COSTS = ("tests/unit/test_solver_accounting.py",)
JOINT = ("tests/sensitivity/test_softmax_queries.py",)
PAIRS = ("tests/sensitivity/test_row_pairs.py",)
PIECES = ("tests/unit/test_sparse_pieces.py",)
REFITS = ("tests/sensitivity/test_refit_queries.py",)
FAMILIES = ("tests/sensitivity/test_weighted_rows.py",)
WHITENED = ("tests/sensitivity/test_whitening.py",)
NUISANCE = ("tests/sensitivity/test_nuisance_sums.py",)
TARGETS = "tests/sensitivity/test_label_queries.py"
LABELS = "tests/unit/test_label_privacy.py"
FILTER = ("tests/unit/test_filter.py",)
REJECTION = ("tests/unit/test_rejection.py",)
FOLLOWED = ("tests/unit/test_followed_scores.py",)
COMPILED = ("tests/statistical/test_compiled_selection.py",)
CHANNEL = ("tests/audit/test_local_channel.py",)
REPORTS = ("tests/statistical/test_local_reports.py",)
TASKS = ("tests/unit/test_local_task.py",)
DASHBOARD = ("tests/unit/test_collect_dashboard.py",)
TASK_VECTORS = ("tests/unit/test_task_vectors.py",)
CLIENT = ("tests/unit/test_local_client.py",)
AGGREGATOR = ("tests/unit/test_local_aggregator.py",)
LIMITS = ("tests/strangers/test_limit.py",)
BOMBS = "tests/strangers/test_bombs.py"
TEXT_BOMBS = "tests/strangers/test_text_bombs.py"
CONTAINERS = (f"{BOMBS}::test_a_container_that_is_none_of_ours",)
CHECKPOINT = ("tests/unit/test_checkpoint.py",)
GROUPS = ("tests/unit/test_groups.py",)
SAME = ("tests/conformance/test_same_release.py",)
MEMORY = ("tests/unit/test_memory.py",)
IDENTITY = ("tests/unit/test_identity.py",)
TAMPERING = ("tests/faults/test_tampering.py", "-k", "database or put_back or index or far_link")
RESTORES = ("tests/faults/test_restore.py", "-k", "rows")
ROW_DIGEST = ("tests/unit/test_row_digest.py",)
ATTACKS_ON_RUNS = ("tests/faults/test_checkpoint_attacks.py",)
SCANS = ("tests/unit/test_scan_engines.py",)
REPEATED = ("tests/unit/test_repeated_events.py",)
CHANCE = ("tests/statistical/test_discrete.py",)
EVALUATION = ("tests/unit/test_evaluation.py",)
SEARCHES = ("tests/conformance/test_private_search.py",)
SILENT = ("tests/conformance/test_search_is_silent.py",)
NUMERIC = ("tests/unit/test_numeric.py",)
VISIBLE = ("tests/conformance/test_nothing_visible_depends_on_a_row.py",)
ERRORS = ("tests/sensitivity/test_prediction_queries.py",)
STORES = ("tests/unit/test_collect_store.py",)
STORE_FAULTS = (
    "tests/faults/test_collect_store_faults.py", "-k", "of_python or statement or torn or synced",
)  # fmt: skip
MERGES = ("tests/unit/test_collect_merge.py",)
COLLECT_LIMITS = ("tests/unit/test_collect_limits.py",)
GUARD = ("tests/faults/test_collect_connections.py",)
RECORDS = "tests/audit/test_on_release.py"
SCORES = "tests/audit/test_scores.py"
ROW_LOSSES = ("tests/sensitivity/test_row_losses.py",)
PEEL = ("tests/unit/test_peel.py",)
BOUNDS = ("tests/unit/test_bounds.py",)
LAPLACE_MAX = ("tests/unit/test_laplace_max.py",)
ROUNDED = (f"{DRAWS[0]}::test_a_release_turns_at_exactly_the_right_uniform_variable",)


#: Where compiled code is made from.
KERNELS = ("engines/compiled/", "mechanisms/envelope.py")


@dataclass(frozen=True)
class Mutant:
    """One edit, and the tests that must notice it."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, source: str) -> str:
        if source.count(self.old) != 1:
            raise OutOfDate(f"{self.file} has its text {source.count(self.old)} times")
        return source.replace(self.old, self.new)


MUTANTS = [
    # Sensitivity
    Mutant(
        "counts of bad cells without the length of a row of them", "queries/flags.py",
        "    @property\n    def symmetric",
        "    def row_bound(self, norm: str) -> float:\n        return self.bounds.largest\n\n"
        "    @property\n    def symmetric", FLAGS,
    ),
    Mutant(
        "flags below 0 where the bound rests on their signs", "queries/flags.py",
        "if not self.bounds.nonnegative:", "if False:", FLAGS,
    ),
    Mutant(
        "rows of flags of any length", "data/schema/flags.py",
        "nonnegative=True, length=length)", "nonnegative=True)", FLAGS,
    ),
    Mutant(
        "the weight of a label is not in the length of a row of flags", "data/schema/flags.py",
        "len(self.columns) + self.weight**2", "len(self.columns) + 1", FLAGS,
    ),
    Mutant(
        "another view of the rows is free", "curator.py",
        "            self._paid_for[part].take(mechanism.event)\n",
        "            if view == ROWS:\n    "
        "            self._paid_for[part].take(mechanism.event)\n",
        FLAGS,
    ),
    Mutant(
        "one cell of a list decides the type of all", "data/encoder.py",
        "cells = as_cells(X)", "cells = np.asarray(X)",
        (f"{ENCODER[0]}::test_a_cell_of_a_list_changes_no_other_row",),
    ),
    Mutant(
        "blank rows that stand for rows that are not there under add-remove",
        "fitting/arguments.py",
        "if adjacency != ADD_REMOVE or schema is None or not schema.fixes_size:",
        "if True:", FROM_SOURCES,
    ),
    Mutant(
        "rows of people for a budget of rows", "fitting/running.py",
        "if rows.rows_of_a_person not in (None, people):", "if False:",
        ("tests/unit/test_fitting.py",),
    ),
    Mutant(
        "a private score counts what the schema fixes", "cli/evaluate.py",
        "    return read(data, schema)\n",
        "    return read(data, replace(schema, rows=None, people=None))\n",
        ("tests/unit/test_split_and_keep.py",),
    ),
    Mutant(
        "candidates that are looked at after the charge", "tuning/search.py",
        "        check_fits(plan.estimators, shape)\n", "", SEARCHES,
    ),
    Mutant(
        "a score of codes of weighted rows", "evaluation/private.py",
        "        probe.max_weight = None\n", "        pass\n",
        ("tests/unit/test_evaluation.py::test_rows_are_scored_without_weights",),
    ),
    Mutant(
        "knots that are one on the scale of counts", "data/schema/kinds.py",
        'if name == "knots" and not in_order(number.scaled(', 'if False and not in_order((',
        ("tests/unit/test_schema_kinds.py",),
    ),
    Mutant(
        "missing factor 2 between neighbours", "privacy/budget.py",
        "REPLACE_ONE: 2, ADD_REMOVE: 1", "REPLACE_ONE: 1, ADD_REMOVE: 1", SENSITIVITY,
    ),
    Mutant(
        "wrong Lipschitz constant, squared loss", "losses/squared.py",
        "return 2 * (margin + y)", "return margin + y", ("tests/unit/test_losses.py",),
    ),
    Mutant(
        "wrong Lipschitz constant, logistic loss", "losses/logistic.py",
        "return y * float(logistic(np.array(y * margin)))", "return y * 0.5",
        ("tests/unit/test_losses.py",),
    ),
    Mutant(
        "rows in another norm that are rounded away from 0", "bounds.py",
        "(np.trunc if self._other else np.rint)(steps, out=steps)",
        "(np.ceil if self._other else np.rint)(steps, out=steps)",
        (f"{BOUNDS[0]}::test_rows_on_the_grid_keep_a_promise_in_any_norm_in_every_container",),
    ),
    Mutant(
        "rows in another norm that are not shortened", "row_norms.py",
        "return np.where(sums > UNIT, found, 1.0)", "return np.where(sums > 2 * UNIT, found, 1.0)",
        (f"{BOUNDS[0]}::test_rows_on_the_grid_keep_a_promise_in_any_norm_in_every_container",),
    ),
    Mutant(
        "sums of powers that wrap around in wide rows", "row_norms.py",
        "most = MOST_COLUMNS if isinstance(norm, str) else MOST_COLUMNS_OF_POWERS",
        "most = MOST_COLUMNS",
        (f"{BOUNDS[0]}::test_rows_too_wide_for_an_exact_length_are_refused",),
    ),
    Mutant(
        "sums over rows of any width that nobody checked", "grid.py",
        "    if x.shape[1] > most:\n", "    if x.shape[1] > most**2:\n",
        (f"{BOUNDS[0]}::test_rows_that_nobody_checked_are_refused_on_the_grid",),
    ),
    Mutant(
        "gradients of whole rows of any width", "problem.py",
        "for bounds in (self.bounds, self.gradient_bounds):", "for bounds in (self.bounds,):",
        (f"{BOUNDS[0]}::test_gradients_of_whole_rows_that_are_too_wide_are_refused_too",),
    ),
    Mutant(
        "weights whose sum wraps around", "queries/columns.py",
        "if max(most, weights.sum()) > 2 * WEIGHT_STEPS", "if weights.sum() > 2 * WEIGHT_STEPS",
        ("tests/sensitivity/test_columns.py::test_weights_whose_sum_wraps_around_are_refused",),
    ),
    Mutant(
        "lengths of rows in another norm that ignore the columns", "row_norms.py",
        "size ** max(0.0, 1 / wanted - 1 / given)", "size ** 0.0",
        (f"{BOUNDS[0]}::test_norms_and_reach_in_any_norm_bound_every_row_and_are_attained",),
    ),
    Mutant(
        "the reach of rows in another norm is that of their own", "bounds.py",
        "lr_norm(theta.values, conjugate(self.order))", "lr_norm(theta.values, self.order)",
        (f"{BOUNDS[0]}::test_norms_and_reach_in_any_norm_bound_every_row_and_are_attained",),
    ),
    Mutant(
        "gradients of whole rows are not clipped", "queries/row_gradient.py",
        "found: np.ndarray = self.limits.grid_x(gradients)",
        "found: np.ndarray = np.rint(gradients * (X_STEPS / self.limits.x))", ROW_LOSSES,
    ),
    Mutant(
        "a vertex's utility of whole rows without its reach", "queries/row_gradient.py",
        "return self.polytope.reach(self.row_gradient.limits)",
        "return self.row_gradient.limits.largest / 2", ROW_LOSSES,
    ),
    Mutant(
        "a failure of a loss of whole rows is seen", "losses/row_loss.py",
        "                    continue\n", "                    raise\n", ROW_LOSSES,
    ),
    Mutant(
        "a warning of a loss of whole rows is seen", "losses/row_loss.py",
        'warnings.simplefilter("ignore")', "pass", ROW_LOSSES,
    ),
    Mutant(
        "a loss of whole rows sees other rows", "losses/row_loss.py",
        "self.gradient(_read_only(theta), _read_only(x), float(y))",
        "self.gradient(theta, x, float(y))", ROW_LOSSES,
    ),
    Mutant(
        "a loss of whole rows may remember rows", "losses/row_loss.py",
        "if not np.array_equal(there, back):", "if False:", ROW_LOSSES,
    ),
    Mutant(
        "objective perturbation believes a declared curvature", "solvers/objective_perturbation.py",
        "row_losses = enforced_curvature", "row_losses = None", ROW_LOSSES,
    ),
    Mutant(
        "objective perturbation believes a declared curvature of margins", "queries/minimum.py",
        "loss = enforced(loss, self.margin_bound, self.y_bound)", "pass", ENFORCED,
    ),
    Mutant(
        "a subclass of a proven loss counts as proven", "losses/enforced.py",
        "if kind not in REGISTRY.values() or",
        "if not issubclass(kind, tuple(REGISTRY.values())) or", ENFORCED,
    ),
    Mutant(
        "a proven loss around one of somebody else counts as proven", "losses/enforced.py",
        "return all(proven(part) for part in parts)", "return True", ENFORCED,
    ),
    Mutant(
        "a patched loss counts as proven", "losses/enforced.py",
        " or not _declared(kind) >= vars(loss).keys():", ":", ENFORCED,
    ),
    Mutant(
        "a slope that is not enforced meets rows", "queries/minimum.py",
        "if not proven(self.loss):", "if False:", ENFORCED,
    ),
    Mutant(
        "a class may have a negative weight", "losses/weighted.py",
        'check_scale("A weight", weight, "noise is scaled to the largest one.")', "pass", ENFORCED,
    ),
    Mutant(
        "squares of residuals vanish", "queries/minimum.py",
        "if not _SMALLEST_SUM <= whole <= _LARGEST_SUM:", "if False:", ENFORCED,
    ),
    Mutant(
        "a tabulated slope may fall", "losses/tabulated.py",
        "table = np.maximum.accumulate(np.clip(slopes, -steepest, steepest), axis=1)",
        "table = np.clip(slopes, -steepest, steepest)", ENFORCED,
    ),
    Mutant(
        "the curvature of a table from its gentle cells", "losses/tabulated.py",
        "np.diff(self.table, axis=1).max(axis=0)", "np.diff(self.table, axis=1).mean(axis=0)",
        ENFORCED,
    ),
    Mutant(
        "the curvature of a table on one side of 0 alone", "losses/tabulated.py",
        "either = np.maximum(rises[self._last :], rises[: self._last][::-1])",
        "either = rises[self._last :]", ENFORCED,
    ),
    Mutant(
        "peeling of any vector forgets the other columns' bounds", "queries/mean_vector.py",
        "return self.bounds.row_norm(norm, self.size)",
        "return self.bounds.row_norm(norm, self.size) / 2", PEEL,
    ),
    Mutant(
        "a Laplace maximum costs what an exponential mechanism does",
        "privacy/accountants/divergences.py", "MOST_TIES = 1.211", "MOST_TIES = 1.0", LAPLACE_MAX,
    ),
    Mutant(
        "a group of rows moves a Laplace maximum as one does", "privacy/events.py",
        "if isinstance(event, Pure | BoundedRange | LaplaceMax):",
        "if isinstance(event, Pure | BoundedRange):", ("tests/unit/test_groups.py",),
    ),
    Mutant(
        "peeled values for one entry alone", "queries/mean_vector.py",
        "return bounds.row_norm(norm, len(self.columns))", "return bounds.row_norm(norm, 1)", PEEL,
    ),
    Mutant(
        "Lipschitz constant that forgets the iterate", "queries/gradient.py",
        "reach = self.margin_reach + abs(self.theta.offset)", "reach = 0.0",
        SENSITIVITY,
    ),
    Mutant(
        "no clipping of rows",
        "bounds.py",
        "return np.clip(kept, -limit, limit, out=kept)",
        "return kept",
        ("tests/unit/test_bounds.py",),
    ),
    Mutant(
        "no clipping on the grid",
        "grid.py",
        "    np.fmin(steps, most, out=steps)  # not clip: NaN must not get through\n",
        "",
        ("tests/sensitivity/test_exact_sums.py",),
    ),
    Mutant(
        "rounding that makes rows too long", "bounds.py",
        "np.maximum(most * (1 - 2.0**-40) - np.sqrt(entries) / 2, 0.0)", "most + 0 * entries",
        ("tests/sensitivity/test_exact_sums.py",),
    ),
    Mutant(
        "a length beside entries that is not enforced", "bounds.py",
        "return self.x if self.norm == \"l2\" else self.length\n",
        "return self.x if self.norm == \"l2\" else None\n", ("tests/unit/test_bounds.py",),
    ),
    Mutant(
        "lengths that forget the columns' bounds", "bounds.py",
        "squares = np.square(self.x / self.largest)", "squares = np.square(self.x)",
        ("tests/unit/test_bounds.py",),
    ),
    Mutant(
        "squared bounds that are rounded down", "bounds.py",
        "return np.ceil(squares / step)", "return np.floor(squares / step)",
        ("tests/unit/test_bounds.py",),
    ),
    Mutant(
        "problems with other bounds than the plan", "fitting/planning.py",
        "return first == second and same_bounds", "return first == second",
        ("tests/unit/test_fitting.py",),
    ),
    Mutant(
        "fine slopes clipped at rounded coefficients", "queries/minimum.py",
        "return self.bounds.reach(self.theta) * ROUNDED_UP", "return self.coefficients.reach",
        CLIPS,
    ),
    Mutant(
        "a length in units of the largest column", "bounds.py",
        "self.max_length / float(np.min(self.of_columns(columns)))",
        "self.max_length / self.largest", ("tests/unit/test_bounds.py", *SENSITIVITY),
    ),
    Mutant(
        "sensitivity without its rounding", "queries/utilities.py",
        "return super().sensitivity(norm) + self.rounding * self.row_bound(norm)",
        "return super().sensitivity(norm) / (1 + 2.0**-40)", SENSITIVITY,
    ),
    Mutant(
        "coefficients off their grid", "queries/coefficients.py",
        "np.rint(weights / step), unit", "weights / step, unit",
        ("tests/sensitivity/test_exact_sums.py",),
    ),
    Mutant(
        "fine coefficients off their grid", "grid.py",
        "return np.rint(values / step), step", "return values / step, step",
        ("tests/sensitivity/test_exact_sums.py",),
    ),
    Mutant(
        "slopes off their grid",
        "grid.py",
        "    np.rint(steps, out=steps)\n",
        "",
        ("tests/sensitivity/test_exact_sums.py",),
    ),
    # Mechanisms
    Mutant(
        "epsilon ignored by selections", "mechanisms/noisy_max.py",
        "return self.epsilon / (2 * self.sensitivity)", "return 4 / (2 * self.sensitivity)",
        AUDIT,
    ),
    Mutant(
        "epsilon ignored by Gaussian noise", "mechanisms/additive.py",
        'return self.noise_multiplier * query.sensitivity("l2")',
        'return query.sensitivity("l2")', AUDIT,
    ),
    Mutant(
        "epsilon ignored by Laplace noise", "mechanisms/additive.py",
        'return query.sensitivity("l1") / self.epsilon', 'return query.sensitivity("l1") / 8',
        AUDIT,
    ),
    Mutant(
        "exponential mechanism without its factor 2", "mechanisms/noisy_max.py",
        "return self.epsilon / (2 * self.sensitivity)", "return self.epsilon / self.sensitivity",
        AUDIT,
    ),
    Mutant(
        "off-grid release", "mechanisms/additive.py",
        "return (whole + nearest.astype(np.int64)) * grid",
        "return total + scale * draws.at(middle, part)", ATTACKS,
    ),
    Mutant(
        "noise scale passed as the mean", "mechanisms/additive.py",
        "place += draws.at(middle, part) * (scale / grid)",
        "place += draws.at(middle, part) + scale / grid", ATTACKS,
    ),
    Mutant(
        "one-sided Laplace noise", "mechanisms/additive.py",
        "return np.where(self._negative[part], -size, size)", "return size", ATTACKS,
    ),
    Mutant(
        "selection that never draws more bits", "mechanisms/noisy_max.py",
        "_TAIL = 2.0**-30", "_TAIL = 0.0", DRAWS,
    ),
    Mutant(
        "release that never draws more bits", "mechanisms/additive.py",
        "_BAND = 2.0**-20", "_BAND = 0.0", DRAWS,
    ),
    Mutant(
        "tails of noise that never draw more bits", "mechanisms/additive.py",
        "_TAIL_BAND, _FAR_TAIL = 2.0**-10, 2.0**-30", "_TAIL_BAND, _FAR_TAIL = 0.0, 2.0**-30",
        ROUNDED,
    ),
    Mutant(
        "noise cut off where the first bits end", "mechanisms/additive.py",
        "_TAIL_BAND, _FAR_TAIL = 2.0**-10, 2.0**-30", "_TAIL_BAND, _FAR_TAIL = 2.0**-10, 0.0",
        ROUNDED,
    ),
    Mutant(
        "more bits that are always the same", "mechanisms/exact.py",
        "self._cell = (self._cell << _MORE) | int(self._noise.words(1)[0])",
        "self._cell = (self._cell << _MORE) | 0x123456789ABCDEF0", ROUNDED,
    ),
    Mutant(
        "top k charged as one selection", "mechanisms/selection.py",
        "return compose((BoundedRange(self.epsilon), self.k))",
        "return compose((BoundedRange(self.epsilon), 1))", DRAWS,
    ),
    # Selections by rejection
    Mutant(
        "scores that are said not to drift", "engines/scores.py",
        "return square**0.5 * self._sum_rounding + room * self._root, largest + room",
        "return 0.0, 0.0", REJECTION,
    ),
    Mutant(
        "a column that is lost when another gets bounds of its own", "engines/scores.py",
        "self._order[self._at], self._order[last] = self._order[last], candidate", "pass",
        REJECTION,
    ),
    Mutant(
        "scores of other units", "engines/scores.py",
        "fresh = self._steps is None or not (self._whole and query.same_units(self._query))",
        "fresh = self._steps is None or not self._whole", REJECTION,
    ),
    Mutant(
        "groups that leave out how the parts of snapshots changed", "engines/scores.py",
        "bounds += self._other @ self._group_sizes", "pass", REJECTION,
    ),
    Mutant(
        "a quick look that is said to be exact", "engines/scores.py",
        "off = self._rough_now + float(", "off = 0.0 * float(", REJECTION,
    ),
    Mutant(
        "sums that do not follow all rows", "engines/followed_scores.py",
        "np.flatnonzero(steps != before)", "np.flatnonzero(steps > before)", FOLLOWED,
    ),
    Mutant(
        "sums of entries that are not clipped", "engines/columns.py",
        "np.clip(rows.data[kept], -most, most, out=entries[part])",
        "entries[part] = rows.data[kept]", FOLLOWED,
    ),
    Mutant(
        "columns of few entries that are said to weigh less", "engines/followed_scores.py",
        "whole = entries * self._most *", "whole = entries // 4 * self._most *", FOLLOWED,
    ),
    Mutant(
        "sums of more rows than float64 can add", "engines/followed_scores.py",
        "return int(min(max(few, 1), BLOCK_ROWS // 2))", "return int(max(few, 1)) + 2**30",
        FOLLOWED,
    ),
    Mutant(
        "an interrupt that leaves too small a bound on rare columns", "engines/followed_scores.py",
        "self._few, self._most = few, most", "self._most, self._few = most, few",
        FOLLOWED,
    ),
    Mutant(
        "an envelope that leaves candidates out", "mechanisms/rejection.py",
        "self.bits)).astype(np.int64) + 1", "self.bits)).astype(np.int64)", REJECTION,
    ),
    Mutant(
        "coins of 52 bits", "mechanisms/rejection.py",
        "return SLACK + ROUNDING * abs(value)", "return 0.0", REJECTION,
    ),
    Mutant(
        "slopes of inner products that are said not to be rounded", "engines/scores.py",
        "half_a_step = 0.5 / self._query.source.slope_steps + _SLOPE_ROUNDING",
        "half_a_step = 0.0", REJECTION,
    ),
    Mutant(
        "margins that are followed if sparse rows have many entries", "engines/local.py",
        "filled = places * PERCENT_FILLED // 100 if self._is_sparse else places",
        "filled = self._x.nnz if self._is_sparse else places", REJECTION,
    ),
    # The compiled path
    Mutant(
        "a second order that is left out", "engines/compiled/bounds.py",
        "rest, rest_max = half * far2 * far2, half * far_max * far_max",
        "rest, rest_max = 0.0, 0.0", COMPILED,
    ),
    Mutant(
        "moves that are said to be shorter", "engines/compiled/bounds.py",
        "return math.sqrt(max(found, 0.0))", "return 0.5 * math.sqrt(max(found, 0.0))", COMPILED,
    ),
    Mutant(
        "a sweep that sees half", "engines/compiled/snapshot.py",
        "st.swept_largest = largest_move(", "st.swept_largest = 0.5 * largest_move(", COMPILED,
    ),
    Mutant(
        "moves since a sweep that count half", "engines/compiled/moves.py",
        "        st.up += way\n", "        st.up += 0.5 * way\n", COMPILED,
    ),
    Mutant(
        "rows that are alike and move by more", "engines/compiled/moves.py",
        "if columns.stride == 1 else amount", "if columns.stride == 1 else 2.0 * amount", COMPILED,
    ),
    Mutant(
        "coins that accept more than surely", "engines/compiled/heights.py",
        "chance = groups.logs[g] * math.exp(LOG_2 - st.top)",
        "chance = 1.2 * groups.logs[g] * math.exp(LOG_2 - st.top)", COMPILED,
    ),
    Mutant(
        "signs decided by a quarter of a bound", "engines/compiled/selection.py",
        "groups.most[st.group] / 2 + BAND", "groups.most[st.group] / 8 + BAND", COMPILED,
    ),
    Mutant(
        "compiled slopes on a coarser grid", "queries/frank_wolfe_path.py",
        "return slope_steps(self.n_rows)", "return X_STEPS", SAME,
    ),
    Mutant(
        "compiled weights that are rounded move by move", "engines/compiled/moves.py",
        "return after - before", "return on_weight_grid(amount, weight, facts)", SAME,
    ),
    Mutant(
        "compiled path with another sensitivity", "queries/frank_wolfe_path.py",
        "return epsilon / (2 * sensitivity)", "return epsilon / sensitivity", COMPILED,
    ),
    Mutant(
        "a logistic slope of the compiler's own", "engines/compiled/losses.py",
        "share = 1.0 / (1.0 + exp_below(z))", "share = 1.0 / (1.0 + math.exp(-abs(z)))",
        ("tests/unit/test_compiled_losses.py",),
    ),
    Mutant(
        "targets in 32 bits", "engines/compiled/frank_wolfe.py",
        "targets: Any = np.float64", "targets: Any = np.float32", SAME,
    ),
    Mutant(
        "margins that round as they follow", "engines/margins.py",
        "self._inner = model.in_units(self._sums)\n        else:",
        "self._inner = (self._sums * 0.1) * (model.unit * 10)\n        else:", PIECES,
    ),
    Mutant(
        "dense rows of which other columns count", "queries/sizes.py",
        "most = _most_rank(np.add.reduce(x[few] != 0, axis=1, dtype=np.int64), p)",
        "most = _most_rank(np.full(len(x[few]), p), p)", SAME,
    ),
    Mutant(
        "rows shortened by the number of columns", "bounds.py",
        "entries[too_long] = np.count_nonzero(rows[too_long], axis=1)",
        "entries[too_long] = rows.shape[1]",
        SAME,
    ),
    Mutant(
        "a memory or disk that the rows decide", "fitting/rows.py",
        "return self.n_rows * self._source.schema.likely_entries",
        "return self._source.load()[0].nnz", MEMORY,
    ),
    Mutant(
        "rows without names that take no memory", "data/schema/numeric_block.py",
        "return min(self.count, _ENTRIES_OF_ROW)", "return 0", MEMORY,
    ),
    Mutant(
        "inner products with all hot columns that are off", "engines/compiled/hot.py",
        "fresh[h] *= scale * level", "fresh[h] *= 1.001 * scale * level", COMPILED,
    ),
    Mutant(
        "scores that are said not to be rounded", "engines/compiled/hot.py",
        "hot.doubt[h] = ROUNDING * known[k, SIZE] * st.largest0 + factor0 * rounding",
        "hot.doubt[h] = 0.0", COMPILED,
    ),
    Mutant(
        "a hot column that stays in its group", "engines/compiled/hot.py",
        "    groups.counts[g] -= 1\n", "", COMPILED,
    ),
    Mutant(
        "moves that are said not to touch other columns", "engines/compiled/moves.py",
        "hot.open[h] += gain * facts.steep * (STEPS / facts.level) * common_size(own, k, known)",
        "pass", COMPILED,
    ),
    Mutant(
        "an envelope of earlier steps", "engines/compiled/selection.py",
        "            or now.strength > st.allowed_strength\n", "", COMPILED,
    ),
    Mutant(
        "an envelope that forgets how far margins went", "engines/compiled/selection.py",
        "            or now.drift2 > st.allowed2\n            or now.drift_max > st.allowed_max\n",
        "", COMPILED,
    ),
    Mutant(
        "a word used for two things", "engines/compiled/selection.py",
        "        st.next_word += 1\n        st.proposals += 1", "        st.proposals += 1",
        COMPILED,
    ),
    Mutant(
        "bounds of columns that are left out", "engines/compiled/selection.py",
        "weight = of(columns.relative, st.column) / (STEPS * facts.slope_steps)",
        "weight = 1.0 / (STEPS * facts.slope_steps)", COMPILED,
    ),
    Mutant(
        "coins of 52 bits in compiled code", "engines/compiled/heights.py",
        "band = BAND + ROUNDING * abs(top)", "band = 0.0", COMPILED,
    ),
    Mutant(
        "the epsilon of an earlier release", "engines/local.py",
        "frank_wolfe.set_epsilon(epsilon)", "pass", COMPILED,
    ),
    Mutant(
        "duplicates of rows that call themselves canonical", "grid.py",
        "if rows.has_canonical_format:", "if x.has_canonical_format:",
        ("tests/unit/test_bounds.py::test_rows_that_call_themselves_canonical_are_looked_at",),
    ),
    Mutant(
        "places of entries that the caller can change", "grid.py",
        "x.indices.copy(), x.indptr.copy()", "x.indices, x.indptr",
        ("tests/unit/test_bounds.py::"
         "test_places_that_the_caller_changes_later_do_not_move_entries",),
    ),
    Mutant(
        "inner products of the first rows for every block", "engines/margins.py",
        "return slice(self.start, self.start + self.shape[0])",
        "return slice(0, self.shape[0])", PIECES,
    ),
    Mutant(
        "slopes that are kept for another loss", "engines/margins.py",
        "asked = query.loss, query.theta,", "asked = query.theta, query.theta,", PIECES,
    ),
    Mutant(
        "slopes that are kept for another model", "engines/margins.py",
        "asked = query.loss, query.theta, query.coefficients", "asked = (query.loss,) * 3", PIECES,
    ),
    Mutant(
        "rows shortened as for another length", "queries/columns.py",
        'block.once("shortening", (self, length), shortening)',
        'block.once("shortening", (self,), shortening)', PIECES,
    ),
    Mutant(
        "a line along the places of another cut", "queries/softmax.py",
        "asked = (type(self), *self.thetas, self.influence, self.cut)",
        "asked = (type(self), *self.thetas, self.influence)",
        ("tests/sensitivity/test_softmax_queries.py::test_lines_of_one_engine_are_their_own",),
    ),
    Mutant(
        "duplicates sorted beside other rows", "grid.py",
        "rows = sparse.csr_array(x, dtype=np.float64, copy=True)",
        "rows = sparse.csr_array(x.astype(np.float64))", COMPILED,
    ),
    # Randomness
    Mutant(
        "noise reused between steps", "mechanisms/noise.py",
        "stream, size = self._stream(), 8 * n",
        "self._forget_keys(); self._text = self._text or b\"1\"\n"
        "        stream, size = self._stream(), 8 * n",
        NOISE,
    ),
    Mutant(
        "noise reused between processes", "mechanisms/noise.py",
        "os.register_at_fork(after_in_child=_after_fork)", "pass", NOISE,
    ),
    Mutant(
        "noise reused between threads", "mechanisms/noise.py",
        "text = self._text + f\", thread {next(self._ordinals)}\".encode()",
        "text = self._text", NOISE,
    ),
    Mutant(
        "noise from 256 seeds", "mechanisms/noise.py",
        "key = os.urandom(32)", "key = os.urandom(1) * 32", (*NOISE, *ATTACKS),
    ),
    # Accounting
    Mutant(
        "charge after use", "curator.py",
        """        if ledger is not None:
            facts = dict(summary or {})""",
        """        engine = read()
        read = lambda: engine
        if ledger is not None:
            facts = dict(summary or {})""",
        ("tests/unit", "tests/faults/test_kill.py"),
    ),
    Mutant(
        "releases beyond the plan", "curator.py",
        "                )\n        self._left -= cost\n", "                )\n",
        ("tests/unit/test_plan.py", "tests/unit/test_filter.py"),
    ),
    Mutant(
        "classes that are not counted", "solvers/plan.py",
        "        return self.times.get(role, self.steps) * self.fits\n",
        "        return self.times.get(role, self.steps)\n",
        ("tests/unit/test_plan.py", "tests/conformance/test_estimators.py"),
    ),
    Mutant(
        "negative entries in sums that are called nonnegative_inner", "queries/class_sums.py",
        "with_entries(x, np.maximum(x.data, 0.0))", "with_entries(x, x.data)",
        ("tests/sensitivity/test_sums_by_class.py",),
    ),
    Mutant(
        "counts of a family that may be negative", "losses/log_link.py",
        "    return np.fmax(y, 0.0)\n", "    return y\n",
        (f"{FAMILIES[0]}::test_hostile_counts_are_clipped",),
    ),
    Mutant(
        "a family whose mean has no limit", "losses/log_link.py",
        "        return np.minimum(margin, self.high), np.maximum(margin, self.low)\n",
        "        return margin, margin\n",
        ("tests/conformance/test_registry.py::test_the_bounds_of_a_loss_hold",),
    ),
    Mutant(
        "weights of a family that are not clipped when read", "losses/weighted_rows.py",
        "        return y, np.minimum(weight * of_weight, self.weight), offset\n",
        "        return y, weight * of_weight, offset\n",
        FAMILIES,
    ),
    Mutant(
        "weights of a family that may be negative", "losses/weighted_rows.py",
        "weight, 0.0, self.weight, 0.0)\n", "weight, -9.0, self.weight, 0.0)\n",
        FAMILIES,
    ),
    Mutant(
        "a slope bound of a family without its weights", "losses/weighted_rows.py",
        "        return self.weight * np.minimum(lowest, 0.0), self.weight * np.maximum(",
        "        return np.minimum(lowest, 0.0), np.maximum(",
        FAMILIES,
    ),
    Mutant(
        "a slope bound of a family without its exposures", "losses/weighted_rows.py",
        "        _, highest = self.loss.slope_range(margin + high, self.y)\n",
        "        _, highest = self.loss.slope_range(margin, self.y)\n",
        FAMILIES,
    ),
    Mutant(
        "half the bound on a mean curvature of a family", "queries/support.py",
        "    def row_bound(self, norm: str) -> float:\n        return self.most\n",
        "    def row_bound(self, norm: str) -> float:\n        return self.most / 2\n",
        (f"{REFITS[0]}::test_a_worst_pair_comes_near_to_the_sensitivity",),
    ),
    Mutant(
        "a row that softmax sums count in every class", "queries/class_sums.py",
        "        return (y == np.arange(loss.n_margins)[:, None]).astype(np.float64)\n",
        "        return (y >= np.arange(loss.n_margins)[:, None]).astype(np.float64)\n",
        JOINT,
    ),
    Mutant(
        "a softmax slope that is not shortened", "queries/softmax.py",
        "cut = np.minimum(1.0, self.limit * self.slope_steps * ROUNDED_DOWN / sizes)",
        "cut = np.ones(len(sizes))",
        JOINT,
    ),
    Mutant(
        "a softmax slope of length 1", "queries/softmax.py",
        "        slope = self.largest_weight * min(self.limit, math.sqrt(2.0))\n",
        "        slope = self.largest_weight * min(self.limit, 1.0)\n",
        JOINT,
    ),
    Mutant(
        "softmax rows that are not shortened", "queries/softmax.py",
        "            shorter = self.scaling.shortening(few, self.length)\n",
        "            shorter = np.ones(len(few.y))\n",
        JOINT,
    ),
    Mutant(
        "a softmax line that forgets the weights of classes", "queries/softmax.py",
        "        return self.largest_weight * largest[norm]\n",
        "        return largest[norm]\n",
        JOINT,
    ),
    Mutant(
        "a softmax line without its offsets", "queries/softmax.py",
        '            "l2": math.sqrt(2.5 + _LARGEST_VARIANCE**2),\n',
        '            "l2": 1.0,\n',
        JOINT,
    ),
    Mutant(
        "softmax margins that are not cut", "queries/softmax.py",
        "np.maximum(lengths, self.cut))[:, None])\n", "self.cut)[None, None])\n",
        JOINT,
    ),
    Mutant(
        "Gaussian releases that are charged once for all steps",
        "solvers/calibrated.py",
        "calibrate_mechanisms(at, {role: fits * k for role, k in times.items()}, budget)",
        "calibrate_mechanisms(at, dict.fromkeys(times, 1), budget)",
        ("tests/unit/test_scaled_gradient.py",),
    ),
    Mutant(
        "a seeded fit on a real ledger", "fitting/arguments.py",
        "    if random_state is not None:\n", "    if False:\n", ("tests/unit/test_bad_input.py",),
    ),
    Mutant(
        "adaptive charges composed as if fixed", "privacy/filters.py",
        "            yield _ZCDP.converted(lambda alpha: alpha * rho, delta), _ZCDP.name\n",
        "            from riata.privacy.accountants import spent\n"
        "            from riata.privacy.events import Gaussian\n\n"
        "            yield spent(Gaussian((2 * rho) ** -0.5), delta).epsilon, _ZCDP.name\n",
        LEDGER,
    ),
    # The later solvers
    Mutant(
        "gradients that are not clipped", "queries/gradient.py",
        "return np.clip(steps, -limit, limit)", "return steps",
        (f"{CLIPS[0]}::test_no_row_adds_more_than_the_clip",),
    ),
    Mutant(
        "clipping that rounds up", "queries/gradient.py",
        "limit = np.floor(np.fmin(allowed, self.slope_steps))",
        "limit = np.ceil(np.fmin(allowed, self.slope_steps))",
        (f"{CLIPS[0]}::test_no_row_adds_more_than_the_clip",),
    ),
    Mutant(
        "clipping by one bound for all columns", "queries/block.py",
        "return np.sqrt(bounds.squared_lengths(x)) * (bounds.largest / X_STEPS)",
        "return np.sqrt(bounds.squared_lengths(x)) * (np.min(bounds.x) / X_STEPS)",
        (f"{CLIPS[0]}::test_no_row_adds_more_than_the_clip",),
    ),
    Mutant(
        "lengths by weights that are rounded down", "bounds.py",
        "np.ceil(squares / step).astype(np.int64)", "np.floor(squares / step).astype(np.int64)",
        (f"{CLIPS[0]}::test_no_row_adds_more_than_the_clip",),
    ),
    Mutant(
        "sparse rows clipped by the length of another", "grid.py",
        "return row_sums(terms, x.indptr)", "return row_sums(terms, x.indptr)[::-1]",
        (f"{CLIPS[0]}::test_a_clipped_sum_depends_neither_on_blocks_nor_on_order_nor_on_storage",),
    ),
    Mutant(
        "entries with the noise of one", "queries/gradient.py",
        "self.bounds.row_norm(norm, self.theta.size, self.columns)",
        'self.bounds.row_norm("linf", self.theta.size, self.columns)',
        (f"{CLIPS[0]}::test_entries_of_a_gradient_keep_their_sensitivity",),
    ),
    Mutant(
        "gradient step without its rounding", "queries/utilities.py",
        "return super().sensitivity(norm) + 2.0**-49 * entries * largest",
        "return super().sensitivity(norm)", CLIPS,
    ),
    Mutant(
        "curvature of the length and not of its square", "queries/minimum.py",
        "return self.loss.curvature_bound(self.y_bound) * self.row_length**2 * ROUNDED_UP",
        "return self.loss.curvature_bound(self.y_bound) * self.row_length * ROUNDED_UP",
        (f"{OBJECTIVE[0]}::test_no_pair_exceeds_a_pure_claim",),
    ),
    Mutant(
        "a corner that is charged as if it were rounded", "queries/minimum.py",
        "return FineGradient(self._enforced, theta)", "return FineGradient(self.problem, theta)",
        (f"{OBJECTIVE[0]}::test_the_slopes_that_are_summed_are_those_that_are_charged",),
    ),
    Mutant(
        "a rounded corner with half its curvature", "losses/smoothed.py",
        "return float(np.max(rise * rate * rate / self.smoothing))",
        "return float(np.max(rise * rate * rate / self.smoothing)) / 2",
        ("tests/unit/test_losses.py::test_a_rounded_corner_is_a_mean_over_an_interval",),
    ),
    Mutant(
        "a projection that nobody certified", "mechanisms/objective.py",
        "return np.concatenate([nearest, offset]) if error <= allowed else None",
        "return np.concatenate([nearest, offset])",
        (f"{OBJECTIVE[0]}::test_a_projection_that_is_not_certified_is_no_certificate_of_a_minimum",),
    ),
    Mutant(
        "a hull that is certified by its nearest vertex alone", "sets/hull.py",
        "gap = int(rest @ rest) - (int(ahead.min()) << _WEIGHT_BITS)",
        "gap = int(rest @ rest) - (int(ahead.max()) << _WEIGHT_BITS)",
        (f"{OBJECTIVE[0]}::test_a_search_that_is_cut_short_certifies_no_more_than_it_found",),
    ),
    Mutant(
        "an lp ball that certifies points of another radius", "sets/lp.py",
        "return apart + 2 * (abs(outside) + 2.0**-46) * (longest + apart) + rounding",
        "return apart + rounding",
        (f"{OBJECTIVE[0]}::test_what_an_lp_ball_certifies_holds_for_every_point_that_it_is_given",),
    ),
    Mutant(
        "pure gradients of samples", "solvers/noisy_gradient.py",
        "        if self.sampling < 1:\n            _SAMPLED",
        "        if self.sampling < 0:\n            _SAMPLED",
        ("tests/unit/test_incompatible.py::test_an_incompatible_pair_is_explained_and_nothing_is_read_or_charged",),
    ),
    Mutant(
        "intercept that is not counted in a row", "queries/minimum.py",
        "math.hypot(row, 1.0 if self.fit_intercept else 0.0)", "math.hypot(row, 0.0)",
        (f"{OBJECTIVE[0]}::test_no_pair_exceeds_a_pure_claim",),
    ),
    Mutant(
        "fine slopes of 32 bits", "queries/minimum.py",
        "limbs = (whole >> (2 * _LIMB), (whole >> _LIMB) & mask, whole & mask)",
        "limbs = (whole >> (2 * _LIMB), (whole >> _LIMB) & mask, 0 * whole)",
        (f"{CLIPS[0]}::test_the_limbs_of_a_fine_slope_are_exact_to_the_largest_block",
         f"{CLIPS[0]}::test_a_fine_gradient_is_within_its_stated_error"),
    ),
    Mutant(
        "linear term with half its noise", "mechanisms/objective.py",
        'return query.sensitivity("l2") / self.epsilon',
        'return query.sensitivity("l2") / self.epsilon / 2',
        (f"{OBJECTIVE[0]}::test_no_pair_exceeds_a_pure_claim",),
    ),
    Mutant(
        "stretch that nobody pays for", "mechanisms/objective.py",
        "return compose((Pure(self.epsilon + self.stretch), 1), (Pure(self.hiding_epsilon), 1))",
        "return compose((Pure(self.epsilon), 1), (Pure(self.hiding_epsilon), 1))",
        ("tests/audit/test_solvers.py::test_the_event_of_a_perturbed_objective_counts_its_parts",),
    ),
    Mutant(
        "hiding noise for half of what it hides", "mechanisms/objective.py",
        "return self.hiding_multiplier * 2 * self.radius(query)",
        "return self.hiding_multiplier * self.radius(query)",
        (f"{OBJECTIVE[0]}::test_the_hiding_noise_has_the_scale_that_is_charged",),
    ),
    Mutant(
        "a release off its grid", "mechanisms/objective.py",
        "released = rounded(steps, scale, self._hiding(len(steps), noise)) * grid",
        "released = theta + scale * grid * self._hiding(len(steps), noise).values",
        (f"{OBJECTIVE[0]}::test_a_release_is_a_multiple_of_a_public_grid",),
    ),
    Mutant(
        "a radius that trusts the smoothness", "mechanisms/objective.py",
        "return 2.5 * self.tolerance(query) / self.regularisation",
        "return 2.5 * self.tolerance(query) / self.smoothness(query)",
        (f"{OBJECTIVE[0]}::test_the_computed_minimiser_is_as_near_as_its_certificate_says",),
    ),
    Mutant(
        "near draws without their tails", "mechanisms/approximate_normals.py",
        "_TAIL = 2.0**-12", "_TAIL = 2.0**-60",
        (f"{OBJECTIVE[0]}::test_near_normals_and_exponentials_are_within_their_error_wherever_the_cell_is",),
    ),
    Mutant(
        "peeling that pays for its selection only", "mechanisms/peeling.py",
        "return compose((self.select.event, 1), (self.values.event, 1))",
        "return compose((self.select.event, 1))",
        (f"{PEELING[0]}::test_the_event_of_peeling_is_the_composition_of_its_two_releases",),
    ),
    Mutant(
        "parts that share a row", "engines/local.py",
        "rows = slice(part, None, parts)", "rows = slice(part // 2, None, parts)",
        (f"{PEELING[0]}::test_every_row_is_in_exactly_one_part",),
    ),
    Mutant(
        "one account for all parts", "curator.py",
        "self._paid_for = [(Filter if adaptive else Listed)(event) for _ in range(parts)]",
        "from riata.privacy.events import compose\n"
        "        event = compose((event, parts))\n"
        "        self._paid_for = [(Filter if adaptive else Listed)(event)] * parts",
        (f"{PEELING[0]}::test_each_part_is_charged_by_itself_and_only_once",),
    ),
    Mutant(
        "a sample that is drawn with too many", "mechanisms/sampled.py",
        "words = self.coins.words(block.start, len(block.y)) >> np.uint64(1)",
        "words = self.coins.words(block.start, len(block.y)) >> np.uint64(2)", SAMPLED,
    ),
    Mutant(
        "the same coins for each block of rows", "mechanisms/sampled.py",
        "self.coins.words(block.start, len(block.y))", "self.coins.words(0, len(block.y))", SAMPLED,
    ),
    Mutant(
        "a sample of the first rows", "mechanisms/sampled.py",
        "sample = np.flatnonzero(words < np.uint64(self.threshold))",
        "sample = np.arange(int(len(block.y) * (self.threshold / 2**63)))", SAMPLED,
    ),
    Mutant(
        "noise that shrinks with the sample", "mechanisms/sampled.py",
        "        return max(self.query.sensitivity(norm), super().sensitivity(norm))\n",
        "        return self.query.sensitivity(norm) * (self.threshold / 2**63)\n", SAMPLED,
    ),
    Mutant(
        "samples accounted for added rows only", "privacy/accountants/divergences.py",
        "return min(plain, max(removed, replaced))", "return min(plain, removed / 4)", COSTS,
    ),
    Mutant(
        "one-sided objective accounting", "privacy/accountants/objective.py",
        "    if directions == 1:\n        return 2 * _normal_excess(together, level)",
        "    if directions == 1:\n        return _normal_excess(together, level)", COSTS,
    ),
    Mutant(
        "changes in a plane that are accounted for as on a line",
        "privacy/accountants/objective.py",
        "return _ROOT_OF_2_PI * own * tail + _normal_excess(others, level)",
        "return 2 * _normal_excess(together, level)",
        (f"{COSTS[0]}::test_the_claim_covers_its_envelope",),
    ),
    Mutant(
        "a group that is accounted for by the vertices of one row",
        "privacy/accountants/objective.py",
        "return min(1.0, math.exp(-touch) * excess)",
        "return min(1.0, math.exp(-touch) * excess / math.exp(0.5 / falls))",
        (f"{COSTS[0]}::test_a_group_is_accounted_for_by_the_worst_dependence_of_its_rows",
         f"{COSTS[0]}::test_the_claim_covers_its_envelope"),
    ),
    Mutant(
        "losses below the floor that count as nothing", "privacy/accountants/objective.py",
        "excess += _normal_excess(others, level - above - others**2 / 2)", "pass",
        (f"{COSTS[0]}::test_the_claim_covers_its_envelope",),
    ),
    Mutant(
        "a Renyi bound without its floor", "privacy/accountants/objective.py",
        "either = larger + math.log1p(math.exp(smaller - larger))", "either = moment",
        (f"{COSTS[0]}::test_the_claim_covers_its_envelope",),
    ),
    Mutant(
        "objective accounting without its folded normal", "privacy/accountants/objective.py",
        "moment = weight * mu * mu / 2 + log_moment(leaf.directions, weight * mu)",
        "moment = weight * mu * mu / 2 + (weight * mu) ** 2 / 2", COSTS,
    ),
    Mutant(
        "a stretch that a group pays once", "privacy/events.py",
        "event.noise_multiplier / more, event.stretch * more, event.directions,",
        "event.noise_multiplier / more, event.stretch, event.directions,", GROUPS,
    ),
    Mutant(
        "slopes of two rows that are taken at their margins' middle", "queries/row_pairs.py",
        "sums = (ours.most[:, None] + theirs.most) ** 2",
        "sums = (ours.least[:, None] + theirs.least) ** 2", PAIRS,
    ),
    Mutant(
        "rows that replace each other with opposite margins", "queries/row_pairs.py",
        "like = sums - product * ((against / reach) ** 2 + constant)",
        "like = sums - product * ((apart / reach) ** 2 + constant + against**2)", PAIRS,
    ),
    Mutant(
        "an intercept that two rows always share", "queries/row_pairs.py",
        "unlike = sums - product * (apart / reach) ** 2",
        "unlike = sums - product * ((apart / reach) ** 2 + constant)", PAIRS,
    ),
    Mutant(
        "a determinant that costs nothing beside steep slopes", "queries/minimum.py",
        "left = stretches - above * np.maximum(1 - moved / largest, 0.0)",
        "left = stretches - above", PAIRS,
    ),
    # Scales, refits and filters
    Mutant(
        "nonnegative_inner for every query", "queries/base.py",
        "nonnegative_inner: ClassVar[bool] = False",
        "nonnegative_inner: ClassVar[bool] = True", REFITS,
    ),
    Mutant(
        "nonnegative_inner in every norm", "queries/base.py",
        'if self.nonnegative_inner and norm == "l2":', "if self.nonnegative_inner:", REFITS,
    ),
    Mutant(
        "nonnegative_inner samples", "mechanisms/sampled.py",
        "return max(self.query.sensitivity(norm), super().sensitivity(norm))",
        "return self.query.sensitivity(norm)",
        (f"{REFITS[0]}::test_a_secret_sample_does_not_count_on_non_negative_inner_products",),
    ),
    Mutant(
        "every entry with a vote of its own", "queries/sizes.py",
        "np.floor(counts * float(SHARE_STEPS) / entries)",
        "counts * float(SHARE_STEPS)", REFITS,
    ),
    Mutant(
        "votes that are rounded up", "queries/sizes.py",
        "np.floor(counts * float(SHARE_STEPS) / entries)",
        "np.ceil(counts * float(SHARE_STEPS) / entries)",
        (f"{REFITS[0]}::test_a_row_has_one_vote_on_the_sizes_of_its_entries",),
    ),
    Mutant(
        "rows that keep their length", "queries/short_rows.py",
        "rows[few] = bounds.grid_x(some * step)",
        "rows[few] = np.rint(some * step / bounds.x * X_STEPS)",
        ("tests/sensitivity/test_short_rows.py",),
    ),
    Mutant(
        "rows that were shortened to another length", "queries/short_rows.py",
        "key = (self.given, bounds.max_length, bounds.largest)", "key = (self.given,)",
        ("tests/sensitivity/test_short_rows.py", "-k", "keeps"),
    ),
    Mutant(
        "sensitivity of the wide bounds' query alone", "queries/short_rows.py",
        "return self.query.sensitivity(norm)", "return self.query.sensitivity(norm) / 2",
        ("tests/sensitivity/test_short_rows.py",),
    ),
    Mutant(
        "parts of a table that are not cut", "queries/nuisance.py",
        "parts = np.fmax(np.fmin(parts, most), 0.0)", "parts = np.fmax(parts, -most)",
        NUISANCE,
    ),
    Mutant(
        "long parts of a table that count", "queries/nuisance.py",
        "known = short & np.isin", "known = np.isin",
        (f"{NUISANCE[0]}::test_a_loss_that_says_too_little_changes_no_bound",),
    ),
    Mutant(
        "a table with the noise of one number", "queries/nuisance.py",
        '"l2": longest, "linf"', '"l2": 1.0, "linf"',
        (f"{NUISANCE[0]}::test_a_worst_pair_reaches_the_sensitivity",),
    ),
    Mutant(
        "events after the horizon", "losses/cox.py",
        "happened = (event > 0) & (duration <= horizon)", "happened = event > 0",
        ("tests/unit/test_ordinal_and_survival.py::test_hostile_durations_are_clipped_and_censored",),
    ),
    Mutant(
        "curvatures of ordered classes above their bound", "losses/ordered_logistic.py",
        "return 0.25 if self.n_classes == 2 else 0.5", "return 0.25",
        (
            "tests/unit/test_ordinal_and_survival.py::"
            "test_the_curvature_of_ordered_classes_keeps_its_bound_and_narrow_classes_reach_it",
        ),
    ),
    Mutant(
        "slopes of ordered classes above their bound", "losses/ordered_logistic.py",
        "return -logistic(inner[-1] - margin), logistic(margin - inner[0])",
        "return -logistic(inner[0] - margin), logistic(margin - inner[-1])",
        (f"{NUISANCE[0]}::test_slopes_keep_their_bound_and_reach_it",),
    ),
    Mutant(
        "a table in which other rows' cells are read", "queries/nuisance.py",
        "np.where(known, cells, loss.n_cells)", "np.where(known, cells[0], loss.n_cells)",
        NUISANCE,
    ),
    Mutant(
        "whitened rows that are not shortened", "queries/whitening.py",
        "h *= np.minimum(1.0, X_STEPS * ROUNDED_DOWN / np.sqrt(squares))[:, None]", "pass",
        WHITENED,
    ),
    Mutant(
        "whitened rows that are rounded away from 0", "queries/whitening.py",
        "            np.trunc(h, out=h)\n",
        "            np.copysign(np.ceil(np.abs(h)), h, out=h)\n", WHITENED,
    ),
    Mutant(
        "joint moments without the constant's length", "queries/whitening.py",
        "square = self.length**2 + self.constant**2", "square = self.length**2",
        (f"{WHITENED[0]}::test_opposite_rows_with_a_constant_reach_the_sensitivity_too",),
    ),
    Mutant(
        "joint moments with the noise of one row's length", "queries/whitening.py",
        "return square * self.width if norm == \"l1\" else square", "return square / 2",
        (f"{WHITENED[0]}::test_a_worst_pair_reaches_the_sensitivity_of_joint_moments",),
    ),
    Mutant(
        "moments of rows alone that are not shortened", "queries/whitening.py",
        "            with np.errstate(divide=\"ignore\"):\n                h *=",
        "            if self.scale < 1e50:\n                h *=",
        (WHITENED[0], "-k", "rows_alone"),
    ),
    Mutant(
        "moments of rows alone with the noise of half of them", "queries/whitening.py",
        "square = self.length**2 + self.constant**2",
        "square = self.length**2 / (1 if self.scale < 1e50 else 2) + self.constant**2",
        (WHITENED[0], "-k", "rows_alone"),
    ),
    Mutant(
        "a spread of rows that is released once more", "solvers/averaged_gradient.py",
        'matrix, noise = self.release("spread", query)',
        'matrix, noise = [self.release("spread", query) for _ in range(2)][1]',
        ("tests/unit/test_row_spread.py", "-k", "claim"),
    ),
    Mutant(
        "cells off the diagonal that count twice", "queries/whitening.py",
        "np.where(row == column, 1.0, math.sqrt(2))", "np.where(row == column, 1.0, 2.0)",
        (f"{WHITENED[0]}::test_noise_off_the_diagonal_is_less_by_the_root_of_two",),
    ),
    Mutant(
        "gradients of whitened rows that are not clipped", "queries/whitening.py",
        "yield np.clip(kept, -most, most), u", "yield kept, u",
        (f"{WHITENED[0]}::test_a_worst_pair_reaches_the_sensitivity_of_a_whitened_gradient",),
    ),
    Mutant(
        "slopes of labels that are trusted to be the larger of two", "queries/whitening.py",
        "yield np.clip(kept, -most, most), u",
        "yield (np.clip(kept, -most, most) if largest is None else kept), u",
        (f"{WHITENED[0]}::test_a_label_of_a_weight_beyond_the_two_that_are_compared_is_clipped",),
    ),
    Mutant(
        "moments of gradients in which each row counts twice", "queries/whitening.py",
        "            total += g.T @ g\n        return total[np.triu_indices(self.width)]",
        "            total += 2 * g.T @ g\n        return total[np.triu_indices(self.width)]",
        (f"{WHITENED[0]}::test_no_row_adds_more_than_the_squared_clip_of_its_gradient",),
    ),
    Mutant(
        "moments of gradients that are rounded to the next number", "queries/whitening.py",
        "            np.trunc(g, out=g)\n", "            np.ceil(g, out=g)\n",
        (f"{WHITENED[0]}::test_no_row_adds_more_than_the_squared_clip_of_its_gradient",),
    ),
    Mutant(
        "a clip that forgets the constant", "queries/whitening.py",
        "lengths = np.sqrt(squares + float(beside) ** 2)", "lengths = np.sqrt(squares)",
        (f"{WHITENED[0]}::test_a_worst_pair_reaches_the_sensitivity_of_a_whitened_gradient",),
    ),
    Mutant(
        "steps of a whitening in which rows are not finite", "queries/whitening.py",
        "(steps <= _LARGEST_STEP)", "(steps < math.inf)",
        (f"{WHITENED[0]}::test_a_whitening_off_its_grids_is_refused",),
    ),
    Mutant(
        "a matrix of a whitening of any size", "queries/whitening.py",
        "        matrix = np.clip(matrix, -_LARGEST_STEP, _LARGEST_STEP)\n", "",
        (f"{WHITENED[0]}::test_rows_are_finite_in_every_whitening_at_every_length",),
    ),
    Mutant(
        "a whitening that can be changed after rows were", "queries/whitening.py",
        "            array.flags.writeable = False\n", "            pass\n",
        (f"{WHITENED[0]}::test_nobody_can_change_a_whitening_later",),
    ),
    Mutant(
        "whitened rows that were kept for another reach", "queries/whitening.py",
        'block.once("whitened", (self, step, most), make)',
        'block.once("whitened", (self,), make)', (*WHITENED, "-k", "keeps"),
    ),
    Mutant(
        "whitened rows that depend on the largest of their block", "queries/whitening.py",
        "            u *= factors\n", "            u *= factors / max(np.abs(u).max(), 1.0)\n",
        WHITENED,
    ),
    Mutant(
        "queries about rows that are handed targets", "queries/block.py",
        "        alone.y = None  # type: ignore[assignment]\n", "",
        (f"{TARGETS}::test_a_row_query_sees_no_target",),
    ),
    Mutant(
        "queries about rows that are handed what was kept of targets", "queries/block.py",
        "        alone._once, alone._pieces = {}, []\n", "",
        (f"{TARGETS}::test_nothing_that_was_kept_of_targets_answers_a_row_query",),
    ),
    Mutant(
        "slopes that were kept of hidden targets", "engines/margins.py",
        "            return super().slopes(query)\n"
        "        return self._margins.slopes(query, self.y, self._place",
        "            pass\n        return self._margins.slopes(query, self.y, self._place",
        (f"{TARGETS}::test_nothing_that_was_kept_of_targets_answers_a_row_query",),
    ),
    Mutant(
        "answers about secret rows without a sensitivity", "queries/public_rows.py",
        "if self.adjacency == REPLACE_LABEL:", "if True:",
        (f"{TARGETS}::test_an_exact_answer_is_refused_where_it_would_tell_something",),
    ),
    Mutant(
        "exact answers to every query", "mechanisms/public.py",
        'if not isinstance(query, RowQuery) or query.sensitivity("linf") != 0:', "if False:",
        (f"{TARGETS}::test_an_exact_answer_is_refused_where_it_would_tell_something",),
    ),
    Mutant(
        "label sums of long rows that weigh as much as others", "queries/public_rows.py",
        "total += np.trunc(slopes[few] * weights) @ h", "total += slopes[few] @ h",
        (f"{TARGETS}::test_no_other_target_changes_label_sums_by_more",),
    ),
    Mutant(
        "weights of rows that forget the constant", "queries/public_rows.py",
        "np.sqrt(squares + float(constant_steps) ** 2)", "np.sqrt(squares)",
        (f"{TARGETS}::test_no_other_target_changes_label_sums_by_more",),
    ),
    Mutant(
        "label sums with the noise of half a target", "queries/public_rows.py",
        "return self.slope_bound() * self.rows.length * stretched",
        "return self.slope_bound() * self.rows.length * stretched / 2",
        (f"{TARGETS}::test_two_targets_of_a_long_row_reach_the_sensitivity",
         f"{TARGETS}::test_no_other_target_changes_label_sums_by_more"),
    ),
    Mutant(
        "a replaced target that counts once", "privacy/budget.py",
        "REPLACE_LABEL: 2}", "REPLACE_LABEL: 1}",
        (f"{TARGETS}::test_no_other_target_changes_label_sums_by_more",),
    ),
    Mutant(
        "targets of people as if each had one", "fitting/arguments.py",
        "    if adjacency == REPLACE_LABEL:\n", "    if False:\n",
        (f"{LABELS}::test_people_are_refused_before_a_charge",),
    ),
    Mutant(
        "a fit of targets on a ledger of rows", "privacy/unit.py",
        "if unit.adjacency == adjacency and (", "if REPLACE_LABEL == unit.adjacency or (",
        (f"{LABELS}::test_a_ledger_of_more_refuses_a_fit_that_protects_targets_alone",),
    ),
    Mutant(
        "a Statement about targets that is silent about rows", "fitting/statement.py",
        "        notes.append(LABEL_NOTE)\n", "        pass\n",
        (f"{LABELS}::test_the_statement_says_that_rows_are_not_protected",),
    ),
    Mutant(
        "rows on a support that are not shortened", "queries/support.py",
        "u = np.trunc(entries * shrink[:, None])", "u = np.trunc(entries)", REFITS,
    ),
    Mutant(
        "rows on a support that are rounded away from 0", "queries/support.py",
        "u = np.trunc(entries * shrink[:, None])",
        "u = np.copysign(np.ceil(np.abs(entries * shrink[:, None])), entries)",
        (f"{REFITS[0]}::test_rows_on_a_support_are_no_longer_than_allowed",),
    ),
    Mutant(
        "a constant that no row counts", "queries/support.py",
        "return math.hypot(self.length, self.constant)", "return self.length", REFITS,
    ),
    Mutant(
        "a pure gradient with the noise of its length", "queries/support.py",
        'stretched = math.sqrt(self.width) if norm == "l1" else 1.0', "stretched = 1.0", REFITS,
    ),
    Mutant(
        "a pure curvature with the noise of its length", "queries/support.py",
        'return square * (self.width + 1) / 2 if norm == "l1" else square', "return square", REFITS,
    ),
    Mutant(
        "curvatures beyond their bound", "queries/support.py",
        "return np.fmax(np.fmin(weights, 1.0), 0.0)  # NaN becomes 1", "return np.abs(weights)",
        (f"{REFITS[0]}::test_a_curvature_that_breaks_its_promise_cannot_exceed_the_bound",),
    ),
    Mutant(
        "entries that are not clipped", "queries/correlations.py",
        "return block.sums(self.slopes(block), self.most)",
        "return block.sums(self.slopes(block))", REFITS,
    ),
    Mutant(
        "correlations without their rounding", "queries/correlations.py",
        "return super().sensitivity(norm) + 3 * 2.0**-52 * self.row_bound(norm)",
        "return super().sensitivity(norm)",
        (f"{REFITS[0]}::test_correlations_of_many_rows_need_the_room_for_rounding",),
    ),
    Mutant(
        "one coordinate with the noise of its first number", "queries/correlations.py",
        'return first * (1 + self.BESIDE if norm == "l1" else math.hypot(1.0, self.BESIDE))',
        "return first", REFITS,
    ),
    Mutant(
        "an improvement with the noise of one number", "queries/improvement.py",
        '{"l1": 2.0, "l2": math.sqrt(2), "linf": 1.0}[norm]', "1.0", REFITS,
    ),
    Mutant(
        "a filter that is never used up", "curator.py",
        '                "the solver makes."\n            )\n        self._left -= cost\n',
        '                "the solver makes."\n            )\n', FILTER,
    ),
    Mutant(
        "a filter that forgets Gaussian releases", "privacy/accountants/renyi.py",
        "            return 1 / (2 * Fraction(z) ** 2)\n", "            return Fraction(0)\n",
        FILTER,
    ),
    Mutant(
        "a filter in floats", "privacy/accountants/pure.py",
        "return sum((k * Fraction(_own_epsilon(leaf)) for leaf, k in parts), Fraction())",
        "return self.epsilon(event, 0.0)", FILTER,
    ),
    Mutant(
        "scales that nobody pays for", "solvers/refit.py",
        "return released_scale(query, self.remaining.measurement(amount), self.curator)",
        "left = self.remaining.left\n"
        "        found = released_scale(query, self.remaining.measurement(amount), self.curator)\n"
        "        self.remaining.left = left\n"
        "        return found",
        ("tests/unit/test_refit_solvers.py",),
    ),
    # The ledger
    Mutant(
        "ledger that refunds what does not fit nano-units", "privacy/ledger/entries.py",
        "total = nano(cost.epsilon, ROUND_CEILING)", "total = nano(cost.epsilon, 'ROUND_FLOOR')",
        LEDGER,
    ),
    Mutant(
        "ledger without an exclusive transaction", "privacy/ledger/database.py",
        """engine, path, "BEGIN IMMEDIATE", place=""",
        """engine, path, "BEGIN", place=""", ("tests/faults/test_races.py",),
    ),
    Mutant(
        "ledger that believes an edited line", "privacy/ledger/hash_chain.py",
        "        if not is_genuine(head.key, macs, seq, entry):\n", "        if False:\n",
        (*LEDGER, "tests/faults/test_tampering.py"),
    ),
    Mutant(
        "ledger that forgets how far it went", "privacy/ledger/hash_chain.py",
        "    if last < head.seq:\n", "    if False:\n",
        (*LEDGER, "tests/faults/test_tampering.py"),
    ),
    Mutant(
        "ledger whose head stays behind", "privacy/ledger/ledger.py",
        """            if entries.head != seen:
                self._head.write(entries.head)
""", "", (*LEDGER, "tests/faults/test_tampering.py"),
    ),
    Mutant(
        "ledger whose links skip nothing that is checked", "privacy/ledger/hash_chain.py",
        "links = (macs.get(seq - 1), macs.get(skip_link(seq)))",
        "links = (macs.get(seq - 1), macs.get(seq - 1))", ("tests/unit/test_chain.py",),
    ),
    Mutant(
        "ledger that believes the charge of a run as it stands", "privacy/ledger/entries.py",
        "            or not all(\n                is_genuine(self.head.key, macs, each",
        "            or not any(\n                is_genuine(self.head.key, macs, each",
        ("tests/faults/test_tampering.py",),
    ),
    Mutant(
        "ledger that charges a run twice", "privacy/ledger/entries.py",
        "        if before is not None:\n", "        if False:\n",
        ("tests/unit/test_ledger_runs.py",),
    ),
    Mutant(
        "ledger whose sums forget the charges before", "privacy/filters.py",
        "    return None if one is None or other is None else one + other",
        "    return None if one is None or other is None else other",
        ("tests/unit/test_filter_sums.py",),
    ),
    Mutant(
        "ledger whose sums call an infinite cost none", "privacy/filters.py",
        "    return None if one is None or other is None else one + other",
        "    return one if other is None else other if one is None else one + other",
        ("tests/unit/test_filter_sums.py",),
    ),
    Mutant(
        "ledger that goes on with the sums of another arithmetic", "privacy/filters.py",
        "        if version != ARITHMETIC:\n            return None\n", "",
        ("tests/unit/test_filter_sums.py",),
    ),
    Mutant(
        "ledger that adds up other people", "privacy/unit.py",
        "if unit.adjacency == adjacency and (not person or unit.person == person):",
        "if unit.adjacency == adjacency:", ("tests/unit/test_ledger_units.py",),
    ),
    Mutant(
        "ledger that adds up rows and people", "privacy/unit.py",
        "if unit.adjacency == adjacency and (not person or unit.person == person):",
        "if not person or not unit.person or unit.person == person:",
        ("tests/unit/test_ledger_units.py",),
    ),
    Mutant(
        "ledger that forgets who its people are", "privacy/ledger/entries.py",
        """return self.header.person or ("" if self.last is None else self.last.unit.person)""",
        "return self.header.person", ("tests/unit/test_ledger_units.py",),
    ),
    Mutant(
        "ledger under several hard links", "privacy/ledger/database.py",
        "    if file.st_nlink > 1:\n", "    if False:\n", ("tests/faults/test_two_names.py",),
    ),
    Mutant(
        "ledger whose locks depend on its name", "privacy/ledger/database.py",
        'db.execute("PRAGMA journal_mode = DELETE")', 'db.execute("PRAGMA journal_mode = WAL")',
        ("tests/faults/test_two_names.py",),
    ),
    Mutant(
        "restore that forgets what the head has seen", "privacy/ledger/backup.py",
        "    if len(merged) < seen.seq:\n", "    if False:\n", ("tests/faults/test_restore.py",),
    ),
    Mutant(
        "restore that forgets another history", "privacy/ledger/backup.py",
        "if row.mac != macs.get(row.seq) and is_genuine(", "if False and is_genuine(",
        ("tests/faults/test_restore.py",),
    ),
    Mutant(
        "restore that forgets what was charged since", "privacy/ledger/backup.py",
        "        merged.append(row)\n        macs[row.seq] = row.mac\n", "        break\n",
        ("tests/faults/test_restore.py",),
    ),
    Mutant(
        "restore that believes an old head", "privacy/ledger/backup.py",
        "    if seen.seq < len(saved.rows):\n", "    if False:\n",
        ("tests/faults/test_restore.py",),
    ),
    # Sources
    Mutant(
        "data: empty lines that move the others", "data/readers/lines.py",
        'return [line.rstrip(b"\\r") for line in lines]',
        'return [line.rstrip(b"\\r") for line in lines if line.strip()]', BAD_FILES,
    ),
    Mutant(
        "data: an open quote that swallows the next line", "data/readers/csv_file.py",
        "self._cells(split_lines(text))",
        'self._cells((lambda b: [a + c for a, c in zip(b, [*b[1:], b""])])(split_lines(text)))',
        BAD_FILES,
    ),
    Mutant(
        "data: quotes that a plain block keeps", "data/readers/csv_file.py",
        """marked = b'"' in text or b"\\r" in text or""", """marked = b"\\r" in text or""", PLAIN,
    ),
    Mutant(
        "data: a mark that only the first row of a block loses", "data/readers/csv_file.py",
        " or text.startswith(_BYTE_ORDER_MARK)", "", PLAIN,
    ),
    Mutant(
        "data: an empty cell that is a number in plain blocks", "data/readers/arrow.py",
        '"nan", bare)', '"0", bare)', PLAIN,
    ),
    Mutant(
        "data: a missing date that raises", "data/readers/frames.py",
        "        if values.dtype == nw.Date:", "        if False:",
        ("tests/unit/test_schema_kinds.py", "-k", "dates_of_a_type"),
    ),
    Mutant(
        "data: a bad number that raises", "numeric.py",
        "    except ValueError:\n        return math.nan\n\n\ndef as_numbers",
        "    except ZeroDivisionError:\n        return math.nan\n\n\ndef as_numbers", BAD_FILES,
    ),
    Mutant(
        "data: an object that raises", "numeric.py",
        "if not isinstance(value, _NUMBERS) or isinstance(value, _NO_NUMBERS):",
        "if isinstance(value, _NO_NUMBERS):", NUMERIC,
    ),
    Mutant(
        "data: a warning about a value out of range", "numeric.py",
        'with np.errstate(all="ignore"):  # a warning about an overflow would tell of a value\n'
        "        if sparse",
        'with np.errstate(all="warn"):\n        if sparse', NUMERIC,
    ),
    Mutant(
        "data: a missing label that rounds the others", "numeric.py",
        "return _objects(values.to_list())", "return values.to_numpy()", NUMERIC,
    ),
    Mutant(
        "data: dates as numbers", "numeric.py",
        'NUMERIC = "biuf"', 'NUMERIC = "biufmM"', NUMERIC,
    ),
    Mutant(
        "data: categories in an error", "numeric.py",
        "_refused(name, kind.base_type(), \"\")", "_refused(name, repr(kind), \"\")", NUMERIC,
    ),
    Mutant(
        "data: a label that raises", "data/arrays.py",
        "            except Exception:", "            except TypeError:", NUMERIC,
    ),
    Mutant(
        "data: a kind of NaN that warns", "data/columns.py",
        "        found[np.isnan(found)] = math.nan", "        pass", VISIBLE,
    ),
    Mutant(
        "data: stored numbers out of range", "data/readers/array_files.py",
        'with self.guarded(), np.errstate(all="ignore"):',
        'with self.guarded(), np.errstate(all="warn"):', VISIBLE,
    ),
    Mutant(
        "local: a kind of NaN that warns", "local/encoding.py",
        'with np.errstate(all="ignore"):', 'with np.errstate(all="warn"):', VISIBLE,
    ),
    Mutant(
        "data: a first line that is quoted", "data/readers/base.py",
        '{_respelt(missing, kinds)}{self.hint}"', '{self.hint} {list(kinds)}"', BAD_FILES,
    ),
    Mutant(
        "data: a first line that is quoted where it is spelt otherwise", "data/readers/base.py",
        "found = [name for name in missing if _letters(name) and _letters(name) in there]",
        "found = [name for name in names if _letters(name) in set(map(_letters, missing))]",
        ("tests/conformance/test_natural_mistakes.py",),
    ),
    Mutant(
        "data: a chain of errors that quotes the file", "data/readers/base.py",
        "        except (*_DAMAGE, *others):\n            raise self.damaged() from None\n",
        "        except (*_DAMAGE, *others):\n            raise self.damaged()\n", BAD_FILES,
    ),
    Mutant(
        "data: a number of rows that is not kept", "data/source.py",
        "if x.shape[0] > left:", "if False:", ("tests/unit/test_sources.py",),
    ),
    Mutant(
        "data: people in the order of the file", "data/people.py",
        "chosen = random_order(len(counts), noise)[:people]",
        "chosen = np.arange(len(counts))[:people]", OF_PEOPLE,
    ),
    Mutant(
        "data: rows without an id that are a person", "data/people.py",
        "np.array([word is not None for word in ids.words], dtype=bool)",
        "np.ones(len(ids.words), dtype=bool)",
        OF_PEOPLE,
    ),
    Mutant(
        "data: a draw that travels", "data/people.py",
        'secret = ("_arrangement", "_people"', 'secret = ("no", "thing"', OF_PEOPLE,
    ),
    Mutant(
        "data: people whose parts are numbered by themselves", "data/people.py",
        "each[1] + sum(map(len, digests))", "each[1]", OF_PEOPLE,
    ),
    Mutant(
        "data: lines between two parts that both read", "data/readers/lines.py",
        "at = file.seek(start - 1)  # a line that begins at `start` has its end before it\n"
        "            at += len(file.readline())",
        "at = file.seek(start)", OF_PEOPLE,
    ),
    Mutant(
        "data: a bar that moves by people's rows", "data/people.py",
        "return super().bar(wanted)", "return super().bar(wanted, step or 1)", BARS,
    ),
    Mutant(
        "data: a bar that shows how many rows a file has", "data/source.py",
        "completed=done // step * step", "completed=done", BARS,
    ),
    # Clusters
    Mutant(
        "dask: a cluster without keys", "engines/cluster.py",
        'node = {"host": "127.0.0.1", "protocol": "tls://", "security": security}',
        'security = Security()\n'
        '    node = {"host": "127.0.0.1", "protocol": "tcp://", "security": security}', CLOSED,
    ),
    Mutant(
        "dask: an HTTP server beside workers", "engines/cluster.py",
        '"worker_class": _QuietWorker,', '"worker_class": Worker,', CLOSED,
    ),
    Mutant(
        "dask: an HTTP server beside the scheduler", "engines/cluster.py",
        '"cls": _QuietScheduler,', '"cls": Scheduler,', CLOSED,
    ),
    Mutant(
        "dask: rows in files", "engines/cluster.py",
        '"distributed.worker.memory.spill": False,', '"distributed.worker.memory.spill": 0.7,',
        CLOSED,
    ),
    Mutant(
        "dask: a directory for everybody", "engines/cluster.py",
        'folder = tempfile.mkdtemp(prefix="riata-dask-")  # that nobody else can enter',
        'folder = tempfile.mkdtemp(prefix="riata-dask-")\n    os.chmod(folder, 0o755)', CLOSED,
    ),
    Mutant(
        "dask: an actor that raises", "engines/actor.py",
        "            self._shards, self._fault = [], fault_of(error)", "            raise", ANSWERS,
    ),
    Mutant(
        "dask: faults that quote rows", "engines/replies.py",
        "whose text may quote rows and is left out.", "{error}.", REPLIES,
    ),
    Mutant(
        "dask: sums of any shape", "engines/replies.py",
        " or payload[0].shape != expected.shape:", ":", REPLIES,
    ),
    Mutant(
        "dask: sums of any size", "engines/replies.py",
        "if np.any(other.total > limit) or np.any(other.total < -limit):", "if False:", REPLIES,
    ),
    Mutant(
        "dask: a large number that warns", "data/partitions.py",
        "found.astype(np.float64) if found.dtype.itemsize > 8 else found", "found", NUMERIC,
    ),
    Mutant(
        "a model that overflows and warns of a row", "queries/coefficients.py",
        'with np.errstate(all="ignore"):  # a warning would tell of a row\n            return s',
        "if True:\n            return s", SCANS,
    ),
    Mutant(
        "duplicates that are added in their own type", "numeric.py",
        "values = values.astype(np.float64).tocsr()", "values = values.tocsr()", NUMERIC,
    ),
    Mutant(
        "a large number in sparse rows that warns", "grid.py",
        'with np.errstate(all="ignore"):  # of numbers too large for float64', "if True:", NUMERIC,
    ),
    Mutant(
        "dask: a partition's type that decides on an error", "data/partitions.py",
        "    return number(value.strip() if isinstance(value, str | bytes) else value)\n",
        "    return float(value)\n", ANSWERS,
    ),
    Mutant(
        "dask: rows of people in this process", "fitting/rows.py",
        'if estimator.engine == "dask" else source', "if False else source", ON_WORKERS,
    ),
    Mutant(
        "data: a known draw of a private fit", "fitting/rows.py",
        "if source.seeded and estimator.random_state is None:", "if False:", FROM_SOURCES,
    ),
    Mutant(
        "data: bounds that disagree with the schema", "fitting/prediction_rows.py",
        "if wider or (own.y", "if (own.y", FROM_SOURCES,
    ),
    Mutant(
        "data: a schema from rows that nobody declared public", "cli/schema.py",
        "if not public:", "if False:", ("tests/unit/test_schema_cli.py",),
    ),
    # The local model
    Mutant(
        "local: coin rounded down", "local/channel.py",
        "mpmath.ceil(odds * WORDS)", "mpmath.floor(odds * WORDS)", TASKS,
    ),
    Mutant(
        "local: coin smaller than the task says", "local/channel.py",
        "coins < np.uint64(self.coin)", "coins < np.uint64(self.coin // 2)", CHANNEL,
    ),
    Mutant(
        "local: margin for one row instead of all", "local/channel_limits.py",
        "bits = 64 * inputs + _UNION_BITS + 1", "bits = _UNION_BITS + 1", TASKS,
    ),
    Mutant(
        "local: directions of any length", "local/questions.py",
        "np.sqrt(np.maximum(rest, 0.0))", "np.zeros(len(rows))", CLIENT,
    ),
    Mutant(
        "local: joint directions longer than 1", "local/questions.py",
        "return z / np.sqrt(np.maximum(squares, 1.0))[:, None]", "return z", CLIENT,
    ),
    Mutant(
        "local: joint directions without the target's length", "local/questions.py",
        'np.einsum("ij,ij->i", rows, rows) + TARGET_SHARE', 'np.einsum("ij,ij->i", rows, rows)',
        CLIENT,
    ),
    Mutant(
        "local: sketched directions longer than 1", "local/sketch.py",
        "return clip_to_unit_ball(picked * self.scale)", "return picked * self.scale", REPORTS,
    ),
    Mutant(
        "local: question chosen by the row", "local/randomize.py",
        "choose_questions(task, noise.words(len(rows)))",
        "(rows.sum(axis=1) > 0).astype(int) % len(task.questions)", CLIENT,
    ),
    Mutant(
        "local: task whose coin costs more than epsilon", "local/channel_limits.py",
        "if not least * (accepted + off)", "if not 0.99 * least * (accepted + off)", TASK_VECTORS,
    ),
    Mutant(
        "local: cost of a report without the margin", "local/channel_limits.py",
        "if not least * (accepted + off) * _FACTOR <= other * (accepted - off):",
        "if not least <= other:", TASK_VECTORS,
    ),
    Mutant(
        "local: target that makes directions longer than 1", "local/task.py",
        "if target.weight != 1.0:", "if target.weight > 1e9:", TASK_VECTORS,
    ),
    Mutant(
        "local: numbers that other languages read in another way", "files/fields.py",
        "return float(value) + 0.0", "return float(value)", TASK_VECTORS,
    ),
    Mutant(
        "local: two processes that both report", "local/report_journal.py",
        "INSERT OR IGNORE", "INSERT OR REPLACE", CLIENT,
    ),
    Mutant(
        "local: occasions between others", "local/client.py",
        "return operator.index(occasion)", "return occasion", CLIENT,
    ),
    Mutant(
        "local: repeats that count", "local/aggregator.py",
        "new = self._filters[0].add(seeds)", "new = np.ones(len(seeds), dtype=bool)", AGGREGATOR,
    ),
    Mutant(
        "collector: a dashboard that every key opens", "collect/dashboard.py",
        "same = hmac.compare_digest(key.strip(b\" \"), self.key.encode())", "same = len(key) > 0",
        DASHBOARD,
    ),
    # Files from strangers
    Mutant(
        "files: a limit that each part has for itself", "files/limit.py",
        "        self.left -= n_bytes\n", "", LIMITS,
    ),
    Mutant(
        "files: text that is parsed without asking", "files/text.py",
        "    limit.take(json_size(text), what)\n", "", LIMITS,
    ),
    Mutant(
        "files: TOML that is parsed without a look", "files/text.py",
        "        check_toml(decoded)\n", "",
        (f"{TEXT_BOMBS}::test_toml_that_grows",),
    ),
    Mutant(
        "files: members that are compressed", "files/archive.py",
        "        require(stored, f", "        require(True, f",
        (f"{BOMBS}::test_a_shard_that_is_compressed",),
    ),
    Mutant(
        "files: members that nobody asked for", "files/archive.py",
        "self._limit.require(not unused,", "self._limit.require(True,", CONTAINERS,
    ),
    Mutant(
        "files: zeros that nobody asked for", "model_file/fitted.py",
        '    reader.limit.take(8 * size, f"Its {size} coefficients")\n', "",
        (f"{BOMBS}::test_a_model_of_many_columns",),
    ),
    Mutant(
        "files: lists of texts that become arrays", "model_file/values.py",
        "    return leaves * (32 + 12 * longest)", "    return 0",
        (f"{BOMBS}::test_a_value_that_grows_when_it_is_used",),
    ),
    Mutant(
        "files: names of all buckets", "data/schema/column_names.py",
        "        if feature.hashed:\n            continue\n", "",
        (f"{TEXT_BOMBS}::test_buckets_that_no_list_could_name_are_a_schema",),
    ),
    Mutant(
        "files: classes as wide as the longest", "data/schema/target.py",
        "    limit.take(16 * longest * len(labels), ", "    limit.take(0, ", LIMITS,
    ),
    Mutant(
        "files: sums of a task that nobody asked for", "local/aggregator.py",
        "limit.take(sum(8 * math.prod(shape) for shape in shapes), ", "limit.take(0, ",
        (f"{BOMBS}::test_a_task_in_a_shard_has_large_sums",),
    ),
    # People and checkpoints
    Mutant(
        "zCDP of a group that grows with its size only", "privacy/events.py",
        "ZeroConcentrated(rows**2 * event.rho", "ZeroConcentrated(rows * event.rho", GROUPS,
    ),
    Mutant(
        "samples of groups that keep their amplification", "privacy/events.py",
        "        return Gaussian(event.noise_multiplier / (rows * _ROUNDED_UP))",
        "        from dataclasses import replace\n"
        "        return replace(event, noise_multiplier=event.noise_multiplier / rows)", GROUPS,
    ),
    Mutant(
        "noise for people that is calibrated for rows", "privacy/calibrate.py",
        "of_group(event_at(strength), budget.rows_of_a_person)", "event_at(strength)", GROUPS,
    ),
    Mutant(
        "a person whose first row is taken again and again", "data/people.py",
        "turns = np.arange(k) % np.maximum(several, 1)",
        "turns = np.arange(k) * np.minimum(several, 0)", OF_PEOPLE,
    ),
    Mutant(
        "a release that is seen and not written down", "curator.py",
        "                self._checkpoint.keep(mechanism.event, found)\n", "", CHECKPOINT,
    ),
    Mutant(
        "a run that goes on with new noise", "checkpoint.py",
        "key=self._keyed(b\"noise\", *about))", ")", CHECKPOINT,
    ),
    Mutant(
        "the same noise for each release of a run", "checkpoint.py",
        "about = (self._link, self._rows.encode(), digest(query).encode())",
        "about = (b\"\",)", CHECKPOINT,
    ),
    Mutant(
        "the same noise for other rows", "checkpoint.py",
        "about = (self._link, self._rows.encode(), digest(query).encode())",
        "about = (self._link, digest(query).encode())", ATTACKS_ON_RUNS,
    ),
    Mutant(
        "the same noise for another query", "checkpoint.py",
        "about = (self._link, self._rows.encode(), digest(query).encode())",
        "about = (self._link, self._rows.encode())", CHECKPOINT,
    ),
    Mutant(
        "rows that a ledger does not remember", "curator.py",
        "opened._bind(checkpoint, None if ledger is None else partial(ledger.bind_rows, run))",
        "opened._bind(checkpoint)", ATTACKS_ON_RUNS,
    ),
    Mutant(
        "a checkpoint with code of other people", "fitting/running.py",
        "        planned.check_named()\n", "        pass\n", ATTACKS_ON_RUNS,
    ),
    Mutant(
        "a key that somebody put there before", "checkpoint.py",
        "return os.open(path, flags | os.O_EXCL | durable.NO_FOLLOW, 0o600)",
        "return os.open(path, flags, 0o666)", CHECKPOINT,
    ),
    Mutant(
        "a run that goes on with other rows", "checkpoint.py",
        "if known and not hmac.compare_digest(known, code):", "if False:", ATTACKS_ON_RUNS,
    ),
    Mutant(
        "a run whose ledger is not asked if the file knows its rows", "checkpoint.py",
        "        if record is not None:\n",
        "        if record is not None and not self._rows:\n", ATTACKS_ON_RUNS,
    ),
    Mutant(
        "a ledger that is told of other rows than those of the file", "checkpoint.py",
        "        self._check_code(code, self._rows)\n", "", ATTACKS_ON_RUNS,
    ),
    Mutant(
        "a run that is over any rows", "privacy/ledger/ledger.py",
        "            if known is not None:\n                return known\n", "", RESTORES,
    ),
    Mutant(
        "rows of a run that was not charged", "privacy/ledger/ledger.py",
        "            if charge is None or last is None:\n",
        "            if last is None:\n", RESTORES,
    ),
    Mutant(
        "the rows of a run looked up among the last entries", "privacy/ledger/entries.py",
        "self.head, self.where, charge.seq)", "self.head, self.where)", RESTORES,
    ),
    Mutant(
        "a charge that nobody saw in the database", "privacy/ledger/ledger.py",
        "if {row.seq: row.mac for row in entries.rows}.get(written.seq) != written.mac:",
        "if False:", TAMPERING,
    ),
    Mutant(
        "a charge that an index names for another run", "privacy/ledger/entries.py",
        "        if row.run != run or not is_charge(row):\n", "        if False:\n", TAMPERING,
    ),
    Mutant(
        "a far link that nobody verified", "privacy/ledger/entries.py",
        "self._verified_at(far).mac if far else self.header.mac",
        "macs_at(self.db, dataset, {far})[far] if far else self.header.mac", TAMPERING,
    ),
    Mutant(
        "a restore of an old ledger with an old head", "privacy/ledger/backup.py",
        "    _check_newest(seen, saved)\n    if swap:", "    if swap:", RESTORES[:1],
    ),
    Mutant(
        "an entry about rows that counts as a charge", "privacy/ledger/charge.py",
        "    return not (isinstance(row.run, str) and row.run.startswith(_ROWS))\n",
        "    return True\n", RESTORES,
    ),
    Mutant(
        "a run with the name of the rows of another", "privacy/ledger/charge.py",
        "not run.isprintable() or ", "", RESTORES,
    ),
    Mutant(
        "a code of the rows without their flags", "curator.py",
        "for name, engine in self._views.items()}", "for name, engine in self._views.items() "
        "if name == ROWS}", ATTACKS_ON_RUNS,
    ),
    Mutant(
        "noise of a run that meets rows which were read again", "curator.py",
        "            if checkpoint.needs_rows and self._coded != self._readings:\n",
        "            if self._coded:\n                self._coded = self._readings\n"
        "            elif checkpoint.needs_rows:\n", CHECKPOINT,
    ),
    Mutant(
        "a release while rows were read again", "curator.py",
        "            if self._coded == self._readings:\n                return found\n",
        "            return found\n", CHECKPOINT,
    ),
    Mutant(
        "a code of rows while they were read again", "curator.py",
        "            if readings == self._readings:\n", "            if True:\n", CHECKPOINT,
    ),
    Mutant(
        "rows that are refused once and then taken", "curator.py",
        "                checkpoint.bind(checkpoint.code_of(totals), record)\n"
        "                self._coded = readings\n",
        "                self._coded = readings\n"
        "                checkpoint.bind(checkpoint.code_of(totals), record)\n", CHECKPOINT,
    ),
    Mutant(
        "a cluster that does not tell that rows were read again", "engines/dask.py",
        "        self._readings += 1\n", "        self._readings = 1\n",
        ("tests/faults/test_dask_faults.py", "-k", "read_again"),
    ),
    Mutant(
        "a view of the rows that nobody opened is another one's", "curator.py",
        "        if view not in self._views:\n", "        view = ROWS if view not in self._views "
        "else view\n        if False:\n", FLAGS,
    ),
    Mutant(
        "a digest of targets whose pieces are larger than its prime", "queries/row_digest.py",
        "_PIECES = (22, 21, 21)", "_PIECES = (32, 32)", ROW_DIGEST,
    ),
    Mutant(
        "a digest of some of the bits of a target", "queries/row_digest.py",
        "_PIECES = (22, 21, 21)", "_PIECES = (22, 21, 20)", ROW_DIGEST,
    ),
    Mutant(
        "a digest that forgets the number of a row", "queries/row_digest.py",
        "return np.concatenate(each)[begin : begin + n_rows]",
        "return np.concatenate(each)[begin : begin + 1] + np.zeros((n_rows, 1), dtype=np.int64)",
        ROW_DIGEST,
    ),
    Mutant(
        "a digest whose groups of columns have the same factors", "queries/row_digest.py",
        'self._factors("columns", number, some.shape[1])',
        'self._factors("columns", 0, some.shape[1])', ROW_DIGEST,
    ),
    Mutant(
        "a digest without the number of blank rows", "queries/row_digest.py",
        "found = [np.ones(len(bits), dtype=np.int64)]",
        "found = [np.zeros(len(bits), dtype=np.int64)]", ROW_DIGEST,
    ),
    Mutant(
        "targets of 0 with a sign that a digest sees", "bounds.py",
        "np.float64(self.y if self.y is not None else 1.0)) + 0.0",
        "np.float64(self.y if self.y is not None else 1.0))", ROW_DIGEST,
    ),
    Mutant(
        "a run that goes on for another request", "checkpoint.py",
        'if first.get("request") != self.request or', "if", ATTACKS_ON_RUNS,
    ),
    Mutant(
        "an id that is taken from the file", "checkpoint.py",
        'if i == 0 and record.get("id") != self.run_id:', "if False:", ATTACKS_ON_RUNS,
    ),
    Mutant(
        "a run that goes on with what an engine remembers", "curator.py",
        "mechanism.release(query, SumsAlone(engine), noise)",
        "mechanism.release(query, engine, noise)", CHECKPOINT,
    ),
    Mutant(
        "a run that is charged whenever it goes on", "curator.py",
        "            if paid is None:\n", "            if True:\n", CHECKPOINT,
    ),
    Mutant(
        "a run that is never charged", "curator.py",
        "            if paid is None:\n", "            if checkpoint is None:\n", CHECKPOINT,
    ),
    Mutant(
        "a run that any charge pays for", "curator.py",
        '("cost", to_json(paid.event) == to_json(compose((cost, 1)))),', '("cost", True),',
        ATTACKS_ON_RUNS,
    ),
    Mutant(
        "a run that a charge for another request pays for", "curator.py",
        '("request", paid.summary.get("request") == facts["request"]),', '("request", True),',
        ATTACKS_ON_RUNS,
    ),
    Mutant(
        "an identity without what an object has beside its fields", "identity.py",
        'for name, each in getattr(value, "__dict__", {}).items()', "for name, each in ()",
        IDENTITY,
    ),
    Mutant(
        "data: the name of a file that writes a line of a draft", "data/schema_draft.py",
        "title=_quoted(Path(title).name)[1:-1]", "title=Path(title).name",
        ("tests/unit/test_schema_cli.py", "-k", "name_of_a_file"),
    ),
    Mutant(
        "an identity that tidies what it names", "identity.py",
        "sparse.csr_array(value, copy=True)", "sparse.csr_array(value)", IDENTITY,
    ),
    Mutant(
        "an identity of arrays by their shape", "identity.py",
        "hashlib.sha256(plain.tobytes()).hexdigest()", '""', IDENTITY,
    ),
    Mutant(
        "an identity without classes", "fitting/request.py",
        '        "classes": canonical(classes),\n', "", IDENTITY,
    ),
    Mutant(
        "an identity without arguments", "fitting/request.py",
        "for name, value in parameters.items()", "for name, value in ()", IDENTITY,
    ),
    Mutant(
        "a checkpoint whose lines may be forged", "checkpoint.py",
        "if not hmac.compare_digest(link, self._link.hex().encode()):", "if False:", CHECKPOINT,
    ),
    Mutant(
        "a key that outlives its run", "checkpoint.py",
        "                _destroy(self._key_path, self._key)\n", "                pass\n",
        CHECKPOINT,
    ),
    Mutant(
        "a shard that counts its rows from 0", "engines/shard.py",
        "first = (part - start) % parts", "first = part % parts", SCANS,
    ),
    # Tuning
    Mutant(
        "tuning: a selection that costs nothing", "privacy/accountants/repetition.py",
        "return (1 + shape) * epsilon * _ROUNDED_UP", "return 0.0", REPEATED,
    ),
    Mutant(
        "tuning: the shape forgotten", "privacy/accountants/repetition.py",
        "return (1 + shape) * epsilon * _ROUNDED_UP", "return epsilon * _ROUNDED_UP", REPEATED,
    ),
    Mutant(
        "tuning: delta of one run", "privacy/accountants/repetition.py",
        "each = delta / expected_repetitions(leaf.shape, leaf.stop)", "each = delta", REPEATED,
    ),
    Mutant(
        "tuning: divergence of one run", "privacy/accountants/renyi.py",
        "return runs + cost_of_selection(leaf) + repeats / (alpha - 1)",
        "return runs + cost_of_selection(leaf)", REPEATED,
    ),
    Mutant(
        "evaluation: a score that nobody charges", "fitting/extra_releases.py",
        "        ledger=ledger,\n        unit=unit,", "        unit=unit,", EVALUATION,
    ),
    Mutant(
        "evaluation: a person as one row", "evaluation/private.py",
        "return of_group(self.mechanism.event, self.budget.rows_of_a_person)",
        "return self.mechanism.event", EVALUATION,
    ),
    Mutant(
        "evaluation: noise for one row of a person", "evaluation/private.py",
        "budget, pure = request.budget, request.budget.delta == 0",
        "budget, pure = replace(request.budget, rows_of_a_person=1), request.budget.delta == 0",
        EVALUATION,
    ),
    Mutant(
        "evaluation: errors of targets beyond the bounds", "evaluation/private.py",
        "query = error_query(name, centred, request.bounds, request.n_rows)",
        "query = error_query(name, centred, request.bounds.with_y(1e-3), request.n_rows)",
        EVALUATION,
    ),
    Mutant(
        "tuning: a group of one", "privacy/events.py",
        "compose((of_group(each, rows), 1)) for each in event.candidates",
        "each for each in event.candidates", REPEATED,
    ),
    Mutant(
        "tuning: scores for nothing", "tuning/planning.py",
        "compose((plan.event, 1), (score.event, 1))", "compose((plan.event, 1))", SEARCHES,
    ),
    Mutant(
        "tuning: runs that warn", "tuning/suppression.py",
        'warnings.simplefilter("ignore")', 'warnings.simplefilter("always")', SILENT,
    ),
    Mutant(
        "tuning: runs that log", "tuning/suppression.py",
        "            logging.disable(logging.CRITICAL)", "            pass", SILENT,
    ),
    Mutant(
        "tuning: a search that ends the suppression of another", "tuning/suppression.py",
        "            if not _searches:\n                _suppression.close()",
        "            _suppression.close()", SILENT,
    ),
    Mutant(
        "tuning: the winner's own Statement", "tuning/search.py",
        "self.privacy_ = best.privacy_ = ", "self.privacy_ = ", SEARCHES,
    ),
    Mutant(
        "tuning: another distribution of repetitions", "mechanisms/discrete.py",
        "count = 1\n", "count = 2\n", CHANCE,
    ),
    Mutant(
        "tuning: an uneven die", "mechanisms/discrete.py",
        "usable = (1 << _WORD) // total * total", "usable = 1 << _WORD", CHANCE,
    ),
    Mutant(
        "tuning: half the sensitivity of a score", "queries/prediction.py",
        "return self.largest / 2  # of", "return self.largest / 4  # of", ERRORS,
    ),
    Mutant(
        "records: a callback can change a fit", "releases.py",
        "copy = value.copy()", "copy = value",
        (f"{RECORDS}::test_a_hostile_callback_changes_nothing",),
    ),
    Mutant(
        "records: of a live query", "releases.py",
        "return described(value) if dataclasses.is_dataclass(value) else repr(value)",
        "return value",
        (f"{RECORDS}::test_no_record_leads_to_a_row_or_to_what_holds_rows",),
    ),
    Mutant(
        "records: a vector with its history", "releases.py",
        "return Vector(value.size, plain(value.support), plain(value.values), value.offset)",
        "return value",
        (f"{RECORDS}::test_no_record_leads_to_a_row_or_to_what_holds_rows",),
    ),
    Mutant(
        "records: runs that a search throws away", "tuning/search.py",
        "    @unobserved()\n", "",
        (f"{RECORDS}::test_a_search_shows_the_model_that_it_returns_and_no_other",),
    ),
    Mutant(
        "records: a path is one release", "mechanisms/compiled_selection.py",
        "for t in range(begin, len(known))", "for t in range(begin, begin + 1)",
        (f"{RECORDS}::test_compiled_selections_have_a_record_for_each_selection",),
    ),
    Mutant(
        "records: the norm of another mechanism", "mechanisms/additive.py",
        'norm: ClassVar[str | None] = "l1"', 'norm: ClassVar[str | None] = "l2"',
        (f"{RECORDS}::test_what_the_noise_was_scaled_to_is_told",),
    ),
    Mutant(
        "audit: a search that looks at the first release only", "audit/distances.py",
        "for release in run:", "for release in run[:1]:",
        (f"{SCORES}::test_what_a_search_goes_by_agrees_with_an_exact_replay",),
    ),
    Mutant(
        "audit: scores that forget the neighbour", "audit/attack_scores.py",
        "run = trial.run(noise, swapped=swapped)", "run = trial.run(noise)",
        (f"{SCORES}::test_each_side_is_fitted_on_its_own_rows",),
    ),
    Mutant(
        "tuning: predictions that are not cut", "queries/prediction.py",
        "np.abs(np.clip(margins[:, 0], -top, top) - y)", "np.abs(margins[:, 0] - y)", ERRORS,
    ),
    # The collector.
    Mutant(
        "collector: a token is remembered before its report is written", "collect/directory.py",
        "            self._pairs.append(np.stack([seeds[unused], tokens[unused]], axis=1))\n",
        "            self._tokens.update(tokens[unused])\n"
        "            self._pairs.append(np.stack([seeds[unused], tokens[unused]], axis=1))\n",
        STORE_FAULTS,
    ),
    Mutant(
        "collector: a failed write stays in the file", "collect/segments.py",
        "        except BaseException:\n            with contextlib.suppress(OSError):\n"
        "                self._cut()\n            raise",
        "        except BaseException:\n            self._size = os.fstat(self._file).st_size\n"
        "            raise",
        STORE_FAULTS,
    ),
    Mutant(
        "collector: a write is acknowledged before it is durable", "collect/segments.py",
        "            os.fsync(self._file)\n        except", "            pass\n        except",
        STORE_FAULTS,
    ),
    Mutant(
        "collector: a frame that was found is taken for durable", "collect/segments.py",
        "                if last:\n", "                if good < len(data):\n", STORE_FAULTS,
    ),
    Mutant(
        "collector: a database counts what it was not asked again", "collect/sql.py",
        "            self._certain = False\n", "            pass\n", STORE_FAULTS,
    ),
    Mutant(
        "collector: a used token is accepted", "collect/directory.py",
        "unused = first_occurrences(tokens) & ~self._tokens.contains(tokens)",
        "unused = first_occurrences(tokens)", STORES,
    ),
    Mutant(
        "collector: doubled tokens count in each store", "collect/merging.py",
        "        kept[start:end] = False\n", "", MERGES,
    ),
    Mutant(
        "collector: the first store wins", "collect/merging.py",
        "return min(range(len(digests)), key=digests.__getitem__)", "return 0", MERGES,
    ),
    Mutant(
        "collector: sums of one token are added", "local/aggregator.py",
        "        if len(both):\n", "        if False:\n", MERGES,
    ),
    Mutant(
        "collector: stores hold the random part of a token", "collect/tokens.py",
        'return int.from_bytes(number[:_NUMBER], "big")',
        'return int.from_bytes(data[:_NONCE], "big")', MERGES,
    ),
    Mutant(
        "collector: an address is slowed down but never stopped", "collect/address_limits.py",
        "        if excess > 1e-6:\n", "        if excess > 1e9:\n", COLLECT_LIMITS,
    ),
    Mutant(
        "collector: reports beyond the cap", "collect/committer.py",
        "if new and len(self.store) + new > self._most:", "if new > self._most:", COLLECT_LIMITS,
    ),
    Mutant(
        "collector: one address may hold all places", "collect/connection_limits.py",
        "if self.address is not None and most and len(own) >= most:", "if False:", GUARD,
    ),
    Mutant(
        "collector: idle connections keep others out", "collect/connection_limits.py",
        "        if idle:\n            sizes", "        if False:\n            sizes", GUARD,
    ),
    Mutant(
        "collector: anybody is a proxy", "collect/server.py",
        "forwarded_allow_ips=proxies.names,", 'forwarded_allow_ips="*",', GUARD,
    ),
]  # fmt: skip


class OutOfDate(Exception):
    """A mutant or a test of the list does not do what the list says."""


def run_tests(project: Path, *tests: str, compiled: str = "compiled") -> list[str]:
    """The tests that fail in the copy of the project.

    Compiled code is kept in a folder of that name: numba does not notice that a function was
    changed which is part of others, so a mutant has a folder of its own.
    """
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         "--hypothesis-profile=mutants", "-m", "not slow and not services", *tests],
        cwd=project,
        env={
            **os.environ, "PYTHONPATH": str(project / "src"),
            "NUMBA_CACHE_DIR": str(project / compiled),
        },
        capture_output=True,
        text=True,
    )  # fmt: skip
    if ran.returncode not in (0, 1):
        raise OutOfDate(f"the tests {tests} did not run:\n{ran.stdout[-2000:]}")
    return re.findall(r"^(?:FAILED|ERROR) (tests/.*?)(?: - .*)?$", ran.stdout, re.MULTILINE)


def killer(mutant: Mutant, project: Path) -> str | None:
    """The first test that notices the mutant, or None if all pass."""
    file = project / "src/riata" / mutant.file
    original = file.read_text(encoding="utf-8")
    file.write_text(mutant.applied(original), encoding="utf-8")
    try:
        kernel = mutant.file.startswith(KERNELS)
        folder = "of_mutant" if kernel else "compiled"
        return next(iter(run_tests(project, "-x", *mutant.tests, compiled=folder)), None)
    finally:
        file.write_text(original, encoding="utf-8")
        shutil.rmtree(project / "of_mutant", ignore_errors=True)


def verdict(mutant: Mutant, projects: Queue[Path]) -> tuple[str | None, str]:
    """The test that killed the mutant, and a line that says so."""
    project, start = projects.get(), time.perf_counter()
    try:
        noticed = killer(mutant, project)
        said = f"killed by {escape(noticed)}" if noticed else "[red]SURVIVES[/red]"
    except OutOfDate as problem:
        noticed, said = None, f"[red]{escape(str(problem))}[/red]"
    finally:
        projects.put(project)
    return noticed, f"{mutant.name}: {said} ({time.perf_counter() - start:.0f} s)"


def copies(folder: Path, number: int) -> Queue[Path]:
    """Copies of the project, one for each mutant that is tested at a time."""
    projects: Queue[Path] = Queue()
    for i in range(number):
        project = folder / str(i)
        project.mkdir()
        for part in ("src", "tests", "tools", "pyproject.toml"):
            if (ROOT / part).is_dir():
                no_cache = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / part, project / part, ignore=no_cache)
            else:
                shutil.copy(ROOT / part, project / part)
        # By its contents, as a mutant and the original may have the same size and second.
        compileall.compile_dir(
            project / "src", quiet=1, invalidation_mode=PycInvalidationMode.CHECKED_HASH
        )
        projects.put(project)
    return projects


def main() -> int:
    parser = argparse.ArgumentParser(description="Break the code and see whether tests notice.")
    parser.add_argument("words", nargs="*", help="only mutants whose name has one of these words")
    parser.add_argument("--jobs", type=int, default=2, help="how many are tested at a time")
    options = parser.parse_args()
    wanted = [m for m in MUTANTS if not options.words or any(w in m.name for w in options.words)]
    console = Console(soft_wrap=True, highlight=False)
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        projects = copies(Path(folder), options.jobs)
        runs = [pool.submit(verdict, mutant, projects) for mutant in wanted]
        found = []
        for run in track(as_completed(runs), "Mutants", len(runs), console=console, transient=True):
            noticed, line = run.result()
            found.append(noticed)
            console.print(line)
        killers = sorted({test for test in found if test})
        wrong = set(run_tests(projects.get(), *killers)) if killers else set()
    for test in sorted(wrong):
        console.print(f"[red]{escape(test)} fails without a mutant too[/red]")
    killed = sum(test is not None and test not in wrong for test in found)
    console.print(f"{killed} of {len(wanted)} mutants killed.")
    return 0 if killed == len(wanted) else 1


if __name__ == "__main__":
    sys.exit(main())
