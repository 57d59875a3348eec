"""Golden replies."""

from __future__ import annotations

import base64
import json
import os
import pathlib

import pytest


@pytest.fixture(scope="session")
def golden() -> list[dict]:
    """Replies with the events and findings that the library gives in Rust (`cargo xtask bindings golden`)."""
    lines = pathlib.Path(os.environ["TAMBOUR_GOLDEN"]).read_text().split("\n")
    rows = [json.loads(line) for line in lines if line]
    for row in rows:
        row["input"] = base64.b64decode(row["input"])
    assert len(rows) > 2000
    return rows
