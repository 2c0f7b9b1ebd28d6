"""Every public reader of a file is known here: fuzzed with a limit of memory, or excused.

A new function or command that takes a file and is in none of these lists fails. Readers of what a
stranger may have made belong into tests/strangers/readers.py, with `max_bytes` in their signature;
the others need a reason.
"""

import importlib
import inspect
import sys
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import riata
from riata.cli.main import app
from riata.files.limit import MAX_BYTES

sys.path.insert(0, str(Path(__file__).parents[1] / "strangers"))
from readers import READERS

MODULES = ["riata", *(f"riata.{name}" for name in riata._MODULES), "riata.local.paper"]
#: What a parameter is called that stands for a file, or for what was in one.
FILES = {"path", "text", "table", "where", "file", "folder", "body", "content", "address"}

WRITES = "It writes."
ROWS = "Rows are the user's own data, and as large as they are. What they say never raises."
LEDGER = "A ledger is the user's own, and checked as a chain."
EXCUSED = {
    "riata.save": WRITES,
    "riata.export_onnx": WRITES,
    "riata.read": ROWS,
    "riata.data.read": ROWS,
    "riata.data.Schema.read_within": "It is given the limit of what the schema is a part of.",
    "riata.local.Task.read_within": "It is given the limit of what the task is a part of.",
    "riata.report.write": WRITES,
    "riata.Ledger.create": LEDGER,
    "riata.Ledger.open": LEDGER,
    "riata.Ledger.restore": LEDGER,
    "riata.privacy.Ledger.restore": LEDGER,
    "riata.privacy.Ledger.create": LEDGER,
    "riata.privacy.Ledger.open": LEDGER,
}
#: The same object under two names is listed under the module that makes it.
SAME = {f"riata.Schema.{name}": f"riata.data.Schema.{name}" for name in
        ("load", "read", "read_within", "from_table")}  # fmt: skip


def functions(module):
    """The public functions of a module, and those of its classes that make an object."""
    for name in getattr(module, "__all__", vars(module)):
        value = getattr(module, name)
        if name.startswith("_") or not getattr(value, "__module__", "").startswith("riata"):
            continue
        if inspect.isfunction(value):
            yield f"{module.__name__}.{name}", value
        elif inspect.isclass(value):
            for part, made in inspect.getmembers(value):
                bound = inspect.ismethod(made) or isinstance(
                    inspect.getattr_static(value, part), staticmethod
                )
                if bound and not part.startswith("_"):
                    yield f"{module.__name__}.{name}.{part}", made


def takers_of_files():
    """Public functions with a parameter that is a file."""
    found = {}
    for name in MODULES:
        for full, function in functions(importlib.import_module(name)):
            if FILES & inspect.signature(function).parameters.keys():
                found[SAME.get(full, full)] = function
    return found


def test_every_public_reader_is_fuzzed_or_excused():
    found = takers_of_files()
    assert found.keys() - READERS.keys() - EXCUSED.keys() == set()
    assert READERS.keys() <= found.keys()


def test_no_excuse_is_left_over():
    assert EXCUSED.keys() <= takers_of_files().keys()


@pytest.mark.parametrize("name", READERS)
def test_every_fuzzed_reader_has_a_limit_that_can_be_raised(name):
    limit = inspect.signature(takers_of_files()[name]).parameters["max_bytes"]
    assert limit.kind is inspect.Parameter.KEYWORD_ONLY
    assert limit.default == MAX_BYTES


def commands(typer_app, name="riata"):
    """The functions of all commands, by the words that call them."""
    for one in typer_app.registered_commands:
        yield f"{name} {one.name or one.callback.__name__.replace('_', '-')}", one.callback
    for group in typer_app.registered_groups:
        yield from commands(group.typer_instance, f"{name} {group.name}")


def kinds(hint):
    """All types that an annotation is made of."""
    return {hint}.union(*(kinds(part) for part in get_args(hint)))


def files_of_commands():
    for name, function in commands(app):
        for parameter, hint in get_type_hints(function).items():
            if Path in kinds(hint):
                yield f"{name}: {parameter}"


#: What the files of the commands are, by the name of the parameter.
FOREIGN = {
    "study": "parse_toml, and riata.data.Schema.load for the schema in it",
    "schema": "riata.data.Schema.load",
    "model": "riata.load",
    "shard": "riata.local.Aggregator.load",
    "path": "riata.local.Task.load",
}
OWN = {
    **dict.fromkeys(("out", "plot", "page", "report", "train", "held_out"), WRITES),
    **dict.fromkeys(("data", "file"), ROWS),
    "head": LEDGER,
    "checkpoint": "The user's own, and bound to one run.",
    "tokens": "The user's own, with a secret in it.",
}


def test_every_file_of_every_command_is_known():
    found = {each.rpartition(" ")[2] for each in files_of_commands()}
    assert found - FOREIGN.keys() - OWN.keys() == set()


def test_the_commands_that_read_models_and_shards_have_the_limit_too():
    functions = dict(commands(app))
    for name, parameter in (each.split(": ") for each in files_of_commands()):
        if parameter in ("model", "shard"):
            limit = inspect.signature(functions[name]).parameters["max_bytes"]
            assert limit.default == MAX_BYTES, name
