"""Links between pages lead somewhere: to a page that is there, and to an anchor on it.

Nothing is fetched. Run this file with Python to print the links that leave the documentation.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / ".github").rglob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
LINK = re.compile(r"(?<!\!)\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")


def prose(page):
    """A page without its code."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^(`{3,})(?!\{toctree\}|\{include\}).*?^\1", "", text, flags=re.M | re.S)
    return re.sub(r"``[^`]*``|`[^`\n]*`", "code", text)


def links(page):
    return LINK.findall(prose(page))


def anchors(page):
    """Names that a link may have after #: of headings, and those that are given by hand."""
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"^(`{3,}).*?^\1", "", text, flags=re.M | re.S)
    headings = re.findall(r"^#{1,3} (.+)$", text, flags=re.M)
    words = [re.sub(r"[`*$]|\]\([^)]*\)|\[", "", heading) for heading in headings]
    made = {re.sub(r"[^\w\- ]", "", each.strip().lower()).replace(" ", "-") for each in words}
    return made | set(re.findall(r"^\(([\w-]+)\)=$", text, flags=re.M))


def broken(page):
    found = []
    for link in links(page):
        if link.startswith(("http://", "https://", "mailto:", "<")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        there = target.exists()
        if there and anchor and target.suffix == ".md":
            there = anchor in anchors(target)
        if not there:
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_inside_lead_somewhere(page):
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One\n\n[a](#one) [b](#two) [c](other.md) `[d](no.md)` [e](page.md#one)\n")
    assert broken(page) == ["#two", "other.md"]


def files_named_by(page):
    """Paths of Python files and folders that a page writes as code."""
    text = re.sub(r"^(`{3,}).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    return set(re.findall(r"`([a-z_]+/[\w/.]*(?:\.py|/))`", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_exist(page):
    roots = (ROOT, ROOT / "src", ROOT / "src" / "riata", ROOT / "src" / "riata" / "local")
    named = sorted(files_named_by(page))
    assert [name for name in named if not any((root / name).exists() for root in roots)] == []


def has_object(path, dotted):
    """Whether a Python file defines a class, a function or a method of this name."""
    scope = ast.parse(path.read_text(encoding="utf-8")).body
    for name in dotted.split("."):
        found = [each for each in scope if getattr(each, "name", None) == name]
        if not found:
            return False
        scope = found[0].body
    return True


INCLUDE = re.compile(r"^```\{literalinclude\} (\S+)\n:pyobject: (\S+)$", re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_code_that_a_page_shows_exists(page):
    shown = INCLUDE.findall(page.read_text(encoding="utf-8"))
    assert [each for each in shown if not has_object(page.parent / each[0], each[1])] == []


def test_every_entry_of_the_glossary_leads_to_a_page():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    entries = re.findall(r"^(\S.*)\n: (.+)$", text, flags=re.M)
    assert len(entries) > 50
    assert [term for term, meaning in entries if not LINK.search(meaning)] == []
    terms = " ".join(term for term, _ in entries)
    looked_for = ("categorical", "imbalanced", "sample_weight", "clipping", "zCDP", "one-hot")
    looked_for += ("privacy filter", "odometer", "report noisy max", "LDP", "IHT", "DP-SGD")
    assert [word for word in looked_for if word not in terms] == []


def leaving():
    found = {link for page in PAGES for link in links(page) if link.startswith("http")}
    return sorted(found)


def test_links_that_leave_are_encrypted():
    assert leaving()
    assert [link for link in leaving() if not link.startswith("https://")] == []


if __name__ == "__main__":
    print("\n".join(leaving()))
