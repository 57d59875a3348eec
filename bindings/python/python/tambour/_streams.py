"""Readers of streams of objects, synchronous and asynchronous, over one pipeline."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from ._errors import StateError
from ._native import Pipeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from ._types import AnyEvent, Finding, Outcome

Item = TypeVar("Item", contravariant=True)


class Adapter(Protocol[Item]):
    """Passes the objects of a stream to a pipeline."""

    def push(self, pipeline: Pipeline, item: Item) -> list[AnyEvent]:
        """Reads an object; returns the events."""

    def finish(self, pipeline: Pipeline) -> list[AnyEvent]:
        """Ends the reply after the last object."""


class _Reading(Generic[Item]):
    """Shared part of both kinds of readers: a pipeline, the events that wait, and an exception behind them."""

    def __init__(self, pipeline: Pipeline, adapter: Adapter[Item]) -> None:
        self.pipeline = pipeline
        self._adapter = adapter
        self._queue: deque[AnyEvent] = deque()
        self._error: Exception | None = None
        self._has_ended = False

    @property
    def findings(self) -> list[Finding]:
        """Findings so far, in order."""
        return self.pipeline.findings

    @property
    def outcome(self) -> Outcome:
        """Calls, notices, decisions and updates of the reply so far."""
        return self.pipeline.outcome

    @property
    def dialect(self) -> str:
        """Name of the dialect; `auto` until it is detected."""
        return self.pipeline.dialect

    def _push(self, item: Item) -> None:
        """Reads an object; one that cannot be read ends the stream as an exception of the source does."""
        try:
            self._queue.extend(self._adapter.push(self.pipeline, item))
        except Exception as error:
            self._fail(error)
        except BaseException:
            self._clear()
            raise

    def _finish(self) -> None:
        self._has_ended = True
        try:
            self._queue.extend(self._adapter.finish(self.pipeline))
        except StateError as error:
            self._keep(error)
        except Exception as error:
            self._fail(error)
        except BaseException:
            self._clear()
            raise

    def _fail(self, error: Exception) -> None:
        """Closes the stream after an exception, which is raised behind the last event."""
        self._has_ended = True
        try:
            events = self.pipeline.fail(_describe(error), code="input_failed", retryable=False)
        except StateError as conflict:
            events = conflict.events
        self._queue.extend(events)
        self._error = error

    def _keep(self, error: StateError) -> None:
        """Keeps an exception of the end of the reply behind the events of that end."""
        self._queue.extend(error.events)
        error.events = []
        self._error = error

    def _raise(self) -> None:
        """Raises the exception of the source, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _clear(self) -> None:
        self._has_ended = True
        self._error = None
        self._queue.clear()


class ObjectDecoder(_Reading[Any]):
    """Iterator of the events of a stream of objects."""

    def __init__(self, pipeline: Pipeline, adapter: Adapter[Any], source: Iterable[Any]) -> None:
        super().__init__(pipeline, adapter)
        self._source = iter(source)

    def __iter__(self) -> Iterator[AnyEvent]:
        return self

    def __next__(self) -> AnyEvent:
        while not self._queue:
            if self._has_ended:
                self._raise()
                raise StopIteration
            try:
                item = next(self._source)
            except StopIteration:
                self._finish()
            except Exception as error:
                self._fail(error)
            except BaseException:
                # Cancelled or interrupted: the part that came so far is not a whole reply.
                self._clear()
                raise
            else:
                self._push(item)
        return self._queue.popleft()

    def close(self) -> None:
        """Stops reading; no further event comes."""
        self._clear()
        close = getattr(self._source, "close", None)
        if close is not None:
            close()


class AsyncDecoder(_Reading[Any]):
    """Asynchronous iterator of events.

    `findings` and `outcome` have what is known so far. If the source raises an exception, the stream is closed with a
    `Failure` first, and the exception comes after it; a cancelled task is cancelled at once.
    """

    def __init__(self, pipeline: Pipeline, adapter: Adapter[Any], source: AsyncIterable[Any]) -> None:
        super().__init__(pipeline, adapter)
        self._source = source.__aiter__()

    def __aiter__(self) -> AsyncIterator[AnyEvent]:
        return self

    async def __anext__(self) -> AnyEvent:
        while not self._queue:
            if self._has_ended:
                self._raise()
                raise StopAsyncIteration
            try:
                item = await self._source.__anext__()
            except StopAsyncIteration:
                self._finish()
            except Exception as error:
                self._fail(error)
            except BaseException:
                # Cancelled or interrupted: the part that came so far is not a whole reply.
                self._clear()
                raise
            else:
                self._push(item)
        return self._queue.popleft()

    async def aclose(self) -> None:
        """Stops reading, and closes the source; no further event comes."""
        self._clear()
        close = getattr(self._source, "aclose", None)
        if close is not None:
            await close()


def _describe(error: Exception) -> str:
    """Message of an exception; its name if it cannot say one."""
    try:
        return str(error)
    except Exception:
        return type(error).__name__


def read_stream(
    source: Iterable[Any] | AsyncIterable[Any], pipeline: Pipeline, adapter: Adapter[Any]
) -> ObjectDecoder | AsyncDecoder:
    """Reads a stream of objects of either kind."""
    if isinstance(source, AsyncIterable):
        return AsyncDecoder(pipeline, adapter, source)
    return ObjectDecoder(pipeline, adapter, source)
