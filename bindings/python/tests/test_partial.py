"""Replies as objects of pydantic models."""

from __future__ import annotations

import asyncio
import datetime
import enum
import sys
from typing import Annotated, Any, Literal, Optional, Union

import pytest
import tambour
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, PrivateAttr, RootModel, field_validator
from tambour import decode_into


class Stop(BaseModel):
    name: str
    day: Optional[datetime.date] = None
    tags: list[str] = []


class Kind(enum.Enum):
    SHORT = "short"
    LONG = "long"


class Trip(BaseModel):
    title: str
    kind: Kind
    stops: list[Stop] = Field(alias="stations")
    notes: dict[str, str] = {}
    size: Annotated[int, Field(ge=1)]
    best: Stop | None = None
    mode: Literal["car", "train"] = "train"
    extra: Any = None


REPLY = """Here it is:
```json
{'title': 'To Lyon', 'kind': 'short', "stations": [
  {"name": "Dijon", "day": "2026-05-01", "tags": ["a", "b"]},
  {"name": "Lyon \\"centre\\""},
], "notes": {"a": "b", "c": "日本"}, "size": 2, "best": {"name": "Lyon"}, "mode": "car", "extra": [1, {"x": null}],}
```
"""


def snapshots(model, chunks, **options):
    """All states of the object as data; the last is that of the valid object."""
    stream = decode_into(model, chunks, **options)
    states = [item.model_dump(warnings=False) for item in stream]
    assert states[-1] == stream.result.model_dump()
    return states


def test_the_object_grows_to_the_valid_one():
    for chunks in (REPLY, list(REPLY), [REPLY.encode()], [bytes([byte]) for byte in REPLY.encode()]):
        states = snapshots(Trip, chunks)
        # The last partial object has what the valid one has.
        assert states[-1] == states[-2]
        assert states[-1]["stops"][0]["day"] == datetime.date(2026, 5, 1)
        assert states[-1]["kind"] is Kind.SHORT and states[-1]["extra"] == [1, {"x": None}]


def test_states_in_between():
    states = snapshots(Trip, list(REPLY))
    assert {"title": "To Ly"}.items() <= states[12].items() or any(state["title"] == "To Ly" for state in states)
    for before, after in zip(states, states[1:]):
        assert (after["title"] or "").startswith(before["title"] or "")
        # A scalar that is not text comes as a whole.
        assert before["kind"] in (None, Kind.SHORT)
        assert len(before["stops"] or []) <= len(after["stops"] or [])
    first = next(state for state in states if state["title"])
    assert first["stops"] is None and first["size"] is None and first["mode"] == "train"


def test_fields_set():
    stream = decode_into(Trip, ["{'title': 'a', ", REPLY])
    first = next(stream)
    assert first.model_fields_set == {"title"} and isinstance(first, Trip)


def test_the_same_object_grows():
    items = list(decode_into(Trip, list(REPLY)))
    assert all(item is items[0] for item in items[:-1])
    assert items[-1] is not items[0]


def test_replies_without_a_valid_object():
    for reply, code in [
        ("there is none", None),
        ('{"title": 1}', None),
        (REPLY.replace("'short'", "'medium'"), None),
    ]:
        stream = decode_into(Trip, [reply])
        with pytest.raises(tambour.DecodeError) as raised:
            stream.final()
        assert raised.value.code
        with pytest.raises(tambour.DecodeError, match="not ended"):
            stream.result

    class Even(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check_even(cls, value):
            if value % 2:
                raise ValueError("odd")
            return value

    with pytest.raises(tambour.DecodeError, match="odd") as raised:
        decode_into(Even, '{"n": 3}').final()
    assert raised.value.code == "model_invalid" and raised.value.__cause__ is not None
    assert decode_into(Even, '{"n": 4}').final().n == 4


def test_truncated_replies_have_no_object():
    for arguments in ({"finish": "length"}, {"finish": None}):
        with pytest.raises(tambour.DecodeError):
            decode_into(Stop, '{"name": "Ly', **arguments).final()


def test_other_types():
    assert decode_into(list[Stop], '[{"name": "a"}, {"name": "b"}]').final() == [Stop(name="a"), Stop(name="b")]
    states = [len(item) for item in decode_into(list[Stop], list('[{"name": "a"}, {"name": "b"}]'))]
    assert states == sorted(states) and states[-1] == 2
    assert decode_into(dict[str, int], '{"a": 1}').final() == {"a": 1}

    class Numbers(RootModel[list[int]]):
        pass

    assert decode_into(Numbers, "[1, 2]").final().root == [1, 2]


class Node(BaseModel):
    name: str
    children: list["Node"] = []
    other: Union["Node", Stop, None] = None


def test_models_that_contain_themselves():
    reply = '{"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}], "other": {"name": "d"}}'
    states = snapshots(Node, list(reply))
    partial = list(decode_into(Node, list(reply)))[-2]
    assert isinstance(partial.children[0].children[0], Node)
    assert states[-1]["children"][0]["children"][0]["name"] == "c"


def test_values_of_another_form_are_shown_as_they_are():
    class Two(BaseModel):
        a: list[int] = []
        b: str = ""

    stream = decode_into(Two, list('{"a": {"x": [1]}, "b": {"y": "z"}, "c": "d", "c": ["e"]}'))
    seen = []
    with pytest.raises(tambour.DecodeError):
        for item in stream:
            seen.append((str(item.a), str(item.b)))
    assert seen[-1] == ("{'x': [1]}", "{'y': 'z'}")


def test_prose_before_the_value():
    states = snapshots(Stop, ["As [1] says {really}: ", '{"name": "Lyon"}'])
    assert states[-1]["name"] == "Lyon"


def test_asynchronous_sources():
    async def main():
        async def source():
            for letter in REPLY:
                await asyncio.sleep(0)
                yield letter

        stream = decode_into(Trip, source())
        items = [item async for item in stream]
        assert items[-1] == stream.result == decode_into(Trip, REPLY).final()

    asyncio.run(main())


def test_exceptions_of_the_source():
    def source():
        yield '{"name": '
        raise OSError("down")

    with pytest.raises(OSError):
        decode_into(Stop, source()).final()


def test_work_is_linear():
    """The steps of a reply twice as long are twice as many; nothing is read again."""

    def count_steps(length):
        reader = tambour._native.PartialReader()
        reply = '{"a": "' + "x" * length + '", "b": [' + "1, " * length + "1]}"
        return sum(len(reader.push(reply[start : start + 4])) for start in range(0, len(reply), 4))

    small, large = count_steps(4_000), count_steps(8_000)
    assert large < 2.1 * small


def test_a_source_that_breaks_gives_no_valid_object():
    class One(BaseModel):
        size: int

    def source():
        yield '{"size": 1'
        raise ConnectionError("lost")

    stream = decode_into(One, source())
    with pytest.raises(ConnectionError):
        for _ in stream:
            pass
    with pytest.raises(tambour.DecodeError):
        stream.final()


def test_models_with_code_of_their_own():
    made = []

    class Inner(BaseModel):
        name: str
        _seen: int = PrivateAttr(default=3)
        _made: list = PrivateAttr(default_factory=list)

        def model_post_init(self, context):
            made.append(self.name.upper())

    class Outer(BaseModel):
        model_config = {"extra": "allow"}
        title: str
        inner: Inner
        tags: list[str] = []
        more: list[str] = Field(default_factory=lambda data: [data["title"]])

        @field_validator("title")
        @classmethod
        def check_title(cls, value):
            return value + "!"

        def model_post_init(self, context):
            made.append(self.title)

    reply = '{"title": "A", "inner": {"name": "b"}, "x": 1}'
    stream = decode_into(Outer, list(reply))
    seen = []
    for item in stream:
        if item is not None and item.inner is not None and type(item.inner) is Inner:
            seen.append((item.title, item.inner.name, item.inner._seen, item.inner._made, item.tags, item.more))
    # While it streams, no code of the models runs; the valid object is made by it.
    assert seen[0] == ("A", None, 3, [], [], None)
    assert stream.result.title == "A!" and stream.result.more == ["A!"] and stream.result.inner._seen == 3
    assert made == ["B", "A!"]
    first, second = (next(iter(decode_into(Outer, ['{"title": "A"', "}"]))) for _ in range(2))
    assert first.tags is not second.tags


def test_validators_that_raise_anything():
    def fail(value):
        raise KeyError(value)

    class Day(BaseModel):
        name: str
        size: Annotated[datetime.date, BeforeValidator(fail)] | None = None
        kind: Annotated[Literal["a"], AfterValidator(fail)] | None = None

    stream = decode_into(Day, list('{"name": "x", "kind": "a"'), finish="length")
    for _ in range(3):
        next(stream)
    Broken = type("Broken", (BaseModel,), {"__annotations__": {"kind": Annotated[Kind, AfterValidator(fail)]}})
    items = []
    with pytest.raises(Exception):
        for item in decode_into(Broken, list('{"kind": "short"}')):
            items.append(item.kind)
    assert items and set(items) == {None}


def test_limits_hold_for_partial_objects():
    class Note(BaseModel):
        text: str

    reply = '{"text": "' + "x" * 5000 + '"}'
    chunks = [reply[start : start + 100] for start in range(0, len(reply), 100)]
    longest = 0
    stream = decode_into(Note, chunks, limits_input=1000)
    with pytest.raises(tambour.DecodeError) as caught:
        for item in stream:
            longest = max(longest, len(item.text or ""))
    assert caught.value.code == "input_too_large" and 0 < longest <= 1000
    # A larger limit than the default one holds as well.
    reader = tambour._native.PartialReader({"limits_input": 64 << 20})
    size = 17 << 20
    steps = reader.push('{"text": "' + "x" * size + '"}')
    assert sum(len(value) for code, value in steps if code == 6) == size


def test_long_texts_of_validated_fields_are_linear(monkeypatch):
    class Note(BaseModel):
        day: datetime.date

    builder = tambour._partial._Builder(tambour._partial._make_shape(Note, {}))
    builder.apply([(0, None), (1, None), (4, "day"), (5, None)])
    for _ in range(1000):
        builder.apply([(6, "x" * 4)])
    # Pieces are kept as they came; nothing is copied before the text is complete.
    assert isinstance(builder._text, list) and len(builder._text) == 1000
    builder.apply([(7, None), (3, None), (9, None)])
    assert builder.value.day is None


def test_an_early_end_closes_the_source_of_objects():
    closed = []

    def source():
        try:
            yield '{"name": "a'
            yield '"}'
        finally:
            closed.append(True)

    stream = decode_into(Stop, source())
    assert next(stream).name == "a"
    stream.close()
    assert closed == [True] and list(stream) == []
    assert stream.dialect == "json_value"
    decode_into(Stop, ["{}"]).close()

    async def main():
        async def chunks():
            for chunk in source():
                yield chunk

        stream = decode_into(Stop, chunks())
        async for item in stream:
            assert item.name == "a"
            break
        await stream.aclose()
        assert [item async for item in stream] == []

    asyncio.run(main())


def test_a_wrong_chunk_ends_the_reading():
    stream = decode_into(Stop, ['{"name": "a', 5, '"}'])
    assert next(stream).name == "a"
    with pytest.raises(TypeError):
        next(stream)
    assert list(stream) == []
    with pytest.raises(tambour.DecodeError):
        stream.final()


def test_the_finish_reason_is_checked_first():
    async def chunks():
        yield "{}"

    for make in (
        lambda: decode_into(Stop, ["{}"], finish="bogus"),
        lambda: decode_into(Stop, chunks(), finish="bogus"),
        lambda: tambour.decode(chunks(), "plain", finish="bogus"),
        lambda: tambour.decode(["a"], "plain", finish="bogus"),
    ):
        with pytest.raises(tambour.TambourError, match="finish reason"):
            make()


def test_without_pydantic_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(ModuleNotFoundError, match="tambour\\[pydantic\\]"):
        tambour.decode_into(int, "1")
