"""Tests of refusals by `snnbench ab`, and by other commands that are given its recording."""

import pytest

from tests.fakes import CORRECT, altered, write
from tests.sweep import lines, recordings, snnbench
from tests.system.test_ab import Bench, bench

__all__ = ["bench"]


def test_a_config_that_only_verifies_is_refused(bench: Bench) -> None:
    done = bench.ab("--set", "protocol.phases=[]")
    assert done.returncode == 2 and "tiny only verifies; name a config that times something" in done.stderr


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--new", "absent==1"], "absent: no contender of this config pins it"),
        (["--new", "numpy==1.0"], "nothing is installed into a Python of your own; leave out --env and python="),
        (["--new", "nonsense"], "'nonsense' names no version; write nonsense==VERSION"),
        (["--allow", "drift"], "--allow: unknown word 'drift'"),
        (["--trials", "3"], "--trials"),
        (["--set", "protocol.trials=9"], "protocol.trials: --trials says how many"),
        (["--set", "protocol.remeasure=1"], "protocol.remeasure: a disturbed pair is left out instead"),
    ],
)
def test_usage_error_is_one_line(bench: Bench, more: list[str], complaint: str) -> None:
    done = bench.ab(*more)
    assert done.returncode == 2 and complaint in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and not done.stdout


def test_edited_side_starts_another_test(bench: Bench) -> None:
    """Otherwise trials of today's file are paired with trials of yesterday's file."""
    bench.ab("--new", bench.slow, "-o", "one", trials=4)
    bench.slow.write_text(bench.slow.read_text().replace("0.02", "0.01"))
    again = bench.ab("--new", bench.slow, "-o", "one", trials=4)
    assert again.returncode == 1 and "another machine, Python (--env) or file of a side" in again.stderr


def test_equal_sides_are_refused(bench: Bench) -> None:
    (bench.folder / "same").mkdir()
    done = bench.ab("--new", write(bench.folder / "same", CORRECT, "lib"))
    assert done.returncode == 2 and "both sides come to the same" in done.stderr


def test_side_that_crashes_is_measured_once(bench: Bench) -> None:
    bench.slow.write_text(altered("right.absent"))
    done = bench.ab("--new", bench.slow, "-o", "one")
    assert done.returncode == 5 and "crash: AttributeError" in done.stdout
    assert sorted(line["side"] for line in lines(bench.folder / "one")) == ["base", "new"]
    assert snnbench(bench.folder, "check", "one").returncode == 0


def test_sides_without_any_environment_name_the_cause(bench: Bench) -> None:
    given = ("--config", bench.config, "--adapter", bench.adapter, "--base", "numpy==0.0.1", "--new", "numpy==0.0.2")
    done = snnbench(bench.folder, "ab", *given)
    assert (done.returncode, done.stdout) == (4, "")
    assert "numpy==0.0.1" in done.stderr.splitlines()[-1] and "env sync" in done.stderr.splitlines()[-1]


def test_other_commands_point_to_compare(bench: Bench) -> None:
    bench.ab("--new", bench.slow, "-o", "one")
    ranked = snnbench(bench.folder, "rank", "one")
    assert ranked.returncode == 2 and "holds the two sides of an A/B test; snnbench compare one" in ranked.stderr
    compared = snnbench(bench.folder, "compare", "one", "one")
    assert compared.returncode == 8 and "one: holds the two sides of an A/B test; compare it alone" in compared.stderr


def test_a_replay_of_one_side_is_refused(bench: Bench) -> None:
    bench.ab("--new", bench.slow, trials=4)
    (made,) = recordings(bench.folder)
    cell = lines(made)[0]["cell"]
    done = snnbench(bench.folder, "show", cell, "--in", made, "--replay", "--env", "current")
    assert done.returncode == 2 and "measure both again with snnbench ab" in done.stderr
