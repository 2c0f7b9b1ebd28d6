"""What the tests of foreign files share: good files, and a process that reads spoilt ones."""

import pytest
from examples import FORMS
from readers import READERS, LimitedReader


@pytest.fixture(scope="session")
def good(tmp_path_factory):
    """Paths of good files, by form and name."""
    return {form: make(tmp_path_factory.mktemp(form)) for form, make in FORMS.items()}


@pytest.fixture(scope="session")
def reads():
    """Reads a file with hard limits, and checks that it ends as the documentation says."""
    with LimitedReader() as server:

        def read(reader, path, max_bytes):
            answer = server.read(reader, path, max_bytes)
            documented = READERS[reader][1]
            assert answer.error in ("", documented), f"{reader}: {answer}"
            return answer

        yield read
