"""How a command ends: a status for each kind of problem, and what people are told."""

from __future__ import annotations

import os
import traceback

from rich.text import Text

from riata.cli.console import err
from riata.errors import (
    BudgetExceeded,
    CheckpointError,
    DataError,
    LedgerError,
    ModelFileError,
    RiataError,
    SchemaError,
)

OK, INTERNAL, REFUSED, BUDGET, DATA, RECORD, UNSOUND, STOPPED = 0, 1, 2, 3, 4, 5, 6, 130

#: What each status means, for `riata --help` and the documentation.
MEANINGS = {
    OK: "done",
    INTERNAL: "riata itself failed",
    REFUSED: "wrong usage, or an argument that was refused",
    BUDGET: "the budget does not allow it; nothing was charged",
    DATA: "a data file, a schema or a model file cannot be used",
    RECORD: "a ledger or a checkpoint cannot be used",
    UNSOUND: "an audit found a claim exceeded",
    STOPPED: "stopped by Ctrl-C",
}

_KINDS: tuple[tuple[type[Exception], int], ...] = (
    (BudgetExceeded, BUDGET),
    (SchemaError, DATA),
    (DataError, DATA),
    (ModelFileError, DATA),
    (LedgerError, RECORD),
    (CheckpointError, RECORD),
    (RiataError, REFUSED),
    (OSError, DATA),
)

#: Set to 1, it shows where an internal error happened.
DEBUG = "RIATA_DEBUG"


def status_of(problem: BaseException) -> int:
    """The exit status that a problem ends a command with."""
    if isinstance(problem, KeyboardInterrupt):
        return STOPPED
    return next((status for kind, status in _KINDS if isinstance(problem, kind)), INTERNAL)


def message_of(problem: BaseException) -> str:
    """What people are told. The text of an unforeseen error may quote a row, and is not shown."""
    if isinstance(problem, RiataError):
        return str(problem)
    if isinstance(problem, OSError):
        where = f"{problem.filename}: " if problem.filename is not None else ""
        return f"{where}{problem.strerror or type(problem).__name__}."
    if isinstance(problem, MemoryError):
        return "The memory is full. Use fewer columns, or --engine disk."
    return (
        f"riata failed in a way that it should not ({type(problem).__name__}). This is a mistake "
        "in riata. Please report it with the command. The error's own words are not shown, because "
        f"they could quote a row; with {DEBUG}=1 they are."
    )


def show(problem: BaseException) -> int:
    """Tell people what is wrong; returns the exit status."""
    if os.environ.get(DEBUG) == "1":
        traceback.print_exception(problem)
    err().print(Text("Error: ", "bold red").append(message_of(problem), "not bold default"))
    return status_of(problem)
