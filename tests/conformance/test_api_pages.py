"""Every public name has an entry in the API pages, and every entry is there."""

import importlib
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import riata.estimators

PAGE = Path(__file__).parents[2] / "docs" / "api" / "index.md"
TOOL = Path(__file__).parents[2] / "tools" / "examples_of_names.py"

MODULES = ["riata", *(f"riata.{name}" for name in riata._MODULES), "riata.local.paper"]


def entries():
    """Module and name of each entry of the page."""
    found, module = [], ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if current := re.match(r"\.\. currentmodule:: ([\w.]+)$", line):
            module = current[1]
        elif name := re.match(r"   (\w+)$", line):
            found.append((module, name[1]))
    return found


def public(module):
    """What a module calls public: `__all__`, or the classes and functions that it defines."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    ]


@pytest.mark.parametrize("name", MODULES)
def test_nothing_public_is_missing(name):
    module = importlib.import_module(name)
    there = [getattr(importlib.import_module(where), entry) for where, entry in entries()]
    missing = [
        each
        for each in public(module)
        if not any(getattr(module, each) is documented for documented in there)
    ]
    assert missing == []


def test_no_entry_is_there_twice():
    assert len(entries()) == len(set(entries())) > 100


def test_a_missing_name_would_be_found():
    assert "Problem" in public(importlib.import_module("riata.problem"))
    assert ("riata.problem", "Problem") in entries()


def load_tool():
    spec = importlib.util.spec_from_file_location("examples_of_names", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


def without_example():
    used = load_tool().examples_of_names()
    named = [
        (where, name, getattr(importlib.import_module(where), name)) for where, name in entries()
    ]
    return [
        f"{where}.{name}"
        for where, name, value in named
        if id(value) not in used and ">>>" not in (value.__doc__ or "")
    ]


def test_every_name_has_an_example_that_runs():
    """In its docstring, or in a block of a page."""
    assert without_example() == []


def test_a_name_that_is_only_imported_or_mentioned_is_no_example(tmp_path, monkeypatch):
    tool = load_tool()
    monkeypatch.setattr(tool, "DOCS", tmp_path)
    (tmp_path / "page.md").write_text(
        "`riata.Ledger`\n\n```python\nimport riata\nfrom riata import Bounds, Budget as B\n\n"
        "B(1.0), riata.save\n```\n"
    )
    found = tool.examples_of_names()
    assert found[id(riata.Budget)] == found[id(riata.save)] == ["page"]
    assert id(riata.Bounds) not in found
    assert id(riata.Ledger) not in found


@pytest.mark.parametrize("name", riata.estimators.__all__)
def test_every_parameter_of_an_estimator_is_documented_once(name):
    """Also one that it shares with others, whose text is written once."""
    kind = getattr(riata.estimators, name)
    section = kind.__doc__.split("Parameters\n")[1].split("\nAttributes\n")[0]
    documented = re.findall(r"^(\w+) : ", section, re.MULTILINE)
    assert sorted(documented) == sorted(inspect.signature(kind).parameters)
    assert "$" not in kind.__doc__
