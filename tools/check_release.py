"""Check that a tag can be released: `python tools/check_release.py v0.1.0` says what is missing."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def problems(tag: str, root: Path = ROOT) -> list[str]:
    """What has to change before `tag` can be published."""
    found = []
    version = tag.removeprefix("v")
    package = (root / "src/riata/__init__.py").read_text(encoding="utf-8")
    if f'__version__ = "{version}"' not in package:
        found.append(f"src/riata/__init__.py does not say that the version is {version}.")
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    if f"\nversion: {version}\n" not in citation:
        found.append(f"CITATION.cff does not say that the version is {version}.")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.M):
        found.append(f'CHANGELOG.md has no heading "## {version} (year-month-day)".')
    project = (root / "pyproject.toml").read_text(encoding="utf-8")
    urls = tomllib.loads(project)["project"]["urls"]
    if ".example" in project:
        found.append("pyproject.toml has placeholders under .example instead of real addresses.")
    found += [f"The address {url} is not HTTPS." for url in urls.values() if url[:8] != "https://"]
    return found


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python tools/check_release.py v0.1.0")
    if missing := problems(sys.argv[1]):
        sys.exit("\n".join(missing))
