"""Draw docs/_static/flow_*.svg: the modules that a fit passes through, in order.

    python tools/draw_data_flow.py

tests/conformance/test_data_flow.py runs the fits, and checks that the functions of each figure are
called for the first time in this order.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

FOLDER = Path(__file__).parents[1] / "docs" / "_static"


@dataclass(frozen=True)
class Step:
    """A function of a module of riata, and what it does here."""

    module: str
    function: str
    does: str


@dataclass(frozen=True)
class Phase:
    """Steps with the same rights. `private` says whether rows can be seen."""

    title: str
    steps: tuple[Step, ...]
    private: bool = False


@dataclass(frozen=True)
class Flow:
    name: str
    label: str
    phases: tuple[Phase, ...]


PUBLIC = "Public facts: no row is read"
CHARGE = "Charge: on disk before a row is read"
ROWS = "Rows: read only through the curator"
RESULT = "Result: only releases and public facts"

_REQUEST = (
    Step("fitting/request.py", "arguments_of", "Request: all that decides a release"),
    Step("fitting/planning.py", "plan", "PlannedFit: problem, solver, plan"),
    Step("solvers/__init__.py", "choose_solver", "the first rule that applies"),
    Step("solvers/refit.py", "plan", "releases and steps"),
    Step("privacy/accountants/__init__.py", "spent", "the cost of the plan"),
)
_RESULT = (
    Step("fitting/statement.py", "statement", "the Statement"),
    Step("estimators/base.py", "_set_attributes", "coef_, intercept_, privacy_"),
)

DENSE = Flow(
    "dense",
    "A dense fit: PrivateLasso on an array, with a ledger",
    (
        Phase(
            PUBLIC,
            (
                Step("estimators/base.py", "fit", "checks the arguments"),
                Step("fitting/rows.py", "read_table", "shape and types of the arrays"),
                Step("data/arrays.py", "rows_and_targets", "no value decides anything"),
                *_REQUEST,
            ),
        ),
        Phase(
            CHARGE,
            (
                Step("fitting/running.py", "run", "one charge for all releases"),
                Step("curator.py", "open", "charges first, then reads"),
                Step("privacy/ledger/ledger.py", "charge", "one durable entry"),
            ),
        ),
        Phase(
            ROWS,
            (
                Step("engines/choice.py", "open_engine", "by name and public facts"),
                Step("solvers/refit.py", "run", "asks, and sees releases only"),
                Step("curator.py", "release", "query, mechanism: takes one event"),
                Step("mechanisms/additive.py", "release", "needs a total, adds noise"),
                Step("engines/local.py", "total", "rows on the grid, in blocks"),
                Step("queries/sizes.py", "block_sum", "integers, exact"),
            ),
            private=True,
        ),
        Phase(RESULT, _RESULT),
    ),
)

SPARSE = Flow(
    "sparse",
    "A wide sparse logistic fit: selections that evaluate few columns",
    (
        Phase(
            PUBLIC,
            (
                Step("estimators/base.py", "fit", "checks the arguments"),
                Step("fitting/rows.py", "read_table", "shape and types of the matrix"),
                *_REQUEST[:3],
                Step("fitting/extra_planning.py", "plan_with_extra_releases", "calibration too"),
                *_REQUEST[3:],
            ),
        ),
        Phase(
            CHARGE,
            (
                Step("fitting/running.py", "run", "one charge for all releases"),
                Step("curator.py", "open", "charges first, then reads"),
            ),
        ),
        Phase(
            ROWS,
            (
                Step("engines/choice.py", "open_engine", "by name and public facts"),
                Step("solvers/refit.py", "run", "asks, and sees releases only"),
                Step("curator.py", "release", "query, mechanism: takes one event"),
                Step("mechanisms/selection.py", "release", "one column of many"),
                Step("engines/local.py", "scores", "utilities known up to bounds"),
                Step("engines/followed_scores.py", "__init__", "sums that follow the slopes"),
                Step("mechanisms/rejection.py", "draw", "few exact scores, same distribution"),
                Step("fitting/extra_releases.py", "calibrated", "one more release: calibration"),
            ),
            private=True,
        ),
        Phase(RESULT, _RESULT),
    ),
)

DASK = Flow(
    "dask",
    "riata fit on a Parquet directory, with a person column, on Dask",
    (
        Phase(
            "Public facts: of the rows only ids, to count people",
            (
                Step("cli/study.py", "load_study", "options, study file, schema"),
                Step("data/schema/schema.py", "load", "columns, bounds, person"),
                Step("cli/fit.py", "fit", "the order of everything below"),
                Step("data/formats.py", "read", "names and types of the files"),
                Step("fitting/rows.py", "read_table", "a source, and its bounds"),
                Step("engines/gather.py", "gather", "workers send digests of ids: people"),
                Step("fitting/planning.py", "plan", "PlannedFit, for a person"),
                Step("cli/fit.py", "confirm_spending", "the plan is shown, you say yes"),
            ),
        ),
        Phase(
            CHARGE,
            (
                Step("fitting/running.py", "run", "one charge for all releases"),
                Step("curator.py", "open", "charges first, then reads"),
                Step("privacy/ledger/ledger.py", "charge", "one durable entry, for a person"),
            ),
        ),
        Phase(
            ROWS,
            (
                Step("engines/choice.py", "open_engine", "by name"),
                Step("data/people.py", "pieces", "which rows of a person count"),
                Step("engines/dask.py", "_start_actors", "workers read and clip their rows"),
                Step("curator.py", "release", "asked by the solver"),
                Step("mechanisms/additive.py", "release", "needs a total, adds noise here"),
                Step("engines/dask.py", "_summed", "workers sum, sums are checked, added"),
            ),
            private=True,
        ),
        Phase(
            RESULT,
            (
                *_RESULT,
                Step("cli/fit.py", "write_files", "model, Statement and report"),
            ),
        ),
    ),
)

LOCAL = Flow(
    "local",
    "A local report, from the browser to the solution",
    (
        Phase(
            "Public facts: the task",
            (
                Step("local/task.py", "load", "questions, epsilon, identity"),
                Step("local/task_questions.py", "read_questions", "refuses what costs too much"),
                Step("collect/service.py", "task_file", "served byte for byte"),
            ),
        ),
        Phase(
            "The device: one row, seen by nobody else",
            (
                Step("collect/static/survey.js", "main", "questions and answers"),
                Step("collect/static/riata.js", "open", "computes the cost again"),
                Step("collect/static/riata.js", "encode", "clips, centres, scales"),
                Step("collect/static/riata.js", "draw", "tries seeds until one is accepted"),
                Step("collect/static/survey.js", "post", "stores, then sends eight bytes"),
            ),
            private=True,
        ),
        Phase(
            "The server: only reports",
            (
                Step("collect/service.py", "upload", "length, task, day, token, limits"),
                Step("collect/committer.py", "add", "report and token in one write"),
                Step("collect/store.py", "add", "acknowledged when on disk"),
                Step("local/aggregator.py", "add", "counts bad and repeated reports"),
                Step("local/question_sums.py", "add", "seeds become vectors, and a sum"),
                Step("local/aggregator.py", "solve", "chooses the learner of the kind"),
                Step("local/learners/__init__.py", "learn", "a LocalModel, or no signal"),
                Step("collect/artifacts.py", "write_artifacts", "model, Statement, coefficients"),
            ),
        ),
    ),
)

FLOWS = (DENSE, SPARSE, DASK, LOCAL)

WIDTH, ROW, HEAD, GAP = 400, 42, 34, 22
STYLE = """
.flow {
  --ink: var(--pst-color-text-base, #1f2937); --soft: var(--pst-color-text-muted, #57606a);
  --card: var(--pst-color-surface, #f5f1eb); --edge: var(--pst-color-border, #c9c2b8);
  --leaf: var(--pst-color-primary-bg, #fdf3e3); --mark: var(--pst-color-primary, #9a4a06);
  font: 12.5px system-ui, -apple-system, "Segoe UI", sans-serif;
}
.flow text { fill: var(--ink); }
.flow .title { font-weight: 650; font-size: 13px; }
.flow .does { fill: var(--soft); }
.flow .module { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12px; }
.flow .number { fill: var(--mark); font-weight: 650; font-size: 11px; }
.flow .panel { fill: var(--card); stroke: var(--edge); }
.flow .private { fill: var(--leaf); stroke: var(--mark); }
.flow path { stroke: var(--soft); fill: none; stroke-width: 1.3; }
"""


def drawn(flow: Flow) -> str:
    """The figure of one flow."""
    y, number, parts = 4, 0, []
    for phase in flow.phases:
        height = HEAD + ROW * len(phase.steps)
        kind = "private" if phase.private else "panel"
        parts += [
            f'<rect class="{kind}" x="2" y="{y}" width="{WIDTH - 4}" height="{height}" rx="10"/>',
            _text(14, y + 22, phase.title, "title"),
        ]
        for place, step in enumerate(phase.steps):
            number += 1
            top = y + HEAD + ROW * place
            parts += [
                _text(20, top + 13, str(number), "number", middle=True),
                _text(36, top + 12, f"{step.module}  {step.function}", "module"),
                _text(36, top + 28, step.does, "does"),
            ]
            if place < len(phase.steps) - 1:
                parts += _arrow(20, top + 18, top + ROW - 2)
        y += height
        if phase is not flow.phases[-1]:
            parts += _arrow(20, y + 2, y + GAP - 3)
            y += GAP
    head = (
        f'<svg class="flow" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 4}" '
        f'role="img" aria-label={quoteattr(flow.label)}>'
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


def picture(flow: Flow) -> Path:
    """Where the figure of a flow is."""
    return FOLDER / f"flow_{flow.name}.svg"


def _arrow(x: float, top: float, bottom: float) -> list[str]:
    return [f'<path d="M{x} {top} V{bottom} m-3.5 -4 l3.5 4 l3.5 -4"/>']


def _text(x: float, y: float, words: str, kind: str, *, middle: bool = False) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text x="{x}" y="{y}" class="{kind}"{anchor}>{escape(words)}</text>'


if __name__ == "__main__":
    for each in FLOWS:
        picture(each).write_text(drawn(each), encoding="utf-8")
