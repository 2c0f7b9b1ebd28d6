"""What schemathesis makes of the service's own description, against `riata collect serve`."""

import re
import urllib.request

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from riata.local import Task

from collecting import PATIENCE, Server

pytestmark = pytest.mark.long

CHECKS = [
    schemathesis.checks.not_a_server_error,
    schemathesis.checks.status_code_conformance,
    schemathesis.checks.content_type_conformance,
    schemathesis.checks.response_headers_conformance,
    schemathesis.checks.response_schema_conformance,
]

TEXT = """
title = "Sleep"
kind = "mean"
epsilon = 1.0
[[features]]
name = "hours"
kind = "number"
bounds = [0, 24]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("openapi")
    (folder / "task.toml").write_text(TEXT)
    server = Server(folder / "task.toml", folder / "store", "--reports-per-address", 2000)
    server.task = Task.load(folder / "task.toml").id
    yield server
    assert server.stop() == ""


def counted(server):
    text = urllib.request.urlopen(f"{server.url}/metrics").read().decode()
    return int(re.search(r"^riata_reports (\d+)$", text, re.M)[1])


def drive(server, examples):
    """Cases that the description allows and cases that it forbids, for each operation."""
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    report = st.binary(min_size=8, max_size=8)
    reports = st.lists(report, min_size=4, max_size=9, unique=True).map(b"".join)
    tried, accepted, before = 0, set(), counted(server)
    for operation in schema.get_all_operations():
        operation = operation.ok()
        cases = operation.as_strategy() | operation.as_strategy(
            generation_mode=schemathesis.GenerationMode.NEGATIVE
        )

        @settings(
            max_examples=examples,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases, ours=st.none() | st.binary(max_size=8) | reports)
        def one(case, ours):
            nonlocal tried
            tried += 1
            if ours is not None and case.path_parameters:  # else hardly any would be accepted
                case.path_parameters["task"], case.body = server.task, ours
            answer = case.call(timeout=PATIENCE)
            assert answer.status_code < 500, answer.status_code
            case.validate_response(answer, checks=CHECKS)
            if answer.status_code == 201:
                body = answer.request.body
                assert len(body) % 8 == 0 < len(body)
                accepted.update(body[i : i + 8] for i in range(0, len(body), 8))

        one()
    assert counted(server) - before <= len(accepted)
    assert len(accepted) > 20
    print(f"{tried:,} cases, {len(accepted):,} reports accepted")
    return tried


def test_some_hundred_cases(server):
    assert drive(server, 80) >= 250


@pytest.mark.slow
def test_many_thousand_cases(server):
    assert drive(server, 4000) >= 4000
