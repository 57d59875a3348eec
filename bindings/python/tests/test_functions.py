"""Functions on whole texts."""

from __future__ import annotations

import base64
import json
import pickle

import pytest
import tambour


def test_check_and_its_first_error():
    verdict = tambour.check("<final>\nHi.\n</final>", "thinkingml", first_only=True)
    assert len(verdict.findings) == 1 and verdict.first_error == verdict.findings[0]
    codes = [finding.code for finding in tambour.check("<final>\nHi.\n</final>", "thinkingml").findings]
    assert "thinking_missing" in codes
    assert tambour.check("Hi.", "plain").first_error is None
    with pytest.raises(tambour.TambourError, match="unknown contract"):
        tambour.check("Hi.", "plane")


def test_check_of_a_stream():
    lines = "\n".join('{"event":"%s","data":{}}' % name for name in ("final_end", "final_end"))
    verdict = tambour.check(lines, "events")
    assert verdict.contract == "events" and not verdict.passed


def test_repair_tells_what_it_did():
    repaired = tambour.repair("<final>Hi", "thinkingml", finish="length")
    assert repaired.findings and not repaired.is_fallback
    assert tambour.check(repaired.text, "thinkingml").passed
    with pytest.raises(tambour.TambourError):
        tambour.repair("[1]", "json_value")


def test_loads_keeps_digits():
    assert tambour.loads('{"a": 12345678901234567890123, "b": 1.5}') == {"a": 12345678901234567890123, "b": 1.5}
    assert tambour.loads("Sum: {'n': 9007199254740993}") == {"n": 9007199254740993}
    digits = "9" * 5000
    assert tambour.loads("{'n': " + digits + "}") == {"n": digits}
    assert tambour.loads(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    assert tambour.loads('"a": 1, "b": [2]') == {"a": 1, "b": [2]}
    assert tambour.loads('> {\n>   "a": 1\n> }') == {"a": 1}


def test_loads_without_a_value():
    with pytest.raises(tambour.DecodeError) as raised:
        tambour.loads("there is none")
    assert isinstance(raised.value, ValueError)
    with pytest.raises(tambour.DecodeError) as raised:
        tambour.loads('{"a": 1,}', strict=True)
    assert raised.value.findings[0].line == 1
    again = pickle.loads(pickle.dumps(raised.value))
    assert again.findings == raised.value.findings and str(again) == str(raised.value)
    assert tambour.loads('{"a": 1}', strict=True) == {"a": 1}
    for wrong in (None, 5, ["{}"]):
        with pytest.raises(TypeError):
            tambour.loads(wrong)


def test_sanitize():
    text, findings = tambour.sanitize("<script>x()</script><b>Hi", findings=True)
    assert text == "<b>Hi</b>" and findings
    assert tambour.sanitize("<i onclick=x>a</i>", mode="strip") == "<i>a</i>"
    with pytest.raises(tambour.TambourError):
        tambour.sanitize("a", mode="keep")


def test_contracts():
    assert tambour.contract("thinkingml") != tambour.contract("thinkingml", text_language="en")
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    written = tambour.contract("json_value", "json-schema", json_value_schema=schema)
    assert "not stated" in written.pop("$comment").lower()
    assert written == schema
    for format in ("lark", "gbnf"):
        assert isinstance(tambour.contract("json_value", format, json_value_schema=schema), str)
    assert isinstance(tambour.contract("json_value", "structural-tag", json_value_schema=schema), dict)
    with pytest.raises(tambour.TambourError, match="available for"):
        tambour.contract("plain")
    with pytest.raises(tambour.TambourError, match="unknown format"):
        tambour.contract("aiplan", "yaml")


CARD = '{"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "Ada", "description": "{{char}} is a smith.", "first_mes": "Hm?", "character_book": {"entries": [{"keys": ["forge"], "content": "Hot.", "enabled": true, "insertion_order": 1, "extensions": {}}]}}}'


def png(card: str) -> bytes:
    import struct
    import zlib

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    text = b"chara\0" + base64.b64encode(card.encode())
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"tEXt", text) + chunk(b"IEND", b"")


def test_cards():
    for data in (CARD, CARD.encode(), png(CARD)):
        card = tambour.import_card(data, name="ada.png")
        assert (card.kind, card.version, card.name) == ("card", "v2", "Ada")
        assert card.entries[0]["content"] == "Hot." and card.preset is None
        prompt = tambour.render_prompt(card.skein, {"user": "Tom", "char": "Ada"})
        assert "Ada is a smith." in prompt.text
    with pytest.raises(tambour.TambourError, match="ada.png"):
        tambour.import_card(b"GIF89a", name="ada.png")


def test_prompts():
    skein = "blocks:\n  - tag: place\n    text: \"{{ name }}\"\n"
    prompt = tambour.render_prompt(skein, {"name": "Ruins"})
    assert "Ruins" in prompt.text and prompt.messages[0].role == "system" and prompt.tokens > 0
    with pytest.raises(tambour.TambourError, match="name"):
        tambour.render_prompt(skein, strict=True)
    with pytest.raises(tambour.TambourError):
        tambour.render_prompt("blocks: [", {})
    counted = []

    def count(text):
        counted.append(text)
        return len(text)

    assert tambour.render_prompt(skein, {"name": "a"}, count_tokens=count).tokens > 0 and counted

    def fail(text):
        raise LookupError("no tokenizer")

    with pytest.raises(LookupError):
        tambour.render_prompt(skein, {"name": "a"}, count_tokens=fail)
    with pytest.raises(TypeError):
        tambour.render_prompt(skein, {"name": "a"}, count_tokens=lambda text: "many")


def test_a_hostile_template_is_stopped():
    loop = "{% for a in range(10000) %}{% for b in range(10000) %}{{ a }}{% endfor %}{% endfor %}"
    with pytest.raises(tambour.TambourError):
        tambour.render_prompt({"blocks": [{"tag": "a", "text": loop}]})


def test_macros():
    migrated = tambour.migrate_macros("{{char}} {{foo::bar}}")
    assert migrated.translated == 1 and migrated.left == 1
    assert (migrated.warnings[0].name, migrated.warnings[0].line, migrated.warnings[0].column) == ("foo", 1, 10)


def test_surrogates_are_replaced():
    pair, lone = "\ud83d\ude00", "\ud83d"
    assert tambour.loads(f'{{"a": "{pair}{lone}"}}') == {"a": "\U0001f600\ufffd"}
    assert tambour.sanitize(f"{pair}{lone}") == "\U0001f600\ufffd"
    assert tambour.migrate_macros(lone).text == "\ufffd"


@pytest.mark.parametrize("text", ["100000000000000000000", '{"id": 20000000000000000000}', "[-30771041731397235000]"])
def test_whole_numbers_keep_their_digits(text):
    assert tambour.loads(text) == json.loads(text)
    assert not any(isinstance(value, float) for value in (tambour.loads(text), *tambour.loads(f"[{text}]")))


def test_a_string_is_a_string():
    for text in (r'"key\": value"', r'"a\":1"'):
        assert tambour.loads(text) == json.loads(text)


def test_a_value_that_a_limit_cuts_is_an_error():
    with pytest.raises(tambour.DecodeError, match="brackets") as raised:
        tambour.loads("[" * 200 + "1" + "]" * 200)
    assert raised.value.findings[0].code == "limit_exceeded"
