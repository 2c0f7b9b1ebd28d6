"""Schemas and tasks that grow when they are parsed or used: refused within their limits.

Every file here is read in a process with hard limits, see readers.py.
"""

import json

import pytest
from examples import SCHEMA, TASKS, opened

from riata.model_file.archive import pack

pytestmark = pytest.mark.matrix(one_in=11)

#: Enough for every good example, and far less than what the files below describe.
LIMIT = 4 * 2**20


def toml(table):
    """A schema as plain TOML, without riata's own checks."""
    lines = []
    for key, value in table.items():
        if isinstance(value, dict):
            continue
        if key == "features":
            continue
        lines.append(f"{key} = {json.dumps(value)}")
    for feature in table["features"]:
        lines.append("[[features]]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in feature.items()]
    lines.append("[target]")
    lines += [f"{key} = {json.dumps(value)}" for key, value in table["target"].items()]
    return "\n".join(lines) + "\n"


TEXT = {"name": "t", "kind": "text", "buckets": 2**31 - 1}
NUMBER = {"kind": "number", "bounds": [0, 1]}
TARGET = {"target": {"name": "y", "bounds": [0, 1]}}
SCHEMAS = {
    "a long name of many choices": {
        **TARGET,
        "features": [
            {"name": "n" * 200_000, "kind": "choice", "choices": [str(i) for i in range(50_000)]}
        ],
    },
    "many long classes": {
        "features": [{"name": "a", **NUMBER}],
        "target": {"name": "y", "classes": ["c" * 200_000, *map(str, range(50_000))]},
    },
    "many texts": {
        **TARGET, "features": [{**TEXT, "name": str(i), "buckets": 10**5} for i in range(9_000)]
    },
    "many columns": {**TARGET, "features": [{"name": f"{i}", **NUMBER} for i in range(20_000)]},
    "a repeated column at the end": {
        **TARGET,
        "features": [
            *({"name": f"{i}", "kind": "yes-no"} for i in range(20_000)),
            {"name": "19999", "kind": "yes-no"},
        ],
    },
    "many ignored columns": {**TARGET, "features": [{"name": "a", **NUMBER}],
                             "ignore": [str(i) for i in range(100_000)]},
    "a long separator": {**SCHEMA, "separator": ";" * 10**6},
    "a long kind": {**TARGET, "features": [{"name": "a", "kind": "number" * 100_000}]},
    "many people": {**SCHEMA, "people": 10**3000},
    "a long person": {**SCHEMA, "person": "p" * 10**6},
    "large labels": {"features": [{"name": "a", **NUMBER}],
                     "target": {"name": "y", "classes": [10**4000, 10**4000 + 1]}},
    "large choices": {**TARGET, "features": [{"name": "a", "kind": "choice",
                                              "choices": [10**4000, 1]}]},
    "large bounds": {**TARGET, "features": [{"name": "a", "kind": "number",
                                             "bounds": [0, 10**4000]}]},
    "wide": {**TARGET, "features": [{"name": "a", "kind": "text", "buckets": 10**4000}]},
}  # fmt: skip


@pytest.mark.parametrize("reader", ["load", "read", "from_table"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_that_is_large_or_becomes_so(name, reader, reads, tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(toml(SCHEMAS[name]))
    limit = LIMIT if reader != "from_table" else 100 * 2**20  # which has the table already
    answer = reads(f"riata.data.Schema.{reader}", path, limit)
    assert answer.error or reader == "from_table"


def test_buckets_that_no_list_could_name_are_a_schema(reads, tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(toml({**TARGET, "features": [TEXT]}))
    for reader in ("load", "read", "from_table"):
        assert reads(f"riata.data.Schema.{reader}", path, LIMIT).error == ""


TOMLS = {
    "a name of many parts": "a." * 200_000 + "a = 1",
    "a name of quoted parts": '"a".' * 150_000 + "a = 1",
    "a name of parts in other quotes": "'a' . " * 100_000 + "a = 1",
    "a name of escaped quotes": r'"\"".' * 150_000 + "a = 1",
    "a name of long parts": f'"{"a" * 300}".' * 3_000 + "a = 1",
    "a name behind a text": 'x = """a""""\n' + "a." * 200_000 + 'a = "b"',
    "a name between texts": 'x = {a = """b"""", ' + "a." * 100_000 + 'a = 1, b = "c"}',
    "a table of many parts": "[" + "a." * 200_000 + "a]",
    "tables of some parts": "\n".join(f"[a{i}{'.a' * 20}]" for i in range(20_000)),
    "names of some parts": "\n".join(f"a{i}{'.a' * 20} = 1" for i in range(20_000)),
    "inline names": "a = [" + "{a.a.a.a.a.a = 1}," * 50_000 + "]",
    "lists": "a = [" + "[]," * 300_000 + "]",
    "deep lists": "a = " + "[" * 200_000 + "]" * 200_000,
    "deep tables": "a = " + "{a=" * 100_000 + "1" + "}" * 100_000,
    "open lists": "[" * 500_000,
    "open texts": "a = '" + '\\"' * 400_000,
    "open long texts": 'a = """' + '\\"""' * 200_000,
    "quotes": '"' * 900_001,
    "apostrophes": "'" * 900_001,
    "escapes": 'a = "' + "\\u0041" * 150_000 + '"',
    "comments": "#\n" * 400_000,
    "digits": "a = " + "1" * 900_000,
    "hexadecimal digits": "a = 0x" + "f" * 900_000,
    "digits after a point": "a = 0." + "1" * 900_000,
    "a large exponent": "a = 1e" + "9" * 900_000,
    "names": "\n".join(f"a{i} = 1" for i in range(80_000)),
    "one name": "a = 1\n" * 100_000,
    "dates": "a = [" + "1979-05-27T07:32:00Z," * 40_000 + "]",
    "not UTF-8": "\udcff" * 900_000,
    "wide characters": "a = '" + "\U0001f600" + "b" * 900_000 + "'",
}


@pytest.mark.parametrize("reader", ["riata.data.Schema.load", "riata.local.Task.load"])
@pytest.mark.parametrize("name", TOMLS)
def test_toml_that_grows(name, reader, reads, tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes(TOMLS[name].encode("utf-8", "surrogateescape"))
    for max_bytes in (LIMIT, 64 * 2**20):
        assert reads(reader, path, max_bytes).error


JSONS = {
    "lists": "[" + "[]," * 300_000 + "0]",
    "tables": "[" + "{}," * 300_000 + "0]",
    "lists of lists": "[" + ("[" * 50 + "]" * 50 + ",") * 8_000 + "0]",
    "tables of tables": "[" + ('{"":' * 50 + "0" + "}" * 50 + ",") * 3_000 + "0]",
    "deep lists": "[" * 400_000 + "]" * 400_000,
    "deep tables": '{"a":' * 150_000 + "0" + "}" * 150_000,
    "names": "{" + ",".join(f'"{i}":0' for i in range(80_000)) + "}",
    "a repeated name at the end": "{" + ",".join(f'"{i}":0' for i in range(80_000)) + ',"79999":0}',
    "wide characters": '{"kind": "\U0001f600' + "a" * 900_000 + '"}',
    "escapes": '{"kind": "' + "\\ud83d\\ude00" * 70_000 + '"}',
    "digits": '{"kind": ' + "1" * 900_000 + "}",
    "a large exponent": '{"kind": 1e' + "9" * 900_000 + "}",
    "a long kind": '{"kind": "' + "mean" * 200_000 + '"}',
    "an unknown field": '{"kind": "mean", "' + "x" * 900_000 + '": 0}',
}


@pytest.mark.parametrize("name", JSONS)
def test_json_that_grows(name, reads, good, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(JSONS[name])
    for max_bytes in (LIMIT, 64 * 2**20):
        assert reads("riata.local.Task.load", path, max_bytes).error
    members = opened(good["model"]["lasso"])
    path.write_bytes(pack({**members, "model.json": JSONS[name].encode()}))
    for max_bytes in (LIMIT, 64 * 2**20):
        assert reads("riata.load", path, max_bytes).error


def task_with(name, **changes):
    return {**TASKS[name], **changes}


CHOICE = {"name": "c", "kind": "choice", "choices": [str(i) for i in range(60_000)]}
TASKS_THAT_GROW = {
    "many questions": task_with(
        "mean", features=[{"name": str(i), "kind": "yes-no"} for i in range(20_000)]
    ),
    "one question again at the end": task_with(
        "mean", features=[{"name": str(min(i, 19_998)), "kind": "yes-no"} for i in range(20_000)]
    ),
    "many choices": task_with("mean", features=[CHOICE]),
    "a long question": task_with("mean", features=[{**CHOICE, "choices": ["a"], "question": "q" *
                                                    10**6}]),
    "a long name of many choices": task_with("mean", features=[{**CHOICE, "name": "n" * 500_000}]),
    "a long title": task_with("mean", title="t" * 10**6),
    "a long seed": task_with("mean", seed="s" * 10**6),
    "a long deadline": task_with("mean", deadline="9" * 10**6),
    "many reports": task_with("mean", cap=10**4000),
    "a large vector": task_with("linear", features=[{**TASKS["linear"]["features"][0],
                                                     "size": 10**4000}]),
    "many vectors": task_with("sparse", features=[
        {**TASKS["sparse"]["features"][0], "name": str(i), "size": 2**22} for i in range(9_000)]),
    "many pairs": task_with("kernel", kernel={"width": 1.0, "pairs": 10**4000}),
    "a large width": task_with("kernel", kernel={"width": 10**4000, "pairs": 2}),
    "a large epsilon": task_with("mean", epsilon=10**4000),
    "many arms": task_with("linear", arms={str(i): 0.1 for i in range(50_000)}),
    "a large share": task_with("linear", arms={"gram": 10**4000, "cross": 1}),
    "a large length": task_with("mean", length=10**4000),
    "a long coin": task_with("mean", arms={"mean": {"share": 1.0, "coin": "f" * 10**6}}),
}  # fmt: skip


@pytest.mark.parametrize("reader", ["load", "read", "from_table"])
@pytest.mark.parametrize("name", TASKS_THAT_GROW)
def test_a_task_that_is_large_or_becomes_so(name, reader, reads, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(TASKS_THAT_GROW[name]))
    limit = LIMIT if reader != "from_table" else 100 * 2**20  # which has the table already
    answer = reads(f"riata.local.Task.{reader}", path, limit)
    assert answer.error or reader == "from_table"
