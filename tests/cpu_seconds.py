"""CPU seconds of each test file with its processes, as a table, the dearest first.

    python -m tests.cpu_seconds [ARGUMENTS OF PYTEST]

A second counts for a file if the process of the tests, or a child that ended, spent it. Collecting a file imports it
and whatever no earlier file has imported; with xdist each process collects all files.
"""

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

TESTS, COLLECTION = "cpu_seconds_of_tests", "cpu_seconds_of_collection"
spent: dict[str, dict[str, float]] = {TESTS: defaultdict(float), COLLECTION: defaultdict(float)}
"""What is measured, and then the seconds of each file."""
LEAST_S = 0.1
"""The seconds of a file with a row of its own."""
marks: dict[str, float] = {}
"""The seconds of this process at the end of its last test."""


def used() -> float:
    """The CPU seconds of this process and of its children that ended."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Measure the collection of a file."""
    before = used()
    report = yield
    if isinstance(collector, pytest.Module):
        spent[COLLECTION][collector.nodeid] += used() - before
    return report


def pytest_collection_finish() -> None:
    """Begin to measure the first test."""
    marks["last"] = used()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Send the seconds since the last test home, with the report of this test's end."""
    if call.when == "teardown":
        now = used()
        item.user_properties.append((TESTS, now - marks["last"]))
        marks["last"] = now


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add a test's seconds to its file."""
    if report.when == "teardown":
        spent[TESTS][report.nodeid.partition("::")[0]] += dict(report.user_properties).get(TESTS, 0.0)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send a worker's seconds of collection home."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output[COLLECTION] = dict(spent[COLLECTION])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Add a worker's seconds of collection."""
    for file, seconds in getattr(node, "workeroutput", {}).get(COLLECTION, {}).items():
        spent[COLLECTION][file] += seconds


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write the table below pytest's own report."""
    terminalreporter.write_line(table(used()))


def table(total: float) -> str:
    """The seconds of each dear file and of the rest, in Markdown."""
    rows = [(file, spent[TESTS][file], spent[COLLECTION][file]) for file in spent[TESTS].keys() | spent[COLLECTION]]
    rows = sorted((row for row in rows if row[1] + row[2] >= LEAST_S), key=lambda row: -row[1] - row[2])
    attributed = sum(tests + collection for _, tests, collection in rows)
    lines = ["", "| file | tests, CPU s | collection, CPU s |", "| --- | ---: | ---: |"]
    lines += [f"| {file} | {tests:.1f} | {collection:.1f} |" for file, tests, collection in rows]
    lines += [f"| pytest itself, and cheaper files | {total - attributed:.1f} | |", f"| total | {total:.1f} | |"]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(pytest.main(["-p", "tests.cpu_seconds", *sys.argv[1:]]))
