"""Replies, and what the check says about them."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest
import tambour

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/batch"
sys.path.insert(0, str(EXAMPLES))

#: Number of replies; enough for many tasks, of which the first ones end before the last one begins.
REPLY_COUNT = 2000

VALID = (
    '<serp>The user greets.</serp>\n<thinking>\n<phase id="1">\n<title>Goal</title>\nBe kind.\n</phase>\n</thinking>\n'
    '<final>\nHi.\n<!-- <serp_queries>\n["ways to greet"]\n</serp_queries> -->\n</final>\n'
)
KINDS = [VALID, VALID.replace('"1"', '"2"'), "<final>\nHi.", None, "", VALID[:90]]


@pytest.fixture(scope="session")
def replies() -> list[dict]:
    return [{"id": number, "reply": KINDS[number % len(KINDS)]} for number in range(REPLY_COUNT)]


@pytest.fixture(scope="session")
def source(tmp_path_factory, replies) -> pathlib.Path:
    """Replies as JSON Lines."""
    path = tmp_path_factory.mktemp("replies") / "replies.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in replies))
    return path


@pytest.fixture(scope="session")
def verdicts(replies) -> list[tuple]:
    """Id, verdict and first error of each reply, as the function on one text gives them."""
    rows = []
    for row in replies:
        verdict = None if row["reply"] is None else tambour.check(row["reply"], "thinkingml")
        first = verdict.first_error if verdict else None
        rows.append((row["id"], verdict and verdict.passed, first and first.code))
    return rows
