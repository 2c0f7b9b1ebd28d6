"""Nothing in riata needs what only Linux and macOS have, as far as that shows without Windows.

The last test runs riata in a process from which the modules and functions of POSIX were taken.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from without_posix import HIDE_POSIX_MODULES

import riata
from riata.files import durable

SOURCES = sorted(Path(riata.__file__).parent.rglob("*.py"))

#: What `os` has on POSIX alone, and riata might want.
POSIX_ONLY = {
    "O_CLOEXEC", "O_DIRECTORY", "O_DSYNC", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "chown", "chroot",
    "fchmod", "fchown", "fork", "forkpty", "getegid", "geteuid", "getgid", "getgroups",
    "getloadavg", "getpgid", "getuid", "killpg", "lchown", "mkfifo", "nice", "openpty",
    "posix_fallocate", "pread", "pwrite", "register_at_fork", "sched_getaffinity", "setsid",
    "statvfs", "sysconf", "uname", "wait3", "wait4", "writev",
}  # fmt: skip

#: The signals that Windows has.
SIGNALS = {"SIGABRT", "SIGBREAK", "SIGFPE", "SIGILL", "SIGINT", "SIGSEGV", "SIGTERM"}


def nodes_with_parents():
    """Each node of each module, with the nodes around it, the nearest first."""
    for path in SOURCES:
        found = [(ast.parse(path.read_text(encoding="utf-8")), ())]
        while found:
            node, around = found.pop()
            yield path, node, around
            found += [(child, (node, *around)) for child in ast.iter_child_nodes(node)]


def of_module(node, module):
    """The attribute of a module that a node names, or ""."""
    named = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    return node.attr if named and node.value.id == module else ""


def is_guarded(name, around):
    """Whether code runs only where `os` has a name, or goes on where it does not."""
    for node in around:
        if isinstance(node, ast.If) and f"hasattr(os, '{name}')" in ast.unparse(node.test):
            return True
        if isinstance(node, ast.Try) and any(
            "AttributeError" in ast.unparse(handler.type) for handler in node.handlers
        ):
            return True
        if isinstance(node, ast.FunctionDef) and "import resource" in ast.unparse(node):
            return True  # where that module is, there is the function
    return False


def test_what_windows_lacks_is_only_used_where_it_is():
    for path, node, around in nodes_with_parents():
        name = of_module(node, "os")
        assert name not in POSIX_ONLY or is_guarded(name, around), (path, node.lineno, name)
        signal = of_module(node, "signal")
        assert not signal.startswith("SIG") or signal in SIGNALS, (path, node.lineno, signal)
        assert of_module(node, "np") not in ("longdouble", "float128"), (path, node.lineno)


def test_files_have_the_same_bytes_everywhere():
    """Windows would write two bytes for a line feed, and has another encoding by default."""
    for path, node, _ in nodes_with_parents():
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        text = ast.unparse(node) if of_module(node.func, "os") == "open" else ""
        if "O_WRONLY" in text or "O_APPEND" in text:
            assert "BINARY" in text, (path, node.lineno)
        if node.func.attr in ("read_text", "write_text"):
            arguments = 1 + (node.func.attr == "write_text")
            encoded = len(node.args) >= arguments or "encoding" in {k.arg for k in node.keywords}
            assert encoded, (path, node.lineno)


def test_no_directory_is_opened_where_that_is_impossible(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "name", "nt")
        patch.setattr(os, "open", None)
        durable.sync_directory("anywhere")


WITHOUT_POSIX = """
import os, signal, sys
import numpy, pandas, polars, scipy.optimize, sklearn, sqlalchemy, starlette, uvicorn, filelock
{hidden}
for name in {names}:
    if hasattr(os, name):
        delattr(os, name)

from pathlib import Path
import numpy as np
import riata
from riata import Bounds, Budget, Ledger, PrivateLasso
from riata.collect.directory import DirectoryStore
from riata.collect.tokens import Tokens
from riata.engines.memory import memory_for_rows
from riata.local import Aggregator, Client, Task

os.chdir(sys.argv[1])
assert memory_for_rows() > 0
rows = np.zeros((50, 3))
ledger = Ledger.create("study.db", dataset="d", ceiling=Budget(2.0, 1e-3))
model = PrivateLasso(1.0, 1e-6, bounds=Bounds(x=1.0, y=1.0), ledger=ledger)
model.fit(rows, np.zeros(50), checkpoint="run.json")
assert len(Ledger.open("study.db").charges) == 1
riata.save(model, "model.riata")
assert riata.load("model.riata").privacy_ == model.privacy_
task = Task.from_table({{
    "kind": "mean", "epsilon": 1.0,
    "features": [{{"name": "a", "kind": "number", "bounds": [0, 1]}}],
}})
report = Client(task, ledger="device.db").report([0.5])
assert Client(task, ledger="device.db").report([0.5]) == report
Aggregator(task).add(report).save("sums.npz")
assert Aggregator.load("sums.npz").count == 1
store = DirectoryStore("store", task)
store.add(np.array([1, 2], dtype=np.uint64))
store.close()
assert len(DirectoryStore("store", task)) == 2
key = Tokens.at(Path("key"), task.id)
assert Tokens.at(Path("key"), task.id).read(key.make(1)[0]) is not None
"""


@pytest.mark.long
def test_riata_works_in_a_process_without_what_windows_lacks(tmp_path):
    code = WITHOUT_POSIX.format(hidden=HIDE_POSIX_MODULES, names=sorted(POSIX_ONLY - {"uname"}))
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
