"""The files that `riata collect learn` writes: for programs, for people and for the dashboard."""

from __future__ import annotations

import json
from pathlib import Path

from riata.files import durable
from riata.local.collection_result import CollectionResult
from riata.model_file import save

#: The model for `riata.load`, the facts for the dashboard, the Statement for programs and people.
MODEL, FACTS = "model.riata", "model.json"
STATEMENT, STATEMENT_TEXT = "statement.json", "statement.txt"


def write_artifacts(result: CollectionResult, folder: Path) -> list[Path]:
    """Write all files, each whole or not at all, and name them."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        FACTS: json.dumps(result.to_dict(), indent=1, allow_nan=False),
        STATEMENT: json.dumps(result.statement.to_dict(), indent=1, allow_nan=False),
        STATEMENT_TEXT: f"{result.statement}\n",
    }
    save(result.model, folder / MODEL)
    for name, text in texts.items():
        with durable.replacing(folder / name) as file:  # the dashboard may be reading
            file.write(text.encode())
    return [folder / name for name in (MODEL, *texts)]
