"""Plugin of pytest: the line with the counts that `cargo xtask test` reads."""

from __future__ import annotations


def pytest_terminal_summary(terminalreporter) -> None:
    stats = terminalreporter.stats
    passed = len(stats.get("passed", []))
    failed = len(stats.get("failed", [])) + len(stats.get("error", []))
    word = "FAILED" if failed else "ok"
    terminalreporter.write_line(f"test result: {word}. {passed} passed; {failed} failed;")
