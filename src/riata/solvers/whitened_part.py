"""How much of a whitened model to keep, from the slopes along it at both of its ends.

Of classes, counts and amounts, and beside unpenalized columns: of other models
`whitened_line` knows more.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from riata.queries import PreconditionedGradient, Whitening
from riata.solvers.empirical_bayes import GOOD, likely_size, part_to_keep, signal_part
from riata.solvers.whitened_defaults import CUT_ALONG, MOST_KEPT, REACH
from riata.solvers.whitened_errors import mend_offset
from riata.solvers.whitened_line import usual_margins, with_gradients

if TYPE_CHECKING:
    from riata.solvers.whitened_run import Run


def keep_part_by_slopes(run: Run) -> None:
    """Go from the base towards the model as far as the slopes along it at both ends say."""
    problem, added = run.problem, run.w - run.alone
    spread = usual_margins(run, added)
    one, centre = added / spread, run.whitening.centre
    line = Whitening.of((one @ run.whitening.matrix)[None], np.array([one @ centre]))
    constant = run.along_constant if problem.fit_intercept else 0.0
    found, noises = [], []
    theta = run.model(run.w, run.offset)
    first, run.base = run.first_end()
    ends = ((first, run.base, run.spread), (problem, theta, run.scale))
    for each, model, size in ends:
        cut = max(CUT_ALONG, run.cut_along * run.scale / size)
        cut = max(cut, run.steepness, run.least_cut)
        clip = cut * size * math.hypot(1.0, constant)
        limit = clip / constant if constant else math.inf
        query = PreconditionedGradient(each, model, limit, line, REACH, constant, clip)
        gradient, noise = run.release("along", query)
        found.append(gradient)
        noises.append(noise)
    change = float(found[1][0] - found[0][0])
    run.secant, run.secant_error = change / spread, math.hypot(*noises) / spread
    change = likely_size(change, math.hypot(*noises), run.curvature * spread)
    found_part = -(float(found[0][0]) + run.curvature * run.overfit / spread) / change
    kept = part_to_keep(found_part, noises[0] / change, run.odds)
    error = GOOD * math.sqrt(signal_part(noises[0] / change, GOOD))
    run.kept, run.kept_error = with_gradients(run, min(kept, MOST_KEPT), error)
    if constant:
        slope = ((1 - run.kept) * found[0][1] + run.kept * found[1][1]) / constant
        noise = math.hypot((1 - run.kept) * noises[0], run.kept * noises[1]) / constant
        mend_offset(run, float(slope), noise)
