"""Pages of the documentation as notebooks: text and code in the same order, without output.

docs/conf.py writes them next to the pages of a build, and links to them.
"""

from __future__ import annotations

import json
import re

#: Code that runs, or a TOML block that begins with a comment `# name.toml`: a file for the code.
_CELL = re.compile(r"^```(python|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w-]+\.toml)\n")
_LABEL = re.compile(r"^\([\w-]+\)=\n", re.MULTILINE)


def has_code(page: str) -> bool:
    """Whether a page has code to run."""
    return any(match[1] == "python" for match in _CELL.finditer(page))


def notebook(page: str) -> str:
    """The notebook of a page, in Jupyter's format 4."""
    cells, end = [], 0
    for match in _CELL.finditer(page):
        file = _FILE.match(match[2])
        if match[1] == "toml" and file is None:
            continue
        cells.append(_text(page[end : match.start()]))
        code = match[2] if file is None else f"%%writefile {file[1]}\n{match[2]}"
        cells.append(
            {"cell_type": "code", "execution_count": None, "outputs": [], "source": code.rstrip()}
        )
        end = match.end()
    cells.append(_text(page[end:]))
    kept = [
        {"id": f"cell-{number}", "metadata": {}, **cell}
        for number, cell in enumerate(cells)
        if cell["source"]
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    found = {"cells": kept, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _text(source: str) -> dict[str, object]:
    return {"cell_type": "markdown", "source": _LABEL.sub("", source).strip()}
