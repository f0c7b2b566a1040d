"""Tests of long A/B tests on fake adapters: peaks of memory, a look after a look, and shards."""

from snnbench.recording.reading import read
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
    assert compared.returncode == 0 and "2 cells: 2 slower" in compared.stdout, compared.stdout + compared.stderr
    assert snnbench(bench.folder, "check", "whole").returncode == 0
