"""Checks replies with Spark: JSON Lines in, Parquet out.

python spark_check.py REPLIES.jsonl FOLDER

Each line of the file has an `id` and a `reply`. Spark passes batches of Arrow to the check in as many tasks as the
cluster has cores, and runs a task again elsewhere if its executor is lost.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import pyarrow
import tambour.arrow
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

#: Each task of Spark has one core, so the check uses one thread.
CHECK = functools.partial(tambour.arrow.check, contract="thinkingml", keep=["id"], threads=1)

#: Fields of a line. Spark finds them out by itself too, by reading the file twice.
LINE = StructType([StructField("id", LongType()), StructField("reply", StringType())])


def result_schema() -> StructType:
    """Schema of the results: that of the result on no replies."""
    empty = pyarrow.schema({"id": pyarrow.int64(), "reply": pyarrow.utf8()}).empty_table()
    return from_arrow_schema(CHECK(empty).schema)


def run(spark: SparkSession, source: str, target: str, function: Any = CHECK, parts: int = 2) -> None:
    """Checks the replies of a file in at least `parts` tasks; writes a folder of Parquet files."""
    replies = spark.read.schema(LINE).json(source).repartition(parts)
    replies.mapInArrow(function, result_schema()).write.parquet(target)


def main() -> None:
    source, target = sys.argv[1:]
    # Workers run the same interpreter, so that they have the same packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.getOrCreate()
    run(spark, source, target)
    results = spark.read.parquet(target)
    print(f"{results.filter('passed').count()} of {results.count()} replies pass")
    spark.stop()


if __name__ == "__main__":
    main()
