"""The locked versions fit what the project asks for, and private parts have upper bounds."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCK = (ROOT / "requirements" / "ci.txt").read_text(encoding="utf-8")
#: Pythons that the lock has versions for.
PYTHONS = ["3.11.7", "3.12.4", "3.13.1", "3.14.0"]


def asked():
    """All that the project, its extras and its groups ask for."""
    project = PROJECT["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    lists += PROJECT["dependency-groups"].values()
    return [Requirement(text) for each in lists for text in each]


def locked(python):
    """The versions of the lock for a Python on Linux, by name."""
    environment = {"python_full_version": python, "python_version": python.rpartition(".")[0]}
    found = {}
    for line in LOCK.splitlines():
        if line and not line.startswith("#"):
            pinned = Requirement(line)
            if pinned.marker is None or pinned.marker.evaluate(environment):
                name = canonicalize_name(pinned.name)
                assert name not in found, f"{name} is locked twice for Python {python}"
                (version,) = pinned.specifier
                assert version.operator == "==", line
                found[name] = version.version
    return found


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_a_version_of_all_that_is_asked_for(python):
    """If this fails after a change to pyproject.toml, run `make lock`."""
    versions = locked(python)
    for requirement in asked():
        version = versions[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement} and {version}"


def test_the_lock_names_no_place_to_download_from():
    assert "://" not in LOCK
    assert not re.search(r"^\s*-", LOCK, re.MULTILINE)


def private_imports():
    """The libraries of which the package imports something whose name begins with a line."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                library, *parts = name.split(".")
                hidden = any(re.match(r"_(?!_)", part) for part in parts)
                if hidden and library not in ("riata", "__future__"):
                    found.add(library)
    return found


def test_no_private_part_of_another_library_is_imported():
    assert private_imports() == set()


def test_what_is_replaced_in_other_libraries_has_an_upper_bound():
    """`_html_repr` of scikit-learn's estimators, in estimators/summary_mixin.py."""
    (bound,) = (r.specifier for r in asked() if canonicalize_name(r.name) == "scikit-learn")
    assert any(part.operator == "<" for part in bound)
