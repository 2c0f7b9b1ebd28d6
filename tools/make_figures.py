"""Run the pages of the documentation that save plots, and put the plots into docs/_static.

python tools/make_figures.py                # all of them
python tools/make_figures.py tutorials/text # one page
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import matplotlib
from update_doc_output import outputs

DOCS = Path(__file__).parents[1] / "docs"
SAVED = re.compile(r"savefig\(\"([\w.]+)\"")


def plots(page: Path) -> list[str]:
    """The names of the files that a page saves."""
    return SAVED.findall(page.read_text(encoding="utf-8"))


def main(names: list[str]) -> None:
    matplotlib.rcParams |= {"svg.hashsalt": "riata", "savefig.transparent": False}
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    pages = [DOCS / f"{name}.md" for name in names] or sorted(DOCS.rglob("*.md"))
    for page in pages:
        found = plots(page)
        if not found:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            outputs(page)
            for name in found:
                shutil.copy(name, DOCS / "_static" / name)
            os.chdir(DOCS)
        print(page.relative_to(DOCS), *found)


if __name__ == "__main__":
    main(sys.argv[1:])
