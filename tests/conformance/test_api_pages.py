"""Every public name has an entry in the API pages, and every entry is there."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

import riata.estimators

PAGE = Path(__file__).parents[2] / "docs" / "api" / "index.md"
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


@pytest.mark.parametrize("name", riata.estimators.__all__)
def test_every_parameter_of_an_estimator_is_documented_once(name):
    """Also one that it shares with others, whose text is written once."""
    kind = getattr(riata.estimators, name)
    section = kind.__doc__.split("Parameters\n")[1].split("\nAttributes\n")[0]
    documented = re.findall(r"^(\w+) : ", section, re.MULTILINE)
    assert sorted(documented) == sorted(inspect.signature(kind).parameters)
    assert "$" not in kind.__doc__
