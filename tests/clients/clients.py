"""Published Python clients read every recorded reply through the server, without a warning.

python clients.py PATH/TO/tambour FOLDER_OF_FIXTURES
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.request
import warnings

from langchain_openai import ChatOpenAI
from openai import LengthFinishReasonError, OpenAI

binary, fixtures = sys.argv[1], pathlib.Path(sys.argv[2])
lines = [line for file in sorted((fixtures / "recorded").glob("*.jsonl")) for line in file.read_text().splitlines() if line]
records = [json.loads(line) for line in lines]
folder = tempfile.TemporaryDirectory(prefix="tambour-clients-")
replay = pathlib.Path(folder.name) / "recordings.jsonl"
replay.write_text("\n".join(lines))
server = subprocess.Popen(
    [binary, "serve", "--listen", "127.0.0.1:0", "--data", folder.name, "--upstream", f"replay={replay}"],
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
)
base = server.stdout.readline().removeprefix("listening on ").strip()
assert base, "the server did not start"
client = OpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0)
# Warnings of the clients are failures.
warnings.simplefilter("error")


def fetch_record(model, dialect):
    """Record of a message as the server stores it."""
    body = json.dumps({"text": "x", "model": model, "dialect": dialect, "wait": True}).encode()
    request = urllib.request.Request(f"{base}/api/v1/messages", body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def assert_equal(name, got, expected):
    assert got == expected, f"{name}: {got!r:.300} instead of {expected!r:.300}"


def chat_stream(ask, extra, record):
    text, finish, usage = "", None, None
    stream = client.chat.completions.create(
        **ask, extra_body=extra, stream=True, stream_options={"include_usage": True}
    )
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
    assert_equal("answer", text, record["answer"])
    has_calls = any(event["event"] == "tool_call" for event in record["events"])
    assert_equal("finish", finish, "length" if record["finish_reason"] == "length" else "tool_calls" if has_calls else "stop")
    assert usage.total_tokens >= 0


def chat_helper(ask, extra, record):
    with client.chat.completions.stream(**ask, extra_body=extra) as stream:
        try:
            whole = stream.get_final_completion()
        except LengthFinishReasonError as error:
            # The helper raises an error for a cut reply.
            assert record["finish_reason"] == "length"
            whole = error.completion
    assert_equal("answer", whole.choices[0].message.content, record["answer"])


def chat_whole(ask, extra, record):
    whole = client.chat.completions.create(**ask, extra_body=extra)
    assert_equal("answer", whole.choices[0].message.content, record["answer"])


def responses(ask, extra, record):
    events = list(client.responses.create(model=ask["model"], input="x", extra_body=extra, stream=True))
    assert_equal("end", events[-1].type, "response.incomplete" if record["finish_reason"] == "length" else "response.completed")
    assert_equal("answer", events[-1].response.output_text, record["answer"])
    # Resume after a number, as after a lost connection.
    for cut in (0, len(events) // 2, len(events) - 2):
        rest = client.responses.retrieve(events[-1].response.id, stream=True, starting_after=cut)
        assert_equal(f"events after {cut}", [event.type for event in rest], [event.type for event in events[cut + 1 :]])


def responses_whole(ask, extra, record):
    whole = client.responses.create(model=ask["model"], input="x", extra_body=extra)
    assert_equal("answer", whole.output_text, record["answer"])


def langchain(ask, extra, record):
    model = ChatOpenAI(base_url=f"{base}/v1", api_key="none", model=ask["model"], extra_body=extra, max_retries=0)
    assert_equal("answer", model.invoke("x").text, record["answer"])
    assert_equal("stream", "".join(chunk.text for chunk in model.stream("x")), record["answer"])


passed, failures = 0, []
for record in records:
    dialect = record.get("protocol") or "auto"
    ask = {"model": f"replay/{record['id']}", "messages": [{"role": "user", "content": "x"}]}
    expected = fetch_record(record["id"], dialect)
    for run in (chat_stream, chat_helper, chat_whole, responses, responses_whole, langchain):
        try:
            run(ask, {"tambour": {"dialect": dialect}}, expected)
            passed += 1
        except Exception as error:  # Also warnings.
            failures.append(f"{run.__name__}, {record['id']}: {type(error).__name__}: {error!s:.400}")
server.terminate()
server.wait()
server.stdout.close()
folder.cleanup()
print(*failures[:40], sep="\n")
print(f"test result: {'FAILED' if failures else 'ok'}. {passed} passed; {len(failures)} failed;")
sys.exit(bool(failures))
