"""Checks replies with Ray: JSON Lines in, Parquet out.

python ray_check.py REPLIES.jsonl FOLDER

Each line of the file has an `id` and a `reply`. Ray reads the file in blocks, runs the check in as many tasks as the
cluster has cores, and runs a task again elsewhere if its machine is lost.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

import pyarrow
import pyarrow.compute
import pyarrow.dataset
import ray
import ray.data
import tambour.arrow

#: Each task of Ray has one core, so the check uses one thread.
CHECK = functools.partial(tambour.arrow.check, contract="thinkingml", keep=["id"], threads=1)


def run(source: str, target: str, function: Any = CHECK, batch_size: int = 1000) -> None:
    """Checks the replies of a file; writes a folder of Parquet files."""
    replies = ray.data.read_json(source)
    checked = replies.map_batches(function, batch_format="pyarrow", batch_size=batch_size)
    checked.write_parquet(target)


def main() -> None:
    source, target = sys.argv[1:]
    ray.init()
    run(source, target)
    passed = pyarrow.dataset.dataset(target).to_table(columns=["passed"])["passed"]
    print(f"{pyarrow.compute.sum(passed)} of {len(passed)} replies pass")


if __name__ == "__main__":
    main()
