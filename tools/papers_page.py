"""Write the table of docs/papers.md from src/riata/papers.toml.

python tools/papers_page.py
"""

from __future__ import annotations

import re
from pathlib import Path

from riata.papers import table

PAGE = Path(__file__).parent.parent / "docs" / "papers.md"

#: What stands between these lines is made.
TABLE = re.compile(r"(<!-- made by tools/papers_page\.py -->\n).*(<!-- end -->\n)", re.DOTALL)


def written(text: str) -> str:
    """The page with the table as it is now."""
    return TABLE.sub(lambda found: found[1] + "\n" + table() + "\n" + found[2], text)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
