"""Asynchronous sources: order, cancelling, early ends, exceptions."""

from __future__ import annotations

import asyncio
import gc

import pytest
import tambour
from tambour import Completed, Failure, FinalDelta


async def chunks(*pieces, closed=None):
    try:
        for piece in pieces:
            await asyncio.sleep(0)
            yield piece
    finally:
        if closed is not None:
            closed.append(True)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 30))


def test_events_are_those_of_a_synchronous_source():
    async def main():
        pieces = ["<think>2 + 2</thi", "nk>It is", " 4."]
        decoder = tambour.decode(chunks(*pieces), "plain", findings=True)
        events = [event async for event in decoder]
        assert events == list(tambour.decode(iter(pieces), "plain", findings=True))
        assert decoder.outcome.metadata.dialect == "plain"
        assert decoder.findings == []

    run(main())


def test_text_comes_before_the_next_chunk():
    async def main():
        gate = asyncio.Event()

        async def source():
            yield "It is"
            await gate.wait()
            yield " 4."

        decoder = tambour.decode(source(), "plain")
        async for event in decoder:
            if isinstance(event, FinalDelta):
                break
        assert event == FinalDelta("It is")
        gate.set()
        rest = [event async for event in decoder]
        assert rest[0] == FinalDelta(" 4.") and isinstance(rest[-1], Completed)

    run(main())


def test_cancelling_in_the_middle():
    async def main():
        closed = []

        async def source():
            try:
                yield "It is"
                await asyncio.sleep(3600)
            finally:
                closed.append(True)

        seen = []

        async def consume():
            async for event in tambour.decode(source(), "plain"):
                seen.append(event)

        task = asyncio.create_task(consume())
        while not any(isinstance(event, FinalDelta) for event in seen):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not any(isinstance(event, Failure) for event in seen)
        del task
        gc.collect()
        await asyncio.sleep(0)
        assert closed == [True]

    run(main())


def test_a_cancelled_reply_does_not_end_as_a_whole_one():
    async def main():
        async def source():
            yield "It is"
            await asyncio.sleep(3600)

        decoder = tambour.decode(source(), "plain")
        seen = []

        async def consume():
            async for event in decoder:
                seen.append(event)

        task = asyncio.create_task(consume())
        while not any(isinstance(event, FinalDelta) for event in seen):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [event async for event in decoder] == []
        assert not any(isinstance(event, Completed) for event in seen)

    run(main())


def test_an_early_end_closes_the_source():
    async def main():
        closed = []
        decoder = tambour.decode(chunks("a", "b", "c", closed=closed), "plain")
        async for event in decoder:
            if isinstance(event, FinalDelta):
                break
        await decoder.aclose()
        assert closed == [True]
        assert [event async for event in decoder] == []

    run(main())


def test_an_exception_of_the_source_comes_behind_a_closed_stream():
    async def main():
        async def source():
            yield "It is"
            raise OSError("the line is down")

        events = []
        with pytest.raises(OSError):
            async for event in tambour.decode(source(), "plain"):
                events.append(event)
        assert events[-1] == Failure("input_failed", "the line is down", False)

    run(main())


def test_many_streams_at_once():
    async def main():
        async def one(number):
            pieces = [f"<think>{number}</think>"] + [f"{number} "] * 20
            decoder = tambour.decode(chunks(*pieces), "plain")
            return "".join([event.text async for event in decoder if isinstance(event, FinalDelta)])

        results = await asyncio.gather(*(one(number) for number in range(200)))
        assert results == [(f"{number} " * 20).strip() for number in range(200)]

    run(main())


def test_a_wrong_chunk_closes_the_stream():
    async def main():
        events = []
        decoder = tambour.decode(chunks("It is", 5, " 4."), "plain")
        with pytest.raises(TypeError):
            async for event in decoder:
                events.append(event)
        assert isinstance(events[-1], Failure) and events[-1].code == "input_failed"
        assert [event async for event in decoder] == [] and decoder.dialect == "plain"

    run(main())
