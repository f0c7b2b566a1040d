"""Golden tests of the output of `report` for a small recording made by hand.

python -m tests.report.test_report_golden         writes the files anew: review the git diff
"""

from pathlib import Path

import pytest

from snnbench.recording.reading import Recording
from snnbench.report import tidy
from tests.fakes import CASE
from tests.recordings import deviating, failed, recording, reported, skipped, timed, weighed

GOLDEN = Path(__file__).parents[1] / "golden"
ZERO = CASE.with_(reset="zero", detach_reset=True)


def small() -> Recording:
    """A cell of every kind of outcome, in two profiles; trials, floors, memory and flags."""
    records = [
        *(timed("a", n, train=ms, forward=1.0, floors_ms={"train": 1.5}) for n, ms in enumerate((3.0, 3.2))),
        *(timed("b/fast", n, train=ms, flags=["contended"]) for n, ms in enumerate((2.0, 2.1))),
        weighed("a"),
        weighed("b/fast", host_mib=4),
        deviating("c", train=1.0),
        failed("d", "oom-host", "killed by the kernel, which was out of memory", log="loading\n"),
        failed("e", "incorrect", "exam: 3 of 100 spikes differ"),
        skipped("b/fast", "unsupported", 'subtracts, "only"', case=ZERO),
        timed("a", case=ZERO, train=4.0),
    ]
    return recording(*records, name="monday", baseline="a")


def outputs() -> dict[str, str]:
    """Each output, by the name of its file."""
    return {"report.md": reported(small()), "report.csv": tidy.to_csv(tidy.rows([small()]))}


@pytest.mark.parametrize("name", sorted(outputs()))
def test_output_equals_its_golden_file(name: str) -> None:
    assert outputs()[name] == (GOLDEN / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    for name, text in outputs().items():
        (GOLDEN / name).write_text(text, encoding="utf-8")
