"""Exceptions. What a model writes never raises one: it is events and findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._types import AnyEvent, Finding, ScriptProblem

__all__ = ["DecodeError", "ScriptError", "StateError", "TambourError"]


class TambourError(ValueError):
    """A mistake of the caller: an unknown option, a malformed value, a file of the wrong shape.

    `code` is the public code, such as `template_not_found`, if there is one; `line` and `column` (from 1) are the
    place in the caller's text, if it is known.
    """

    def __init__(
        self,
        message: str,
        code: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message, code, line, column)
        self.message = message
        self.code = code
        self.line = line
        self.column = column

    def __str__(self) -> str:
        place = f" (line {self.line}, column {self.column})" if self.line is not None else ""
        return f"{self.message}{place}"


class DecodeError(TambourError):
    """A reply without the value that was asked for: no JSON, or one that does not fit its schema.

    `code` is that of the failure, `findings` are the findings on the reply.
    """

    def __init__(self, message: str, code: str | None = None, findings: list[Finding] | None = None) -> None:
        super().__init__(message, code)
        self.findings = findings or []

    def __reduce__(self) -> tuple[type[DecodeError], tuple[str, str | None, list[Finding]]]:
        return (type(self), (self.message, self.code, self.findings))


class StateError(TambourError):
    """A `State` that cannot take over the updates of a reply: it is in use, or has changed so that they do not fit.

    The reply itself has ended; `events` are those of its end, unless an iterator has given them before. The state is as it
    was. `outcome.updates` of the reader lists the updates, and another `finish` of a `Pipeline` tries to apply them again.
    """

    def __init__(self, message: str, events: list[AnyEvent] | None = None) -> None:
        super().__init__(message, "state_conflict")
        self.events = events or []

    def __reduce__(self) -> tuple[type[StateError], tuple[str, list[AnyEvent]]]:
        return (type(self), (self.message, self.events))


class ScriptError(TambourError):
    """A script that cannot run; `problems` lists all its problems, in source order."""

    def __init__(self, problems: list[ScriptProblem]) -> None:
        first = next((problem for problem in problems if problem.finding.severity == "error"), None)
        finding = first.finding if first is not None else None
        message = "the script cannot run"
        if first is not None and finding is not None:
            message += f": {first.path}: {finding.message}" if first.path else f": {finding.message}"
        super().__init__(
            message,
            finding.code if finding else None,
            finding.line if finding else None,
            finding.column if finding else None,
        )
        self.problems = problems

    def __reduce__(self) -> tuple[type[ScriptError], tuple[list[ScriptProblem]]]:
        return (type(self), (self.problems,))
