"""Every Python block of the README and of the documentation runs, and prints what the page says."""

import doctest
import importlib.util
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from riata.cli.main import app

pytestmark = pytest.mark.matrix(one_in=11)

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"^\$ riata (.+)$", re.MULTILINE)


def load_tool():
    path = ROOT / "tools" / "update_doc_output.py"
    spec = importlib.util.spec_from_file_location("update_doc_output", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


TOOL = load_tool()


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if TOOL.BLOCK.search(p.read_text(encoding="utf-8"))],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_every_block_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for _, shown, printed in TOOL.outputs(page):
        if shown is not None and not TOOL.agree(shown, TOOL.shortened(printed, shown)):
            assert printed == shown, f"run tools/update_doc_output.py {page.relative_to(ROOT)}"


PAGE = """
```python
import math
print("about", math.pi)
print("left out")
print("the end of 10,000 rows")
```

```text
about 3.14
...
the end of 10,001 rows
```
"""


def test_output_that_is_wrong_is_found_and_written(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert TOOL.written(page) == PAGE
    page.write_text(PAGE.replace("about 3.14", "about 3.9"))
    assert TOOL.written(page) == PAGE.replace("3.14", "3.141592653589793").replace("001", "000")
    page.write_text(PAGE.replace("rows\n```\n", "people\n```\n"))
    assert "10,000 rows\n```\n" in TOOL.written(page)


def test_the_noise_of_a_page_is_always_the_same(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nfrom riata.mechanisms.noise import Noise\n\nprint(Noise().words(2))\n```\n"
    )
    assert TOOL.outputs(page) == TOOL.outputs(page)


@pytest.mark.parametrize(
    ("page", "end", "made"),
    [
        ("start.md", "## Step by step", ["draft.toml", "claims.html"]),
        ("your_data.md", "## Genotypes", ["satisfied/model.riata", "days/model.riata"]),
    ],
)
def test_the_commands_of_a_page_run(page, end, made, tmp_path, monkeypatch):
    """After the Python blocks before `end`, in the same folder."""
    monkeypatch.chdir(tmp_path)
    first = (ROOT / "docs" / page).read_text(encoding="utf-8").split(end)[0]
    (tmp_path / page).write_text(first, encoding="utf-8")
    TOOL.outputs(tmp_path / page)
    commands = COMMAND.findall(first)
    assert len(commands) >= 3
    for command in commands:
        done = CliRunner().invoke(app, shlex.split(command), catch_exceptions=False)
        assert done.exit_code == 0, (command, done.output)
    assert [name for name in made if not (tmp_path / name).exists()] == []


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
