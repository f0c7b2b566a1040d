"""Tests of `snnbench ab` on fake adapters: real processes, two sides, a word for each time."""

import json
import subprocess
from pathlib import Path

import pytest

from snnbench.recording.reading import read
from tests.fakes import CORRECT, altered, write
from tests.sweep import lines, recordings, snnbench, write_config

SLOW = altered(
    """
right_forward = right.forward

def forward(x):
    import time
    until = time.perf_counter() + 0.02
    while time.perf_counter() < until:
        pass
    return right_forward(x)

return Network(forward, right.backward)
"""
)
"""The fake library with 20 ms of spinning in its forward pass."""
ALLOWED = ("--allow", "contended")
"""Other processes on the test machine do not matter here."""


class Bench:
    """A folder with the adapter of a fake library `lib`, a slow version of the adapter, and a config."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.adapter = write(folder, CORRECT, "lib")
        (folder / "slow").mkdir()
        self.slow = write(folder / "slow", SLOW, "lib")
        self.config = write_config(folder, ["lib"], memory_trials=0)

    def ab(self, *more: str | Path, trials: int = 4) -> "subprocess.CompletedProcess[str]":
        """`snnbench ab` in this Python, of one phase."""
        arguments: list[str | Path] = [
            "--config",
            self.config,
            "--env",
            "current",
            "--adapter",
            self.adapter,
            "--trials",
            str(trials),
        ]
        arguments += ["--set", 'protocol.phases=["inference"]', "--set", "protocol.repetitions=3", *ALLOWED]
        return snnbench(self.folder, "ab", *arguments, *more)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_slower_side_fails_and_its_recording_agrees(bench: Bench) -> None:
    done = bench.ab("--new", bench.slow, "--fail-on", "slower")
    assert done.returncode == 6, done.stderr
    assert f"{bench.slow} over as pinned: above 1 is slower" in done.stdout
    assert "1 comparison: 1 slower" in done.stdout and "adapter of lib: another file" in done.stdout
    (made,) = recordings(bench.folder)
    assert snnbench(bench.folder, "compare", made, *ALLOWED).stdout == done.stdout
    assert snnbench(bench.folder, "compare", made, *ALLOWED, "--fail-on", "slower").returncode == 6
    checked = snnbench(bench.folder, "check", made)
    assert checked.returncode == 0, checked.stdout
    sides = [line["side"] for line in lines(made)]
    assert sorted(sides) == ["base"] * 4 + ["new"] * 4
    assert [{*pair} for pair in zip(sides[::2], sides[1::2], strict=True)] == [{"base", "new"}] * 4, "they take turns"
    assert sides[0] != sides[2] and sides[4] != sides[6], "each second trial begins with the other side"


def test_decided_run_stops_and_a_torn_one_continues(bench: Bench) -> None:
    done = bench.ab("--new", bench.slow, trials=12)
    assert "[8/8]" in done.stderr and "1 slower" in done.stdout
    (made,) = recordings(bench.folder)
    config = json.loads((made / "config.json").read_text())
    assert (config["planned"], config["finished"], config["stops_early"]) == (8, True, True)
    assert config["sides"] == {"base": [], "new": [str(bench.slow)]}
    text = (made / "records.jsonl").read_text().splitlines(keepends=True)
    (made / "records.jsonl").write_text("".join(text[:5]))
    (made / "config.json").write_text(json.dumps(config | {"finished": False}))
    again = bench.ab("--new", bench.slow, trials=12)
    assert "[3/3]" in again.stderr and "continues; 5 of 24 cells are there" in again.stderr
    assert len(read(made).records) == 8 and recordings(bench.folder) == [made]
    assert snnbench(bench.folder, "check", made).returncode == 0


def test_page_without_times_says_why(bench: Bench) -> None:
    bench.adapter.write_text(altered("from snnbench.adapter import Unsupported\nraise Unsupported('no such reset')"))
    done = bench.ab("--new", "SPECIAL=1", "-o", "one")
    assert done.returncode == 8 and "one: nothing to compare: unsupported: no such reset" in done.stderr
    page = snnbench(bench.folder, "report", "one", "--format", "html")
    assert page.returncode == 0 and "nothing to compare: unsupported: no such reset" in page.stdout, page.stderr


def test_table_names_the_side_beside_the_library(bench: Bench) -> None:
    bench.ab("--new", bench.slow, trials=4)
    (made,) = recordings(bench.folder)
    report = snnbench(bench.folder, "report", made)
    assert report.returncode == 0 and "| lib (base) |" in report.stdout and "| lib (new) |" in report.stdout


def test_page_begins_with_the_comparison(bench: Bench) -> None:
    bench.ab("--new", bench.slow, trials=4)
    (made,) = recordings(bench.folder)
    page = snnbench(bench.folder, "report", made, "--format", "html").stdout
    assert page.index("Slower or not") < page.index("In short")
    assert f"{bench.slow} (new) over as pinned (base), which took turns" in page


def test_a_side_that_fails_ends_with_the_code_of_failed_cells(bench: Bench) -> None:
    bench.adapter.write_text('import os\nassert "BROKEN" not in os.environ\n' + CORRECT)
    assert bench.ab("--new", "BROKEN=1").returncode == 5


def test_side_that_is_refused_does_not_stop_the_other(bench: Bench) -> None:
    refusing = altered(
        """
        import os
        from snnbench.adapter import Unsupported

        if os.environ.get("OLD"):
            raise Unsupported("too old")
        return right
        """
    )
    bench.adapter.write_text(refusing)
    bench.ab("--base", "OLD=1", "-o", "one")
    statuses = {(line["side"], line["outcome"]["status"]) for line in lines(bench.folder / "one")}
    assert statuses == {("base", "skipped"), ("new", "measured")}
