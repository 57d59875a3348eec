"""Speed of the package beside others, by hand: nothing in the tests measures time.

python bench.py            all tables
python bench.py loads      one of: loads, partial, decode, batch, engines

Needs the packages that it compares with: fast_json_repair, json_repair, jiter, instructor, pydantic, pyarrow; `engines` needs
ray, and pyspark with Java. Those that are missing are left out. All figures are the best of several runs in one process.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import random
import sys
import time
from typing import Any

import tambour
from pydantic import BaseModel


def best(function, runs: int = 7) -> float:
    """Shortest time of a call, in seconds."""
    times = []
    gc.collect()
    gc.disable()
    for _ in range(runs):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    gc.enable()
    return min(times)


def try_import(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        print(f"  {name} is not installed")
        return None


def make_value(source: random.Random, size: int) -> dict:
    """A value of about `size` bytes of JSON."""
    items: list = []
    value = {"title": "A report on bread", "items": items, "done": True}
    while len(json.dumps(value)) < size:
        items.append({
            "id": len(items),
            "name": source.choice(["wheat", "rye", "spelt"]),
            "price": round(source.random() * 10, 2),
            "text": " ".join(source.choice(["warm", "dark", "light", "sour", "fresh"]) for _ in range(12)),
            "tags": ["a", "b"],
        })  # fmt: skip
    return value


def break_json(value: dict, kind: int) -> str:
    """A reply with the value: fenced, with faults that models make."""
    text = json.dumps(value, indent=1)
    if kind % 4 == 0:
        text = text.replace("true", "True")
    if kind % 4 == 1:
        text = text.replace("\n }", ",\n }").replace('"\n', '",\n')
    if kind % 4 == 2:
        text = text.replace('"', "'")
    if kind % 4 == 3:
        text = text.rstrip("}\n ]") + '"'
    return f"Sure, here is what you asked for:\n\n```json\n{text}\n```\n\nTell me if it should be shorter."


def bench_loads() -> None:
    print("loads of broken fenced replies, 4 KB: µs a reply, and how many are right")
    source = random.Random(1)
    values = [make_value(source, 3800) for _ in range(40)]
    replies = [break_json(value, index) for index, value in enumerate(values)]

    def is_right(found: Any, index: int) -> bool:
        if index % 4 == 3:
            # The last item is cut: those before it must be whole.
            return isinstance(found, dict) and found.get("items", [])[:-1] == values[index]["items"][:-1]
        return found == values[index]

    def measure(name: str, load) -> None:
        right = 0
        for index, reply in enumerate(replies):
            try:
                right += is_right(load(reply), index)
            except Exception:
                pass
        seconds = best(lambda: [try_load(load, reply) for reply in replies])
        print(f"  {name:<24} {seconds / len(replies) * 1e6:9.1f}  {right} of {len(replies)}")

    def try_load(load, reply):
        try:
            return load(reply)
        except Exception:
            return None

    measure("tambour", tambour.loads)
    if fast := try_import("fast_json_repair"):
        measure("fast_json_repair", fast.loads)
    if slow := try_import("json_repair"):
        measure("json_repair", slow.loads)
    valid = [json.dumps(value) for value in values]
    seconds = best(lambda: [json.loads(text) for text in valid])
    print(f"  {'json, the valid text':<24} {seconds / len(valid) * 1e6:9.1f}")
    seconds = best(lambda: [tambour.loads(text) for text in valid])
    print(f"  {'tambour, the valid text':<24} {seconds / len(valid) * 1e6:9.1f}")


class Item(BaseModel):
    id: int
    name: str
    price: float
    text: str
    tags: list[str]


class Report(BaseModel):
    title: str
    items: list[Item]
    done: bool


class Essay(BaseModel):
    title: str
    body: str


def bench_partial() -> None:
    print("partial objects in 4-character chunks into pydantic: ms a reply")
    source = random.Random(2)
    for size in (8 << 10, 64 << 10, 128 << 10):
        report = json.dumps(make_value(source, size))
        essay = json.dumps({"title": "Bread", "body": " ".join(["warm"] * (size // 5))})
        for name, model, reply in (("list", Report, report), ("text", Essay, essay)):
            chunks = [reply[start : start + 4] for start in range(0, len(reply), 4)]

            def read(model=model, chunks=chunks):
                for _ in tambour.decode_into(model, iter(chunks)):
                    pass

            label = f"{size >> 10} KB, {name}"
            own = best(read, 3)
            line = f"  {label:<14} tambour {own * 1e3:8.1f} ({own / len(chunks) * 1e6:.2f} µs a chunk)"
            if size <= 64 << 10:
                line += compare_partial(model, chunks, own)
            print(line)


def compare_partial(model, chunks: list[str], own: float) -> str:
    try:
        import jiter
    except ImportError:
        return "  jiter is not installed"
    # All chunks of a 64 KB reply take minutes; every sixteenth is measured, at places spread over the reply.
    step = max(1, len(chunks) // 1024)

    def measure(read) -> float:
        start = time.perf_counter()
        text = ""
        spent = 0.0
        for index, chunk in enumerate(chunks):
            text += chunk
            if index % step == 0:
                begin = time.perf_counter()
                read(text)
                spent += time.perf_counter() - begin
        del start
        return spent * step

    def read_jiter(text):
        value = jiter.from_json(text.encode(), partial_mode="trailing-strings")
        return model.model_construct(**value)

    other = measure(read_jiter)
    line = f"  jiter {other * 1e3:9.0f} ({other / own:.0f} ×)"
    try:
        from instructor.dsl.partial import Partial
    except ImportError:
        return line + "  instructor is not installed"
    partial = Partial[model].get_partial_model()

    def read_instructor(text):
        value = jiter.from_json(text.encode(), partial_mode="trailing-strings")
        return partial.model_validate(value, strict=None)

    other = measure(read_instructor)
    return line + f"  instructor {other * 1e3:9.0f} ({other / own:.0f} ×)"


def bench_decode() -> None:
    print("decode of 4-byte chunks: ns a chunk, beside a no-op loop over the same chunks")
    text = "<think>" + "Two and two is four. " * 200 + "</think>" + "It is *four*, of course. " * 10_000
    chunks = [text[start : start + 4] for start in range(0, len(text), 4)]

    def generate():
        for chunk in chunks:
            yield chunk

    def no_op():
        for _ in chunks:
            pass

    def no_op_generator():
        for _ in generate():
            pass

    def drain(source):
        for _ in tambour.decode(source, "plain"):
            pass

    def push():
        pipeline = tambour.Pipeline("plain")
        for chunk in chunks:
            for _ in pipeline.push(chunk):
                pass
        pipeline.finish()

    count = len(chunks)
    base, generator = best(no_op), best(no_op_generator)
    for name, function, reference in (
        ("list", lambda: drain(chunks), base),
        ("iterator of a list", lambda: drain(iter(chunks)), base),
        ("generator", lambda: drain(generate()), generator),
        ("Pipeline.push", push, base),
    ):
        seconds = best(function)
        print(
            f"  {name:<20} {seconds / count * 1e9:7.0f}  no-op {reference / count * 1e9:5.0f}"
            f"  {seconds / reference:5.1f} ×"
        )


#: Replies of a batch, of about 2 KB each.
BATCH_REPLIES = int(os.environ.get("BATCH_REPLIES", "100000"))


def make_replies(count: int) -> list[str]:
    """ThinkingML of about 2 KB, one in four with a fault."""
    source = random.Random(3)
    words = ["warm", "dark", "light", "sour", "fresh", "bread", "oven", "flour", "&amp;", "*crust*"]

    def prose(size: int) -> str:
        return " ".join(source.choice(words) for _ in range(size))

    kinds = []
    for index in range(64):
        phases = "".join(
            f'<phase id="{number}">\n<title>Step {number}</title>\n{prose(60)}\n</phase>\n' for number in (1, 2, 3)
        )
        reply = (
            f"<serp>{prose(12)}.</serp>\n<thinking>\n{phases}</thinking>\n<final>\n{prose(150)}\n"
            '<!-- <serp_queries>\n["how to bake"]\n</serp_queries> -->\n</final>\n'
        )
        kinds.append(reply.replace('id="2"', 'id="5"') if index % 4 == 0 else reply)
    return [kinds[index % len(kinds)] for index in range(count)]


def bench_batch() -> None:
    print(f"check of {BATCH_REPLIES} ThinkingML replies of 2 KB: MB/s")
    pyarrow = try_import("pyarrow")
    if pyarrow is None:
        return
    import tambour.arrow

    replies = make_replies(BATCH_REPLIES)
    table = pyarrow.table({"reply": replies})
    megabytes = sum(map(len, replies)) / 1e6
    sample = replies[: max(1, len(replies) // 20)]

    def show(name: str, function, part: float = 1.0) -> None:
        seconds = best(function, 3)
        print(f"  {name:<36} {megabytes * part / seconds:9.0f}")

    cores = len(os.sched_getaffinity(0))
    verdict = ["passed", "first_error", "faults"]
    for threads in sorted({1, cores}):
        check = functools.partial(tambour.arrow.check, contract="thinkingml", threads=threads)
        show(f"check, {threads} threads", lambda check=check: check(table, columns=verdict))
        show(f"check, {threads} threads, all columns", lambda check=check: check(table))
    decode = functools.partial(tambour.arrow.decode, dialect="thinkingml", columns=["answer", "reasoning", "faults"])
    show(f"decode, {cores} threads", lambda: decode(table))

    def loop_decode() -> None:
        for reply in sample:
            for _ in tambour.decode(reply, "thinkingml"):
                pass

    def loop_check() -> None:
        for reply in sample:
            tambour.check(reply, "thinkingml")

    show("a loop over tambour.decode", loop_decode, len(sample) / len(replies))
    show("a loop over tambour.check", loop_check, len(sample) / len(replies))


def bench_engines() -> None:
    """Ray and Spark with one core, after a run that starts their workers; `batch` with one thread is beside it."""
    print(f"check of {BATCH_REPLIES} ThinkingML replies of 2 KB on one core: MB/s")
    pyarrow = try_import("pyarrow")
    if pyarrow is None:
        return
    import tambour.arrow

    table = pyarrow.table({"reply": make_replies(BATCH_REPLIES)})
    megabytes = sum(map(len, make_replies(64))) / 64 * BATCH_REPLIES / 1e6
    check = functools.partial(
        tambour.arrow.check, contract="thinkingml", threads=1, columns=["passed", "first_error"]
    )
    seconds = best(lambda: check(table), 3)
    print(f"  {'no engine':<12} {megabytes / seconds:9.0f}")
    if ray := try_import("ray"):
        import ray.data

        ray.init(num_cpus=1, include_dashboard=False, logging_level="error")
        dataset = ray.data.from_arrow(table).materialize()
        seconds = best(lambda: dataset.map_batches(check, batch_format="pyarrow").materialize(), 3)
        print(f"  {'Ray':<12} {megabytes / seconds:9.0f}  (the input in its store)")
        ray.shutdown()
    if try_import("pyspark"):
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        spark = SparkSession.builder.master("local[1]").config("spark.driver.memory", "4g").getOrCreate()
        frame = spark.range(BATCH_REPLIES, numPartitions=4)
        kinds = make_replies(64)
        texts = functools.partial(repeat_replies, kinds=kinds)
        frame = frame.mapInArrow(texts, "reply string").cache()
        frame.count()
        schema = "passed boolean, first_error string"
        seconds = best(lambda: frame.mapInArrow(check, schema).write.format("noop").mode("overwrite").save(), 3)
        print(f"  {'Spark':<12} {megabytes / seconds:9.0f}  (the input in its cache)")
        spark.stop()


def repeat_replies(batches, kinds):
    import pyarrow

    for batch in batches:
        replies = [kinds[index % len(kinds)] for index in range(batch.num_rows)]
        yield pyarrow.record_batch({"reply": replies})


TABLES = {"loads": bench_loads, "partial": bench_partial, "decode": bench_decode, "batch": bench_batch, "engines": bench_engines}

if __name__ == "__main__":
    for table in sys.argv[1:] or TABLES:
        TABLES[table]()
