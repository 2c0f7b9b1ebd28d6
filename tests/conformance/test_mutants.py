"""The list of mutants fits the code. `make mutants` runs it."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def load_mutants():
    spec = importlib.util.spec_from_file_location("mutants", ROOT / "tools/mutants.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutants"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module.MUTANTS


MUTANTS = load_mutants()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_place_and_its_tests_exist(mutant):
    source = (ROOT / "src/riata" / mutant.file).read_text(encoding="utf-8")
    assert mutant.applied(source) != source
    files = [test for test in mutant.tests if test.startswith("tests/")]  # others are options
    assert files
    assert all((ROOT / test.split("::")[0]).exists() for test in files)
