"""The report of the standard audits: one self-contained page."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from riata import __version__
from riata.audit.black_box import Curve
from riata.audit.pair_search import SearchedPair
from riata.audit.standard import AuditResult, Replayed
from riata.drawing import inline_svg

REPLAY_HEAD = ("estimator", "pairs", "exceeded", "largest of its claim", "worst pair")
SEARCH_HEAD = ("estimator", "first release's pair", "searched pair", "other rows")
ATTACK_HEAD = ("one step", "draws", "epsilon at least", "claimed", "share")
CURVE_HEAD = ("fit", "draws", "delta", "epsilon at least", "claimed")


def replay_rows(found: Iterable[Replayed]) -> list[tuple[str, ...]]:
    return [
        (r.name, f"{r.pairs:,}", str(r.exceeded), f"{r.largest:.6f}", f"{r.worst_pair:.6f}")
        for r in found
    ]


def search_rows(found: Mapping[str, SearchedPair]) -> list[tuple[str, ...]]:
    return [
        (name, f"{p.first_share:.3f}", f"{p.share:.3f}", p.background) for name, p in found.items()
    ]


def attack_rows(found: Mapping[str, Curve]) -> list[tuple[str, ...]]:
    return [
        (name, f"{c.draws:,}", f"{c.lower[0]:.4f}", f"{c.claimed[0]:.4f}", f"{c.ratio:.2f}")
        for name, c in found.items()
    ]


def curve_rows(found: Mapping[str, Curve]) -> list[tuple[str, ...]]:
    return [
        (name, f"{c.draws:,}", f"{delta:g}", f"{low:.4f}", f"{high:.4f}")
        for name, c in found.items()
        for delta, low, high in zip(c.deltas, c.lower, c.claimed, strict=True)
    ]


def page(result: AuditResult) -> str:
    """The report as HTML."""
    return _PAGE.format(
        version=__version__,
        verdict="No claim was exceeded." if result.sound else "A CLAIM WAS EXCEEDED.",
        colour="#14532d" if result.sound else "#991b1b",
        replays=_table(REPLAY_HEAD, replay_rows(result.replays)),
        searches=_table(SEARCH_HEAD, search_rows(result.searches)),
        attacks=_table(ATTACK_HEAD, attack_rows(result.attacks)),
        curves=_table(CURVE_HEAD, curve_rows(result.curves)),
        plot=_plot(result.curves),
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    titles = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{titles}</tr>{body}</table>"


def _plot(curves: Mapping[str, Curve]) -> str:
    """Claims and lower bounds over delta, as inline SVG; nothing without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    figure = Figure(figsize=(8, 2.6 * ((len(curves) + 1) // 2)), layout="constrained")
    grid = figure.subplots((len(curves) + 1) // 2, 2, squeeze=False, sharex=True, sharey=True)
    for axes, (name, curve) in zip(grid.flat, curves.items(), strict=False):
        axes.plot(curve.deltas, curve.claimed, color="#1c1917", label="claimed")
        axes.plot(curve.deltas, curve.lower, color="#b45309", marker="o", label="shown")
        axes.fill_between(curve.deltas, curve.lower, color="#b45309", alpha=0.15)
        axes.set_xscale("log")
        axes.set_title(name, fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    grid[0][0].legend(frameon=False)
    for axes in grid[-1]:
        axes.set_xlabel("delta")
    for row in grid:
        row[0].set_ylabel("epsilon")
    return inline_svg(figure)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>riata: privacy audit</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c1917; background: #fff; }}
table {{ border-collapse: collapse; font-size: .95rem; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 2px 18px 2px 0; text-align: left; }}
th {{ border-bottom: 1px solid #a8a29e; font-weight: 600; }}
svg {{ max-width: 100%; height: auto; }}
</style></head><body>
<h1>Privacy audit of riata {version}</h1>
<p style="color:{colour};font-weight:600">{verdict}</p>
<h2>Replays</h2>
<p>Each fit is seen from a neighbour of its data set. "Largest of its claim" is the largest change
of any release over the one that its noise is scaled to, in exact arithmetic: above 1 the guarantee
would be broken. The worst pair is made to come as near to 1 as possible.</p>
{replays}
<h2>Whole fits</h2>
<p>The share of a fit's whole claim that two neighbours realise, over all releases and in the mean
of fits with fresh noise: those that change the first release most, and those that a search over
pairs of rows and the other rows found. Every fit of the search is replayed exactly.</p>
{searches}
<h2>Attacks on one step</h2>
<p>Many fits on both data sets of the worst pair, and an attacker who decides from the releases
which it was. The bound is too large with probability below one in a million.</p>
{attacks}
<h2>Attacks on several steps</h2>
<p>The same for whole fits, at several deltas. A point above its line would refute the claim.</p>
{plot}
{curves}
</body></html>
"""
