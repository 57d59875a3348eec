"""Scripts and dialogues."""

from __future__ import annotations

import json
import pickle

import pytest
import tambour
from tambour import AwaitUser, Dialogue, Finished, ModelCall, Script

SCRIPT = """
sessions:
  - session: hello
    declare: [{var: topic, value: bread}]
    phases:
      - phase: one
        steps:
          - topic: greet
            actions:
              - {type: ai_say, content: "Say hello about {topic}.", max_rounds: 2}
              - {type: show_form, form_id: f1, variable: answer}
"""


def make(text=None):
    return Script(text or SCRIPT, language="en")


def test_problems_have_places():
    with pytest.raises(tambour.ScriptError) as raised:
        Script("sessions: []", language="en")
    problem = raised.value.problems[0]
    assert problem.finding.line == 1 and raised.value.code == problem.finding.code
    assert pickle.loads(pickle.dumps(raised.value)).problems == raised.value.problems
    with pytest.raises(tambour.TambourError):
        Script("sessions: []", language="fr")
    for wrong in (b"\xff\xfe", "- a", "", "a: [" * 1000):
        with pytest.raises(tambour.ScriptError):
            Script(wrong)


def speak(text="Hi!", **fields):
    return json.dumps({"response": {"Coach": text}, **fields})


def test_a_dialogue_without_io():
    dialogue = Dialogue(make(), ai_say_role="Coach", temperature=0.2)
    assert dialogue.next() == AwaitUser(True)
    dialogue.input(now=1_700_000_000_000)
    call = dialogue.next()
    assert isinstance(call, ModelCall) and call.kind == "ai_say" and call.temperature == 0.2
    assert "bread" in call.messages[0].content and call.round == 1
    assert dialogue.next() == call
    effect = dialogue.reply(speak())
    assert not effect.asked_again and effect.exit_decision.round == 1
    assert dialogue.turn.ai_message == "Hi!"
    assert [message.content for message in dialogue.history] == ["Hi!"]
    saved = json.loads(json.dumps(dialogue.save()))
    dialogue.input("Tell me more.")
    assert isinstance(dialogue.next(), ModelCall)
    again = Dialogue(make(), saved=saved, ai_say_role="Coach")
    again.input("Tell me more.")
    assert again.next().round == 2


def test_an_unreadable_reply_is_asked_for_again():
    dialogue = Dialogue(make(), ai_say_role="Coach", max_reasks=1)
    dialogue.input()
    assert dialogue.next().attempt == 0
    assert dialogue.reply("no JSON here").asked_again
    assert dialogue.next().attempt == 1
    assert not dialogue.reply(speak()).asked_again


def test_a_streamed_reply():
    dialogue = Dialogue(make(), ai_say_role="Coach")
    dialogue.input()
    dialogue.next()
    reader = dialogue.reader()
    text = speak("Hello there.")
    events = []
    for start in range(0, len(text), 4):
        events += reader.push(text[start : start + 4])
    with pytest.raises(tambour.TambourError, match="has not ended"):
        dialogue.accept(reader)
    events += reader.finish()
    assert "".join(event.text for event in events if isinstance(event, tambour.FinalDelta)) == "Hello there."
    dialogue.accept(reader)
    assert dialogue.turn.ai_message == "Hello there."
    with pytest.raises(tambour.TambourError, match="no call"):
        dialogue.accept(reader)


def test_failures_are_repeated():
    dialogue = Dialogue(make(), ai_say_role="Coach")
    dialogue.input()
    dialogue.next()
    dialogue.fail("down")
    assert dialogue.turn.error.message == "down" and not dialogue.turn.success
    dialogue.input()
    assert isinstance(dialogue.next(), ModelCall)
    reader = dialogue.reader()
    reader.fail("down again")
    assert dialogue.accept(reader).failure.message == "down again"


def test_the_client_answers():
    text = """
sessions:
  - session: s
    phases: [{phase: p, steps: [{topic: t, actions: [{type: show_form, form_id: f1, variable: answer}]}]}]
"""
    dialogue = Dialogue(make(text))
    dialogue.input()
    form = dialogue.next()
    assert isinstance(form, tambour.Form) and form.fields["form_id"] == "f1"
    assert form.to_dict()["data"]["form_id"] == "f1"
    wait = dialogue.next()
    assert wait == tambour.AwaitAnswer(form.call_id)
    with pytest.raises(tambour.TambourError) as raised:
        dialogue.input("Hi")
    assert raised.value.code == "answer_expected"
    with pytest.raises(tambour.TambourError):
        dialogue.answer("call_9", 1)
    dialogue.answer(form.call_id, {"age": 30})
    assert dialogue.next() == Finished()
    assert dialogue.variables["answer"] == {"age": 30}
    assert dialogue.turn.status == "completed"


def test_sessions_and_variables():
    dialogue = Dialogue(make(), "hello", {"topic": "stone"}, ai_say_role="Coach")
    dialogue.input()
    assert "stone" in dialogue.next().messages[0].content
    with pytest.raises(tambour.TambourError, match="session"):
        Dialogue(make(), "nobody")
    with pytest.raises(tambour.TambourError):
        Dialogue(make(), saved={})
