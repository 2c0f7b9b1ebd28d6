"""How commands talk: answers on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from riata.errors import InvalidArgument

#: No table is wider.
WIDEST = 400

Force = Annotated[bool, typer.Option(help="Replace what is there.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Spend without being asked.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs, and nothing else.")]


def out() -> Console:
    """Standard output, for what was asked for."""
    return _console(stderr=False)


def err() -> Console:
    """Standard error, for all that goes beside it."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    """Lines are broken between words on a terminal, and not at all in a file or a pipe."""
    console = Console(stderr=stderr, highlight=False)
    console.soft_wrap = not console.is_terminal
    return console


def terminal_width() -> int | None:
    """How many columns standard output has; None if it is no terminal."""
    console = out()
    return console.width if console.is_terminal else None


def note(text: str = "", style: str = "") -> None:
    """A message for people. Brackets in it are not marks of style."""
    err().print(Text(text, style))


def warning(text: str) -> None:
    err().print(Text("Warning: ", "bold yellow").append(text, "not bold default"))


def answer(text: str = "", style: str = "") -> None:
    out().print(Text(text, style))


def answer_table(table: Table) -> None:
    """A table, no cell of which is cut off: on a narrow terminal its lines are wrapped."""
    console = out()
    wide = console.options.update(width=WIDEST, max_width=WIDEST)
    console.width = max(console.width, console.measure(table, options=wide).maximum)
    console.print(table)


def answer_json(facts: Any) -> None:
    """The one line of JSON that a program reads."""
    typer.echo(json.dumps(plain(facts), allow_nan=False))


def check_unused(path: Path | None, force: bool) -> None:
    """Refuse to write over a file, unless that was asked for."""
    if path is not None and path.exists() and not force:
        raise InvalidArgument(f"{path} exists. Choose another name, or pass --force.")


def reply(as_json: bool, facts: Any, *sentences: str) -> None:
    """What a command has to say: to a program, or to a person."""
    if as_json:
        answer_json(facts)
        return
    for sentence in sentences:
        answer(sentence)


def plain(value: Any) -> Any:
    """The same for JSON, which has no infinity: numbers that are not finite become null."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.item() if hasattr(value, "item") else value


def shows_progress() -> bool:
    """Whether somebody sees a progress bar."""
    return sys.stderr.isatty()


def confirmed(question: str) -> bool:
    """Whether the person at the terminal says yes."""
    err().print(Text(question, "bold").append(" [y/N] ", "not bold default"), end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
