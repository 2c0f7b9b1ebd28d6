"""A summary as text for a terminal, and as a piece of a page."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Callable
from functools import partial

from riata.estimators.coefficients import INTERCEPT
from riata.estimators.summary import FunctionSummary, Summary, Term
from riata.wording import number_of

#: Terms and functions that are shown; `Summary.records` has all of them.
SHOWN_TERMS, SHOWN_FUNCTIONS = 20, 3
_WIDTH, _NARROWEST, _LONGEST_NAME, _SHORTEST_NAME, _LONGEST_IN_HTML = 96, 60, 40, 12, 200

#: What a table leaves out where it is too wide, first to last: what follows from other columns.
_LEFT_OUT = ("p", "z", "std. error")

_CELL = 'style="text-align:left;padding:2px 12px 2px 0"'
_NUMBER = 'style="text-align:right;padding:2px 12px 2px 0"'

Cell = Callable[[Term], str]


def summary_text(summary: Summary, terminal: int | None = None) -> str:
    """As plain text. Tables fit a terminal of so many columns as far as they can."""
    page = max(min(terminal or _WIDTH, _WIDTH), _NARROWEST)
    rule, wrap = "=" * page, partial(_wrapped, width=page)
    width = max(len(name) for name, _ in summary.facts)
    lines = [summary.model, rule]
    for name, value in summary.facts:
        lines += wrap(f"{name:<{width}}  ", value)
    for each in summary.functions[:SHOWN_FUNCTIONS]:
        lines += [rule, caption(summary, each), *_table(summary, each, terminal)]
    lines += [rule] if summary.functions else []
    lines += _more_functions(summary)
    for note in summary.notes:
        lines += wrap("- ", note)
    if summary.advice:
        lines += ["", *wrap("", summary.advice[0]), "What would help:"]
        for line in summary.advice[1:]:
            lines += wrap("- ", line)
    return "\n".join(lines)


def _wrapped(head: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        _printable(text), width, initial_indent=head, subsequent_indent=" " * len(head),
        break_long_words=False, break_on_hyphens=False,
    ) or [head.rstrip()]  # fmt: skip


def caption(summary: Summary, function: FunctionSummary) -> str:
    """How many terms there are, and of what."""
    label = f"class {shortened(function.label)}: " if function.label else ""
    if function.n_nonzero == 0:
        return f"{label}all {function.size:,} columns have a {summary.what} of 0"
    shown = sum(term.name != INTERCEPT for term in _shown(function))
    some = f", the {shown:,} largest here" if function.n_nonzero > shown else ""
    differ = "is" if function.n_nonzero == 1 else "are"
    columns = number_of(function.size, "column")
    return f"{label}{function.n_nonzero:,} of {columns} {differ} not 0{some}"


def _shown(function: FunctionSummary) -> tuple[Term, ...]:
    first = function.terms[:1]
    most = SHOWN_TERMS + bool(first and first[0].name == INTERCEPT)
    return function.terms[:most]


def _more_functions(summary: Summary) -> list[str]:
    more = len(summary.functions) - SHOWN_FUNCTIONS
    return [f"and {more:,} more classes"] if more > 0 else []


def columns(summary: Summary, function: FunctionSummary) -> list[tuple[str, Cell]]:
    """The columns of a table: a heading, and what it says about a term."""
    level = f"{100 * summary.level:g}%"
    found: list[tuple[str, Cell]] = [("estimate", lambda term: f"{term.estimate:.4g}")]
    if function.has_errors:
        found += [
            ("std. error", lambda term: _number(term.error, ".2g")),
            (f"{level} interval", lambda term: interval(term.low, term.high, term.error)),
        ]
    if function.has_errors and summary.what == "coefficient":
        found += [("z", lambda term: _number(term.z, ".2f")), ("p", lambda term: _p(term.p))]
        if summary.correction:
            found.append(("adj. p", lambda term: _marked(summary, term)))
    if summary.ratio:
        found.append((f"{summary.ratio} ratio", lambda term: _number(term.ratio, ".4g")))
        if function.has_errors:
            found.append((f"{level} interval", _ratio_interval))
    return found


def _number(value: float, how: str) -> str:
    return "" if math.isnan(value) else format(value, how)


def _p(p: float) -> str:
    return "<0.001" if p < 0.001 else _number(p, ".3f")


def _marked(summary: Summary, term: Term) -> str:
    return _p(term.p_adjusted) + ("*" if summary.discovered(term) else " ")


def interval(low: float, high: float, error: float) -> str:
    """The ends of an interval, with as many decimals as the error is worth."""
    if math.isnan(low) or math.isnan(high):
        return ""
    digits = 4 if error <= 0 else min(max(1 - math.floor(math.log10(error)), 0), 12)
    return f"{low:.{digits}f} to {high:.{digits}f}"


def _ratio_interval(term: Term) -> str:
    if math.isnan(term.ratio_low) or math.isnan(term.ratio_high):
        return ""
    return f"{term.ratio_low:.4g} to {term.ratio_high:.4g}"


def shortened(name: str, most: int = _LONGEST_NAME) -> str:
    """A name that leaves room for the numbers, without characters that steer a terminal."""
    plain = _printable(name)
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def _printable(text: str) -> str:
    """Names are in notes too, and none may steer a terminal."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _table(summary: Summary, function: FunctionSummary, width: int | None) -> list[str]:
    terms, head = _shown(function), columns(summary, function)
    if not terms:
        return []
    lines = _lines(terms, head, _LONGEST_NAME)
    for heading in _LEFT_OUT:
        if width is None or max(map(len, lines)) <= width:
            break
        if heading != "p" or summary.correction:
            head = [each for each in head if each[0] != heading]
        lines = _lines(terms, head, _LONGEST_NAME)
    if width is not None and (beyond := max(map(len, lines)) - width) > 0:
        names = max(min(len(term.name), _LONGEST_NAME) for term in terms)
        lines = _lines(terms, head, max(names - beyond, _SHORTEST_NAME))
    return lines


def _lines(terms: tuple[Term, ...], head: list[tuple[str, Cell]], longest: int) -> list[str]:
    rows = [["", *(name for name, _ in head)]]
    rows += [[shortened(term.name, longest), *(cell(term) for _, cell in head)] for term in terms]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(
            row[k].ljust(widths[k]) if k == 0 else row[k].rjust(widths[k])
            for k in range(len(row))
        ).rstrip()
        for row in rows
    ]  # fmt: skip


def summary_html(summary: Summary) -> str:
    """For a notebook: the numbers first."""
    parts = [f"<p><b>{html.escape(summary.model)}</b></p>"]
    parts += [f"<p><b>{html.escape(line)}</b></p>" for line in summary.advice[:1]]
    for each in summary.functions[:SHOWN_FUNCTIONS]:
        parts.append(f"<p>{html.escape(caption(summary, each))}</p>")
        if terms := _shown(each):
            parts.append(_html_table(summary, each, terms))
    parts += [f"<p>{line}</p>" for line in _more_functions(summary)]
    rows = "".join(
        f"<tr><th {_CELL}>{html.escape(name)}</th><td {_CELL}>{html.escape(value)}</td></tr>"
        for name, value in summary.facts
    )
    parts.append(f"<table>{rows}</table>")
    parts += [f"<p><small>{html.escape(note)}</small></p>" for note in summary.notes]
    return f"<div>{''.join(parts)}</div>"


def _html_table(summary: Summary, function: FunctionSummary, terms: tuple[Term, ...]) -> str:
    head = columns(summary, function)
    lines = [f"<th {_CELL}></th>" + "".join(f"<th {_NUMBER}>{name}</th>" for name, _ in head)]
    for term in terms:
        numbers = "".join(f"<td {_NUMBER}>{cell(term)}</td>" for _, cell in head)
        name = html.escape(shortened(term.name, _LONGEST_IN_HTML))
        lines.append(f"<td {_CELL}>{name}</td>{numbers}")
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
