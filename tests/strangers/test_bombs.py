"""Small files that describe something large: each is refused within its limit of memory and time.

Every file here is read in a process that has `max_bytes` and a constant more memory than before,
see readers.py. A reader that makes what the file describes dies there.
"""

import io
import json
import struct
import zipfile

import numpy as np
import pytest
from examples import TASKS, arrays, manifest, opened, write_arrays, write_model

from riata.local import Task

pytestmark = pytest.mark.matrix(one_in=11)

#: Enough for every good example, and far less than what the files below describe.
LIMIT = 4 * 2**20
MANY = 20_000_000

MODELS = [
    "lasso", "lasso, bounds", "erm, groups", "erm, polytope", "sparse", "heavy", "logistic", "svc",
    "projected", "projected classes", "compressed", "local lasso", "local lasso, bounds",
    "local logistic", "local kernel", "local mean", "schema", "survey",
]  # fmt: skip


def test_every_good_file_is_read_within_the_limit(good, reads):
    for form, reader in (
        ("model", "riata.load"),
        ("schema", "riata.data.Schema.load"),
        ("task", "riata.local.Task.load"),
        ("shard", "riata.local.Aggregator.load"),
    ):
        for path in good[form].values():
            assert reads(reader, path, LIMIT).error == ""
            assert "max_bytes" in reads(reader, path, 1000).message
    assert {*good["model"]} == {*MODELS}


# Model files.


def inflated_columns(said, size):
    """As if the model had so many columns, wherever the file says how many there are."""
    fitted = said["fitted"]
    old = fitted.get("n_features_in_")
    fitted["n_features_in_"] = size
    for name in ("coef_", "coef_error_", "selection_order_"):
        node = fitted.get(name)
        if isinstance(node, dict) and "sparse" in node:
            node["sparse"][0][-1] = size
        elif isinstance(node, dict) and "array" in node:
            shape = node["array"][1]
            empty = {f"{name}.support": 0, f"{name}.values": 0}
            fitted[name] = {
                "sparse": [[*shape[:-1], size], {"array": ["<i8", [0]]}, {"array": ["<f8", [0]]}]
            }
            said.setdefault("_empty", {}).update({name: empty})
    if isinstance(fitted.get("model_"), dict):
        task = fitted["model_"]["task"]
        fitted["model_"]["task"] = task.replace(f'"size":{old}', f'"size":{size}')
    projection = said["parameters"].get("projection")
    if isinstance(projection, dict):
        projection["GaussianProjection"]["n_features"] = size


@pytest.mark.parametrize(
    "size", [MANY, 2**31 - 1, 10**12, 10**4000], ids=["2e7", "2^31", "1e12", "1e4000"]
)
@pytest.mark.parametrize("name", MODELS[:-1])  # the columns of a survey follow from its task
def test_a_model_of_many_columns(name, size, good, reads, tmp_path):
    members, said = manifest(good["model"][name])
    inflated_columns(said, size)
    for array in said.pop("_empty", {}):
        members.pop(f"{array}.npy")
        for part, code in (("support", "<i8"), ("values", "<f8")):
            out = io.BytesIO()
            np.save(out, np.zeros(0, code))
            members[f"{array}.{part}.npy"] = out.getvalue()
    answer = reads("riata.load", write_model(tmp_path / "m", members, said), LIMIT)
    assert answer.error


SPOILT = {
    "number": [10**7, 2**31, 10**15, 10**4000, -(10**18), 1e308, 0],
    "text": ["x" * 300_000, "\U0001f600" * 100_000, "", "9" * 4000],
    "list": [[0] * 200_000, [[]] * 100_000, ["x" * 100_000, *["y"] * 20_000], [["z"]] * 50_000],
    "table": [{"range": [0, 10**18, 1]}, {"array": ["<f8", [2**40]]}, {"tuple": [[]] * 50_000},
              {"array": ["<U99999999", [1]]}, {"scalar": ["<U99999999", "a"]},
              {"dict": {"k" * 100_000: [[]] * 50_000}}, {"strings": ["x" * 100_000] * 2},
              {"objects": ["x"] * 100_000}, {"array": ["<f8", [10**400] * 5_000]},
              {"sparse": [[2**40], {"array": ["<i8", [0]]}, {"array": ["<f8", [0]]}]},
              {"GroupL1Ball": {"groups": ["x" * 100_000, *["y"] * 20_000]}},
              {"GroupL1Ball": {"groups": [["x" * 100_000], *[["y"]] * 20_000]}},
              {"GroupL1Ball": {"groups": {"range": [0, 10**9, 1]}}},
              {"GaussianProjection": {"dimension": 10**9, "n_features": 10**9, "seed": 0}},
              {"StructuredProjection": {"dimension": 3, "n_features": 10**12, "seed": 0}},
              {"SparseBall": {"sparsity": 10**9, "radius": 1.0, "n_features": 10**12}},
              {"Bounds": {"x": [1.0] * 100_000, "y": 1.0}},
              {"Polytope": {"vertices": [[1.0] * 300] * 300}}],
}  # fmt: skip


def places(node, path=()):
    """The place of everything in a value of JSON."""
    yield path
    if isinstance(node, list):
        node = dict(enumerate(node))
    for key, value in node.items() if isinstance(node, dict) else ():
        yield from places(value, (*path, key))


def replaced(node, path, value):
    """A copy of a value of JSON with another value at a place."""
    if not path:
        return value
    changed = dict(node) if isinstance(node, dict) else list(node)
    changed[path[0]] = replaced(node[path[0]], path[1:], value)
    return changed


def spoilt(said):
    """All places of a model.json, each with all that it could be replaced by."""
    values = [value for each in SPOILT.values() for value in each]
    return [(place, value) for place in places(said) if place for value in values]


@pytest.mark.parametrize("name", MODELS)
def test_any_value_of_a_model_may_be_large(name, good, reads, tmp_path):
    check_spoilt(name, good, reads, tmp_path, 12)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_many_values_of_a_model_may_be_large(name, good, reads, tmp_path):
    check_spoilt(name, good, reads, tmp_path, 400)


def check_spoilt(name, good, reads, tmp_path, number):
    members, said = manifest(good["model"][name])
    cases = spoilt(said)
    picks = np.random.default_rng(len(name)).permutation(len(cases))[:number]
    for pick in picks:
        place, value = cases[pick]
        path = write_model(tmp_path / "m", members, replaced(said, place, value))
        reads("riata.load", path, LIMIT)


#: Where each attack is at home: the parameter, and what it becomes.
ATTACKS = {
    "groups of long texts": ("erm, groups", ("parameters", "set", "GroupL1Ball", "groups"),
                             ["x" * 200_000, *["y"] * 50_000]),
    "groups of lists": ("erm, groups", ("parameters", "set", "GroupL1Ball", "groups"),
                        [["x" * 200_000], *[["y"]] * 50_000]),
    "groups in a range": ("erm, groups", ("parameters", "set", "GroupL1Ball", "groups"),
                          {"range": [0, 10**9, 1]}),
    "a long name of many items": ("lasso", ("parameters", "engine"),
                                  {"dict": {"k" * 200_000: [[]] * 100_000}}),
    "many dimensions": ("lasso, bounds", ("parameters", "bounds", "Bounds", "x"),
                        {"array": ["<f8", [10**4000] * 500]}),
    "many small tables": ("lasso", ("statement", "public"), {"dict": {str(i): 0 for i in
                                                                      range(200_000)}}),
    "deep lists": ("lasso", ("parameters", "engine"), json.loads("[" * 900 + "]" * 900)),
}  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_value_that_grows_when_it_is_used(attack, good, reads, tmp_path):
    name, place, value = ATTACKS[attack]
    members, said = manifest(good["model"][name])
    path = write_model(tmp_path / "m", members, replaced(said, place, value))
    for max_bytes in (LIMIT, 64 * 2**20):
        assert reads("riata.load", path, max_bytes).error


@pytest.mark.parametrize("buckets", [50_000, MANY, 2**31 - 5])
def test_a_schema_in_a_model_names_many_columns(buckets, good, reads, tmp_path):
    members, said = manifest(good["model"]["schema"])
    text = said["fitted"]["schema_"]
    said["fitted"]["schema_"] = text.replace("buckets = 4", f"buckets = {buckets}")
    size = said["fitted"]["n_features_in_"]
    assert reads("riata.load", write_model(tmp_path / "m", members, said), LIMIT).error
    inflated_columns(said, size - 4 + buckets)
    said.pop("_empty", None)
    assert reads("riata.load", write_model(tmp_path / "m", members, said), LIMIT).error


def test_a_task_in_a_model_has_many_questions(good, reads, tmp_path):
    """A bound for each column makes a question of each, a thousand times as large."""
    members, said = manifest(good["model"]["local lasso, bounds"])
    size = 50_000
    said["fitted"]["n_features_in_"] = size
    said["parameters"]["bounds"]["Bounds"]["x"] = {"array": ["<f8", [size]]}
    out = io.BytesIO()
    np.save(out, np.ones(size))
    members["bounds.x.npy"] = out.getvalue()
    path = write_model(tmp_path / "m", members, said)
    assert "max_bytes" in reads("riata.load", path, LIMIT).message


# Containers, for models and shards alike.


def npy(shape, code="<f8", order=False, body=b""):
    """An array whose head says whatever it is told to."""
    head = f"{{'descr': {code!r}, 'fortran_order': {order}, 'shape': {shape}, }}"
    head += " " * (-(11 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + body


def zipped(path, members, kind=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def with_other_sizes(path, size):
    """The same archive, whose list claims that every member has this size."""
    content = bytearray(path.read_bytes())
    at = content.find(b"PK\x01\x02")
    while at >= 0:
        struct.pack_into("<LL", content, at + 20, size, size)
        at = content.find(b"PK\x01\x02", at + 1)
    path.write_bytes(content)
    return path


def with_one_place(path):
    """The same archive, whose members are all the first."""
    content = bytearray(path.read_bytes())
    at = content.find(b"PK\x01\x02")
    while at >= 0:
        struct.pack_into("<L", content, at + 42, 0)
        at = content.find(b"PK\x01\x02", at + 1)
    path.write_bytes(content)
    return path


def with_list_size(path, size):
    """The same archive, whose last record claims that its list has this size."""
    content = bytearray(path.read_bytes())
    struct.pack_into("<L", content, len(content) - 10, size)
    path.write_bytes(content)
    return path


def first(members):
    """The name of an array that every file of this form has."""
    return next(name for name in members if name.endswith(".npy"))


CONTAINERS = {
    "a large shape": lambda p, m: zipped(p, {**m, first(m): npy((2**40,))}),
    "a shape beyond 64 bits": lambda p, m: zipped(p, {**m, first(m): npy((10**30,))}),
    "many dimensions": lambda p, m: zipped(p, {**m, first(m): npy((10**15,) * 60)}),
    "a shape of no items": lambda p, m: zipped(p, {**m, first(m): npy((0, 10**15))}),
    "a negative shape": lambda p, m: zipped(p, {**m, first(m): npy((-1,), body=bytes(80))}),
    "objects": lambda p, m: zipped(p, {**m, first(m): npy((1,), "|O", body=bytes(80))}),
    "wide texts": lambda p, m: zipped(p, {**m, first(m): npy((1,), "<U999999999")}),
    "an unknown type": lambda p, m: zipped(p, {**m, first(m): npy((8,), "<f3", body=bytes(24))}),
    "times": lambda p, m: zipped(p, {**m, first(m): npy((1,), "<M8[s]", body=bytes(8))}),
    "Fortran's order": lambda p, m: zipped(p, {**m, first(m): npy((1, 1), order=True)}),
    "a head that runs on": lambda p, m: zipped(
        p, {**m, first(m): b"\x93NUMPY\x01\x00\xff\xff" + b" " * 65535}
    ),
    "code for a head": lambda p, m: zipped(p, {**m, first(m): npy("(" * 3000 + ")" * 3000)}),
    "no member": lambda p, m: zipped(p, {}),
    "an unused member": lambda p, m: zipped(p, {**m, "zz.npy": npy((1,), body=bytes(8))}),
    "a large unused member": lambda p, m: zipped(p, {**m, "zz.npy": bytes(40_000_000)}),
    "unused zeros": lambda p, m: zipped(
        p, {**m, "zz.npy": bytes(300_000_000)}, zipfile.ZIP_DEFLATED
    ),
    "compressed": lambda p, m: zipped(
        p, {**m, first(m): npy((10**8,), "|u1", body=bytes(10**8))}, zipfile.ZIP_DEFLATED
    ),
    "compressed by bzip2": lambda p, m: zipped(
        p, {**m, first(m): npy((10**8,), "|u1", body=bytes(10**8))}, zipfile.ZIP_BZIP2
    ),
    "compressed by lzma": lambda p, m: zipped(
        p, {**m, first(m): npy((10**8,), "|u1", body=bytes(10**8))}, zipfile.ZIP_LZMA
    ),
    "tiny members": lambda p, m: zipped(p, {**m, **{f"{i}": b"" for i in range(30_000)}}),
    "members up and down": lambda p, m: zipped(p, {f"../{k}": v for k, v in m.items()}),
    "a folder": lambda p, m: zipped(p, {**m, "folder/": b""}),
    "sizes that are claimed": lambda p, m: with_other_sizes(zipped(p, m), 2**31),
    "all sizes unknown": lambda p, m: with_other_sizes(zipped(p, m), 2**32 - 1),
    "members that overlap": lambda p, m: with_one_place(zipped(p, m)),
    "a list that is claimed": lambda p, m: with_list_size(zipped(p, m), 2**31),
    "a list of nothing": lambda p, m: with_list_size(zipped(p, m), 0),
    "an archive in the archive": lambda p, m: zipped(p, {"a": zipped(p, m).read_bytes()}),
}


@pytest.mark.parametrize("form", ["model", "shard"])
@pytest.mark.parametrize("how", CONTAINERS)
def test_a_container_that_is_none_of_ours(how, form, good, reads, tmp_path):
    name, reader = {
        "model": ("logistic", "riata.load"),
        "shard": ("linear", "riata.local.Aggregator.load"),
    }[form]
    members = opened(good[form][name])
    answer = reads(reader, CONTAINERS[how](tmp_path / "f", members), LIMIT)
    assert answer.error


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("form", ["model", "shard"])
def test_members_of_one_name(form, good, reads, tmp_path):
    name, reader = {
        "model": ("logistic", "riata.load"),
        "shard": ("linear", "riata.local.Aggregator.load"),
    }[form]
    path = tmp_path / "f"
    path.write_bytes(good[form][name].read_bytes())
    with zipfile.ZipFile(path, "a") as archive:
        member = archive.namelist()[0]
        for _ in range(20):
            archive.writestr(member, bytes(100_000))
    assert "same name" in reads(reader, path, LIMIT).message


def test_what_is_no_file_at_all(reads, tmp_path):
    for reader in ("riata.load", "riata.local.Aggregator.load"):
        assert reads(reader, "/dev/zero", LIMIT).error
        assert reads(reader, tmp_path, LIMIT).error
    for reader in ("riata.data.Schema.load", "riata.local.Task.load"):
        assert "max_bytes" in reads(reader, "/dev/zero", LIMIT).message
        assert reads(reader, tmp_path, LIMIT).error


def test_a_sparse_file_of_many_zeros(reads, tmp_path):
    path = tmp_path / "f"
    with path.open("wb") as file:
        file.truncate(2**33)
    for reader in ("riata.load", "riata.local.Aggregator.load", "riata.data.Schema.load"):
        assert reads(reader, path, LIMIT).error


# Shards.


@pytest.mark.parametrize("name", [*TASKS, "merged"])
def test_a_shard_that_is_compressed(name, good, reads, tmp_path):
    path = write_arrays(tmp_path / "f", arrays(good["shard"][name]), compressed=True)
    assert "compressed" in reads("riata.local.Aggregator.load", path, LIMIT).message


@pytest.mark.parametrize("name", [*TASKS, "merged"])
def test_any_array_of_a_shard_may_be_large(name, good, reads, tmp_path):
    held = arrays(good["shard"][name])
    path = tmp_path / "f"
    for key, array in held.items():
        large = np.zeros(2**20, array.dtype)
        for value in (large, large.reshape(2**10, 2**10), np.zeros(0, array.dtype)):
            if value.size == array.size == 0:  # there were no tokens
                continue
            for compressed in (False, True):
                write_arrays(path, {**held, key: value}, compressed)
                assert reads("riata.local.Aggregator.load", path, LIMIT).error


@pytest.mark.parametrize(
    ("name", "size"), [("linear", 4095), ("linear", 1500), ("sparse", 2**22 - 1)]
)
def test_a_task_in_a_shard_has_large_sums(name, size, good, reads, tmp_path):
    table = json.loads(Task.from_table(TASKS[name]).canonical)
    table["features"][0]["size"] = size
    for arm in table["arms"].values():
        arm.pop("size")
        arm.pop("threshold")
        arm.pop("coin")
    task = np.frombuffer(Task.from_table(table).canonical, np.uint8)
    path = write_arrays(tmp_path / "f", {**arrays(good["shard"][name]), "task": task})
    assert reads("riata.local.Aggregator.load", path, LIMIT).error


@pytest.mark.parametrize("expected", [2**36, 2**62, -1, 0])
def test_a_filter_of_a_shard_claims_to_be_large(expected, good, reads, tmp_path):
    held = arrays(good["shard"]["mean"])
    path = write_arrays(tmp_path / "f", {**held, "expected": np.array([expected])})
    assert reads("riata.local.Aggregator.load", path, LIMIT).error


def test_many_filters_of_one_shard(good, reads, tmp_path):
    held = arrays(good["shard"]["mean"])
    path = write_arrays(tmp_path / "f", {**held, "expected": np.full(400_000, 100)})
    assert reads("riata.local.Aggregator.load", path, LIMIT).error
