"""Settings for all tests: no deadlines, fixed examples, and which tests are the long matrix."""

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, settings

#: Examples are the same in every run, and a slow or busy machine is no reason to fail.
settings.register_profile(
    "riata", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
#: For tools/mutants.py, which wants to know whether a test fails and not for which smallest input.
settings.register_profile(
    "mutants", settings.get_profile("riata"), phases=[Phase.explicit, Phase.generate]
)
settings.load_profile("riata")

#: Two processes share two cores: threads that wait for each other would only take their time.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

#: Compiled selections are compared with plain sums at a random step of every release.
os.environ.setdefault("RIATA_SELF_CHECK", "1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--one-in", type=int, default=1, help="run one in so many cases of each test at least"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one in so many cases of a matrix in `make test`; the others are `long` or `slow`."""
    cases: Counter[str] = Counter()
    for item in items:
        matrix, one_in = item.get_closest_marker("matrix"), config.getoption("one_in")
        one_in_all = 1
        if matrix is not None:
            one_in = max(one_in, matrix.kwargs["one_in"])
            one_in_all = matrix.kwargs.get("test_all_one_in", 1)
        function = item.nodeid.split("[")[0]
        if cases[function] % one_in:
            item.add_marker(pytest.mark.slow if cases[function] % one_in_all else pytest.mark.long)
        cases[function] += 1
