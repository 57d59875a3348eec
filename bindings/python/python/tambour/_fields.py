"""Fields of objects of other packages, which are read without importing them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._native import Pipeline
    from ._types import AnyEvent

#: Largest number of calls of one reply; further ones are left out.
_MAX_CALLS = 1024
#: Bytes of one reply unless the option `limits.input` says otherwise.
_MAX_BYTES = 16 << 20


def get(item: Any, name: str) -> Any:
    """Field of an object or a dictionary; `None` if there is none."""
    if isinstance(item, dict):
        return item.get(name)
    return getattr(item, name, None)


def to_plain(item: Any) -> Any:
    """JSON form of a pydantic object; other objects stay as they are."""
    dump = getattr(item, "model_dump", None)
    return dump(mode="json") if callable(dump) else item


def set_usage(pipeline: Pipeline, usage: Any) -> None:
    """Sets the token counts; those of an unknown form are left out."""
    try:
        pipeline.set_usage(to_plain(usage))
    except (TypeError, ValueError):
        return


class _PartialCall:
    """A call whose arguments come in pieces."""

    __slots__ = ("index", "id", "name", "pieces", "default")

    def __init__(self, index: Any, id: str, name: str) -> None:
        self.index = index
        self.id = id
        self.name = name
        self.pieces: list[str] = []
        #: Arguments that came in one piece with the name; used if no pieces follow.
        self.default = ""


class CallCollector:
    """Calls whose arguments come in pieces.

    Pieces beyond the size that a reply may have are left out but for one byte, by which the pipeline sees that the reply is
    too long. `options` are those of the pipeline.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._calls: list[_PartialCall] = []
        limit = options.get("limits_input", options.get("limits.input"))
        self._chars_left = (limit if isinstance(limit, int) else _MAX_BYTES) + 1

    def add(self, index: Any, id: Any, name: Any, arguments: Any) -> None:
        """Adds a piece of a call, to the one that it continues or as a new one.

        Some services number the calls, some send each call complete, some give all the same number.
        """
        id = id if isinstance(id, str) else ""
        name = name if isinstance(name, str) else ""
        call = next((call for call in reversed(self._calls) if _continues(call, index, id, name)), None)
        if call is None:
            if len(self._calls) >= _MAX_CALLS:
                return
            call = _PartialCall(index, id, self._take(name))
            self._calls.append(call)
        # Some services repeat name and id in each part.
        call.name = call.name or self._take(name)
        call.id = call.id or id
        if arguments is not None:
            self._add_piece(call, arguments)

    def continue_call(self, index: Any, arguments: Any) -> None:
        """Adds a piece of the arguments of the call `index`; nothing if there is no such call."""
        call = next((call for call in reversed(self._calls) if call.index == index), None)
        if call is not None:
            self._add_piece(call, arguments)

    def set_default(self, index: Any, arguments: str) -> None:
        """Sets the arguments of the call `index` that came in one piece with its name."""
        for call in self._calls:
            if call.index == index:
                call.default = self._take(arguments)

    def push_all(self, pipeline: Pipeline) -> list[AnyEvent]:
        """Passes the calls to the pipeline, in the order in which they began."""
        events: list[AnyEvent] = []
        for call in self._calls:
            events += pipeline.push_call(call.name, "".join(call.pieces) or call.default or "{}")
        self._calls.clear()
        return events

    def _add_piece(self, call: _PartialCall, arguments: Any) -> None:
        if not isinstance(arguments, str):
            if not isinstance(arguments, (Mapping, list)):
                return
            arguments = json.dumps(to_plain(arguments))
        if piece := self._take(arguments):
            call.pieces.append(piece)

    def _take(self, text: str) -> str:
        """The part of a text that still fits."""
        text = text[: self._chars_left]
        self._chars_left -= len(text)
        return text


def _continues(call: _PartialCall, index: Any, id: str, name: str) -> bool:
    """Returns whether a piece with these fields belongs to a call."""
    if index is not None:
        if call.index != index:
            return False
        # Calls may share a number: a name with another id begins the next call.
        return not (id and name) or call.id in ("", id)
    if id:
        return call.id == id
    # Without number and id, a name begins the next call.
    return not name
