"""Checks replies with polars: JSON Lines in, a table of broken rules out.

python polars_check.py REPLIES.jsonl

Each line of the file has an `id` and a `reply`. The check itself uses all cores.
"""

from __future__ import annotations

import sys

import polars
import tambour.arrow


def main() -> None:
    replies = polars.read_ndjson(sys.argv[1])
    checked = tambour.arrow.check(replies, contract="thinkingml", keep=["id"])
    print(f"{checked['passed'].sum()} of {len(checked)} replies pass")
    faults = checked.select("id", "faults").explode("faults").drop_nulls().unnest("faults")
    rules = faults.group_by("rule", "code").agg(
        polars.col("count").sum().alias("findings"), polars.len().alias("replies")
    )
    for rule in rules.sort("findings", "code", descending=[True, False]).iter_rows(named=True):
        print(f"{rule['rule']} {rule['code']}: {rule['findings']} in {rule['replies']} replies")


if __name__ == "__main__":
    main()
