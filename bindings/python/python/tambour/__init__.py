"""Structured replies of language models as one typed, repaired, checked stream of events.

A reply goes in as it arrives, in chunks cut anywhere; events come out while the model still writes. Faults are
repaired and reported as findings; what acts, such as a tool call, waits until it is complete and valid.

>>> import tambour
>>> for event in tambour.decode(["<think>2 + 2</thi", "nk>It is 4."], dialect="plain"):
...     match event:
...         case tambour.PhaseDelta(text=text):
...             print("thought:", text)
...         case tambour.FinalDelta(text=text):
...             print("answer:", text)
thought: 2 + 2
answer: It is 4.

`decode` reads a stream, `decode_into` reads it into a pydantic model, `tambour.openai` and `tambour.anthropic`
read the objects of these packages. `check`, `repair`, `loads` and `sanitize` take whole texts; `contract` has what a
model is told; `render_prompt`, `import_card` and `migrate_macros` make prompts; `State`, `Script` and `Dialogue`
keep what lasts longer than a reply. `tambour.arrow` reads batches.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from ._decode import AsyncDecoder, decode
from ._errors import DecodeError, ScriptError, StateError, TambourError
from ._functions import (
    check,
    contract,
    import_card,
    loads,
    migrate_macros,
    render_prompt,
    repair,
    sanitize,
)
from ._native import Decoder, Dialogue, Pipeline, ReplyReader, Script, State, __version__
from ._options import Options
from ._partial import AsyncPartials, Partials, decode_into
from ._types import *  # noqa: F403
from ._types import __all__ as _type_names

__all__ = [
    "__version__",
    "AsyncDecoder",
    "AsyncPartials",
    "DecodeError",
    "Decoder",
    "Dialogue",
    "Options",
    "Partials",
    "Pipeline",
    "ReplyReader",
    "Script",
    "ScriptError",
    "State",
    "StateError",
    "TambourError",
    "check",
    "contract",
    "decode",
    "decode_into",
    "import_card",
    "loads",
    "migrate_macros",
    "render_prompt",
    "repair",
    "sanitize",
]
__all__ += _type_names

if _TYPE_CHECKING:
    from . import anthropic, arrow, openai  # noqa: F401


def __getattr__(name: str) -> _Any:
    """Imports `anthropic`, `arrow` and `openai` when they are asked for."""
    if name in ("anthropic", "arrow", "openai"):
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
