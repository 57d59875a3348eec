"""Fields of objects of other packages, which are read without importing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._native import Pipeline
    from ._types import AnyEvent

#: Largest number of calls of one reply; further ones are left out.
_MAX_CALLS = 1024


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


class CallCollector:
    """Calls whose arguments come in pieces."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._arguments: dict[Any, list[str]] = {}
        self._defaults: dict[Any, str] = {}

    def add(self, index: Any, name: Any, arguments: Any) -> None:
        """Adds a piece of a call: its name, a piece of its arguments, or both."""
        if index not in self._arguments:
            if len(self._arguments) >= _MAX_CALLS:
                return
            self._arguments[index] = []
            self._names[index] = ""
        if isinstance(name, str) and not self._names[index]:
            self._names[index] = name
        if isinstance(arguments, str):
            self._arguments[index].append(arguments)

    def set_default(self, index: Any, arguments: str) -> None:
        """Sets the arguments of a call that come in one piece with its name."""
        self._defaults[index] = arguments

    def push_all(self, pipeline: Pipeline) -> list[AnyEvent]:
        """Passes the calls to the pipeline, in the order in which they began."""
        events: list[AnyEvent] = []
        for index, name in self._names.items():
            arguments = "".join(self._arguments[index]) or self._defaults.get(index, "")
            events += pipeline.push_call(name, arguments or "{}")
        self._names.clear()
        self._arguments.clear()
        return events
