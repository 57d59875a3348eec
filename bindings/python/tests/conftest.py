"""Golden replies, and the line with the counts that `cargo xtask test` reads."""

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


def pytest_terminal_summary(terminalreporter) -> None:
    stats = terminalreporter.stats
    passed = len(stats.get("passed", []))
    failed = len(stats.get("failed", [])) + len(stats.get("error", []))
    word = "FAILED" if failed else "ok"
    terminalreporter.write_line(f"test result: {word}. {passed} passed; {failed} failed;")
