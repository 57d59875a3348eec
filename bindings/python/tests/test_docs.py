"""Examples of the documentation, the types, and the installation of the package."""

from __future__ import annotations

import doctest
import importlib.metadata
import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import tambour
import tambour.anthropic
import tambour.arrow
import tambour.openai

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODULES = [tambour, tambour._functions, tambour._decode, tambour._partial, tambour.openai, tambour.anthropic, tambour.arrow]
CLASSES = [tambour.Pipeline, tambour.State, tambour.Script, tambour.Dialogue]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_examples_of_modules(module):
    results = doctest.testmod(module)
    assert results.attempted > 0 and results.failed == 0


@pytest.mark.parametrize("native", CLASSES, ids=lambda native: native.__name__)
def test_examples_of_classes(native):
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(native), {}, native.__name__, None, 0)
    runner = doctest.DocTestRunner()
    runner.run(examples)
    assert runner.tries > 0 and runner.failures == 0


def test_the_version_is_that_of_the_package():
    assert tambour.__version__ == importlib.metadata.version("tambour")


def test_everything_is_documented():
    for name in tambour.__all__:
        item = getattr(tambour, name)
        if name not in ("AnyEvent", "__version__"):
            assert inspect.getdoc(item), name
        if name in ("Pipeline", "Decoder", "State", "Script", "Dialogue", "ReplyReader"):
            for method, value in vars(item).items():
                if not method.startswith("_"):
                    assert value.__doc__, f"{name}.{method}"


def programs(page: pathlib.Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "../../docs/python.md", "../../README.md"])
def test_programs_of_pages_run(page, tmp_path):
    """Each program prints what the comments behind its lines say."""
    found = programs(ROOT / page)
    assert found
    for program in found:
        result = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=60
        )
        assert result.returncode == 0, f"{page}:\n{program}\n{result.stderr}"
        expected = re.findall(r"# prints (.*)", program)
        assert result.stdout.splitlines() == expected, f"{page}:\n{program}"


EXAMPLE = '''
import asyncio
from collections.abc import AsyncIterator
from typing import assert_type

import tambour
import tambour.openai
from pydantic import BaseModel


class Trip(BaseModel):
    city: str


def text_of(event: tambour.AnyEvent) -> str:
    match event:
        case tambour.FinalDelta(text=text) | tambour.PhaseDelta(text=text):
            return text
        case tambour.Completed(metadata=tambour.Metadata(truncated=True)):
            return "cut"
        case tambour.ToolCall(name=name):
            return name
        case _:
            return event.event


async def source() -> AsyncIterator[str]:
    yield "It is"


async def main() -> None:
    async for event in tambour.decode(source(), "plain", plain_reasoning="open"):
        print(text_of(event))
    async for partial in tambour.decode_into(Trip, source()):
        print(partial.city)


decoder = tambour.decode(["It is 4."], dialect="plain")
for event in decoder:
    print(text_of(event))
assert_type(decoder.findings, list[tambour.Finding])
assert_type(tambour.decode_into(Trip, "{}").final(), Trip)
assert_type(tambour.sanitize("a"), str)
assert_type(tambour.sanitize("a", findings=True), tuple[str, list[tambour.Finding]])
state = tambour.State({"a": 1})
update = state.apply([["SET", "a", 2]], message="m")
print([result.ok for result in update.results], tambour.check("a", "plain").passed)
asyncio.run(main())
'''

MISTAKES = '''
import tambour

tambour.decode("a", plain_reasoning="maybe")
tambour.decode("a", nothing=1)
tambour.decode(5)
tambour.FinalDelta(text="a").text = "b"
'''


def run(*arguments, **options):
    return subprocess.run([sys.executable, "-m", *arguments], capture_output=True, text=True, timeout=300, **options)


def test_types_of_a_program(tmp_path):
    (tmp_path / "example.py").write_text(EXAMPLE)
    (tmp_path / "mistakes.py").write_text(MISTAKES)
    result = run("mypy", "--strict", "--python-version", "3.11", "example.py", cwd=tmp_path)
    assert result.returncode == 0, result.stdout
    result = run("mypy", "--strict", "mistakes.py", cwd=tmp_path)
    assert result.stdout.count(": error:") == 5, result.stdout


def test_types_of_the_package(tmp_path):
    result = run("mypy", "--strict", "--python-version", "3.10", "-p", "tambour", cwd=tmp_path)
    assert result.returncode == 0, result.stdout


def test_stubs_are_those_of_the_library(tmp_path):
    result = run("mypy.stubtest", "tambour._native", cwd=tmp_path)
    assert result.returncode == 0, result.stdout


def make_environment(folder, wheel):
    """A clean environment with the wheel; returns its interpreter, and variables without any other program."""
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    variables = {"PATH": str(environment / "bin"), "HOME": str(folder)}
    python = environment / "bin/python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "--quiet"]
    subprocess.run([*pip, "--no-index", wheel], check=True, env=variables)
    return python, variables


@pytest.fixture
def wheel(tmp_path):
    """A copy of the wheel under test."""
    wheels = os.environ.get("TAMBOUR_WHEELS")
    if wheels is None:
        pytest.skip("TAMBOUR_WHEELS is not set")
    (path,) = pathlib.Path(wheels).glob("*.whl")
    return pathlib.Path(shutil.copy(path, tmp_path))


def test_a_clean_environment_without_a_compiler(tmp_path, wheel):
    """The wheel installs from a file alone, and the first program runs as printed."""
    python, variables = make_environment(tmp_path, wheel)
    program = programs(ROOT / "README.md")[0]
    result = subprocess.run([python, "-c", program], capture_output=True, text=True, env=variables)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == re.findall(r"# prints (.*)", program)
    # Without the command, the message says so.
    command = [python, "-m", "tambour", "--version"]
    result = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=tmp_path)
    assert result.returncode == 2 and "carries no command" in result.stderr


def test_a_wheel_with_the_command(tmp_path, wheel):
    """The command is on the path, and `python -m tambour` finds it."""
    program = tmp_path / "tambour"
    program.write_text("#!/bin/sh\necho tambour \"$@\"\n")
    for _ in range(2):
        subprocess.run([sys.executable, ROOT / "add_command.py", wheel, program], check=True)
    python, variables = make_environment(tmp_path, wheel)
    for command in ([python, "-m", "tambour", "a b"], [python.with_name("tambour"), "a b"]):
        result = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=tmp_path)
        assert (result.returncode, result.stdout) == (0, "tambour a b\n"), result.stderr


def test_readers_of_other_packages_are_imported_when_asked_for():
    program = "import tambour; print(tambour.openai.decode.__module__, tambour.arrow.check.__module__)"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.split() == ["tambour.openai", "tambour.arrow"]
    with pytest.raises(AttributeError, match="nothing"):
        tambour.nothing  # noqa: B018
