"""Batches of replies: Arrow in, Arrow out, on all cores, without a dependency on an Arrow package.

`check` and `decode` take what speaks the Arrow PyCapsule interface, and return the same kind: a `RecordBatch`, `Table` or
`RecordBatchReader` of pyarrow, a `DataFrame` of polars or pandas, an iterator of batches. For another object, such as a
relation of DuckDB, they return one that has the interface too. A reader or an iterator is read batch by batch, when results
are asked for; anything else at once. So one function serves Ray (`map_batches`), Spark
(`mapInArrow`), Daft, polars, DuckDB and DataFusion:

    checked = functools.partial(tambour.arrow.check, column="reply", contract="thinkingml", keep=["id"])
    dataset.map_batches(checked, batch_format="pyarrow")
    frame.mapInArrow(checked, schema)

Columns of replies are text or bytes: `utf8`, `large_utf8`, `utf8_view`, their binary forms, or a dictionary of them. A null
stays null in all columns of the result. A reply that cannot be read, for whatever reason, is a row that says so.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from ._native import BatchFunction, BatchResult, StreamResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from ._options import Options

__all__ = ["BatchResult", "StreamResult", "check", "decode"]

CheckColumn = Literal["contract", "passed", "first_error", "faults", "findings"]
DecodeColumn = Literal[
    "dialect",
    "answer",
    "reasoning",
    "queries",
    "plan",
    "plan_executable",
    "calls",
    "faults",
    "repaired",
    "truncated",
    "fallback_reason",
    "error",
]


def check(
    batch: Any,
    *,
    column: str = "reply",
    contract: str = "auto",
    columns: Sequence[CheckColumn] | None = None,
    keep: bool | Sequence[str] = False,
    prefix: str = "",
    threads: int | None = None,
    **options: Unpack[Options],
) -> Any:
    """Checks each reply of a batch against the rules of its dialect, as `tambour.check` does.

    - `contract`: a dialect, `events`, or `auto`.
    - `columns`: which columns the result has; all of them by default.
    - `keep`: columns of the batch that the result has too, before the others: names, or `True` for all.
    - `prefix`: text before the name of each column of the result.
    - `threads`: how many threads read; as many as there are cores by default. In a worker of Ray or Spark that has one
      core, say 1.
    - further arguments are options by their public names, with `_` for the dot.

    | column | type | |
    | --- | --- | --- |
    | `contract` | utf8 | the contract; in place of `auto`, the detected dialect |
    | `passed` | bool | no finding is an error |
    | `first_error` | utf8 | code of the error that decided |
    | `faults` | list of struct: `rule`, `code`, `severity` utf8, `count` int64 | findings counted by rule |
    | `findings` | list of struct: `rule`, `code`, `severity` utf8, `start`, `end` (bytes), `line`, `column` int64, `message`, `repair` utf8 | in the order of the text |

    Raises `TambourError` for an unknown contract, option or column of the result, and `ValueError` if the batch has no such
    column, it is no text, or a result is larger than 2 GiB (in a batch; batches of a table or a reader are cut).

    >>> import pyarrow
    >>> batch = pyarrow.record_batch({"reply": ["<final>\\nHi.\\n</final>", None]})
    >>> check(batch, contract="thinkingml", columns=["passed", "first_error"]).to_pylist()
    [{'passed': False, 'first_error': 'serp_block_missing'}, {'passed': None, 'first_error': None}]
    """
    function = BatchFunction.check(
        column, contract, _to_list(columns), _to_keep(keep), prefix, threads, dict(options)
    )
    return _apply(function, batch)


def decode(
    batch: Any,
    *,
    column: str = "reply",
    dialect: str = "auto",
    finish: str | None = "stop",
    columns: Sequence[DecodeColumn] | None = None,
    keep: bool | Sequence[str] = False,
    prefix: str = "",
    threads: int | None = None,
    **options: Unpack[Options],
) -> Any:
    """Reads each reply of a batch, as `tambour.decode` does.

    `finish` is the finish reason of all replies, `None` if it is not known; nothing in a truncated reply acts. The other
    arguments, and the exceptions, are those of `check`.

    | column | type | |
    | --- | --- | --- |
    | `dialect` | utf8 | the dialect; in place of `auto`, the detected one |
    | `answer` | utf8 | text of the answer |
    | `reasoning` | utf8 | text of the thinking, with an empty line between phases; null if there is none |
    | `queries` | list of utf8 | queries for a search |
    | `plan`, `plan_executable` | utf8, bool | the plan as JSON, and whether its calls may run; null without one |
    | `calls` | list of struct: `call_id`, `name`, `args` utf8 | calls that may run, arguments as JSON |
    | `faults` | as in `check` | findings counted by rule |
    | `repaired` | utf8 | the reply as `tambour.repair` writes it; null if its dialect cannot be written. Leave it out of `columns` where it is not needed: it takes longer than the rest |
    | `truncated` | bool | the reply was truncated |
    | `fallback_reason` | utf8 | why the fallback text replaced the answer |
    | `error` | utf8 | code of the failure that ended the reply |

    >>> import pyarrow
    >>> batch = pyarrow.record_batch({"id": [7], "reply": ["<think>2 + 2</think>It is 4."]})
    >>> decode(batch, dialect="plain", columns=["answer", "reasoning"], keep=["id"]).to_pylist()
    [{'id': 7, 'answer': 'It is 4.', 'reasoning': '2 + 2'}]
    """
    function = BatchFunction.decode(
        column, dialect, finish, _to_list(columns), _to_keep(keep), prefix, threads, dict(options)
    )
    return _apply(function, batch)


def _to_list(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else list(names)


def _to_keep(keep: bool | Sequence[str]) -> bool | list[str]:
    if isinstance(keep, str):
        return [keep]
    return keep if isinstance(keep, bool) else list(keep)


def _apply(function: BatchFunction, batch: Any) -> Any:
    package, name = type(batch).__module__.partition(".")[0], type(batch).__name__
    if hasattr(batch, "__arrow_c_array__"):
        result = function.run_batch(batch)
        if package == "pyarrow":
            return _load("pyarrow").record_batch(result)
        return result
    if hasattr(batch, "__arrow_c_stream__"):
        # Another object may need what it reads from until its stream ends, as a relation of DuckDB its connection.
        is_reader = name.endswith(("Reader", "Stream"))
        return _convert(function.run_stream(batch, is_reader), package, name)
    if isinstance(batch, Iterator):
        return (_apply(function, item) for item in batch)
    raise TypeError(
        "a batch is an Arrow batch, table or stream (`__arrow_c_array__`, `__arrow_c_stream__`), or an iterator of them,"
        f" not {name}"
    )


def _load(package: str) -> Any:
    """The package that the batch is from, or that it needs itself; it is no dependency, and may have no types."""
    return importlib.import_module(package)


def _convert(result: StreamResult, package: str, name: str) -> Any:
    """The result as an object of the package that the batch is from."""
    if package == "polars" and name == "DataFrame":
        return _load("polars").DataFrame(result)
    if package not in ("pyarrow", "pandas"):
        return result
    pyarrow = _load("pyarrow")
    if package == "pandas":
        return pyarrow.table(result).to_pandas()
    if name == "Table":
        return pyarrow.table(result)
    return pyarrow.RecordBatchReader.from_stream(result)
