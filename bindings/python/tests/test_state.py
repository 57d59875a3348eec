"""State, its history, and replies that change it."""

from __future__ import annotations

import asyncio
import json
import pickle

import pytest
import tambour
import tambour.openai
from tambour import State

UPDATE = '<update_state>{"analysis": "", "operations": [["ADD", "trust", 3]]}</update_state>'


def test_operations_and_refusals():
    state = State({"trust": 5, "bag": []})
    update = state.apply([["ADD", "trust", 3], ["NOD", "x"], ["PUSH", "bag", "key"]], message="m1", analysis="why")
    assert [result.ok for result in update.results] == [True, False, True]
    assert update.results[1].reason == "operation_unknown" and "known" in update.results[1].message
    assert (update.message, update.analysis) == ("m1", "why")
    assert state.value == {"trust": 8, "bag": ["key"]}
    assert state.apply([["SET", "a", 1], ["NOD", "x"]], atomic=True).results[0].reason == "not_applied"
    assert "a" not in state.value
    with pytest.raises(tambour.TambourError):
        state.apply({"op": "SET"})


def test_history_and_rollback():
    state = State()
    for number in range(3):
        state.apply([["SET", "n", number]], message=f"m{number}")
    assert [update.message for update in state.history] == ["m0", "m1", "m2"]
    assert state.at(after="m0") == {"n": 0} and state.at(before="m0") == {}
    assert [(change.path, change.before, change.after) for change in state.diff(before="m2")] == [("n", 1, 2)]
    saved = json.loads(json.dumps(state.save()))
    assert [update.message for update in state.rollback(before="m1")] == ["m1", "m2"]
    assert state.value == {"n": 0}
    again = State.restore(saved)
    assert again.value == {"n": 2} and again.at(after="m1") == {"n": 1}
    assert again.forget("m1") and not again.forget("m1")
    with pytest.raises(tambour.TambourError):
        again.rollback(before="m1")
    with pytest.raises(tambour.TambourError, match="not both"):
        again.rollback(before="m0", after="m0")
    with pytest.raises(tambour.TambourError):
        State.restore({"state": 1})


def test_schema():
    state = State({"n": 1}, schema={"type": "object", "properties": {"n": {"maximum": 5}}})
    assert state.apply([["ADD", "n", 9]]).results[0].reason == "schema_violation"
    with pytest.raises(tambour.TambourError):
        State(schema={"type": 5})


def test_a_reply_changes_the_state_once_it_is_complete():
    fixture = "<think>Hm.</think>\n<content>Hello.</content>\n<state_update>\n[[\"ADD\", \"trust\", 3]]\n</state_update>"
    state = State({"trust": 5})
    decoder = tambour.decode(fixture, "filament", state=state, message="m1")
    updates = [event for event in decoder if isinstance(event, tambour.StateUpdate)]
    assert updates and updates[0].results[0].ok, decoder.findings
    assert state.value == {"trust": 8}
    assert [update.message for update in state.history] == ["m1"]
    state.rollback(before="m1")
    assert state.value == {"trust": 5}
    # An event of a reply read without a state can be applied later.
    bare = [event for event in tambour.decode(fixture, "filament") if isinstance(event, tambour.StateUpdate)]
    assert state.apply(bare[0]).results[0].ok and state.value == {"trust": 8}


def test_a_state_that_a_reply_left_early_is_unchanged():
    state = State({"trust": 5})
    pipeline = tambour.Pipeline("filament", state=state)
    pipeline.push(UPDATE)
    assert state.value == {"trust": 5}
    del pipeline
    assert state.value == {"trust": 5}


def test_values_are_copies():
    state = State({"a": [1]})
    state.value["a"].append(2)
    assert state.value == {"a": [1]}
    assert repr(state) == 'State({"a":[1]})'


def test_operations_of_objects_with_to_dict():
    class Operations:
        def __init__(self, value):
            self.value = value

        def to_dict(self):
            return self.value

    operations = [["SET", "a", 1]]
    for value in (operations, {"operations": operations}, {"data": {"operations": operations}}):
        state = tambour.State({})
        state.apply(Operations(value))
        assert state.value == {"a": 1}, value
    for value in (1, "x", None):
        with pytest.raises((TypeError, ValueError, tambour.TambourError)):
            tambour.State({}).apply(Operations(value))


REPLY = '<content>She smiles.</content><state_update>[["ADD", "trust", 3]]</state_update>'


def test_updates_that_do_not_fit_lose_no_event():
    """Two replies read at the same time: the updates of the second one do not fit the state that the first one left."""
    state = State({"trust": 5})

    def interleave():
        yield REPLY
        tambour.decode(REPLY, "filament", state=state, message="other")
        state.apply([["SET", "trust", "high"]])

    async def interleave_async():
        for chunk in interleave():
            yield chunk

    def collect(decoder):
        events = []
        with pytest.raises(tambour.StateError) as caught:
            for event in decoder:
                events.append(event)
        assert caught.value.events == [] and list(decoder) == []
        return events

    async def collect_async(decoder):
        events = []
        with pytest.raises(tambour.StateError):
            async for event in decoder:
                events.append(event)
        return events

    expected = [event.event for event in tambour.decode([REPLY], "filament", state=State({"trust": 5}))]

    def as_chunks():
        for chunk in interleave():
            yield {"choices": [{"delta": {"content": chunk}, "finish_reason": "stop"}]}

    for read in (
        lambda: collect(tambour.decode(interleave(), "filament", state=state, message="m")),
        lambda: collect(tambour.openai.decode(as_chunks(), "filament", state=state, message="m")),
        lambda: asyncio.run(collect_async(tambour.decode(interleave_async(), "filament", state=state, message="m"))),
    ):
        state.rollback()
        assert state.value == {"trust": 5}
        assert [event.event for event in read()] == expected
        # Nothing was changed.
        assert state.value == {"trust": "high"}


def test_a_pipeline_gives_its_last_events_with_the_exception_and_tries_again():
    state = State({"trust": 5})
    pipeline = tambour.Pipeline("filament", state=state, message="m")
    pipeline.push(REPLY)
    state.apply([["SET", "trust", "high"]], message="other")
    with pytest.raises(tambour.StateError) as caught:
        pipeline.finish()
    assert caught.value.code == "state_conflict"
    assert caught.value.events[-1].event == "completed"
    assert len(pipeline.outcome.updates) == 1
    state.rollback(before="other")
    assert pipeline.finish() == [] and state.value == {"trust": 8}
    # Once applied, they are not applied again.
    assert pipeline.finish() == [] and state.value == {"trust": 8}
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.message, len(copy.events)) == (caught.value.message, len(caught.value.events))


def test_a_state_in_use_loses_no_event():
    state = State({"trust": 5})
    pipeline = tambour.Pipeline("filament", state=state, message="m")
    pipeline.push(REPLY)
    caught = []

    class Operations:
        """Calls back while `apply` holds the state."""

        def to_dict(self):
            try:
                caught.append(pipeline.finish())
            except tambour.StateError as error:
                caught.append(error)
            return [["SET", "other", 1]]

    state.apply(Operations())
    assert isinstance(caught[0], tambour.StateError) and "in use" in str(caught[0])
    assert caught[0].events[-1].event == "completed"
    assert pipeline.finish() == [] and state.value == {"trust": 8, "other": 1}
