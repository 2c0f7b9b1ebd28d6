"""What the papers state, row by row: where it is in riata, how it is used, whether it holds."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from riata.errors import InvalidArgument

#: What may be the case with a statement.
STATES = {
    "holds": "true as printed; where only an order of magnitude is printed, with constants",
    "corrected": "a slip of notation, a gap or a missing condition; true with the change that is "
    "named, and no counterexample to its claim of privacy or of risk is known",
    "disproved": "what is printed has a counterexample, which is named; the line runs what is true",
    "open": "neither a proof nor a counterexample is known",
    "definition": "nothing is claimed",
}

#: Short forms of what a row is about, by their first three letters.
_KINDS = {"thm": "the"}


@dataclass(frozen=True)
class Paper:
    """A paper, its letter, and what else it is called."""

    letter: str
    name: str
    also: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """A statement of a paper.

    Attributes
    ----------
    paper : str
        The paper's letter.
    label : str
        As the paper has it, such as "Algorithm 2".
    what : str
        What it is about.
    imports, line : str
        Python that runs it.
    state : str
        One of `STATES`.
    why : str
        What differs, or what is known.
    page, measured : str
        Where the documentation is, and what measures it.
    """

    paper: str
    label: str
    what: str
    imports: str
    line: str
    state: str
    why: str
    page: str
    measured: str

    def __str__(self) -> str:
        claim = self.state + (f": {self.why}" if self.why else "")
        lines = [
            f"{papers()[self.paper].name}",
            f"{self.label}: {self.what}",
            f"  claim     {claim}",
            f"  page      docs/{self.page}",
            f"  measured  {self.measured}",
            *(f"  >>> {each}" for each in (*self.imports.split("; "), self.line)),
        ]
        return "\n".join(lines)


@cache
def _data() -> dict[str, Any]:
    text = files("riata").joinpath("papers.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def papers() -> dict[str, Paper]:
    """The papers, by their letters."""
    return {
        letter: Paper(letter, str(each["name"]), tuple(map(str, each["also"])))
        for letter, each in _data()["papers"].items()
    }


@cache
def rows() -> tuple[Row, ...]:
    """All rows, in the order of the papers."""
    return tuple(
        Row(**({"imports": each["import"]} | {k: v for k, v in each.items() if k != "import"}))
        for each in _data()["rows"]
    )


def find(text: str) -> tuple[Row, ...]:
    """The rows that a text such as "003 Alg 4" or "K Theorem 3.11" names.

    Parameters
    ----------
    text : str
        A paper by its number, its letter, its initials or its first author, or none for all; and
        the beginning of a kind, a number, or both.
    """
    paper, kind, number = _parts(text)
    found = [
        row
        for row in rows()
        if paper in (None, row.paper)
        and (not kind or _kind(row.label) == kind)
        and (not number or re.search(rf"(?<![\d.]){re.escape(number)}(?!\.?\d)", row.label))
    ]
    if not found or not (paper or kind or number):
        known = [row.label for row in rows() if row.paper == paper]
        names = ", ".join(known) if known else "T, W, K and Z, or 000 to 004"
        what = "This paper has" if known else "The papers are"
        raise InvalidArgument(f"No statement is called {text!r}. {what} {names}.")
    return tuple(found)


def _parts(text: str) -> tuple[str | None, str, str]:
    paper, kind, number = None, "", ""
    names = {name.lower(): each.letter for each in papers().values()
             for name in (each.letter, *each.also)}  # fmt: skip
    for word in re.findall(r"[A-Za-z]+\d+(?![.\d])|[A-Za-z]+|\d[\d.]*\w*", text):
        low = word.lower().rstrip(".")
        if paper is None and low in names:
            paper = names[low]
        elif low[0].isdigit():
            number = low
        elif not kind:
            kind = _kind(low)
    return paper, kind, number


def _kind(text: str) -> str:
    short = text[:3].lower()
    return _KINDS.get(short, short)


def table() -> str:
    """All rows as Markdown: what docs/papers.md has."""
    lines = []
    for paper in papers().values():
        lines += [
            f"### {paper.letter}: {paper.name}", "",
            "| statement | in riata | claim | measured |", "|---|---|---|---|",
        ]  # fmt: skip
        for row in (row for row in rows() if row.paper == paper.letter):
            code = row.line.replace("|", "\\|")
            claim = f"**{row.state}**" + (f": {row.why}" if row.why else "")
            what = f"{row.label}: {row.what}".replace("|", "\\|")
            cells = (
                what,
                f"[`{code}`]({row.page})",
                claim.replace("|", "\\|"),
                f"`{row.measured}`",
            )
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"
