"""Streams of the package `openai`, and of services with its interface, without depending on it.

Chunks of chat completions and events of responses are read by their fields, as objects or as dictionaries: text goes to
the reply, reasoning apart from it, complete tool calls to `tool_call`, and the finish reason decides whether the reply
counts as truncated.

>>> chunks = [{"choices": [{"index": 0, "delta": {"content": "It is "}, "finish_reason": None}]},
...           {"choices": [{"index": 0, "delta": {"content": "4."}, "finish_reason": "stop"}]}]
>>> [event.text for event in decode(chunks, "plain") if event.event == "final_delta"]
['It is', ' 4.']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from ._fields import CallCollector, get, set_usage
from ._native import Pipeline
from ._partial import AsyncPartials, Partials, read_partials
from ._streams import AsyncDecoder, ObjectDecoder, read_stream

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Iterable, Mapping

    from typing_extensions import Unpack

    from ._native import State
    from ._options import Options
    from ._types import AnyEvent

__all__ = ["decode", "decode_into"]

T = TypeVar("T")

#: Finish reasons of chat completions; another one is a normal end.
_REASONS = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
}


class OpenAiAdapter:
    """Passes chunks of chat completions, or events of responses, to a pipeline. Only the first choice is read."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._calls = CallCollector(options)
        #: Finish reason; `None` before it has come.
        self._reason: str | None = None
        self._failure: tuple[str, str, bool] | None = None
        self._has_call = False

    def push(self, pipeline: Pipeline, item: Any) -> list[AnyEvent]:
        if isinstance(item, (str, bytes, bytearray)):
            raise TypeError("expected chunks of a stream, not text; was `stream=True` left out?")
        kind = get(item, "type")
        if isinstance(kind, str) and get(item, "choices") is None:
            return self._push_event(pipeline, kind, item)
        return self._push_chunk(pipeline, item)

    def _push_chunk(self, pipeline: Pipeline, chunk: Any) -> list[AnyEvent]:
        events: list[AnyEvent] = []
        if (usage := get(chunk, "usage")) is not None:
            set_usage(pipeline, usage)
        if (error := get(chunk, "error")) is not None:
            self._fail(error)
        for choice in get(chunk, "choices") or []:
            if get(choice, "index") not in (None, 0):
                continue
            delta = get(choice, "delta")
            # Services name the field of reasoning in two ways.
            for name in ("reasoning_content", "reasoning"):
                if isinstance(text := get(delta, name), str) and text:
                    events += pipeline.push_reasoning(text)
                    break
            for name in ("content", "refusal"):
                if isinstance(text := get(delta, name), str) and text:
                    events += pipeline.push(text)
            for call in get(delta, "tool_calls") or []:
                self._add_call(call, get(call, "function"))
            # The older field, from before `tool_calls` existed: at most one call, without an id.
            if (function := get(delta, "function_call")) is not None:
                self._add_call(None, function)
            # Some services write an empty reason into each chunk.
            if reason := get(choice, "finish_reason"):
                self._reason = _REASONS.get(str(reason), "stop")
        return events

    def _add_call(self, call: Any, function: Any) -> None:
        self._calls.add(
            get(call, "index"), get(call, "id"), get(function, "name"), get(function, "arguments")
        )

    def _push_event(self, pipeline: Pipeline, kind: str, event: Any) -> list[AnyEvent]:
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            return pipeline.push(get(event, "delta") or "")
        if kind in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
            return pipeline.push_reasoning(get(event, "delta") or "")
        if kind == "response.output_item.done":
            item = get(event, "item")
            if get(item, "type") == "function_call":
                self._has_call = True
                return pipeline.push_call(get(item, "name") or "", get(item, "arguments") or "")
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            response = get(event, "response")
            if (usage := get(response, "usage")) is not None:
                set_usage(pipeline, usage)
            if kind == "response.completed":
                self._reason = "tool_calls" if self._has_call else "stop"
            elif kind == "response.incomplete":
                reason = get(get(response, "incomplete_details"), "reason")
                self._reason = "content_filter" if reason == "content_filter" else "length"
            else:
                self._fail(get(response, "error"))
        elif kind == "error":
            self._fail(event)
        return []

    def _fail(self, error: Any) -> None:
        code, message = get(error, "code"), get(error, "message")
        self._failure = (str(message or "the service reported an error"), str(code or "upstream_failed"), True)

    def finish(self, pipeline: Pipeline) -> list[AnyEvent]:
        if self._failure is not None:
            message, code, retryable = self._failure
            return pipeline.fail(message, code=code, retryable=retryable)
        # A call of a stream that broke off may be cut in its arguments; the pipeline refuses it then.
        events = self._calls.push_all(pipeline)
        return events + pipeline.finish(self._reason)


@overload
def decode(
    stream: AsyncIterable[Any],
    dialect: str = ...,
    *,
    extensions: bool = ...,
    findings: bool = ...,
    state: State | None = ...,
    message: str = ...,
    **options: Unpack[Options],
) -> AsyncDecoder: ...
@overload
def decode(
    stream: Iterable[Any],
    dialect: str = ...,
    *,
    extensions: bool = ...,
    findings: bool = ...,
    state: State | None = ...,
    message: str = ...,
    **options: Unpack[Options],
) -> ObjectDecoder: ...


def decode(
    stream: Iterable[Any] | AsyncIterable[Any],
    dialect: str = "auto",
    *,
    extensions: bool = True,
    findings: bool = False,
    state: State | None = None,
    message: str = "",
    **options: Unpack[Options],
) -> ObjectDecoder | AsyncDecoder:
    """Reads a stream of `client.chat.completions.create(stream=True)` or `client.responses.create(stream=True)`.

    Arguments are those of `tambour.decode`; `tools` may be the list that the request had. A stream that ends without a
    finish reason is a truncated reply: nothing in it acts.
    """
    pipeline = Pipeline(
        dialect, extensions=extensions, findings=findings, state=state, message=message, **options
    )
    return read_stream(stream, pipeline, OpenAiAdapter(options))


@overload
def decode_into(
    model: type[T], stream: AsyncIterable[Any], **options: Unpack[Options]
) -> AsyncPartials[T]: ...
@overload
def decode_into(model: type[T], stream: Iterable[Any], **options: Unpack[Options]) -> Partials[T]: ...


def decode_into(
    model: type[T], stream: Iterable[Any] | AsyncIterable[Any], **options: Unpack[Options]
) -> Partials[T] | AsyncPartials[T]:
    """Reads the text of a stream into a pydantic model, as `tambour.decode_into` does."""
    return read_partials(model, stream, OpenAiAdapter(options), dict(options))
