"""Every Python block of the README and of the documentation runs, top to bottom."""

import doctest
import importlib
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from riata.cli.main import app

pytestmark = pytest.mark.matrix(one_in=11)

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


COMMAND = re.compile(r"^\$ riata (.+)$", re.MULTILINE)


def blocks(page):
    return BLOCK.findall(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p)], ids=lambda p: str(p.relative_to(ROOT))
)
def test_every_block_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for number, block in enumerate(blocks(page), start=1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), namespace)
    assert namespace.keys() > {"__name__"}


def test_the_commands_of_the_first_page_run(tmp_path, monkeypatch):
    """After the Python blocks before them, in the same folder."""
    monkeypatch.chdir(tmp_path)
    page = ROOT / "docs" / "start.md"
    first = page.read_text(encoding="utf-8").split("## Step by step")[0]
    namespace = {}
    for block in BLOCK.findall(first):
        exec(compile(block, page.name, "exec"), namespace)
    commands = COMMAND.findall(first)
    assert len(commands) >= 3
    for command in commands:
        CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
    assert (tmp_path / "draft.toml").exists()
    assert "The guarantee" in (tmp_path / "claims.html").read_text(encoding="utf-8")


def test_every_relative_link_of_the_readme_exists():
    links = re.findall(r"\]\((?!http)([^)#]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize(
    "module",
    [
        "riata.audit.attack_scores",
        "riata.audit.grey_box",
        "riata.bounds",
        "riata.data.schema.schema",
        "riata.estimators.erm",
        "riata.estimators.lasso",
        "riata.estimators.logistic",
        "riata.forecasting.comparison",
        "riata.forecasting.required",
        "riata.forecasting.simulate",
        "riata.model_file",
        "riata.privacy.ledger.ledger",
        "riata.releases",
        "riata.tuning.search",
    ],
)
def test_every_example_in_a_docstring_holds(module):
    failed, attempted = doctest.testmod(importlib.import_module(module))
    assert failed == 0
    assert attempted > 0


ALGORITHMS = [p for p in PAGES if p.parent.name == "algorithms" and p.stem != "index"]


@pytest.mark.parametrize("page", ALGORITHMS, ids=lambda page: page.stem)
def test_every_algorithm_names_its_paper_and_its_proof(page):
    second = page.read_text(encoding="utf-8").split("\n\n")[1]
    assert second.startswith("*Paper:* ")
    assert re.search(r"\*Proof:\* .*\(\.\./privacy/\w+\.md", second)


def test_every_plot_of_a_page_is_there():
    saved = [
        (page.name, name)
        for page in PAGES
        for name in re.findall(r"savefig\(\"([\w.]+)\"", page.read_text(encoding="utf-8"))
    ]
    assert len(saved) >= 5
    assert [each for each in saved if not (ROOT / "docs" / "_static" / each[1]).exists()] == []


def formulas_cut_like_lists(text):
    """Lines inside an inline formula that Markdown would take for the items of a list."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^\$\$.*?^\$\$", "", text, flags=re.DOTALL | re.MULTILINE)
    found = []
    for paragraph in text.split("\n\n"):
        inside = False
        for line in re.sub(r"`[^`]*`", "", paragraph).split("\n"):
            if inside and re.match(r"\s*([-+*>#]|\d+[.)])\s", line):
                found.append(line)
            inside ^= line.count("$") % 2 == 1
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_formula_is_cut_like_a_list(page):
    assert formulas_cut_like_lists(page.read_text(encoding="utf-8")) == []


def test_a_formula_that_is_cut_like_a_list_is_found():
    assert formulas_cut_like_lists("Let $a\n+ b$ be.\n\n- $c$\n- d") == ["+ b$ be."]
