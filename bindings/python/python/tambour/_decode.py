"""`decode`: chunks in, events out."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, Any, overload

from ._native import Decoder, Pipeline, check_finish
from ._streams import AsyncDecoder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Unpack

    from ._native import State
    from ._options import Options
    from ._types import AnyEvent

    Chunk = str | bytes | bytearray | memoryview

__all__ = ["AsyncDecoder", "decode"]


class _ChunkAdapter:
    """Passes text or bytes to a pipeline."""

    def __init__(self, finish: str | None, incomplete: bool) -> None:
        check_finish(finish)
        self._end = (finish, incomplete)

    def push(self, pipeline: Pipeline, item: Any) -> list[AnyEvent]:
        return pipeline.push(item)

    def finish(self, pipeline: Pipeline) -> list[AnyEvent]:
        reason, incomplete = self._end
        return pipeline.finish(reason, incomplete=incomplete)


@overload
def decode(
    chunks: AsyncIterable[Chunk],
    dialect: str = ...,
    *,
    extensions: bool = ...,
    findings: bool = ...,
    finish: str | None = ...,
    incomplete: bool = ...,
    state: State | None = ...,
    message: str = ...,
    **options: Unpack[Options],
) -> AsyncDecoder: ...
@overload
def decode(
    chunks: Chunk | Iterable[Chunk],
    dialect: str = ...,
    *,
    extensions: bool = ...,
    findings: bool = ...,
    finish: str | None = ...,
    incomplete: bool = ...,
    state: State | None = ...,
    message: str = ...,
    **options: Unpack[Options],
) -> Decoder: ...


def decode(
    chunks: Chunk | Iterable[Chunk] | AsyncIterable[Chunk],
    dialect: str = "auto",
    *,
    extensions: bool = True,
    findings: bool = False,
    finish: str | None = "stop",
    incomplete: bool = False,
    state: State | None = None,
    message: str = "",
    **options: Unpack[Options],
) -> Decoder | AsyncDecoder:
    """Reads a reply; returns an iterator of events, an asynchronous one if `chunks` is.

    `chunks` is a `str` or bytes, or an iterable of them, cut anywhere. Each chunk is read when it is there; the chunks of
    a list or a tuple are all there, so they are read many at a time, with fewer and longer deltas.

    - `dialect`: how the model writes; `auto` finds out.
    - `extensions`: also events beside the contract, such as `ToolCall`.
    - `findings`: also findings as events. The iterator has them as `findings` in any case.
    - `finish`: finish reason of the reply, `None` if the service gave none; `incomplete`: part of it was lost.
    - `state`, `message`: a `State` that operations are applied to, and the id of the reply in its history.
    - further arguments are options by their public names, with `_` for the dot.

    Raises `TambourError` for an unknown dialect or option, and `TypeError` for a chunk that is no text.

    >>> decoder = decode("<thinking><phase id='1'><title>Sum</title>2 + 2<final>It is 4.", "thinkingml")
    >>> [event.text for event in decoder if event.event == "final_delta"]
    ['It is 4.']
    >>> [(finding.code, finding.line, finding.column) for finding in decoder.findings][0]
    ('phase_attr_invalid', 1, 11)
    """
    if isinstance(chunks, AsyncIterable):
        pipeline = Pipeline(
            dialect, extensions=extensions, findings=findings, state=state, message=message, **options
        )
        return AsyncDecoder(pipeline, _ChunkAdapter(finish, incomplete), chunks)
    return Decoder(
        chunks,
        dialect,
        extensions=extensions,
        findings=findings,
        finish=finish,
        incomplete=incomplete,
        state=state,
        message=message,
        **options,
    )
