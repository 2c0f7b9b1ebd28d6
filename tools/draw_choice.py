"""Draw docs/_static/choose.svg: what solver="auto" takes, as questions with an answer each.

    python tools/draw_choice.py

tests/conformance/test_choice_picture.py walks through the questions with many problems, and checks
that they lead to the solvers of `riata.solvers.RULES`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

PICTURE = Path(__file__).parents[1] / "docs" / "_static" / "choose.svg"


@dataclass(frozen=True)
class Rung:
    """A question, and the solver that is taken if the answer is yes. The last has no question."""

    solver: str
    page: str
    asks: str = ""


@dataclass(frozen=True)
class Ladder:
    """Questions one below the other, for problems to which the title applies."""

    title: str
    rungs: tuple[Rung, ...]


LADDERS = (
    Ladder(
        "Epsilon is infinite: nothing is protected",
        (
            Rung("HardThresholding", "hard_thresholding", "The set is a|SparseBall?"),
            Rung("FrankWolfe", "frank_wolfe"),
        ),
    ),
    Ladder(
        'Rows have a bound on their|length, norm="l2", and delta > 0',
        (
            Rung("greedy", "greedy", "The set is a|SparseBall?"),
            Rung(
                "class-sums",
                "class_sums",
                "L1Ball or L2Ball, labels,|no entry below 0, more|columns than rows / 3?",
            ),
            Rung(
                "averaged-gradient",
                "averaged_gradient",
                "L1Ball or L2Ball, at most|512 columns, rows · μ below|75 √columns (labels: 400)?",
            ),
            Rung(
                "whitened-gradient",
                "whitened_gradient",
                "L1Ball or L2Ball, at most|512 columns?",
            ),
            Rung(
                "scaled-gradient",
                "scaled_gradient",
                "L1Ball or L2Ball, numbers|or columns at most rows / 3?",
            ),
            Rung("noisy-gradient", "noisy_gradient"),
        ),
    ),
    Ladder(
        "Each entry has a bound, or delta is 0",
        (
            Rung(
                "averaged-gradient",
                "averaged_gradient",
                "L1Ball or L2Ball, delta > 0,|few columns*, rows · μ below|"
                "75 √columns (labels: 400)?",
            ),
            Rung(
                "whitened-gradient",
                "whitened_gradient",
                "L1Ball or L2Ball, delta > 0,|few columns*?",
            ),
            Rung(
                "scaled-gradient",
                "scaled_gradient",
                "L1Ball or L2Ball, delta > 0,|labels, no entry below 0,|"
                "rows · μ below 25 √columns?",
            ),
            Rung(
                "averaged-gradient",
                "averaged_gradient",
                "L1Ball or L2Ball, delta 0,|few columns*, more than .13|"
                "√(rows · epsilon) (labels: .065)?",
            ),
            Rung(
                "sufficient-statistics",
                "greedy",
                "L1Ball or L2Ball, columns|at most a quarter of|√(rows · min(epsilon, 1))?",
            ),
            Rung("greedy", "greedy", "L1Ball, L2Ball or|SparseBall?"),
            Rung("frank-wolfe", "frank_wolfe", "The set has vertices?|Simplex, Polytope"),
            Rung("gaussian-frank-wolfe", "frank_wolfe", "Delta > 0?"),
            Rung("objective-perturbation", "objective_perturbation"),
        ),
    ),
)

WIDTH, LINE, PAD, GAP = 380, 18, 11, 16
PILL = 164
STYLE = """
.choice {
  --ink: var(--pst-color-text-base, #1f2937); --soft: var(--pst-color-text-muted, #57606a);
  --card: var(--pst-color-surface, #f5f1eb); --edge: var(--pst-color-border, #c9c2b8);
  --leaf: var(--pst-color-primary-bg, #fdf3e3); --mark: var(--pst-color-primary, #9a4a06);
  font: 13px system-ui, -apple-system, "Segoe UI", sans-serif;
}
@media (prefers-color-scheme: dark) {
  .choice {
    --ink: var(--pst-color-text-base, #e6e6e6); --soft: var(--pst-color-text-muted, #a8b0b8);
    --card: var(--pst-color-surface, #22262c); --edge: var(--pst-color-border, #4a5058);
    --leaf: var(--pst-color-primary-bg, #3a2a16); --mark: var(--pst-color-primary, #f0a955);
  }
}
.choice text { fill: var(--ink); }
.choice .title { font-weight: 650; }
.choice .soft { fill: var(--soft); font-size: 11.5px; }
.choice .panel { fill: var(--card); stroke: var(--edge); }
.choice .leaf rect { fill: var(--leaf); stroke: var(--mark); }
.choice .leaf text { fill: var(--mark); font-weight: 600; font-size: 12px; }
.choice a.leaf, .choice a.leaf text { text-decoration: none; text-shadow: none; }
.choice a.leaf:hover text { text-decoration: underline; }
.choice path { stroke: var(--soft); fill: none; stroke-width: 1.3; }
"""


def drawn() -> str:
    """The picture."""
    y, parts = 4, []
    for place, ladder in enumerate(LADDERS):
        last = place == len(LADDERS) - 1
        height, inside = _ladder(ladder, y, question=not last)
        parts.append(
            f'<rect class="panel" x="2" y="{y}" width="{WIDTH - 4}" height="{height}" rx="10"/>'
        )
        parts += inside
        y += height
        if not last:
            parts += [*_arrow(22, y, y + 26), _text(32, y + 17, "no", "soft")]
            y += 28
    label = (
        "What the default solver is. Each box is asked from top to bottom, and the first question "
        "that is answered by yes names the solver. The table below says the same."
    )
    head = (
        f'<svg class="choice" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 4}" '
        f'role="img" aria-label={quoteattr(label)}>'
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def _ladder(ladder: Ladder, top: int, *, question: bool) -> tuple[int, list[str]]:
    """The height of a box, and what is in it."""
    titles = (ladder.title + ("?" if question else "")).split("|")
    parts = [_text(14, top + 24 + i * LINE, line, "title") for i, line in enumerate(titles)]
    y = top + 24 + (len(titles) - 1) * LINE + PAD + 4
    for rung in ladder.rungs:
        lines = rung.asks.split("|") if rung.asks else ["otherwise"]
        height = max(len(lines) * LINE, 28)
        middle = y + height / 2
        first = middle - (len(lines) - 1) * LINE / 2 + 4.5
        parts += [
            _text(14, first + i * LINE, line, "" if rung.asks else "soft")
            for i, line in enumerate(lines)
        ]
        parts += [*_leaf(rung, middle)]
        y += height
        if rung is not ladder.rungs[-1]:
            parts += [*_arrow(22, y + 3, y + GAP + 5), _text(32, y + GAP - 1, "no", "soft")]
        y += GAP + 8
    return y - GAP + 6 - top, parts


def _leaf(rung: Rung, middle: float) -> list[str]:
    left = WIDTH - PILL - 12
    return [
        f'<path d="M{left - 14} {middle} h10 m-4 -3.5 l4 3.5 l-4 3.5"/>',
        f'<a class="leaf" href="algorithms/{rung.page}.html" data-solver="{rung.solver}">',
        f'<rect x="{left}" y="{middle - 14}" width="{PILL}" height="28" rx="14"/>',
        f'<text x="{left + PILL / 2}" y="{middle + 4.5}" text-anchor="middle">'
        f"{escape(rung.solver)}</text></a>",
    ]


def _arrow(x: float, top: float, bottom: float) -> list[str]:
    return [f'<path d="M{x} {top} V{bottom} m-3.5 -4 l3.5 4 l3.5 -4"/>']


def _text(x: float, y: float, words: str, kind: str) -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}"{named}>{escape(words)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
