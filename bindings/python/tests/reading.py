"""Reading of a golden reply in chunks, and comparison of what comes out."""

from __future__ import annotations

import random

import tambour

JOINED = {"final_delta", "phase_delta", "draft_delta"}


def cut_bytes(data, cuts: list[int]) -> list:
    """Pieces of text or bytes that end at these offsets."""
    ends = [*cuts, len(data)]
    return [data[start:end] for start, end in zip([0, *ends], ends)]


def random_cuts(length: int, seed: int) -> list[int]:
    """Offsets in ascending order; the same seed gives the same."""
    source = random.Random(seed)
    count = min(length, source.choice([1, 3, 9, 40]))
    return sorted(source.randrange(length + 1) for _ in range(count))


def join_deltas(events: list[dict]) -> list[dict]:
    """Events in JSON form, neighbouring deltas of one text joined."""
    joined: list[dict] = []
    for event in events:
        last = joined[-1] if joined else None
        is_text = event["event"] in JOINED or (
            event["event"] == "aside" and event["data"]["kind"] == "thought"
        )
        if (
            last is not None
            and is_text
            and last["event"] == event["event"]
            and all(last["data"].get(key) == event["data"].get(key) for key in ("id", "kind"))
        ):
            last["data"]["text"] += event["data"]["text"]
        else:
            joined.append({"event": event["event"], "data": dict(event["data"])})
    return joined


def drop_nulls(value):
    """Value without fields that are null: Python shows absent fields as None too."""
    if isinstance(value, dict):
        return {key: drop_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [drop_nulls(item) for item in value]
    return value


def read(row: dict, chunks) -> tuple[list[dict], list[dict]]:
    """Events and findings of a row, read with a pipeline."""
    pipeline = tambour.Pipeline(row["dialect"], **row["options"])
    events = []
    if row["reasoning"] is not None:
        events += pipeline.push_reasoning(row["reasoning"])
    for chunk in chunks:
        events += pipeline.push(chunk)
    finish = row["finish"]
    if finish == "failed":
        events += pipeline.fail("the connection broke")
    elif finish == "unknown":
        events += pipeline.finish(None)
    elif finish == "incomplete":
        events += pipeline.finish("stop", incomplete=True)
    else:
        events += pipeline.finish(finish)
    findings = [finding.to_dict()["data"] for finding in pipeline.findings]
    return join_deltas([event.to_dict() for event in events]), findings


def assert_same(row: dict, chunks, how: str) -> None:
    """Fails with the first difference between a reading and the golden one."""
    events, findings = read(row, chunks)
    expected = row["events"]
    for index, (got, want) in enumerate(zip(events, expected)):
        assert drop_nulls(got) == drop_nulls(want), f"{row['name']}, {how}: event {index}"
    assert len(events) == len(expected), f"{row['name']}, {how}"
    assert findings == row["findings"], f"{row['name']}, {how}: findings"
