"""Streams of the package `anthropic`, without depending on it.

Events of messages are read by their fields, as objects or as dictionaries: text goes to the reply, thinking apart from
it, complete tool uses to `tool_call`, and the stop reason decides whether the reply counts as truncated.

>>> events = [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "It is 4."}},
...           {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 4}}]
>>> [event.text for event in decode(events, "plain") if event.event == "final_delta"]
['It is 4.']
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ._fields import CallCollector, get, set_usage, to_plain
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

#: Stop reasons; another one is a normal end.
_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


class AnthropicAdapter:
    """Passes events of a message to a pipeline. Events that a helper of the package derives are left out."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._calls = CallCollector(options)
        #: Stop reason; `None` before it has come.
        self._reason: str | None = None
        self._failure: tuple[str, str] | None = None
        self._usage: dict[str, Any] = {}

    def push(self, pipeline: Pipeline, item: Any) -> list[AnyEvent]:
        kind = get(item, "type")
        if kind == "content_block_delta":
            return self._push_delta(pipeline, item)
        if kind == "content_block_start":
            block = get(item, "content_block")
            if get(block, "type") == "tool_use":
                self._calls.add(get(item, "index"), get(block, "id"), get(block, "name"), None)
                if arguments := get(block, "input"):
                    self._calls.set_default(get(item, "index"), json.dumps(to_plain(arguments)))
            elif isinstance(text := get(block, "text"), str) and text:
                return pipeline.push(text)
        elif kind in ("message_start", "message_delta"):
            part = get(item, "message") if kind == "message_start" else item
            usage = to_plain(get(part, "usage"))
            if isinstance(usage, dict):
                self._usage.update({key: value for key, value in usage.items() if value is not None})
                set_usage(pipeline, self._usage)
            if reason := get(get(item, "delta"), "stop_reason"):
                self._reason = _REASONS.get(str(reason), "stop")
        elif kind == "error":
            error = get(item, "error")
            message = get(error, "message") or "the service reported an error"
            self._failure = (str(message), str(get(error, "type") or "upstream_failed"))
        return []

    def _push_delta(self, pipeline: Pipeline, item: Any) -> list[AnyEvent]:
        delta = get(item, "delta")
        kind = get(delta, "type")
        if kind == "text_delta":
            return pipeline.push(get(delta, "text") or "")
        if kind == "thinking_delta":
            return pipeline.push_reasoning(get(delta, "thinking") or "")
        if kind == "input_json_delta":
            # Tools that the service runs itself have such pieces too; their blocks are no calls.
            self._calls.continue_call(get(item, "index"), get(delta, "partial_json"))
        return []

    def finish(self, pipeline: Pipeline) -> list[AnyEvent]:
        if self._failure is not None:
            message, code = self._failure
            return pipeline.fail(message, code=code)
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
    """Reads a stream of `client.messages.create(stream=True)`, or what `with client.messages.stream(...) as stream` gives.

    Arguments are those of `tambour.decode`; `tools` may be the list that the request had. A stream that ends without a
    stop reason is a truncated reply: nothing in it acts.
    """
    pipeline = Pipeline(
        dialect, extensions=extensions, findings=findings, state=state, message=message, **options
    )
    return read_stream(stream, pipeline, AnthropicAdapter(options))


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
    return read_partials(model, stream, AnthropicAdapter(options), dict(options))
