"""The documentation of several versions side by side, with a list to choose from on every page.

    python tools/versioned_docs.py [--refs v0.1.0 HEAD] [--url https://example.org/docs/]

Without --refs: every tag of a release (v1.2.3), and the working tree as "dev". Each version is
built from its own files, and its pages ask for versions.json, which is written above all of them:
pages that were built earlier list versions that came later. Nothing is loaded from elsewhere. A
version whose configuration does not read RIATA_DOCS_VERSION is built without the list.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHERE = ROOT / "docs" / "_build" / "versions"

#: The name of the files that are not a release.
DEVELOPMENT = "dev"

RELEASE = re.compile(r"v(\d+)\.(\d+)\.(\d+)")


def in_order(refs: Iterable[str]) -> list[str]:
    """Releases from the newest to the oldest, and then what is none."""
    releases = {ref: found for ref in refs if (found := RELEASE.fullmatch(ref))}
    newest = sorted(releases, key=lambda ref: [int(n) for n in releases[ref].groups()])
    return [*reversed(newest), *(ref for ref in refs if ref not in releases)]


def named(ref: str) -> str:
    """The name of a version, which is also its folder."""
    return ref.removeprefix("v") if RELEASE.fullmatch(ref) else re.sub(r"[^\w.-]+", "-", ref)


def listed(refs: Iterable[str], url: str) -> list[dict[str, object]]:
    """What versions.json says. Pages of other versions than the preferred one say so."""
    refs = in_order(refs)
    return [
        {"name": f"{named(ref)} (newest)" if ref == refs[0] and RELEASE.fullmatch(ref)
         else named(ref), "version": named(ref), "url": f"{url.rstrip('/')}/{named(ref)}/",
         "preferred": ref == refs[0]}
        for ref in refs
    ]  # fmt: skip


def redirect(version: str) -> str:
    """The page above all versions."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>riata</title>\n'
        f'<meta http-equiv="refresh" content="0; url={version}/index.html"></head>\n'
        f'<body><a href="{version}/index.html">riata {version}</a></body></html>\n'
    )


def build(files: Path, version: str) -> None:
    """The pages of one version, from its files; a warning is an error."""
    shutil.rmtree(files / "docs" / "api" / "generated", ignore_errors=True)
    source = os.pathsep.join(filter(None, (str(files / "src"), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs"]
    subprocess.run(
        [*command, str(WHERE / version)],
        cwd=files,
        env={**os.environ, "PYTHONPATH": source, "RIATA_DOCS_VERSION": version},
        check=True,
    )


def build_ref(ref: str) -> None:
    """The pages of a commit, from a checkout of its own that is removed again."""
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "files"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(files), ref], check=True)
        try:
            build(files, named(ref))
        finally:
            subprocess.run([*git, "remove", "--force", str(files)], check=True)


def releases() -> list[str]:
    """The tags of releases."""
    tags = subprocess.run(
        ["git", "-C", str(ROOT), "tag"], check=True, capture_output=True, text=True
    )
    return [tag for tag in tags.stdout.split() if RELEASE.fullmatch(tag)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--refs", nargs="+", help="commits to build; dev is the working tree")
    parser.add_argument("--url", default="/", help="where the folders of all versions will be")
    options = parser.parse_args()
    refs = in_order(options.refs or [*releases(), DEVELOPMENT])
    for ref in refs:
        if ref == DEVELOPMENT:
            build(ROOT, DEVELOPMENT)
        else:
            build_ref(ref)
    found = listed(refs, options.url)
    (WHERE / "versions.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    (WHERE / "index.html").write_text(redirect(named(refs[0])), encoding="utf-8")
    print(f"Wrote {', '.join(map(named, refs))} into {WHERE}.")


if __name__ == "__main__":
    main()
