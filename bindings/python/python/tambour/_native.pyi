"""Signatures of the native part; its documentation is in its docstrings."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, final

from typing_extensions import Unpack

from ._options import Options
from ._types import (
    AnyEvent,
    AppliedUpdate,
    AwaitAnswer,
    AwaitUser,
    Event,
    Finding,
    Finished,
    ImportedCard,
    MigratedText,
    ModelCall,
    Outcome,
    PromptMessage,
    RenderedPrompt,
    Repair,
    ReplyEffect,
    ScriptProblem,
    StateDifference,
    StateUpdate,
    ToolCall,
    Turn,
    Verdict,
)

__all__ = [
    "__version__",
    "BatchFunction",
    "BatchResult",
    "Decoder",
    "Dialogue",
    "PartialReader",
    "Pipeline",
    "ReplyReader",
    "Script",
    "State",
    "StreamResult",
    "check",
    "check_finish",
    "contract",
    "find_json",
    "import_card",
    "migrate_macros",
    "render_prompt",
    "repair",
    "sanitize",
]

__version__: str

_Text = str | bytes | bytearray | memoryview

def check(text: _Text, contract: str, options: dict[str, Any] | None) -> Verdict: ...
def check_finish(reason: str | None) -> None: ...
def contract(name: str, format: str, options: dict[str, Any] | None) -> Any: ...
def find_json(
    text: _Text, strict: bool, findings: bool
) -> tuple[bool, Any, str | None, list[Finding] | None]: ...
def import_card(data: _Text, name: str) -> ImportedCard: ...
def migrate_macros(text: _Text) -> MigratedText: ...
def render_prompt(
    prompt: _Text | dict[str, Any],
    context: Any,
    *,
    others: list[Any],
    max_context: int | None,
    language: str,
    strict: bool,
    timed_effects: Any,
    seed: int,
    count_tokens: Callable[[str], int] | None,
) -> RenderedPrompt: ...
def repair(text: _Text, dialect: str, finish: str | None, options: dict[str, Any] | None) -> Repair: ...
def sanitize(text: _Text, mode: str) -> tuple[str, list[Finding]]: ...

@final
class Pipeline:
    def __new__(
        cls,
        dialect: str = "auto",
        *,
        extensions: bool = True,
        findings: bool = False,
        state: State | None = None,
        message: str = "",
        **options: Unpack[Options],
    ) -> Pipeline: ...
    def push(self, chunk: _Text) -> list[AnyEvent]: ...
    def push_reasoning(self, text: str) -> list[AnyEvent]: ...
    def push_call(self, name: str, arguments: str) -> list[AnyEvent]: ...
    def finish(self, reason: str | None = "stop", *, incomplete: bool = False) -> list[AnyEvent]: ...
    def fail(
        self, message: str, *, code: str = "upstream_failed", retryable: bool = True
    ) -> list[AnyEvent]: ...
    def abandon(self, reason: str | None = "stop") -> list[AnyEvent]: ...
    def insert(self, event: Event) -> list[AnyEvent]: ...
    def next_reply(self, dialect: str = "auto", **options: Unpack[Options]) -> Pipeline: ...
    def set_usage(self, usage: Any) -> None: ...
    @property
    def findings(self) -> list[Finding]: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def pending_calls(self) -> list[ToolCall]: ...
    @property
    def dialect(self) -> str: ...
    @property
    def held_bytes(self) -> int: ...

@final
class Decoder:
    def __new__(
        cls,
        chunks: _Text | Iterable[_Text],
        dialect: str = "auto",
        *,
        extensions: bool = True,
        findings: bool = False,
        finish: str | None = "stop",
        incomplete: bool = False,
        state: State | None = None,
        message: str = "",
        **options: Unpack[Options],
    ) -> Decoder: ...
    def __iter__(self) -> Iterator[AnyEvent]: ...
    def __next__(self) -> AnyEvent: ...
    def close(self) -> None: ...
    @property
    def findings(self) -> list[Finding]: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def dialect(self) -> str: ...

@final
class State:
    def __new__(cls, value: Any = None, *, schema: Any = None) -> State: ...
    @staticmethod
    def restore(saved: Any) -> State: ...
    def save(self) -> Any: ...
    @property
    def value(self) -> Any: ...
    @property
    def history(self) -> list[AppliedUpdate]: ...
    def apply(
        self,
        operations: list[Any] | Mapping[str, Any] | StateUpdate,
        *,
        message: str = "",
        analysis: str = "",
        atomic: bool = False,
    ) -> AppliedUpdate: ...
    def rollback(self, *, before: str | None = None, after: str | None = None) -> list[AppliedUpdate]: ...
    def at(self, *, before: str | None = None, after: str | None = None) -> Any: ...
    def diff(self, *, before: str | None = None, after: str | None = None) -> list[StateDifference]: ...
    def forget(self, message: str) -> bool: ...

@final
class Script:
    def __new__(
        cls, text: _Text, *, templates: dict[str, str] | None = None, language: str = "zh"
    ) -> Script: ...
    @property
    def problems(self) -> list[ScriptProblem]: ...
    @property
    def sessions(self) -> list[str]: ...
    @property
    def action_count(self) -> int: ...

@final
class Dialogue:
    def __new__(
        cls,
        script: Script,
        session: str | None = None,
        variables: dict[str, Any] | None = None,
        *,
        history: int | None = None,
        max_reasks: int | None = None,
        temperature: float | None = None,
        max_tokens: int | None = None,
        saved: Any = None,
        **options: Unpack[Options],
    ) -> Dialogue: ...
    def save(self) -> Any: ...
    def input(self, text: str | None = None, *, now: int = 0) -> None: ...
    def answer(self, call_id: str, value: Any, *, now: int = 0) -> None: ...
    def next(self, *, now: int = 0) -> ModelCall | AnyEvent | AwaitUser | AwaitAnswer | Finished: ...
    def reply(self, text: _Text, *, finish: str | None = "stop", reasoning: str = "") -> ReplyEffect: ...
    def reader(self) -> ReplyReader: ...
    def accept(self, reader: ReplyReader) -> ReplyEffect: ...
    def fail(self, message: str, *, code: str = "upstream_failed", retryable: bool = True) -> None: ...
    @property
    def turn(self) -> Turn: ...
    @property
    def variables(self) -> dict[str, Any]: ...
    @property
    def history(self) -> list[PromptMessage]: ...

@final
class ReplyReader:
    def push(self, text: str) -> list[AnyEvent]: ...
    def push_reasoning(self, text: str) -> list[AnyEvent]: ...
    def finish(self, reason: str | None = "stop", *, incomplete: bool = False) -> list[AnyEvent]: ...
    def fail(
        self, message: str, *, code: str = "upstream_failed", retryable: bool = True
    ) -> list[AnyEvent]: ...

@final
class PartialReader:
    def __new__(cls, options: dict[str, Any] | None = None) -> PartialReader: ...
    def push(self, chunk: _Text) -> list[tuple[int, Any]]: ...
    def finish(self) -> list[tuple[int, Any]]: ...

@final
class BatchFunction:
    @staticmethod
    def check(
        column: str,
        contract: str,
        columns: list[str] | None,
        keep: bool | list[str],
        prefix: str,
        threads: int | None,
        options: dict[str, Any] | None,
    ) -> BatchFunction: ...
    @staticmethod
    def decode(
        column: str,
        dialect: str,
        finish: str | None,
        columns: list[str] | None,
        keep: bool | list[str],
        prefix: str,
        threads: int | None,
        options: dict[str, Any] | None,
    ) -> BatchFunction: ...
    def run_batch(self, batch: Any) -> BatchResult: ...
    def run_stream(self, stream: Any, lazy: bool) -> StreamResult: ...

@final
class BatchResult:
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

@final
class StreamResult:
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
