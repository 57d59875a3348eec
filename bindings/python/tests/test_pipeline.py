"""Pipelines and decoders: ends, tool loops, mistakes, memory, threads."""

from __future__ import annotations

import copy
import gc
import pickle
import resource
import sys
import threading
import time
import weakref

import pytest
import tambour
from tambour import Completed, Failure, FinalDelta, Pipeline, ToolCall, ToolResult

TOOLS = {"add": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}
CALL = '<tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>'


def names(events):
    return [event.event for event in events]


def test_the_first_page():
    events = list(tambour.decode(["<think>2 + 2</thi", "nk>It is 4."], dialect="plain"))
    assert names(events) == [
        "thinking_start", "phase_start", "phase_delta", "thinking_end", "final_delta", "final_end", "completed",
    ]  # fmt: skip
    match events[-1]:
        case Completed(finish_reason="stop", metadata=tambour.Metadata(dialect=dialect)):
            assert dialect == "plain"
        case other:
            raise AssertionError(other)


def test_match_args_are_the_fields_in_order():
    match tambour.PhaseStart(1, "Sum"):
        case tambour.PhaseStart(number, title):
            assert (number, title) == (1, "Sum")
    assert tambour.Finding.__match_args__[:3] == ("rule", "code", "severity")


def test_events_are_values():
    events = list(tambour.decode(CALL + "Done", "toolcall", tools=TOOLS, findings=True))
    assert any(isinstance(event, ToolCall) for event in events)
    for event in events:
        assert pickle.loads(pickle.dumps(event)) == event
        assert copy.deepcopy(event) == event
        assert repr(event).startswith(type(event).__name__ + "(")
        # Before Python 3.12 the error is about `super`, for a name that is no field.
        with pytest.raises((AttributeError, TypeError)):
            event.event = "other"
        for name in type(event).__match_args__:
            with pytest.raises(AttributeError):
                setattr(event, name, None)
        assert not hasattr(event, "__dict__")
    assert hash(FinalDelta("a")) == hash(FinalDelta("a"))
    assert FinalDelta("a") != FinalDelta("b")
    made = next(event for event in events if isinstance(event, tambour.Completed))
    assert made == tambour.Completed(**{name: getattr(made, name) for name in made.__match_args__})


def test_ends():
    def last(**arguments):
        return list(tambour.decode("It is", "plain", **arguments))[-1]

    assert last(finish="length").metadata.truncated
    assert last(finish=None).finish_reason == "length"
    assert not last().metadata.truncated
    pipeline = Pipeline("plain")
    pipeline.push("It is")
    events = pipeline.fail("the line is down", code="gone", retryable=False)
    assert events[-1] == Failure("gone", "the line is down", False)
    assert pipeline.push("more") == [] and pipeline.finish() == []
    assert pipeline.outcome.failure == events[-1]
    with pytest.raises(tambour.TambourError, match="finish reason"):
        Pipeline("plain").finish("end")


def test_usage_and_reasoning():
    pipeline = Pipeline("plain")
    pipeline.set_usage({"total_tokens": 7})
    events = pipeline.push_reasoning("Hm.") + pipeline.push("Yes.") + pipeline.finish()
    assert any(getattr(event, "text", None) == "Hm." for event in events)
    assert events[-1].usage == {"total_tokens": 7}


def test_calls_act_only_in_a_complete_reply():
    for finish, expected in [("tool_calls", 1), ("length", 0), (None, 0)]:
        pipeline = Pipeline("toolcall", tools=TOOLS)
        events = pipeline.push_call("add", '{"a": 1}') + pipeline.finish(finish)
        calls = [event for event in events if isinstance(event, ToolCall)]
        assert len(calls) == expected == len(pipeline.outcome.calls)


def test_tools_as_services_take_them():
    tools = [{"type": "function", "function": {"name": "add", "parameters": TOOLS["add"]}}]
    for form in (tools, [{"name": "add", "input_schema": TOOLS["add"]}]):
        events = list(tambour.decode(CALL, "toolcall", tools=form))
        assert [event.args for event in events if isinstance(event, ToolCall)] == [{"a": 1}]
    with pytest.raises(tambour.TambourError, match="no `name`"):
        Pipeline("toolcall", tools=[{}])


def test_events_from_outside_are_put_into_the_stream():
    pipeline = Pipeline("toolcall", tools=TOOLS)
    events = pipeline.push(CALL)
    events += pipeline.insert(ToolResult("call_1", True, 2, None, 5))
    assert ToolResult("call_1", True, 2, None, 5) in events
    with pytest.raises(ValueError, match="extension events"):
        pipeline.insert(FinalDelta("x"))


def test_extensions_can_be_left_out():
    events = list(tambour.decode(CALL, "toolcall", tools=TOOLS, extensions=False))
    assert not any(isinstance(event, ToolCall) for event in events)


def test_mistakes_of_the_caller():
    with pytest.raises(tambour.TambourError, match="known: plain"):
        Pipeline("plane")
    with pytest.raises(tambour.TambourError, match="unknown option `nothing`"):
        Pipeline("plain", nothing=1)
    with pytest.raises(tambour.TambourError, match="plain.reasoning"):
        Pipeline("plain", plain_reasoning="maybe")
    assert Pipeline("plain", **{"plain.reasoning": "none"}).dialect == "plain"
    for chunk in (1, None, ["a"], object()):
        with pytest.raises(TypeError, match="a chunk must be str or bytes"):
            Pipeline("plain").push(chunk)
    with pytest.raises(TypeError):
        tambour.decode(5)


def test_hostile_options():
    loop: dict = {}
    loop["a"] = loop
    wide: list = [0] * 10
    for _ in range(12):
        wide = [wide] * 10
    for value, error in [
        (loop, ValueError),
        (wide, ValueError),
        (10**30, ValueError),
        (float("nan"), ValueError),
        ({1: 2}, TypeError),
        ({"a": {1, 2}}, TypeError),
        ("\ud800", ValueError),
    ]:
        with pytest.raises(error):
            Pipeline("json_value", json_value_schema=value)


def test_surrogates_are_replaced_and_reported():
    decoder = tambour.decode(["a\ud83d", "\ude00b"], "plain")
    text = "".join(event.text for event in decoder if isinstance(event, FinalDelta))
    assert text.startswith("a") and text.endswith("b") and "\ufffd" in text
    assert any(finding.code == "not_utf8" for finding in decoder.findings)


def test_chunks_of_every_kind():
    for chunk in (b"Hi.", bytearray(b"Hi."), memoryview(b"Hi."), "Hi."):
        for source in (chunk, [chunk], (chunk,), iter([chunk])):
            events = list(tambour.decode(source, "plain"))
            assert any(isinstance(event, FinalDelta) and event.text == "Hi." for event in events)


def test_an_exception_of_the_source_comes_behind_a_closed_stream():
    def source():
        yield "It is"
        raise OSError("the line is down")

    decoder = tambour.decode(source(), "plain")
    events = []
    with pytest.raises(OSError, match="the line is down"):
        for event in decoder:
            events.append(event)
    assert events[-1] == Failure("input_failed", "OSError: the line is down", False)
    assert list(decoder) == []


def test_an_interrupt_comes_at_once():
    def source():
        yield "It is"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(tambour.decode(source(), "plain"))


def test_a_wrong_chunk_is_an_exception_of_the_source():
    for source in (["It is", 5], iter(["It is", 5])):
        events = []
        with pytest.raises(TypeError, match="not int"):
            for event in tambour.decode(source, "plain"):
                events.append(event)
        assert isinstance(events[-1], Failure)


def test_a_generator_is_let_go():
    closed = []

    def source():
        try:
            while True:
                yield "more "
        finally:
            closed.append(True)

    decoder = tambour.decode(source(), "plain")
    for event in decoder:
        if isinstance(event, FinalDelta):
            break
    decoder.close()
    gc.collect()
    assert closed == [True] and list(decoder) == []


def test_a_cycle_is_collected():
    class Source:
        def __iter__(self):
            return self

        def __next__(self):
            return "a"

    source = Source()
    source.decoder = tambour.decode(source, "plain")
    gone = weakref.ref(source)
    next(source.decoder)
    del source
    gc.collect()
    assert gone() is None


def test_a_list_that_changes_while_it_is_read():
    chunks = ["a"]
    decoder = tambour.decode(chunks, "plain")
    next(decoder)
    chunks.clear()
    assert isinstance(list(decoder)[-1], Completed)


def test_a_pipeline_that_is_used_while_it_reads():
    """A source that reads from its own decoder gets an error, not a deadlock."""

    def source():
        yield "a"
        next(holder[0])

    holder = []
    holder.append(tambour.decode(source(), "plain"))
    with pytest.raises(RuntimeError):
        list(holder[0])


def test_sizes_are_bounded():
    events = list(tambour.decode(["x" * 1000] * 100, "plain", limits_input=4096))
    assert events[-1].code == "input_too_large"
    deep = "[" * 100_000
    # Deeper than `limits.depth`, there is no whole value.
    with pytest.raises(tambour.DecodeError) as raised:
        tambour.loads(deep, findings=True)
    assert raised.value.findings[0].code == "limit_exceeded" and len(raised.value.findings) < 2000
    assert tambour.check(deep, "aiplan").passed is False


def test_ten_thousand_pipelines_leave_memory_flat():
    reply = "<think>2 + 2</think>It is 4. " + CALL + "{'a': 1,}"

    def round_of(count):
        for _ in range(count):
            decoder = tambour.decode([reply, "x" * 100], "toolcall", tools=TOOLS)
            for _ in decoder:
                pass
            decoder.findings
            decoder.outcome
            tambour.loads(reply)
            # One that is not read to its end.
            next(tambour.decode(iter([reply]), "plain"))
            with pytest.raises(tambour.TambourError):
                Pipeline("plane")

    def peak():
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    round_of(1000)
    before = peak()
    objects = len(gc.get_objects())
    round_of(9000)
    assert len(gc.get_objects()) - objects < 1000
    unit = 1024 if sys.platform != "darwin" else 1
    assert (peak() - before) * unit < 4 << 20


def test_threads_give_equal_results_and_run_in_parallel():
    text = ("<think>" + "2 + 2 " * 2000 + "</think>" + "It is *4*. " * 60_000).encode()
    expected = [event.to_dict() for event in tambour.decode(text, "plain")]
    results: list = [None] * 4

    def work(index):
        results[index] = [event.to_dict() for event in tambour.decode(text, "plain")]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(result == expected for result in results)


def test_the_lock_is_released_while_a_large_chunk_is_read():
    """Another thread counts on while the reply is read: without that it would stand still."""
    text = ("It is *4*. " * 100_000).encode()
    count = 0
    is_done = False

    def count_on():
        nonlocal count
        while not is_done:
            count += 1
            time.sleep(0)

    thread = threading.Thread(target=count_on)
    thread.start()
    before = count
    old = sys.getswitchinterval()
    # The lock is taken from a thread only after this time, so that only a release lets the other one run.
    sys.setswitchinterval(1000)
    try:
        # A busy machine may not run the other thread at once.
        for _ in range(1000):
            Pipeline("thinkingml").push(text)
            if count > before:
                break
        counted = count - before
    finally:
        sys.setswitchinterval(old)
        is_done = True
        thread.join()
    assert counted > 0
