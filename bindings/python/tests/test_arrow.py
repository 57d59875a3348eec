"""Batches: Arrow in and out, with several packages."""

from __future__ import annotations

import functools
import json
import pathlib
import re
import threading

import duckdb
import pandas
import polars
import pyarrow as pa
import pytest
import tambour
import tambour.arrow
from tambour.arrow import check, decode

VALID = (
    '<serp>The user greets.</serp>\n<thinking>\n<phase id="1">\n<title>Goal</title>\nBe kind.\n</phase>\n</thinking>\n'
    '<final>\nHi.\n<!-- <serp_queries>\n["ways to greet"]\n</serp_queries> -->\n</final>\n'
)
BROKEN = VALID.replace('id="1"', "id='2'")
REPLIES = [VALID, None, BROKEN, "", "<final>", "日本" * 50, VALID * 3, "\ufeff" + VALID]

#: All types of columns of text.
TYPES = [
    pa.utf8(), pa.large_utf8(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
    pa.dictionary(pa.int8(), pa.utf8()), pa.dictionary(pa.uint64(), pa.large_utf8()),
]  # fmt: skip


def column(type_, replies=REPLIES):
    if pa.types.is_dictionary(type_):
        return pa.array(replies, pa.utf8()).dictionary_encode().cast(type_)
    if "binary" in str(type_):
        replies = [None if reply is None else reply.encode() for reply in replies]
    return pa.array(replies, type_)


def batch(replies=REPLIES):
    schema = pa.schema({"id": pa.int64(), "reply": pa.utf8()})
    return pa.record_batch({"id": list(range(len(replies))), "reply": replies}, schema=schema)


def verdict_of(reply, contract):
    """The row that `check` of one text gives."""
    if reply is None:
        return dict.fromkeys(("contract", "passed", "first_error", "faults", "findings"))
    verdict = tambour.check(reply, contract)
    findings = [
        {
            "rule": item.rule, "code": item.code, "severity": item.severity, "start": item.span.start,
            "end": item.span.end, "line": item.line, "column": item.column, "message": item.message,
            "repair": item.repair,
        }
        for item in verdict.findings
    ]  # fmt: skip
    faults = {}
    for item in verdict.findings:
        key = (item.rule, item.code, item.severity)
        faults[key] = faults.get(key, 0) + 1
    return {
        "contract": verdict.contract,
        "passed": verdict.passed,
        "first_error": verdict.first_error.code if verdict.first_error else None,
        "faults": [dict(zip(("rule", "code", "severity"), key), count=count) for key, count in faults.items()],
        "findings": findings,
    }


@pytest.mark.parametrize("type_", TYPES, ids=str)
@pytest.mark.parametrize("contract", ["thinkingml", "auto"])
def test_rows_are_those_of_check(type_, contract):
    source = pa.record_batch([column(type_)], ["reply"])
    expected = [verdict_of(reply, contract) for reply in REPLIES]
    for offset in (0, 3):
        for threads in (1, 3):
            rows = check(source.slice(offset), contract=contract, threads=threads).to_pylist()
            assert rows == expected[offset:]


def decoded_row(reply, dialect):
    if reply is None:
        return dict.fromkeys(decode(batch([None])).schema.names)
    events = list(tambour.decode(reply, dialect))
    by_kind = lambda kind: [event for event in events if isinstance(event, kind)]  # noqa: E731
    phases = {}
    for event in by_kind(tambour.PhaseDelta):
        phases[event.id] = phases.get(event.id, "") + event.text
    end = events[-1]
    is_failed = isinstance(end, tambour.Failure)
    plans = by_kind(tambour.Plan)
    decoder = tambour.decode(reply, dialect)
    list(decoder)
    row = {
        "dialect": decoder.dialect,
        "answer": "".join(event.text for event in by_kind(tambour.FinalDelta)),
        "reasoning": "\n\n".join(phases.values()) if phases else None,
        "queries": [query for event in by_kind(tambour.SerpQueries) for query in event.queries],
        "plan": plans[-1].plan if plans else None,
        "plan_executable": plans[-1].executable if plans else None,
        "calls": [
            {"call_id": call.call_id, "name": call.name, "args": call.args} for call in by_kind(tambour.ToolCall)
        ],
        "truncated": is_failed or end.metadata.truncated,
        "fallback_reason": None if is_failed else end.metadata.fallback_reason,
        "error": end.code if is_failed else None,
    }
    return row


@pytest.mark.parametrize("dialect", ["thinkingml", "plain", "jsonseq", "aiplan", "json_value", "filament"])
def test_rows_are_those_of_decode(dialect, golden):
    chosen = [row for row in golden if row["dialect"] == dialect and not row["options"] and row["reasoning"] is None]
    texts = [row["input"] for row in chosen[:60]] + [b"", b"\xff\xfe", b"{", None]
    assert len(texts) > 10
    source = pa.record_batch({"reply": pa.array(texts, pa.binary())})
    for row, text in zip(decode(source, dialect=dialect).to_pylist(), texts):
        for name in ("faults", "repaired"):
            value = row.pop(name)
            if text is not None and name == "repaired" and value is not None:
                assert value == tambour.repair(text, dialect).text
        expected = decoded_row(text, dialect)
        if text is None:
            assert not any(row.values())
            continue
        row["calls"] = [{**call, "args": json.loads(call["args"])} for call in row["calls"]]
        row["plan"] = row["plan"] and json.loads(row["plan"])
        assert row == expected, text


def test_plans_and_calls_are_typed_columns(golden):
    with_calls = [row["input"] for row in golden if any(event["event"] == "tool_call" for event in row.get("events", []))
                  and row["dialect"] == "aiplan" and not row["options"]]  # fmt: skip
    assert with_calls
    source = pa.record_batch({"reply": pa.array([*with_calls, b"no plan"], pa.binary())})
    result = decode(source, dialect="aiplan", columns=["plan_executable", "calls"])
    call = pa.struct({"call_id": pa.utf8(), "name": pa.utf8(), "args": pa.utf8()})
    assert result.schema.field("calls").type == pa.list_(call)
    rows = result.to_pylist()
    assert any(row["plan_executable"] and row["calls"] for row in rows)
    assert not rows[-1]["calls"]
    # Nothing in a truncated reply acts.
    cut = decode(source, dialect="aiplan", finish="length", columns=["plan_executable", "calls"])
    assert not any(row["calls"] for row in cut.to_pylist())


def test_columns_keep_and_prefix():
    source = batch().append_column("tags", pa.array([["a"]] * len(REPLIES)))
    result = check(source, columns=["passed"], keep=["tags", "id"], prefix="t_")
    assert result.schema.names == ["tags", "id", "t_passed"]
    assert result["tags"].to_pylist() == [["a"]] * len(REPLIES)
    assert check(source, columns=["passed", "contract"], keep=True).schema.names == [
        "id", "reply", "tags", "passed", "contract",
    ]  # fmt: skip
    assert decode(source, columns=[]).num_rows == len(REPLIES)
    clash = batch().append_column("passed", pa.array([True] * len(REPLIES)))
    with pytest.raises(ValueError, match="two columns are called `passed`"):
        check(clash, keep=True)


def test_mistakes_of_the_caller():
    for function, match in (
        (lambda: check(batch(), column="text"), "no column `text`; there are id, reply"),
        (lambda: check(batch(), column="id"), "column `id` is Int64"),
        (lambda: check(batch(), columns=["verdict"]), "unknown column"),
        (lambda: check(batch(), keep=["x"]), "no column `x`"),
        (lambda: check(batch(), contract="x"), "unknown contract"),
        (lambda: decode(batch(), dialect="x"), "unknown dialect"),
        (lambda: decode(batch(), finish="x"), "unknown finish reason"),
        (lambda: check(batch(), threads=0), "threads"),
        (lambda: check(batch(), limits_input="x"), "limits"),
    ):
        with pytest.raises(ValueError, match=match):
            function()
    for value in (5, "text", {"reply": ["a"]}, [batch()], None):
        with pytest.raises(TypeError):
            check(value)

    class Wrong:
        def __arrow_c_array__(self, requested_schema=None):
            return 1

    with pytest.raises(TypeError):
        check(Wrong())

    class Used:
        def __init__(self):
            self.capsules = batch().__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema=None):
            return self.capsules

    used = Used()
    assert len(check(used)) == len(REPLIES)
    with pytest.raises(ValueError, match="used already"):
        check(used)


def test_tables_readers_and_iterators():
    table = pa.Table.from_batches([batch(), batch(["x"]), batch([]), batch()])
    run = functools.partial(check, contract="thinkingml", keep=["id"])
    expected = [row for part in table.to_batches() for row in run(part).to_pylist()]
    result = run(table)
    assert isinstance(result, pa.Table) and result.to_pylist() == expected
    reader = run(table.to_reader())
    assert isinstance(reader, pa.RecordBatchReader)
    assert reader.schema == result.schema and reader.read_all().to_pylist() == expected
    parts = run(iter(table.to_batches()))
    assert [row for part in parts for row in part.to_pylist()] == expected
    assert run(table.slice(0, 0)).num_rows == 0


def test_a_reader_is_read_on_demand():
    seen = []

    def produce():
        for number in range(5):
            seen.append(number)
            yield batch()

    reader = check(pa.RecordBatchReader.from_batches(batch().schema, produce()))
    assert seen == []
    assert reader.read_next_batch().num_rows == len(REPLIES) and seen == [0]
    # An exception of the source ends the stream, and passes.

    def fail():
        yield batch()
        raise RuntimeError("the source is down")

    reader = check(pa.RecordBatchReader.from_batches(batch().schema, fail()))
    assert reader.read_next_batch().num_rows == len(REPLIES)
    with pytest.raises(Exception, match="the source is down"):
        reader.read_next_batch()


def test_large_batches_of_a_stream_are_cut():
    table = pa.table({"reply": ["x"] * 70_000})
    assert [part.num_rows for part in check(table, columns=["passed"]).to_batches()] == [65_536, 4_464]


def test_polars():
    frame = polars.DataFrame({"id": range(len(REPLIES)), "reply": REPLIES})
    result = check(frame, contract="thinkingml", keep=True)
    assert isinstance(result, polars.DataFrame) and result.columns[:2] == ["id", "reply"]
    assert result["passed"].to_list() == check(batch(), contract="thinkingml")["passed"].to_pylist()
    chosen = frame.with_columns(polars.col("reply").cast(polars.Categorical))
    assert check(chosen, contract="thinkingml")["passed"].to_list() == result["passed"].to_list()
    lazy = frame.lazy().map_batches(functools.partial(decode, dialect="plain", columns=["answer"]), schema={"answer": polars.String})
    assert lazy.collect()["answer"].to_list()[1] is None


def test_pandas():
    result = check(batch().to_pandas(), contract="thinkingml", keep=["id"], columns=["passed"])
    assert isinstance(result, pandas.DataFrame) and list(result.columns) == ["id", "passed"]
    passed = check(batch(), contract="thinkingml")["passed"].to_pylist()
    assert [None if value is None else bool(value) for value in result["passed"]] == passed


def test_duckdb():
    source = duckdb.from_arrow(pa.Table.from_batches([batch()]))
    result = check(source, contract="thinkingml", keep=["id"])
    assert isinstance(result, tambour.arrow.StreamResult)
    found = duckdb.sql("select id, passed, len(faults) from result where first_error is not null order by id").fetchall()
    expected = [row for row in check(batch(), contract="thinkingml", keep=["id"]).to_pylist() if row["first_error"]]
    assert found == [(row["id"], row["passed"], len(row["faults"])) for row in expected]
    assert pa.table(result).num_rows == len(REPLIES)


def test_a_stream_on_demand_is_read_once():
    class BatchStream:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.Table.from_batches([batch()]).__arrow_c_stream__()

    result = check(BatchStream(), contract="plain")
    assert pa.table(result).num_rows == len(REPLIES)
    with pytest.raises(ValueError, match="read already"):
        pa.table(result)


def test_the_lock_is_released_and_threads_share_nothing():
    source = batch([VALID * 4] * 3000)
    expected = check(source, contract="thinkingml", threads=1, columns=["passed"])
    results = {}
    ticks = 0
    workers = [
        threading.Thread(target=lambda key=key: results.update({key: check(source, contract="thinkingml", columns=["passed"])}))
        for key in range(3)
    ]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        ticks += 1
        workers[0].join(0.001)
    assert ticks > 1
    assert all(results[key] == expected for key in range(3))


def test_limits_and_options_hold_for_each_row():
    rows = check(batch(["x" * 200, "x"]), contract="plain", limits_input=100).to_pylist()
    assert [row["first_error"] for row in rows] == ["input_too_large", None]
    rows = decode(batch(["x" * 200, "x"]), dialect="plain", limits_input=100).to_pylist()
    assert rows[0]["error"] == "input_too_large" and rows[1]["error"] is None


def test_documented_columns_are_those_of_the_result():
    for function in (check, decode):
        documented = [
            name
            for line in re.findall(r"^ *\| (`[^|]*) \|", function.__doc__, re.MULTILINE)
            for name in re.findall(r"`(\w+)`", line)
        ]
        assert documented == function(batch()).schema.names
    page = (pathlib.Path(__file__).parent / "../../../docs/python.md").read_text()
    for name in [*check(batch()).schema.names, *decode(batch()).schema.names]:
        assert f"`{name}`" in page, name
