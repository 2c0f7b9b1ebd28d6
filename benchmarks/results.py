"""What every benchmark prints and keeps: a table, a JSON file, the peak memory."""

from __future__ import annotations

import ctypes
import gc
import json
import platform
import resource
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

FOLDER = Path(__file__).parent / "results"


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Print a table with one line for each row."""
    table = Table(title=title, title_justify="left")
    for name in rows[0]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(f"{v:.4g}" if isinstance(v, float) else str(v) for v in row.values()))
    Console(width=140).print(table)


def keep(name: str, content: dict[str, Any]) -> Path:
    """Write `content`, the versions and the peak memory to results/<name>.json."""
    import numpy
    import scipy
    import sklearn

    FOLDER.mkdir(exist_ok=True)
    facts = {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "peak_rss_mb": round(peak_rss_mb()),
    }
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps({"facts": facts, **content}, indent=1), encoding="utf-8")
    print(f"peak memory {facts['peak_rss_mb']} MB; kept in {path.relative_to(Path.cwd())}")
    return path


def peak_rss_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def begin_peak_mb() -> float:
    """Forget the peak of this process's memory; what it takes now."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # or what was freed before would count as there
    Path("/proc/self/clear_refs").write_text("5")
    return _status_mb("VmRSS")


def peak_since_mb() -> float:
    """The peak since then."""
    return _status_mb("VmHWM")


def _status_mb(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024
