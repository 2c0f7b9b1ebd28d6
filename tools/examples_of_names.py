"""Which pages of the documentation use which public names in code that runs.

For the API pages, which list the examples of each name (docs/conf.py), and for the test that every
public name has one (tests/conformance/test_api_pages.py).
"""

from __future__ import annotations

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples_of_names() -> dict[int, list[str]]:
    """By the id of an object, the pages whose code uses it, as paths below docs."""
    found: dict[int, list[str]] = defaultdict(list)
    for path in sorted(DOCS.rglob("*.md")):
        if "_build" in path.parts:
            continue
        for each in _used(ast.parse("\n".join(BLOCK.findall(path.read_text(encoding="utf-8"))))):
            page = path.relative_to(DOCS).with_suffix("").as_posix()
            if page not in found[id(each)]:
                found[id(each)].append(page)
    return found


def _used(tree: ast.Module) -> Iterator[Any]:
    """The objects of riata that a page's code imports and names, or reaches through a module."""
    names: dict[str, Any] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "riata":
            for alias in node.names:
                names[alias.asname or alias.name] = _member(str(node.module), alias.name)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "riata":
                    importlib.import_module(alias.name)
                    names[alias.asname or "riata"] = importlib.import_module(
                        alias.name if alias.asname else "riata"
                    )
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Name | ast.Attribute)
            and (each := _object(node, names)) is not None
        ):
            yield each


def _member(module: str, name: str) -> Any:
    there = importlib.import_module(module)
    if not hasattr(there, name):
        importlib.import_module(f"{module}.{name}")
    return getattr(there, name)


def _object(node: ast.expr, names: dict[str, Any]) -> Any:
    """What a name, or an attribute of a module, is."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Attribute):
        module = _object(node.value, names)
        return getattr(module, node.attr, None) if isinstance(module, ModuleType) else None
    return None
