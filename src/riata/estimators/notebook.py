"""What a notebook shows for a fitted estimator: its guarantee, and its largest coefficients."""

from __future__ import annotations

import html
import math
from typing import Any

from riata.estimators.coefficients import Coefficients, coefficients

#: Columns and classes that are shown: a notebook is no place for all of them.
SHOWN, MOST_FUNCTIONS = 10, 3

_CELL = 'style="text-align:left;padding:2px 12px 2px 0"'
_NUMBER = 'style="text-align:right;padding:2px 12px 2px 0"'


class NotebookRepr:
    """Goes before scikit-learn's BaseEstimator, whose own picture unfitted estimators keep."""

    def _html_repr(self) -> str:
        if not hasattr(self, "privacy_"):
            return super()._html_repr()  # type: ignore[misc]
        found = coefficients(self)
        parts = [_table(each) for each in found[:MOST_FUNCTIONS]]
        if len(found) > len(parts):
            parts.append(f"<p>and {len(found) - len(parts):,} more classes</p>")
        name = html.escape(type(self).__name__)
        return f"<div><p><b>{name}</b></p>{self.privacy_._repr_html_()}{''.join(parts)}</div>"


def _table(found: Coefficients) -> str:
    """The largest values of one function, and how many there are."""
    lines = found.largest(SHOWN)
    head = [("column", _CELL), ("value", _NUMBER)]
    if found.has_errors:
        head.append(("standard error", _NUMBER))
    rows = []
    for line in lines:
        cells = [(html.escape(line.name), _CELL), (f"{line.value:.4g}", _NUMBER)]
        if found.has_errors:
            cells.append(("" if math.isnan(line.error) else f"{line.error:.2g}", _NUMBER))
        rows.append(_row("td", cells))
    label = f"{html.escape(found.label)}: " if found.label else ""
    some = f", the {len(lines)} largest here" if found.n_nonzero > len(lines) else ""
    if not lines:
        return f"<p>{label}all {found.size:,} columns have a value of 0</p>"
    caption = f"{label}{found.n_nonzero:,} of {found.size:,} columns are not 0{some}"
    return f"<p>{caption}</p><table>{_row('th', head)}{''.join(rows)}</table>"


def _row(tag: str, cells: list[tuple[Any, str]]) -> str:
    return "<tr>" + "".join(f"<{tag} {style}>{cell}</{tag}>" for cell, style in cells) + "</tr>"
