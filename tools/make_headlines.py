"""Write src/riata/datasets/headlines.txt.gz: 12,000 headlines, clickbait or not.

The source is github.com/bhargaviparanjape/clickbait (MIT licence, see headlines.LICENSE beside the
file), as one `{"text": ..., "label": ...}` a line, compressed:

    python tools/make_headlines.py clickbait_headlines.jsonl.gz
"""

import gzip
import json
import sys
from pathlib import Path

import numpy as np

HEADLINES = 12_000
TARGET = Path(__file__).parents[1] / "src" / "riata" / "datasets" / "headlines.txt.gz"


def main(source: str) -> None:
    with gzip.open(source, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    drawn = np.random.default_rng(0).choice(len(rows), HEADLINES, replace=False)
    lines = [f"{rows[i]['label']}\t{' '.join(rows[i]['text'].split())}" for i in drawn]
    text = "\n".join(lines) + "\n"
    TARGET.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
    print(f"{len(lines):,} headlines, {TARGET.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1])
