"""Every statement of the papers has a row, and its line runs."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from riata.cli.main import app
from riata.errors import InvalidArgument
from riata.papers import STATES, find, papers, rows

ROOT = Path(__file__).parents[2]

#: What the papers number, and what they name without a number.
LABELS = {
    "T": "Theorem 1.1, Equation (1), Section 1.1 (linear losses), Section 2 (general C), "
    "Theorem A.1, Theorem B.2, Theorem 1.2, Definition 1.3, Definition 1.2, Definition 1.2 (norm), "
    "Definition 1.2 (Lipschitz), Section 1 (lq balls), Theorem A.2, Theorem B.1, "
    "Remark 3 (RSC), Section 3 (nearly optimal), Definition 2.1, Remark 1, "
    "Remark 2, Algorithm 1, Theorem 2.2, Fact 2.3, Algorithm 2, Theorem 2.4, Theorem 2.5, "
    "Algorithm 3, Theorem 2.6, Corollary 2.7, Remark 3, Theorem 3.1, Theorem 3.2, Lemma 3.3",
    "W": "Algorithm 1, Introduction (general convex), Introduction (strongly convex), "
    "Footnotes 1 and 2, "
    "Algorithm 2, Assumption 16.1, Theorem 16.2, Theorem 16.3, Algorithm 3, "
    "Algorithm 4, Theorem 16.4, Theorem 16.5, Algorithm 5, Algorithm 6, Theorem 16.6, "
    "Definition 16.3a, Definition 16.3b, Fact 1, Fact 2, Assumption 16.7, Algorithm 7, "
    "Theorem 16.8, Theorem 16.9",
    "K": "Section 2 (widths), Footnote 4, Section 3 (Johnson-Lindenstrauss), "
    "Section 4 (lower bound), Definition 1, Definition 2, Claim 2.1, Definition 3, Definition 4, "
    "Definition 5, "
    "Definition 6, Theorem 3.1, Corollary 3.2, Lemma 3.3, Lemma 3.4, Lemma 3.5, Mechanism 1, "
    "Theorem 3.6, Theorem 3.6 (pure), Proposition 3.7, Definition 7, Theorem 3.8, Corollary 3.9, "
    "Lemma 3.10, Theorem 3.11, Theorem 3.11 (pure), Mechanism 2, Corollary 4.1",
    "Z": "Definition 1, Lemma 1, Lemma 2, Algorithm 1, Theorem 1, Algorithm 2, Lemma 3, Lemma 4, "
    "Corollary 1, Lemma 5, Theorem 2, Algorithm 3, Lemma 6, Theorem 3, Algorithm 4, Lemma 7, "
    "Corollary 2, Definition 2, Definition 3, Lemma 8, Algorithm 5, Theorem 4, Definition 4, "
    "Algorithm 6, Lemma 9, Lemma 10, Theorem 5, Proposition 1, Theorem 6",
}

every_row = pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.paper} {row.label}")


def run(row, n_rows):
    """The value of a row's line on rows of eight columns."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (n_rows, 8))
    y = np.clip(X @ [0.5, -0.4, 0.1, 0, 0, 0, 0, 0] + 0.05 * rng.standard_normal(n_rows), -1, 1)
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
    space = {"np": np, "X": X, "y": y, "U": unit, "z": np.where(y > 0, 1, -1)}
    exec(row.imports, space)
    return eval(row.line, space)


@every_row
def test_every_line_runs(row):
    assert run(row, 200) is not None
    assert row.state in STATES


@every_row
@pytest.mark.long
def test_every_line_runs_on_more_rows(row):
    assert run(row, 5_000) is not None


def test_every_statement_of_the_papers_has_a_row():
    said = {letter: [row.label for row in rows() if row.paper == letter] for letter in papers()}
    for letter, labels in LABELS.items():
        assert sorted(said[letter]) == sorted(labels.split(", "))


@every_row
def test_pages_and_measurements_exist(row):
    page, _, place = row.page.partition("#")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    if place:
        heading = re.compile(rf"^\({place}\)=$|^#+ .*$", re.M)
        slugs = {
            m.group().strip("()=# ").lower().replace(" ", "-").replace(",", "")
            for m in heading.finditer(text)
        }
        assert place in slugs
    assert (ROOT / row.measured).exists()


def test_the_page_has_the_table_as_it_is():
    spec = importlib.util.spec_from_file_location("papers_page", ROOT / "tools" / "papers_page.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = tool.PAGE.read_text(encoding="utf-8")
    assert tool.written(text) == text, "run tools/papers_page.py"
    assert "| Algorithm 2: " in text


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("003 Alg 4", ["Z Algorithm 4"]),
        ("zmw algorithm 4", ["Z Algorithm 4"]),
        ("Zheng Alg. 4", ["Z Algorithm 4"]),
        ("K 3.11", ["K Theorem 3.11", "K Theorem 3.11 (pure)"]),
        ("KJ thm 3.1", ["K Theorem 3.1"]),
        ("004 mech 2", ["K Mechanism 2"]),
        ("000 Theorem 2.5", ["T Theorem 2.5"]),
        ("002 thm 2.5", ["T Theorem 2.5"]),
        ("W16 16.5", ["W Theorem 16.5"]),
        ("wang fact 2", ["W Fact 2"]),
        ("3.6", ["K Theorem 3.6", "K Theorem 3.6 (pure)"]),
        ("Corollary 2.7", ["T Corollary 2.7"]),
    ],
)
def test_statements_are_found_by_their_names(asked, found):
    assert [f"{row.paper} {row.label}" for row in find(asked)] == found


def test_the_command_prints_a_row_or_says_what_there_is():
    shown = CliRunner().invoke(app, ["paper", "003", "Alg", "4"], catch_exceptions=False)
    assert "PaperKernelRidge(" in shown.output
    assert "disproved" in shown.output
    as_json = CliRunner().invoke(app, ["paper", "K", "--json"], catch_exceptions=False)
    assert len(json.loads(as_json.output)) == sum(row.paper == "K" for row in rows())
    with pytest.raises(InvalidArgument, match="Mechanism 1"):
        find("K Theorem 9.9")
    for text in ("", "theorem 99", "nobody"):
        with pytest.raises(InvalidArgument, match="The papers are"):
            find(text)
