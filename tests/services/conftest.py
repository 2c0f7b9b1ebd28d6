"""A browser for each file, and a survey for each test."""

import sys
from pathlib import Path

import pytest

#: What processes, threads and files of tests need is beside the tests without services.
for folder in ("unit", "faults"):
    sys.path.insert(0, str(Path(__file__).parents[1] / folder))


@pytest.fixture(scope="module")
def browser():
    from surveying import chromium

    yield from chromium()


@pytest.fixture
def survey(tmp_path):
    """Open to everybody."""
    from surveying import serve

    yield from serve(tmp_path)


@pytest.fixture
def invited(tmp_path):
    """For people with links."""
    from surveying import serve

    yield from serve(tmp_path, invited=True)
