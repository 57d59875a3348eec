"""`decode_into`: a reply as an object of a pydantic model, partial while it streams."""

from __future__ import annotations

import types
import typing
from collections.abc import AsyncIterable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from ._decode import _ChunkAdapter
from ._errors import DecodeError
from ._native import PartialReader, Pipeline
from ._types import Failure, FinalDelta

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from typing_extensions import Unpack

    from ._options import Options
    from ._streams import Adapter
    from ._types import AnyEvent, Finding, Outcome

    Chunk = str | bytes | bytearray | memoryview

__all__ = ["AsyncPartials", "Partials", "decode_into"]

T = TypeVar("T")

# Steps of the native reader.
_START, _OBJECT, _ARRAY, _END, _KEY, _STRING, _DELTA, _STRING_END, _SCALAR, _COMPLETE = range(10)

#: Types whose values are shown as they are, text also while it is being written.
_PLAIN = (str, int, float, bool, Any, object, type(None))


class _Shape:
    """Form of the values of an annotation, as far as partial objects follow it."""

    def __init__(self) -> None:
        #: Class of a pydantic model, if the values are its objects.
        self.model: Any = None
        #: Names and shapes of its fields, by key in JSON.
        self.fields: dict[str, tuple[str, _Shape]] = {}
        #: Values of a new partial object: defaults, and `None` for what must still come.
        self.values: dict[str, Any] = {}
        #: Fields whose default is made anew for each object.
        self.fresh: list[tuple[str, Any]] = []
        #: `list` or `dict`, if the values are such.
        self.form: type | None = None
        #: Shape of the items of a list, or of the values of a dictionary.
        self.items: _Shape | None = None
        #: Validator of a complete scalar; `None` if it is shown as it is.
        self.adapter: Any = None


_ANY = _Shape()


def _make_shape(annotation: Any, known: dict[Any, _Shape]) -> _Shape:
    """Shape of an annotation; a model that contains itself has one shape."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _make_shape(arguments[0], known)
    if origin in (typing.Union, types.UnionType):
        shapes = [_make_shape(argument, known) for argument in arguments if argument is not type(None)]
        # The form of a partial object is not known before its end, if there are several.
        return shapes[0] if len(shapes) == 1 else _ANY
    if annotation in _PLAIN:
        return _ANY
    if isinstance(annotation, (str, typing.ForwardRef)):
        # A model that contains itself names itself.
        name = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        return next((shape for model, shape in known.items() if model.__name__ == name), _ANY)
    try:
        if annotation in known:
            return known[annotation]
    except TypeError:
        return _ANY
    shape = _Shape()
    if isinstance(annotation, type) and hasattr(annotation, "model_construct"):
        if getattr(annotation, "__pydantic_root_model__", False):
            return _ANY
        known[annotation] = shape
        shape.model = annotation
        model_fields = shape.model.model_fields
        for name, field in model_fields.items():
            default = field.default
            is_plain = field.default_factory is None and isinstance(
                default, (str, int, float, bytes, type(None))
            )
            shape.values[name] = default if is_plain else None
            if not is_plain and not field.is_required():
                shape.fresh.append((name, field))
            field_shape = _make_shape(field.annotation, known)
            aliases = [name, field.alias, field.validation_alias]
            choices = getattr(field.validation_alias, "choices", [])
            for alias in [*aliases, *choices]:
                if isinstance(alias, str):
                    shape.fields[alias] = (name, field_shape)
    elif origin is list and arguments:
        shape.form = list
        shape.items = _make_shape(arguments[0], known)
    elif origin is dict and len(arguments) == 2:
        shape.form = dict
        shape.items = _make_shape(arguments[1], known)
    elif origin in (None, typing.Literal) and annotation not in (list, dict):
        from pydantic import TypeAdapter

        try:
            shape.adapter = TypeAdapter(annotation)
        except Exception:
            # A type that only its model can validate, such as one that is not defined yet.
            return _ANY
    else:
        return _ANY
    return shape


def _make_object(shape: _Shape) -> tuple[Any, dict[str, Any], set[str]]:
    """A new partial object of the model of a shape, its dictionary, and the names of the fields that have come.

    No code of the model runs but that of its default factories: `model_post_init` expects a whole object.
    """
    model = shape.model
    values = shape.values.copy()
    for name, field in shape.fresh:
        values[name] = _default(field)
    private = {name: _default(attribute) for name, attribute in model.__private_attributes__.items()}
    names: set[str] = set()
    value = model.__new__(model)
    for slot, content in (
        ("__dict__", values),
        ("__pydantic_fields_set__", names),
        ("__pydantic_extra__", {} if model.model_config.get("extra") == "allow" else None),
        ("__pydantic_private__", private or None),
    ):
        object.__setattr__(value, slot, content)
    return value, values, names


def _default(field: Any) -> Any:
    """Default of a field or a private attribute; `None` if it has none yet."""
    from pydantic_core import PydanticUndefined

    try:
        if getattr(field, "default_factory", None) is not None:
            value = field.default_factory()
        else:
            value = field.get_default()
    except Exception:
        # A factory that needs other fields: the end of the reply decides.
        return None
    return None if value is PydanticUndefined else value


class _Frame:
    """An open object or list: the place that the next value goes to."""

    __slots__ = ("values", "key", "shape", "value_shape", "fields_set")

    def __init__(self, values: Any, shape: _Shape, fields_set: Any) -> None:
        #: Dictionary or list that holds the values; for a model, the dictionary of its object.
        self.values = values
        self.shape = shape
        #: Key of the next value in a dictionary; `None` in a list, and for a key that the model does not have.
        self.key: Any = None
        #: Shape of the next value.
        self.value_shape: _Shape = shape.items or _ANY
        self.fields_set = fields_set

    def put(self, value: Any) -> None:
        if type(self.values) is list:
            self.values.append(value)
        elif self.key is not None:
            self.values[self.key] = value
            if self.fields_set is not None:
                self.fields_set.add(self.key)


class _Builder:
    """Builds one partial object from steps; it grows in place, so the work is linear in the reply."""

    def __init__(self, shape: _Shape) -> None:
        self._shape = shape
        self._frames: list[_Frame] = []
        #: Pieces of a text that is validated once it is complete.
        self._text: list[str] = []
        self._is_shown = False
        self._root: _Frame | None = None
        #: The object so far; `None` before its first step.
        self.value: Any = None

    def apply(self, steps: list[tuple[int, Any]]) -> bool:
        """Applies steps; returns whether the object may have changed."""
        frames = self._frames
        for code, value in steps:
            if code == _DELTA:
                self._append(value)
            elif code == _KEY:
                self._set_key(frames[-1], value)
            elif code == _SCALAR:
                self._put_scalar(frames[-1], value)
            elif code == _STRING:
                self._text = []
                frame = frames[-1]
                self._is_shown = frame.value_shape.adapter is None
                if self._is_shown:
                    frame.put("")
            elif code == _STRING_END:
                if not self._is_shown:
                    self._put_scalar(frames[-1], "".join(self._text))
            elif code in (_OBJECT, _ARRAY):
                self._open(code)
            elif code == _END:
                frames.pop()
            elif code == _START:
                frames.clear()
        return bool(steps) and self.value is not None

    def _append(self, piece: str) -> None:
        if not self._is_shown:
            self._text.append(piece)
            return
        frame = self._frames[-1]
        values = frame.values
        key = -1 if type(values) is list else frame.key
        if key is None:
            return
        # A text that nothing else refers to grows in place.
        text = values[key]
        values[key] = None
        text += piece
        values[key] = text

    def _set_key(self, frame: _Frame, key: str) -> None:
        shape = frame.shape
        if shape.model is None:
            frame.key = key
            return
        frame.key, frame.value_shape = shape.fields.get(key, (None, _ANY))

    def _put_scalar(self, frame: _Frame, value: Any) -> None:
        adapter = frame.value_shape.adapter
        if adapter is not None and value is not None:
            try:
                value = adapter.validate_python(value)
            except Exception:
                # The end of the reply decides whether it is valid; a validator may raise anything.
                value = None
        frame.put(value)

    def _open(self, code: int) -> None:
        frames = self._frames
        shape = frames[-1].value_shape if frames else self._shape
        value: Any
        if code == _OBJECT and shape.model is not None:
            value, values, names = _make_object(shape)
            frame = _Frame(values, shape, names)
        else:
            value = {} if code == _OBJECT else []
            # An object in place of a list, or the other way round, is shown as it is.
            frame = _Frame(value, shape if shape.model is None else _ANY, None)
        if frames:
            frames[-1].put(value)
        elif self._is_shown_as_root(frame):
            self._root = frame
            self.value = value
        frames.append(frame)

    def _is_shown_as_root(self, frame: _Frame) -> bool:
        """Returns whether a value is the one of the reply: prose in brackets has another form, or is empty."""
        if self._shape.model is not None and frame.fields_set is None:
            return False
        if self._shape.form not in (None, type(frame.values)):
            return False
        root = self._root
        if root is None:
            return True
        return not (root.values if root.fields_set is None else root.fields_set)


class _Target(Generic[T]):
    """Pipeline that also builds the partial object. Adapters of streams write to it as to a `Pipeline`."""

    def __init__(self, model: type[T], options: dict[str, Any]) -> None:
        try:
            from pydantic import TypeAdapter
        except ModuleNotFoundError as error:
            message = 'decode_into needs pydantic: pip install "tambour[pydantic]"'
            raise ModuleNotFoundError(message, name="pydantic") from error

        self._adapter: Any = TypeAdapter(model)
        options.setdefault("json_value_schema", self._adapter.json_schema())
        self.pipeline = Pipeline("json_value", extensions=False, **options)
        self._reader = PartialReader(options)
        self._builder = _Builder(_make_shape(model, {}))
        self._answer: list[str] = []
        self._failure: Failure | None = None
        self.has_changed = False

    @property
    def value(self) -> Any:
        return self._builder.value

    @property
    def dialect(self) -> str:
        return self.pipeline.dialect

    def push(self, chunk: Chunk) -> list[AnyEvent]:
        if self._failure is None and self._builder.apply(self._reader.push(chunk)):
            self.has_changed = True
        return self._keep(self.pipeline.push(chunk))

    def push_reasoning(self, text: str) -> list[AnyEvent]:
        return self._keep(self.pipeline.push_reasoning(text))

    def push_call(self, name: str, arguments: str) -> list[AnyEvent]:
        return self._keep(self.pipeline.push_call(name, arguments))

    def set_usage(self, usage: Any) -> None:
        self.pipeline.set_usage(usage)

    def finish(self, reason: str | None = "stop", *, incomplete: bool = False) -> list[AnyEvent]:
        return self._keep(self.pipeline.finish(reason, incomplete=incomplete))

    def fail(self, message: str, *, code: str = "upstream_failed", retryable: bool = True) -> list[AnyEvent]:
        return self._keep(self.pipeline.fail(message, code=code, retryable=retryable))

    def _keep(self, events: list[AnyEvent]) -> list[AnyEvent]:
        for event in events:
            if isinstance(event, FinalDelta):
                self._answer.append(event.text)
            elif isinstance(event, Failure):
                self._failure = event
        return []

    def validate(self) -> T:
        """The valid object of a reply that has ended."""
        findings = self.pipeline.findings
        if self._failure is not None:
            raise DecodeError(self._failure.message, self._failure.code, findings)
        try:
            value: T = self._adapter.validate_json("".join(self._answer))
        except ValueError as error:
            raise DecodeError(str(error), "model_invalid", findings) from error
        return value


class _PartialsBase(Generic[T]):
    def __init__(self, target: _Target[T], adapter: Adapter[Any]) -> None:
        self._target = target
        self._adapter = adapter
        self._has_ended = False
        self._result: list[T] = []

    @property
    def result(self) -> T:
        """The valid object, once the reply has ended; before it, raises `DecodeError`."""
        if not self._result:
            raise DecodeError("the reply has not ended, or it had no valid value", "not_ended")
        return self._result[0]

    @property
    def findings(self) -> list[Finding]:
        """Findings so far, in order."""
        return self._target.pipeline.findings

    @property
    def outcome(self) -> Outcome:
        """Metadata of the reply so far."""
        return self._target.pipeline.outcome

    @property
    def dialect(self) -> str:
        """Name of the dialect: `json_value`."""
        return self._target.dialect

    def _push(self, item: Any) -> bool:
        """Reads an object of the source; returns whether the partial object may have changed."""
        self._target.has_changed = False
        try:
            self._adapter.push(self._target, item)  # type: ignore[arg-type]
        except BaseException:
            # The part that came so far is not a whole reply.
            self._has_ended = True
            raise
        return self._target.has_changed

    def _finish(self) -> T:
        self._has_ended = True
        self._adapter.finish(self._target)  # type: ignore[arg-type]
        self._result.append(self._target.validate())
        return self._result[0]


class Partials(_PartialsBase[T]):
    """Iterator of a partial object as it grows; the last item is the valid object."""

    def __init__(self, target: _Target[T], adapter: Adapter[Any], source: Iterable[Any]) -> None:
        super().__init__(target, adapter)
        self._source = iter(source)

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        while not self._has_ended:
            try:
                item = next(self._source)
            except StopIteration:
                return self._finish()
            except BaseException:
                # The part that came so far is not a whole reply.
                self._has_ended = True
                raise
            if self._push(item):
                value: T = self._target.value
                return value
        raise StopIteration

    def close(self) -> None:
        """Stops reading, and closes the source; no further object comes."""
        self._has_ended = True
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def final(self) -> T:
        """Reads the rest of the reply; returns the valid object."""
        for _ in self:
            pass
        return self.result


class AsyncPartials(_PartialsBase[T]):
    """Asynchronous iterator of a partial object as it grows; the last item is the valid object."""

    def __init__(self, target: _Target[T], adapter: Adapter[Any], source: AsyncIterable[Any]) -> None:
        super().__init__(target, adapter)
        self._source = source.__aiter__()

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        while not self._has_ended:
            try:
                item = await self._source.__anext__()
            except StopAsyncIteration:
                return self._finish()
            except BaseException:
                # The part that came so far is not a whole reply.
                self._has_ended = True
                raise
            if self._push(item):
                value: T = self._target.value
                return value
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Stops reading, and closes the source; no further object comes."""
        self._has_ended = True
        close = getattr(self._source, "aclose", None)
        if close is not None:
            await close()

    async def final(self) -> T:
        """Reads the rest of the reply; returns the valid object."""
        async for _ in self:
            pass
        return self.result


def read_partials(
    model: type[T],
    source: Iterable[Any] | AsyncIterable[Any],
    adapter: Adapter[Any],
    options: dict[str, Any],
) -> Partials[T] | AsyncPartials[T]:
    """Reads a stream of either kind into a model."""
    target = _Target(model, options)
    if isinstance(source, AsyncIterable):
        return AsyncPartials(target, adapter, source)
    return Partials(target, adapter, source)


@overload
def decode_into(
    model: type[T],
    chunks: AsyncIterable[Chunk],
    *,
    finish: str | None = ...,
    incomplete: bool = ...,
    **options: Unpack[Options],
) -> AsyncPartials[T]: ...
@overload
def decode_into(
    model: type[T],
    chunks: Chunk | Iterable[Chunk],
    *,
    finish: str | None = ...,
    incomplete: bool = ...,
    **options: Unpack[Options],
) -> Partials[T]: ...


def decode_into(
    model: type[T],
    chunks: Chunk | Iterable[Chunk] | AsyncIterable[Chunk],
    *,
    finish: str | None = "stop",
    incomplete: bool = False,
    **options: Unpack[Options],
) -> Partials[T] | AsyncPartials[T]:
    """Reads a reply into a pydantic model, or another type that pydantic knows, such as `list[Model]`.

    Returns an iterator of the object as it grows. It is the same object each time, changed in place, so that the work is
    linear in the reply; `model_copy(deep=True)` keeps a state of it. Fields that have not come are `None` or have their
    default; `model_fields_set` names those that have. Text grows while it is written; a scalar of another type comes when
    it is complete, validated. A union of models is a dictionary until the end.

    The last item is another object: the valid one, as `model_validate_json` makes it. A reply without one raises
    `DecodeError` there. The schema that the reply is checked against is that of the model. Needs pydantic 2.

    >>> from pydantic import BaseModel
    >>> class Trip(BaseModel):
    ...     city: str
    ...     days: int
    >>> for trip in decode_into(Trip, ['Here: {"city": "Ly', 'on", "da', "ys\\": 3,}"]):
    ...     print(trip)
    city='Ly' days=None
    city='Lyon' days=None
    city='Lyon' days=3
    city='Lyon' days=3
    """
    if isinstance(chunks, (str, bytes, bytearray, memoryview)):
        chunks = [chunks]
    return read_partials(model, chunks, _ChunkAdapter(finish, incomplete), dict(options))
