"""What an import brings with it: little, until it is needed."""

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from without_posix import HIDE_POSIX_MODULES

import riata
from riata import privacy

API = Path(__file__).parents[2] / "docs/api/index.md"

RARELY_NEEDED = {"dask", "matplotlib", "numba", "rich", "sqlalchemy"}

FIT = """
import numpy as np
from riata import Bounds, PrivateLasso
PrivateLasso(1.0, 1e-6, bounds=Bounds(x=1.0, y=1.0)).fit(np.zeros((1000, 3)), np.zeros(1000))
"""

#: Imports all of riata, without what Windows does not have. Other packages may look for it.
WITHOUT_POSIX = f"""{HIDE_POSIX_MODULES}
import importlib, pkgutil, riata
for module in pkgutil.walk_packages(riata.__path__, "riata."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def imported_by(code):
    """The modules of a new process that has run `code`."""
    code += "\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=3600
    )
    return set(done.stdout.split())


def test_importing_riata_imports_no_other_package():
    outside = {"mpmath", "numpy", "pandas", "scipy", "sklearn"} | RARELY_NEEDED
    assert imported_by("import riata") & outside == set()


def test_bounds_and_budgets_do_without_scikit_learn():
    outside = {"mpmath", "pandas", "scipy.optimize", "scipy.stats", "sklearn"} | RARELY_NEEDED
    assert imported_by("from riata import Bounds, Budget") & outside == set()


@pytest.mark.not_quick
def test_a_fit_imports_nothing_that_it_does_not_need():
    assert imported_by(FIT) & (RARELY_NEEDED | {"sklearn.metrics"}) == set()


@pytest.mark.long
def test_every_module_is_imported_without_the_modules_of_posix():
    assert {"riata.checkpoint", "riata.engines.memory"} <= imported_by(WITHOUT_POSIX)


@pytest.mark.parametrize("module", [riata, privacy], ids=lambda module: module.__name__)
def test_every_public_name_is_listed_and_found(module):
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        assert getattr(module, name).__name__ == name


@pytest.mark.parametrize("module", [riata, privacy], ids=lambda module: module.__name__)
def test_a_misspelt_name_is_an_attribute_error(module):
    with pytest.raises(AttributeError, match=f"'{module.__name__}' has no attribute 'PrivateLaso'"):
        module.PrivateLaso  # noqa: B018


def test_type_checkers_see_the_names_that_are_found_later():
    imports = [
        node
        for node in ast.walk(ast.parse(inspect.getsource(riata)))
        if isinstance(node, ast.ImportFrom) and node.module.startswith("riata")
    ]
    seen = {alias.asname: node.module for node in imports for alias in node.names}
    errors = dict.fromkeys(("BudgetExceeded", "RiataError"), "riata.errors")
    assert seen == riata._MODULE_OF | errors
    assert sorted(seen) == riata.__all__


def test_no_module_takes_the_place_of_a_public_name():
    """Importing `riata.forecast`, if it were a module, would hide the function of that name."""
    assert [name for name in riata.__all__ if importlib.util.find_spec(f"riata.{name}")] == []


def test_every_documented_module_is_found():
    documented = set(re.findall(r"currentmodule:: riata\.(\w+)", API.read_text(encoding="utf-8")))
    assert documented == set(riata._MODULES)
    assert documented <= set(dir(riata))
    for name in documented:
        assert getattr(riata, name).__name__ == f"riata.{name}"
