"""The published agents SDK of OpenAI runs its tool loop through the server: Responses and chat completions.

python openai_agents.py PATH/TO/tambour
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import threading
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI
from pydantic import BaseModel

CALL = 'I look it up.\n<tool_call>\n{"name": "distance", "arguments": {"start": "Oslo", "goal": "Ski"}}\n</tool_call>'
ANSWER = "It is **26 km**."
HANDOFF = '<tool_call>\n{"name": "transfer_to_guide", "arguments": {}}\n</tool_call>'
TRIP = 'Sure: {"city": "Oslo", "days": 3,}'

# Bodies of the requests to the upstream.
requests = []


class Upstream(BaseHTTPRequestHandler):
    """Model that calls a tool as text, and answers when it has the result."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        requests.append(body)
        text = json.dumps(body["messages"])
        if "26 km" in text:
            reply = ANSWER
        elif "a trip" in text:
            reply = TRIP
        elif "Hand over" in text:
            reply = HANDOFF
        else:
            reply = CALL
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for at in range(0, len(reply), 5):
            self.frame({"choices": [{"index": 0, "delta": {"content": reply[at : at + 5]}, "finish_reason": None}]})
        usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
        self.frame({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def frame(self, data):
        self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")

    def log_message(self, *_):
        pass


class Trip(BaseModel):
    city: str
    days: int


@function_tool
def distance(start: str, goal: str) -> str:
    """Distance between two cities."""
    return f"26 km from {start} to {goal}"


def assert_equal(name, got, expected):
    assert got == expected, f"{name}: {got!r:.300} instead of {expected!r:.300}"


async def run(agent, stream, prompt, **options):
    """Runs an agent; a stream is read to its end, and its deltas must be the texts of the answers."""
    if not stream:
        return await Runner.run(agent, prompt, **options)
    result = Runner.run_streamed(agent, prompt, **options)
    deltas = [
        event.data.delta
        async for event in result.stream_events()
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    ]
    assert "".join(deltas).endswith(ANSWER), deltas
    return result


async def loop(model, stream, way):
    """Runs a call, its result and the answer: with the whole history, after a response, or in a session."""
    # Streams of chat completions count tokens only on request.
    settings = ModelSettings(include_usage=True)
    guide = Agent(name="Guide", instructions="Be short.", tools=[distance], model=model, model_settings=settings)
    ways = {
        "history": {},
        "previous response": {"auto_previous_response_id": True},
        "session": {"session": SQLiteSession("a")},
    }
    requests.clear()
    result = await run(guide, stream, "How far is Ski from Oslo?", **ways[way])
    assert_equal("answer", result.final_output, ANSWER)
    kinds = [item.type for item in result.new_items]
    assert_equal("items", kinds, ["message_output_item", "tool_call_item", "tool_call_output_item", "message_output_item"])
    assert_equal("calls of the model", len(requests), 2)
    assert_equal("results that came back", json.dumps(requests[1]["messages"]).count("26 km"), 1)
    assert_equal("tokens", result.context_wrapper.usage.total_tokens, 24)
    again = await run(guide, stream, result.to_input_list() + [{"role": "user", "content": "Sure?"}])
    assert_equal("the next turn", again.final_output, ANSWER)


async def handoff(model, stream, _):
    guide = Agent(name="Guide", tools=[distance], model=model)
    front = Agent(name="Front", instructions="Hand over.", handoffs=[guide], model=model)
    result = await run(front, stream, "How far is Ski from Oslo?")
    assert_equal("answer", (result.last_agent.name, result.final_output), ("Guide", ANSWER))


async def typed(model, _, __):
    planner = Agent(name="Planner", model=model, output_type=Trip)
    result = await Runner.run(planner, "Plan a trip.")
    assert_equal("value", result.final_output, Trip(city="Oslo", days=3))


async def main(base):
    client = AsyncOpenAI(base_url=f"{base}/v1", api_key="none", max_retries=0)
    passed, failures = 0, []
    for make in (OpenAIResponsesModel, OpenAIChatCompletionsModel):
        model = make(model="openai/m", openai_client=client)
        tries = [(loop, "history"), (loop, "session"), (handoff, ""), (typed, "")]
        if make is OpenAIResponsesModel:
            tries.append((loop, "previous response"))
        for scenario, way in tries:
            for stream in (False, True):
                try:
                    await scenario(model, stream, way)
                    passed += 1
                except Exception as error:  # Also warnings.
                    message = f"{type(error).__name__}: {error!s:.400}"
                    failures.append(f"{make.__name__}, {scenario.__name__} {way}, stream {stream}: {message}")
    await client.close()
    return passed, failures


set_tracing_disabled(True)
upstream = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
threading.Thread(target=upstream.serve_forever, daemon=True).start()
folder = tempfile.TemporaryDirectory(prefix="tambour-clients-")
server = subprocess.Popen(
    [sys.argv[1], "serve", "--listen", "127.0.0.1:0", "--data", folder.name]
    + ["--upstream", f"openai=http://127.0.0.1:{upstream.server_port}/v1"],
    stdout=subprocess.PIPE,
    stderr=subprocess.DEVNULL,
    text=True,
)
base = server.stdout.readline().removeprefix("listening on ").strip()
assert base, "the server did not start"
# Warnings of the clients are failures.
warnings.simplefilter("error")
passed, failures = asyncio.run(main(base))
server.terminate()
server.wait()
server.stdout.close()
upstream.shutdown()
upstream.server_close()
folder.cleanup()
print(*failures, sep="\n")
print(f"test result: {'FAILED' if failures else 'ok'}. {passed} passed; {len(failures)} failed;")
sys.exit(bool(failures))
