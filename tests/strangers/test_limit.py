"""What a reader takes from its limit covers what it uses, as Python itself counts it."""

import json
import tracemalloc

import numpy as np
import pytest
from examples import SCHEMA, TASKS

from riata import Schema
from riata.errors import InvalidArgument, RiataError, SchemaError, TaskError
from riata.files.limit import MAX_BYTES, ReadLimit
from riata.files.text import parse_json, parse_toml
from riata.local import Task

N = 5_000
JSONS = {
    "lists": "[" + "[]," * N + "0]",
    "tables": "[" + "{}," * N + "0]",
    "lists of one": "[" + "[0]," * N + "0]",
    "tables of one": "[" + '{"":0},' * N + "0]",
    "nested tables": "[" + ('{"":' * 50 + "0" + "}" * 50 + ",") * (N // 50) + "0]",
    "nested lists": "[" + ("[" * 50 + "]" * 50 + ",") * (N // 50) + "0]",
    "names": "{" + ",".join(f'"{i}":0' for i in range(N)) + "}",
    "numbers": "[" + "999," * N + "0]",
    "fractions": "[" + "1e1," * N + "0]",
    "texts": "[" + '"ab",' * N + "0]",
    "wide text": '["\\ud83d\\ude00' + "a" * N + '"]',
    "wide file": '["\U0001f600' + "a" * N + '"]',
}
TOMLS = {
    "names": "\n".join(f"a{i}=1" for i in range(N)),
    "dotted names": "\n".join(f"a{i}.b.c.d.e=1" for i in range(N // 5)),
    "long dotted names": "\n".join(f"a{i}{'.a' * 31}=1" for i in range(N // 50)),
    "tables": "\n".join(f"[a{i}.b.c]" for i in range(N)),
    "long tables": "\n".join(f"[a{i}{'.a' * 31}]" for i in range(N // 50)),
    "lists of tables": "[[a]]\nb=1\nc=2\n" * N,
    "lists": "a=[" + "[]," * N + "]",
    "inline": "a=[" + "{a=1}," * N + "]",
    "inline dotted": "a=[" + "{a.a.a.a=1}," * N + "]",
    "numbers": "a=[" + "1," * N + "]",
    "texts": "a=[" + "''," * N + "]",
    "escapes": 'a="' + "\\n" * N * 5 + '"',
    "wide": 'a="' + "\U0001f600" + "a" * N * 5 + '"',
    "comments": "#\n" * N,
}


def cost(read, error=RiataError):
    """What reading took from the limit, and the most memory that it used."""
    limit = ReadLimit(2**50, error)
    tracemalloc.start()
    try:
        kept = read(limit)
        return limit.max_bytes - limit.left, tracemalloc.get_traced_memory()[1], kept
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", JSONS)
def test_json_uses_no_more_than_it_takes(name):
    taken, used, _ = cost(lambda limit: parse_json(JSONS[name].encode(), limit, "It"))
    assert used <= taken + 2**14


@pytest.mark.parametrize("name", TOMLS)
def test_toml_uses_no_more_than_it_takes(name):
    taken, used, _ = cost(lambda limit: parse_toml(TOMLS[name].encode(), limit, "It"))
    assert used <= taken + 2**14


@pytest.mark.parametrize("kind", ["yes-no", "choice", "number", "text"])
def test_a_schema_uses_no_more_than_it_takes(kind):
    more = {"choice": "choices = ['a', 'b']", "number": "bounds = [0, 1]", "text": "buckets = 9"}
    one = f"[[features]]\nname = '{{}}'\nkind = '{kind}'\n{more.get(kind, '')}\n"
    text = "".join(one.format(i) for i in range(2_000)) + "[target]\nname='y'\nbounds=[0,1]"
    taken, used, schema = cost(lambda limit: Schema.read_within(text, limit), SchemaError)
    assert used <= taken
    assert len(schema.features) == 2_000


@pytest.mark.parametrize("labels", [["c" * 5_000, *map(str, range(500))], [*range(2_000)]])
def test_classes_use_no_more_than_they_take(labels):
    text = f"[[features]]\nname='a'\nkind='yes-no'\n[target]\nname='y'\nclasses={labels}"

    def read(limit):
        schema = Schema.read_within(text, limit)
        return schema.classes

    taken, used, _ = cost(read, SchemaError)
    assert used <= taken


def test_a_task_uses_no_more_than_it_takes():
    features = [{"name": str(i), "kind": "yes-no"} for i in range(2_000)]
    text = json.dumps({**TASKS["mean"], "features": features})
    taken, used, task = cost(lambda limit: Task.read_within(text, limit), TaskError)
    assert used <= taken
    assert task.encoding.columns == 2_000


def test_the_limit_holds_for_the_sum():
    limit = ReadLimit(100, SchemaError)
    limit.take(60, "This")
    limit.take(40, "That")
    with pytest.raises(SchemaError, match=r"One more would take more than max_bytes=100.*larger"):
        limit.take(1, "One more")
    limit.take(0, "Nothing")


@pytest.mark.parametrize("max_bytes", [None, "1", 1.5, -1, True])
def test_a_limit_that_is_none_is_refused(max_bytes, good):
    for read in (
        lambda: Schema.from_table(SCHEMA, max_bytes=max_bytes),
        lambda: Task.from_table(TASKS["mean"], max_bytes=max_bytes),
        lambda: Schema.load(good["schema"]["wide"], max_bytes=max_bytes),
    ):
        with pytest.raises(InvalidArgument, match="max_bytes"):
            read()


def test_whole_numbers_of_numpy_are_limits():
    assert Schema.from_table(SCHEMA, max_bytes=np.int64(MAX_BYTES)).n_features == 9


def test_names_that_no_list_could_hold_are_an_error():
    text = {"name": "t", "kind": "text", "buckets": 2**31 - 1}
    schema = Schema.from_table({"features": [text]})
    assert schema.n_features == 2**31 - 1
    with pytest.raises(SchemaError, match="fewer buckets"):
        schema.feature_names  # noqa: B018
    wide = Schema.from_table({"features": {"count": 2**31 - 1}})
    with pytest.raises(SchemaError, match="at most"):
        wide.feature_names  # noqa: B018
