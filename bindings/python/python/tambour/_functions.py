"""Functions on whole texts."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _native
from ._errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from typing_extensions import Unpack

    from ._options import Options
    from ._types import Finding, ImportedCard, MigratedText, RenderedPrompt, Repair, Verdict

    Text = str | bytes | bytearray | memoryview

__all__ = [
    "check",
    "contract",
    "import_card",
    "loads",
    "migrate_macros",
    "render_prompt",
    "repair",
    "sanitize",
]


def check(text: Text, contract: str = "auto", **options: Unpack[Options]) -> Verdict:
    """Checks a reply against the rules of its dialect, or with the contract `events` a stream as a client gets it.

    The profile is `strict` unless the option `profile` says otherwise.

    Raises `TambourError` for an unknown contract or option.

    >>> verdict = check("<final>\\nHi.\\n</final>", "thinkingml")
    >>> verdict.passed, verdict.first_error.code, verdict.first_error.line
    (False, 'serp_block_missing', 3)
    """
    return _native.check(text, contract, dict(options))


def repair(
    text: Text, dialect: str = "auto", *, finish: str | None = "stop", **options: Unpack[Options]
) -> Repair:
    """Rewrites a reply so that it passes the strict check. `finish` is its finish reason.

    Raises `TambourError` if replies of the dialect cannot be written, or the reply ended with a failure.

    >>> repaired = repair('<thinking><phase id="1">a</thinking><final>b', "thinkingml")
    >>> check(repaired.text, "thinkingml").passed
    True
    """
    return _native.repair(text, dialect, finish, dict(options))


@overload
def loads(text: Text, *, strict: bool = ..., findings: Literal[False] = ...) -> Any: ...
@overload
def loads(text: Text, *, strict: bool = ..., findings: Literal[True]) -> tuple[Any, list[Finding]]: ...
@overload
def loads(text: Text, *, strict: bool = ..., findings: bool) -> Any: ...


def loads(text: Text, *, strict: bool = False, findings: bool = False) -> Any:
    """Returns the one JSON value of a chatty, fenced or broken text, as `json.loads` would.

    With `findings`, returns the value and the list of repairs. With `strict`, the text must be nothing but valid JSON.
    Whole numbers keep all their digits; one of more than 4,300 digits stays text, as Python reads none. Other numbers are
    `float`, as `json.loads` makes them.

    Raises `DecodeError`, a `ValueError`, if there is no value, or none that is whole: nesting is limited to 128 levels. Its
    `findings` say why, if there are any.

    >>> loads("Sure, here you are:\\n```json\\n{'ok': True, 'n': 1,}\\n```")
    {'ok': True, 'n': 1}
    >>> value, repairs = loads("{'ok': True}", findings=True)
    >>> [(finding.code, finding.line, finding.column) for finding in repairs]
    [('json_quote', 1, 2), ('json_literal', 1, 8)]
    """
    is_found, value, digits, found_findings = _native.find_json(text, strict, findings)
    if not is_found:
        reports = found_findings or []
        message = reports[0].message if reports else "there is no JSON value"
        raise DecodeError(message, "json_missing", reports)
    if digits is not None:
        value = json.loads(digits, parse_int=_parse_int)
    return (value, found_findings) if findings else value


def _parse_int(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:
        # Python limits the digits of a conversion.
        return digits


@overload
def sanitize(
    text: Text, *, mode: Literal["escape", "strip"] = ..., findings: Literal[False] = ...
) -> str: ...
@overload
def sanitize(
    text: Text, *, mode: Literal["escape", "strip"] = ..., findings: Literal[True]
) -> tuple[str, list[Finding]]: ...


def sanitize(
    text: Text, *, mode: Literal["escape", "strip"] = "escape", findings: bool = False
) -> str | tuple[str, list[Finding]]:
    """Leaves only harmless inline HTML in a Markdown text; other markup is shown as text, or removed with `strip`.

    >>> sanitize("<b>Hi</b> <img src=x>, 1 < 2")
    '<b>Hi</b> &lt;img src=x>, 1 < 2'
    """
    result, reports = _native.sanitize(text, mode)
    return (result, reports) if findings else result


def contract(
    name: str,
    format: Literal["prompt", "json-schema", "lark", "gbnf", "structural-tag"] = "prompt",
    **options: Unpack[Options],
) -> Any:
    """Returns what a model is told or constrained by, for a dialect.

    `prompt` are instructions for a system prompt (`text_language="en"` for English), `lark` and `gbnf` are grammars, all
    of them text; `json-schema` and `structural-tag` are JSON values. What a schema does not state is in its `$comment`,
    which validators ignore.

    Raises `TambourError` if the dialect has no such form.

    >>> contract("thinkingml", text_language="en").startswith("Write your whole reply in the form")
    True
    >>> contract("json_value", "json-schema", json_value_schema={"type": "array"})["type"]
    'array'
    """
    return _native.contract(name, format, dict(options))


def import_card(data: Text, *, name: str = "card") -> ImportedCard:
    """Imports a character card, a lorebook or a preset: JSON, PNG, APNG or CHARX. `name` is the file name, for messages.

    Raises `TambourError` if the file is of no known kind, exceeds a limit or is broken.

    >>> card = import_card('{"name": "Ada", "description": "A smith.", "first_mes": "Hm?"}')
    >>> card.kind, card.version, card.name, card.v3["spec"]
    ('card', 'v1', 'Ada', 'chara_card_v3')
    """
    return _native.import_card(data, name)


def migrate_macros(text: Text) -> MigratedText:
    """Translates macros of SillyTavern and Tavern-Helper to Jinja. Unknown ones stay text, with a warning.

    >>> migrate_macros("Hi {{user}}, {{roll:2d6}}").text
    "Hi {{ user }}, {{ roll('2d6') }}"
    """
    return _native.migrate_macros(text)


def render_prompt(
    prompt: Text | Mapping[str, Any],
    context: Mapping[str, Any] | None = None,
    *,
    others: Sequence[Text | Mapping[str, Any]] = (),
    max_context: int | None = None,
    language: Literal["zh", "en"] = "zh",
    strict: bool = False,
    timed_effects: Mapping[str, Any] | None = None,
    seed: int | None = None,
    count_tokens: Callable[[str], int] | None = None,
) -> RenderedPrompt:
    """Renders a Skein with the variables of `context`, to text and to messages.

    `prompt` is a Skein as YAML text or as a dictionary, or the bytes of a card, a lorebook or a preset; world info of
    `others` is added. `max_context` is the largest number of tokens, which `count_tokens` counts; without it they are
    estimated. `strict` refuses undefined variables. `timed_effects` are those of the turn before; `seed` makes random
    choices repeat.

    Raises `TambourError` if the prompt is malformed, or a template cannot be rendered within its limits.

    >>> skein = {"blocks": [{"tag": "world_state", "data": {"place": "{{ place }}"}}]}
    >>> print(render_prompt(skein, {"place": "Ruins"}).text)
    <world_state>
    place: Ruins
    </world_state>
    """
    return _native.render_prompt(
        dict(prompt) if not isinstance(prompt, (str, bytes, bytearray, memoryview)) else prompt,
        dict(context or {}),
        others=list(others),
        max_context=max_context,
        language=language,
        strict=strict,
        timed_effects=dict(timed_effects) if timed_effects is not None else None,
        seed=random.getrandbits(63) if seed is None else seed,
        count_tokens=count_tokens,
    )
