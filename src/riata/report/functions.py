"""The linear functions of a model, or its means: a plot and a table each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from riata.data.schema import Schema
from riata.estimators.coefficients import INTERCEPT, Coefficients, Line
from riata.estimators.summary import FunctionSummary, Summary
from riata.report.curves import CAPTION, curves
from riata.report.plots import NORMAL_90, Plot, of_coefficients, of_ratios
from riata.report.text import Table, shortened

#: How many columns are drawn, and how many stand in a table, so that a page about a hundred
#: thousand columns can still be opened. The tables of many classes share `ALL_LISTED`.
DRAWN, LISTED, ALL_LISTED, FEWEST_LISTED = 15, 500, 2000, 20
#: How many functions are drawn: a page about many classes has tables for the others.
MOST_DRAWN = 12

_INTERVALS = "The largest values, with 90% intervals."
_NO_INTERVALS = "The largest values. This solver has no intervals for them."
_RATIOS = (
    "The factors on the {} for one unit of a column, in the units of the file if the model has a "
    "schema, with {:g}% intervals. Columns whose error is unknown are not shown."
)


@dataclass(frozen=True)
class Function:
    """One linear function of the model, or its means."""

    title: str
    summary: str
    plot: Plot | None
    caption: str
    table: Table | None
    note: str
    ratios: Plot | None = None
    ratios_caption: str = ""
    curves: Plot | None = None
    curves_caption: str = CAPTION


def functions(
    found: list[Coefficients],
    what: str,
    summary: Summary | None = None,
    schema: Schema | None = None,
) -> list[Function]:
    """Each of the functions, whose numbers are called `what`.

    A summary of at least `DRAWN` terms adds plots of ratios, if it has some, and a schema adds
    curves of numbers.
    """
    listed = min(LISTED, max(FEWEST_LISTED, ALL_LISTED // max(len(found), 1)))
    made = [
        replace(
            _function(k, each, what, listed),
            curves=curves(f"curves-{k}", each, schema) if k < MOST_DRAWN else None,
        )
        for k, each in enumerate(found)
    ]
    if summary is None or not summary.ratio:
        return made
    return [
        replace(
            each,
            ratios=_ratios(f"ratios-{k}", found[k].largest(DRAWN), terms, summary.ratio),
            ratios_caption=_RATIOS.format(summary.ratio, 100 * summary.level),
        )
        if each.plot
        else each
        for k, (each, terms) in enumerate(zip(made, summary.functions, strict=True))
    ]


def _function(k: int, found: Coefficients, what: str, listed: int) -> Function:
    lines, total = found.largest(listed), found.n_nonzero
    drawn = lines[:DRAWN] if k < MOST_DRAWN else []
    note = ""
    if total > len(lines):
        note = (
            f"The table ends after {len(lines):,} columns so that the page stays usable. The model "
            f"file has all {total:,}."
        )
    return Function(
        title=f"Class {shortened(found.label, 60)}" if found.label else "",
        summary=_summary(found, what),
        plot=of_coefficients(f"function-{k}", drawn, what) if drawn else None,
        caption=_INTERVALS if found.has_errors else _NO_INTERVALS,
        table=_table(found, lines, what) if lines else None,
        note=note,
    )


def _ratios(name: str, lines: list[Line], function: FunctionSummary, kind: str) -> Plot | None:
    """A forest plot of those of the terms that have an interval, by the names of the page."""
    terms = [term for term in function.terms if term.name != INTERCEPT]
    named = [replace(t, name=line.name) for t, line in zip(terms, lines, strict=False)]
    known = [term for term in named if math.isfinite(term.error)]
    return of_ratios(name, known, kind) if known else None


def _table(found: Coefficients, lines: list[Line], what: str) -> Table:
    head = ["column"]
    if found.ordered:
        head.append("selected")
    head.append(what)
    if found.has_errors:
        head += ["standard error", "90% interval"]
    total = found.n_nonzero
    some = f"the {len(lines):,} largest of {total:,}" if total > len(lines) else f"{total:,}"
    return Table(
        f"Columns that are not 0: {some}",
        head,
        [_cells(found, line) for line in lines],
        frozenset(range(1, len(head))),
    )


def _cells(found: Coefficients, line: Line) -> list[str]:
    cells = [shortened(line.name, 200)]
    if found.ordered:
        cells.append(str(line.order or ""))
    cells.append(f"{line.value:.4g}")
    if found.has_errors and math.isfinite(line.error):
        low, high = (line.value + side * NORMAL_90 * line.error for side in (-1, 1))
        digits = _digits(line.error)
        cells += [f"{line.error:.2g}", f"{low:.{digits}f} to {high:.{digits}f}"]
    elif found.has_errors:
        cells += ["", ""]
    return cells


def _digits(error: float) -> int:
    """How many decimals of a number are worth showing."""
    return 4 if error <= 0 else min(max(1 - math.floor(math.log10(error)), 0), 12)


def _summary(found: Coefficients, what: str) -> str:
    text = f"{found.n_nonzero:,} of {found.size:,} {what}s are not 0."
    if found.n_nonzero == 0:
        text = f"All {found.size:,} {what}s are 0."
    if math.isfinite(found.intercept):
        text += f" The intercept is {found.intercept:.3g}"
        if math.isfinite(found.intercept_error):
            text += f" ± {found.intercept_error:.2g}"
        text += "."
    if found.ordered:
        text += " “Selected” is the place in which the search took a column."
        dropped = int((found.order[found.values == 0] > 0).sum())
        if dropped:
            were = "was" if dropped == 1 else "were"
            text += f" {dropped:,} more {were} selected and dropped again."
    return text
