"""Tests of A/B tests on fake adapters: every kind of side, peaks of memory, a look after a look, and shards."""

import sys
from pathlib import Path

from snnbench.recording.reading import read
from tests.fakes import CORRECT
from tests.sweep import lines, recordings, snnbench, write_config
from tests.system.test_ab import ALLOWED, Bench, bench

__all__ = ["bench"]


def test_memory_has_four_trials_by_default(bench: Bench) -> None:
    bench.config = write_config(bench.folder, ["lib"], memory_trials=1)
    for more, count in (([], 4), (["--set", "protocol.memory_trials=2"], 2)):
        done = bench.ab("--fresh", *more, trials=4)
        assert done.returncode == 0, done.stderr
        measures = [line["measure"] for line in lines(recordings(bench.folder)[-1])]
        assert (measures.count("time"), measures.count("memory")) == (8, 2 * count)


def test_progress_counts_the_cells_of_the_next_look(bench: Bench) -> None:
    """The alpha is too small for a word, and the floor too small to call two times the same."""
    done = bench.ab("--time-floor", "0", "--alpha", "1e-12", trials=12)
    looks = [line for line in done.stderr.splitlines() if line.startswith("[1/")]
    assert [line.partition("]")[0] for line in looks] == ["[1/8", "[1/4", "[1/4", "[1/8"], done.stderr


def test_shards_keep_sides_together_and_merge(bench: Bench) -> None:
    wide = write_config(bench.folder, ["lib"], memory_trials=0, neurons="[24, 32]")
    bench.config = wide
    for shard in ("1/2", "2/2"):
        done = bench.ab("--new", bench.slow, "--shard", shard, "-o", shard[0], trials=4)
        assert done.returncode == 0, done.stderr
    merged = snnbench(bench.folder, "merge", "1", "2", "-o", "whole")
    assert merged.returncode == 0, merged.stderr
    whole = read(bench.folder / "whole")
    assert len(whole.records) == 16 and not whole.config["stops_early"]
    compared = snnbench(bench.folder, "compare", "whole", *ALLOWED)
    assert compared.returncode == 0 and "2 comparisons: 2 slower" in compared.stdout, compared.stdout + compared.stderr
    assert snnbench(bench.folder, "check", "whole").returncode == 0


def test_sides_alone_may_name_a_library(bench: Bench) -> None:
    arguments: list[str | Path] = ["ab", "--config", bench.config, "--env", "current", "--trials", "4"]
    arguments += ["--set", 'protocol.phases=["inference"]', "--set", "protocol.repetitions=3", "--new", bench.slow]
    lacking = snnbench(bench.folder, *arguments)
    assert lacking.returncode == 2 and "base has no adapter lib: name its file, too, with --base" in lacking.stderr
    done = snnbench(bench.folder, *arguments, "--base", bench.adapter)
    assert done.returncode == 0, done.stderr
    assert f"{bench.slow} over {bench.adapter}" in done.stdout


def test_without_a_change_a_library_runs_against_itself(bench: Bench) -> None:
    done = bench.ab("--fail-on", "failed,missing,incomparable", trials=4)
    assert done.returncode == 0, done.stderr
    assert "as pinned over as pinned" in done.stdout
    assert [line["side"] for line in lines(recordings(bench.folder)[0])].count("new") == 4


def test_a_variable_and_an_interpreter_are_sides_too(bench: Bench) -> None:
    done = bench.ab("--base", "SPECIAL=1", "--new", f"python={sys.executable}", trials=4)
    assert done.returncode == 0, done.stderr
    (made,) = recordings(bench.folder)
    by_side = {line["side"]: line for line in lines(made)}
    assert by_side["base"]["settings"]["variables"] == {"SPECIAL": "1"}
    assert "variables" not in by_side["new"]["settings"]
    assert by_side["base"]["environment"].startswith("current-")
    assert by_side["new"]["environment"].startswith("python-")
    assert snnbench(bench.folder, "check", made).returncode == 0


def test_the_variable_of_a_side_reaches_its_workers_only(bench: Bench) -> None:
    refusing = 'import os\nif os.environ.get("BROKEN"):\n    raise ImportError("broken")\n' + CORRECT
    bench.adapter.write_text(refusing)
    done = bench.ab("--new", "BROKEN=1", "--fail-on", "failed", trials=4)
    assert done.returncode == 6, done.stderr
    assert "failed" in done.stdout and "in new: failed: import: ImportError: broken" in done.stdout
    statuses = {(line["side"], line["outcome"]["status"]) for line in lines(recordings(bench.folder)[0])}
    assert statuses == {("base", "measured"), ("new", "failed")}
