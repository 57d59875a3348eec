"""Streams of objects of `openai` and `anthropic`: as their own packages build them, and as dictionaries."""

from __future__ import annotations

import asyncio
import json

import anthropic.types
import openai.types.chat
import openai.types.responses
import pytest
import tambour
import tambour._fields
import tambour.anthropic
import tambour.openai
from pydantic import BaseModel, TypeAdapter
from tambour import Failure, FinalDelta, PhaseDelta, ToolCall

TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "required": ["a"]}}}]
ANTHROPIC_TOOLS = [{"name": "add", "input_schema": {"type": "object", "required": ["a"]}}]


def chunk(delta=None, finish=None, usage=None, index=0):
    choices = [] if delta is None else [{"index": index, "delta": delta, "finish_reason": finish}]
    return {
        "id": "c", "created": 1, "model": "m", "object": "chat.completion.chunk", "choices": choices, "usage": usage,
    }  # fmt: skip


USAGE = {"completion_tokens": 2, "prompt_tokens": 3, "total_tokens": 5}


def chat(*chunks):
    return [openai.types.chat.ChatCompletionChunk.model_validate(item) for item in chunks]


def answer(events):
    return "".join(event.text for event in events if isinstance(event, FinalDelta))


def calls(events):
    return [(event.name, event.args) for event in events if isinstance(event, ToolCall)]


def both(chunks):
    """The stream as objects and as dictionaries."""
    return [chat(*chunks), list(chunks)]


def test_chat_text_reasoning_and_usage():
    chunks = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "2 + 2 "}),
        chunk({"reasoning": "is 4."}),
        chunk({"content": "It is"}),
        chunk({"content": "another choice"}, index=1),
        chunk({"content": " 4."}),
        chunk({}, finish="stop"),
        chunk(usage=USAGE),
    ]
    for stream in both(chunks):
        events = list(tambour.openai.decode(stream, "plain"))
        assert answer(events) == "It is 4."
        assert "".join(event.text for event in events if isinstance(event, PhaseDelta)) == "2 + 2 is 4."
        assert events[-1].finish_reason == "stop" and not events[-1].metadata.truncated
        assert events[-1].usage["total_tokens"] == 5


def tool_chunks(finish):
    return [
        chunk({"tool_calls": [{"index": 0, "id": "x", "type": "function", "function": {"name": "add", "arguments": ""}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"a"'}}]}),
        chunk({"tool_calls": [{"index": 1, "id": "y", "function": {"name": "add", "arguments": '{"a": 2}'}}]}),
        chunk({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]}),
        *([chunk({}, finish=finish)] if finish else []),
    ]


def test_chat_calls():
    for stream in both(tool_chunks("tool_calls")):
        events = list(tambour.openai.decode(stream, "toolcall", tools=TOOLS))
        assert calls(events) == [("add", {"a": 1}), ("add", {"a": 2})]
        assert events[-1].finish_reason == "tool_calls"
    for finish in ("length", None):
        events = list(tambour.openai.decode(tool_chunks(finish), "toolcall", tools=TOOLS))
        assert calls(events) == [] and events[-1].metadata.truncated


def test_chat_errors():
    events = list(tambour.openai.decode([chunk({"content": "It"}), {"error": {"code": "overloaded", "message": "later"}}], "plain"))
    assert events[-1] == Failure("overloaded", "later", True)


def response_events(items, end):
    adapter = TypeAdapter(openai.types.responses.ResponseStreamEvent)
    return [adapter.validate_python(item) for item in [*items, end]]


def response(status, **fields):
    return {
        "id": "r", "created_at": 1, "model": "m", "object": "response", "output": [], "parallel_tool_calls": True,
        "tool_choice": "auto", "tools": [], "status": status, **fields,
    }  # fmt: skip


def test_responses():
    text = {"type": "response.output_text.delta", "content_index": 0, "item_id": "i", "output_index": 0, "sequence_number": 1, "logprobs": []}
    reasoning = {"type": "response.reasoning_text.delta", "content_index": 0, "item_id": "i", "output_index": 0, "sequence_number": 0, "delta": "2 + 2"}
    call = {
        "type": "response.output_item.done", "output_index": 1, "sequence_number": 2,
        "item": {"type": "function_call", "name": "add", "arguments": '{"a": 1}', "call_id": "x"},
    }  # fmt: skip
    done = {"type": "response.completed", "sequence_number": 3, "response": response("completed")}
    items = [reasoning, {**text, "delta": "It is"}, {**text, "delta": " 4."}]
    events = list(tambour.openai.decode(response_events(items, done), "plain"))
    assert answer(events) == "It is 4." and events[-1].finish_reason == "stop"
    assert any(isinstance(event, PhaseDelta) and event.text == "2 + 2" for event in events)
    events = list(tambour.openai.decode(response_events([call], done), "toolcall", tools=TOOLS))
    assert calls(events) == [("add", {"a": 1})] and events[-1].finish_reason == "tool_calls"
    cut = {
        "type": "response.incomplete", "sequence_number": 3,
        "response": response("incomplete", incomplete_details={"reason": "max_output_tokens"}),
    }  # fmt: skip
    events = list(tambour.openai.decode(response_events([call], cut), "toolcall", tools=TOOLS))
    assert calls(events) == [] and events[-1].finish_reason == "length"
    failed = {
        "type": "response.failed", "sequence_number": 3,
        "response": response("failed", error={"code": "server_error", "message": "oh"}),
    }  # fmt: skip
    events = list(tambour.openai.decode(response_events(items, failed), "plain"))
    assert events[-1] == Failure("server_error", "oh", True)


def message_events(deltas, stop_reason="end_turn", blocks=()):
    start = {
        "type": "message_start",
        "message": {
            "id": "m", "content": [], "model": "m", "role": "assistant", "stop_reason": None, "stop_sequence": None,
            "type": "message", "usage": {"input_tokens": 3, "output_tokens": 1},
        },
    }  # fmt: skip
    end = [
        {
            "type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": None},
            "usage": {"output_tokens": 7},
        },
        {"type": "message_stop"},
    ]  # fmt: skip
    items = [start, *blocks, *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas)]
    return items + (end if stop_reason else [])


def as_objects(items):
    adapter = TypeAdapter(anthropic.types.RawMessageStreamEvent)
    return [adapter.validate_python(item) for item in items]


def test_messages():
    items = message_events([
        {"type": "thinking_delta", "thinking": "2 + 2"},
        {"type": "text_delta", "text": "It is"},
        {"type": "text_delta", "text": " 4."},
    ])  # fmt: skip
    for stream in (items, as_objects(items), [*items, {"type": "text", "text": " 4.", "snapshot": "It is 4."}]):
        events = list(tambour.anthropic.decode(stream, "plain"))
        assert answer(events) == "It is 4."
        assert any(isinstance(event, PhaseDelta) and event.text == "2 + 2" for event in events)
        assert events[-1].usage["input_tokens"] == 3 and events[-1].usage["output_tokens"] == 7


def test_tool_uses():
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "add", "input": {}}}
    pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", '{"a"', ": 1}")]
    items = message_events(pieces, "tool_use", [block])
    for stream in (items, as_objects(items)):
        events = list(tambour.anthropic.decode(stream, "toolcall", tools=ANTHROPIC_TOOLS))
        assert calls(events) == [("add", {"a": 1})] and events[-1].finish_reason == "tool_calls"
    for stop in ("max_tokens", None):
        events = list(tambour.anthropic.decode(message_events(pieces, stop, [block]), "toolcall", tools=ANTHROPIC_TOOLS))
        assert calls(events) == [] and events[-1].metadata.truncated


def test_errors_of_messages():
    stream = [*message_events([{"type": "text_delta", "text": "It"}], None), {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}]
    events = list(tambour.anthropic.decode(stream, "plain"))
    assert events[-1] == Failure("overloaded_error", "later", True)


class Trip(BaseModel):
    city: str
    days: int


TRIP = '{"city": "Lyon", "days": 3}'


def test_models_from_streams():
    stream = [*(chunk({"content": letter}) for letter in TRIP), chunk({}, finish="stop")]
    assert tambour.openai.decode_into(Trip, stream).final() == Trip(city="Lyon", days=3)
    items = message_events([{"type": "text_delta", "text": letter} for letter in TRIP])
    assert tambour.anthropic.decode_into(Trip, items).final() == Trip(city="Lyon", days=3)
    cut = [chunk({"content": TRIP[:-1]}), chunk({}, finish="length")]
    with pytest.raises(tambour.DecodeError):
        tambour.openai.decode_into(Trip, cut).final()


def test_asynchronous_streams():
    async def source(items):
        for item in items:
            await asyncio.sleep(0)
            yield item

    async def main():
        stream = [chunk({"content": "It is"}), chunk({"content": " 4."}), chunk({}, finish="stop")]
        decoder = tambour.openai.decode(source(stream), "plain")
        assert answer([event async for event in decoder]) == "It is 4."
        items = message_events([{"type": "text_delta", "text": json.dumps(json.loads(TRIP))}])
        assert await tambour.anthropic.decode_into(Trip, source(items)).final() == Trip(city="Lyon", days=3)

    asyncio.run(main())


def test_usage_of_an_unknown_form_is_left_out():
    events = list(tambour.openai.decode([{"usage": object()}, chunk({"content": "a"}, finish="stop")], "plain"))
    assert events[-1].usage is None and not events[-1].metadata.truncated


def test_objects_of_other_kinds_are_ignored():
    for stream in ([None, 5, object(), {}, {"type": 7}, {"choices": "x"}, {"choices": [None, 3, {"delta": 5}]}],):
        events = list(tambour.openai.decode(stream, "plain"))
        assert events[-1].metadata.truncated
        events = list(tambour.anthropic.decode(stream, "plain"))
        assert events[-1].metadata.truncated


def openai_calls(deltas, finish="tool_calls"):
    stream = [*(chunk(delta) for delta in deltas), chunk({}, finish=finish)]
    events = list(tambour.openai.decode(stream, "toolcall", tools=TOOLS))
    return calls(events)


def test_empty_finish_reasons_are_none():
    stream = [chunk({"content": "It is 4."}, finish=""), chunk({"content": " So"}, finish="")]
    for reading in (tambour.openai.decode(stream, "plain"), tambour.openai.decode(stream[:1], "plain")):
        assert list(reading)[-1].metadata.truncated
    stream = [chunk({"tool_calls": [{"index": 0, "function": {"name": "add", "arguments": '{"a": 1}'}}]}, finish="")]
    assert calls(tambour.openai.decode(stream, "toolcall", tools=TOOLS)) == []
    events = list(tambour.openai.decode([chunk({"content": "It"}, finish="max_tokens")], "plain"))
    assert events[-1].finish_reason == "length"
    items = message_events([{"type": "text_delta", "text": "It"}], stop_reason="")
    assert list(tambour.anthropic.decode(items, "plain"))[-1].metadata.truncated


def function(name, arguments, **fields):
    return {"tool_calls": [{"type": "function", "function": {"name": name, "arguments": arguments}, **fields}]}


@pytest.mark.parametrize("fields", [
    [{}, {}],
    [{"id": "x"}, {"id": "y"}],
    [{"index": 0, "id": "x"}, {"index": 0, "id": "y"}],
    [{"index": 0}, {"index": 1}],
    [{"index": None, "id": ""}, {"index": None, "id": ""}],
])  # fmt: skip
def test_calls_are_told_apart(fields):
    deltas = [function("add", '{"a": 1}', **fields[0]), function("add", '{"a": 2}', **fields[1])]
    assert openai_calls(deltas) == [("add", {"a": 1}), ("add", {"a": 2})]


def test_pieces_of_calls_are_joined():
    # Name and id may be repeated in each piece, or come once; without number and id a name begins the next call.
    deltas = [function("add", '{"a"', index=0, id="x"), function("add", ": 1}", index=0, id="x")]
    assert openai_calls(deltas) == [("add", {"a": 1})]
    deltas = [function("add", '{"a"'), function(None, ": 1}"), function("add", {"a": 2})]
    assert openai_calls(deltas) == [("add", {"a": 1}), ("add", {"a": 2})]
    deltas = [{"function_call": {"name": "add", "arguments": '{"a"'}}, {"function_call": {"arguments": ": 1}"}}]
    assert openai_calls(deltas, "function_call") == [("add", {"a": 1})]


def test_pieces_of_tools_of_the_service_are_no_calls():
    blocks = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": kind, "id": "s", "name": "add", "input": {}}}
        for kind in ("server_tool_use", "mcp_tool_use")
    ]
    deltas = [{"type": "input_json_delta", "partial_json": '{"a": 1}'}]
    items = message_events(deltas, stop_reason="tool_use", blocks=blocks)
    events = list(tambour.anthropic.decode(items, "toolcall", tools=ANTHROPIC_TOOLS))
    assert calls(events) == [] and not [event for event in events if isinstance(event, tambour.Notice)]


@pytest.mark.parametrize("limit", [{"limits_input": 1000}, {"limits.input": 1000}])
def test_arguments_of_calls_are_bounded(limit):
    collected = []

    def source():
        yield chunk(function("add", '{"a": "', index=0))
        for _ in range(10_000):
            yield chunk(function(None, "x" * 100, index=0))
        yield chunk({}, finish="tool_calls")

    events = list(tambour.openai.decode(source(), "toolcall", tools=TOOLS, **limit))
    assert isinstance(events[-1], Failure) and events[-1].code == "input_too_large"
    collector = tambour._fields.CallCollector({"limits_input": 1000})
    for _ in range(10_000):
        collector.add(0, None, "add", "x" * 100)
    collector.push_all(type("Pipeline", (), {"push_call": lambda self, name, text: collected.append(text) or []})())
    assert len(collected[0]) <= 1001


def test_surrogates_in_pieces_are_replaced():
    # A pair that a service cut between two pieces of reasoning, and one in the arguments of a call.
    deltas = [
        {"reasoning_content": "a \ud83d"}, {"reasoning_content": "\ude00 b"}, {"content": "It \ud83d"},
        function("add", '{"a": "\ud83d"}', index=0),
    ]  # fmt: skip
    stream = [*(chunk(delta) for delta in deltas), chunk({}, finish="tool_calls")]
    decoder = tambour.openai.decode(stream, "toolcall", tools=TOOLS)
    events = list(decoder)
    assert calls(events) == [("add", {"a": "\ufffd"})]
    assert events[-1].event == "completed"
    assert any(finding.code == "not_utf8" for finding in decoder.findings)
    pipeline = tambour.Pipeline("plain")
    pipeline.push_reasoning("\ud83d\ude00\ud83d")
    assert pipeline.fail("\udcff", code="x\ud800")[-1] == Failure("x\ufffd", "\ufffd", True)


def test_an_object_that_cannot_be_read_closes_the_stream():
    class Hostile:
        @property
        def choices(self):
            raise RuntimeError("\udcff broken")

    for stream in ([chunk({"content": "It is"}), Hostile()], iter([chunk({"content": "It is"}), Hostile()])):
        decoder = tambour.openai.decode(stream, "plain")
        events = []
        with pytest.raises(RuntimeError, match="broken"):
            for event in decoder:
                events.append(event)
        assert events[-1] == Failure("input_failed", "\ufffd broken", False)
        assert answer(events) == "It is" and list(decoder) == []


def test_streams_know_their_dialect():
    decoder = tambour.openai.decode([chunk({"content": "It is 4."}, finish="stop")])
    assert decoder.dialect == "auto"
    list(decoder)
    assert decoder.dialect == "plain"


@pytest.mark.parametrize("item", ["It is 4.", b"data: {}", bytearray(b"x")])
def test_text_in_place_of_chunks_is_refused(item):
    with pytest.raises(TypeError, match="stream=True"):
        list(tambour.openai.decode([item], "plain"))
