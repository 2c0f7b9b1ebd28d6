"""Pages of the documentation as notebooks."""

import importlib.util
import json
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def load_tool():
    path = DOCS.parent / "tools" / "notebooks.py"
    spec = importlib.util.spec_from_file_location("notebooks", path)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


TOOL = load_tool()
PAGE = """# Title

(label)=
## Text

```toml
# claims.toml
rows = 3
```

```toml
rows = 4
```

```python
print(1)
```

```text
1
```
"""


def test_a_page_becomes_its_text_files_and_code_in_order():
    cells = json.loads(TOOL.notebook(PAGE))["cells"]
    assert [cell["cell_type"] for cell in cells] == [
        "markdown", "code", "markdown", "code", "markdown"
    ]  # fmt: skip
    assert cells[0]["source"] == "# Title\n\n## Text"
    assert cells[1]["source"] == "%%writefile claims.toml\n# claims.toml\nrows = 3"
    assert "rows = 4" in cells[2]["source"]
    assert cells[3]["source"] == "print(1)"
    assert len({cell["id"] for cell in cells}) == len(cells)


PAGES = [p for p in sorted(DOCS.rglob("*.md")) if TOOL.has_code(p.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_notebooks_have_all_code_of_their_pages(page):
    text = page.read_text(encoding="utf-8")
    found = json.loads(TOOL.notebook(text))
    code = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
    assert sum(not cell["source"].startswith("%%") for cell in code) == text.count("\n```python\n")
    for cell in code:
        assert (cell["outputs"], cell["execution_count"]) == ([], None)
        if not cell["source"].startswith("%%"):
            compile(cell["source"], page.name, "exec")


def test_a_page_without_code_has_no_notebook():
    assert not TOOL.has_code("# Words\n\n```toml\nrows = 4\n```\n")
