"""Tests of the merge of shards' recordings."""

import json
import shutil
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from snnbench import checking
from snnbench.cases.outcome import Outcome
from snnbench.recording import merge, reading, writer
from snnbench.recording.merge import Disagreement
from snnbench.recording.reading import CONFIG, RECORDS, read
from snnbench.recording.record import Record
from tests.fakes import CORRECT, altered, write
from tests.sweep import run_arguments, snnbench, write_config

SIZES = "[16, 20, 24, 28]"


def test_differing_machines_are_reported(shards: Path, tmp_path: Path) -> None:
    other = copied(shards, tmp_path, "machine.json", lambda text: text.replace('"kernel": "', '"kernel": "9'))
    done = snnbench(tmp_path, "merge", str(shards / "part1"), str(other.folder), "-o", "merged")
    assert done.returncode == 0 and "merged: the machines differ in kernel; the values are in" in done.stderr
    kernels = {one.machine["kernel"] for one in (read(shards / "part1"), other)}
    assert read(tmp_path / "merged").machine["varying"] == {"kernel": sorted(kernels)}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recordings of three shards and of the whole run."""
    folder = tmp_path_factory.mktemp("shards")
    adapters = [write(folder, CORRECT, "good"), write(folder, altered("raise ValueError('no')"), "bad")]
    config = write_config(folder, ["good", "bad"], neurons=SIZES)
    for index in (1, 2, 3):
        options = run_arguments(config, adapters, "--shard", f"{index}/3", "-o", f"part{index}")
        assert snnbench(folder, *options).returncode == 5
    snnbench(folder, *run_arguments(config, adapters, "-o", "whole"))
    return folder


def parts(shards: Path) -> list[reading.Recording]:
    return [read(shards / f"part{index}") for index in (1, 2, 3)]


def work(cell_record: Record) -> tuple[Any, ...]:
    return cell_record.cell, cell_record.outcome.verdict, cell_record.outcome.kind


def test_merged_recording_equals_an_unsharded_run(shards: Path, tmp_path: Path) -> None:
    merged = merge.merge(parts(shards), tmp_path / "merged")
    whole = read(shards / "whole")
    assert sorted(map(work, merged.records)) == sorted(map(work, whole.records))
    same = ("identity", "config", "finished", "baseline", "machine", "only")
    assert {name: merged.config[name] for name in same} == {name: whole.config[name] for name in same}
    assert checking.check(tmp_path / "merged") == []


def test_merge_is_commutative_and_idempotent(shards: Path, tmp_path: Path) -> None:
    texts = set()
    for number, order in enumerate(permutations(parts(shards))):
        folder = tmp_path / str(number)
        merge.merge(order, folder)
        merge.merge([*order, read(folder)], folder)
        merge.merge(order[:1], folder)
        texts.add("".join((folder / name).read_text() for name in reading.FILES))
    assert len(texts) == 1


def test_missing_shard_can_be_merged_later(shards: Path, tmp_path: Path) -> None:
    first, second, third = parts(shards)
    merged = merge.merge([first, third], tmp_path / "merged")
    assert merge.missing(merged.config) == ["2/3"] and not merged.config["finished"]
    merged = merge.merge([second], tmp_path / "merged")
    assert merge.missing(merged.config) == [] and merged.config["finished"]
    assert len(merged.records) == len(read(shards / "whole").records)


def test_unfinished_shard_can_be_merged_again(shards: Path, tmp_path: Path) -> None:
    early = copied(shards, tmp_path, CONFIG, lambda text: text.replace('"finished": true', '"finished": false'))
    first, second, third = parts(shards)
    merged = merge.merge([first, early, third], tmp_path / "merged")
    assert merge.missing(merged.config) == [] and not merged.config["finished"]
    merged = merge.merge([first, second, third], tmp_path / "merged")
    assert merged.config["finished"] and len(merged.records) == len(read(shards / "whole").records)
    assert merged.config["planned"] == read(shards / "whole").config["planned"] == len(merged.records)


def copied(shards: Path, tmp_path: Path, name: str, change: Any) -> reading.Recording:
    """The second part, with one file changed."""
    folder = tmp_path / "changed"
    folder.mkdir()
    for path in (shards / "part2").iterdir():
        text = path.read_text()
        (folder / path.name).write_text(change(text) if path.name == name else text)
    return read(folder)


@pytest.mark.parametrize(
    ("name", "old", "new", "pattern"),
    [
        (CONFIG, '"repetitions": 3', '"repetitions": 5', "config.protocol.repetitions: 3 in .*part1, 5 in .*changed"),
        (CONFIG, '"snnbench": "', '"snnbench": "9.', "snnbench: '0.*' in .*part1, '9.*' in .*changed"),
        ("machine.json", '"model": "', '"model": "X', "machine: '.*' in .*part1, 'X"),
        (RECORDS, '"adapter": "', '"adapter": "f', "adapter of (good|bad): .* in .*part1, f"),
        (RECORDS, '"environment": "', '"environment": "f', "environment of (good|bad): .* in .*part1, f"),
        (CONFIG, '"whole": "', '"whole": "0', "run: '.*' in .*part1, '0"),
    ],
)
def test_disagreement_is_named(shards: Path, tmp_path: Path, name: str, old: str, new: str, pattern: str) -> None:
    other = copied(shards, tmp_path, name, lambda text: text.replace(old, new))
    for order in ([read(shards / "part1"), other], [other, read(shards / "part1")]):
        with pytest.raises(Disagreement, match=pattern if order[1] is other else pattern.split(":")[0]):
            merge.merge(order, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_two_measurements_of_a_cell_are_refused(shards: Path, tmp_path: Path) -> None:
    slower = copied(shards, tmp_path, RECORDS, lambda text: text.replace('"started": "2', '"started": "3'))
    with pytest.raises(Disagreement, match=r"was measured in .*part2 and, otherwise, in .*changed"):
        merge.merge([read(shards / "part2"), slower], tmp_path / "merged")


def test_shard_is_not_merged_into_itself(shards: Path) -> None:
    with pytest.raises(Disagreement, match="name another folder"):
        merge.merge(parts(shards), shards / "part1")


@pytest.mark.parametrize("from_itself", [True, False])
def test_unmerged_recording_is_not_rewritten(shards: Path, tmp_path: Path, from_itself: bool) -> None:
    folder = Path(shutil.copytree(shards / "whole", tmp_path / "whole"))
    with (folder / RECORDS).open("a") as stream:
        stream.write((folder / RECORDS).read_text().splitlines()[0] + "\n{torn")
    before = {path.name: path.read_text() for path in folder.iterdir()}
    with pytest.raises(Disagreement, match=r"whole: holds a recording that is not a merge; name another folder$"):
        merge.merge([read(folder) if from_itself else read(shards / "whole")], folder)
    assert {path.name: path.read_text() for path in folder.iterdir()} == before


def test_concurrent_merge_is_preserved(shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = parts(shards)
    merge.merge([first], tmp_path / "merged")

    def late(*arguments: Any) -> Any:
        """Take the lock of a recording only after another merge."""
        monkeypatch.undo()
        merge.merge([second], tmp_path / "merged")
        return writer.append(*arguments)

    monkeypatch.setattr(merge, "append", late)
    merged = merge.merge([third], tmp_path / "merged")
    assert merge.missing(merged.config) == [] and len(merged.records) == len(read(shards / "whole").records)


def test_unfinished_recording_stays_unfinished_in_a_merge(shards: Path, tmp_path: Path) -> None:
    whole = read(shards / "whole")
    merge.merge([replace(whole, config=whole.config | {"finished": False})], tmp_path / "merged")
    for _ in range(2):
        merged = merge.merge([read(tmp_path / "merged")], tmp_path / "merged")
        assert not merged.config["finished"]
    assert merge.merge([whole], tmp_path / "merged").config["finished"]


def test_measured_cell_takes_precedence_over_a_failed_one(shards: Path) -> None:
    (measured, *_) = [one for one in read(shards / "part1").records if one.status == "measured"]
    lost = Outcome(status="failed", kind="lost", reason="no reply")
    nothing: dict[str, Any] = {"phases": {}, "memory": {}, "peaks": {}, "probes": {}, "wall_s": None, "started": "2999"}
    failed = replace(measured, outcome=lost, **nothing)
    cancelled = replace(failed, outcome=replace(lost, kind="cancelled"))

    def whole(*records: Record) -> list[Record]:
        return merge.cells([reading.Recording(Path(), {}, {}, [one], 0) for one in records])

    assert whole(measured, failed) == whole(failed, measured) == [measured]
    assert whole(cancelled, failed) == whole(failed, cancelled) == [failed]


def disproved(shards: Path, tmp_path: Path, kind: str, keep: bool) -> reading.Recording:
    """The second part, in which a measured cell first fails with `kind`; with `keep` it is measured afterwards."""

    def change(text: str) -> str:
        first, *others = text.splitlines(keepends=True)
        while (line := json.loads(first))["outcome"]["status"] != "measured":
            others.append(first)
            first = others.pop(0)
        line |= {"outcome": {"status": "failed", "kind": kind, "reason": "so it was"}, "wall_s": None}
        line |= {name: {} for name in ("phases", "memory", "peaks", "probes")}
        return "".join([json.dumps(line) + "\n", *([first] if keep else []), *others])

    return copied(shards, tmp_path, RECORDS, change)


def test_trials_started_in_the_same_second_keep_their_order(shards: Path) -> None:
    some = [one for one in read(shards / "part1").records if one.measure == "time"]
    together = [replace(one, started="2026-11-21T10:00:00+00:00") for one in some]
    ordered = merge.cells([reading.Recording(Path(), {}, {}, together, 0)])
    assert [one.trial for one in ordered] == sorted(one.trial for one in some) and ordered[-1].trial > 0


@pytest.mark.parametrize("kind", ["incorrect", "recompiled", "below-floor"])
def test_time_does_not_replace_a_result_of_other_work(shards: Path, tmp_path: Path, kind: str) -> None:
    failed = disproved(shards, tmp_path, kind, keep=False)
    for order in ([read(shards / "part2"), failed], [failed, read(shards / "part2")]):
        with pytest.raises(Disagreement, match=rf"^cell \w+ \(good\) is {kind} in .*changed and measured in .*part2$"):
            merge.merge(order, tmp_path / "merged")


def test_incorrect_cell_stays_incorrect_after_a_measurement(shards: Path, tmp_path: Path) -> None:
    changed = disproved(shards, tmp_path, "incorrect", keep=True)
    first, _, third = parts(shards)
    for _ in range(2):
        merge.merge([first, changed, third], tmp_path / "merged")
        (complaint,) = checking.check(tmp_path / "merged")
        assert complaint.rule == "files" and "was incorrect before it was measured" in complaint.text


def test_merge_command_reports_missing_shards_and_errors(shards: Path, tmp_path: Path) -> None:
    done = snnbench(shards, "merge", "part1", "part3", "-o", str(tmp_path / "merged"))
    assert done.returncode == 0 and "still missing: 2/3" in done.stderr, done.stderr
    done = snnbench(shards, "merge", "part1", "whole", "-o", str(tmp_path / "merged"))
    assert done.returncode == 8 and "was measured in part1 and, otherwise, in whole" in done.stderr
    done = snnbench(shards, "run", "--config", "tiny.toml", "--shard", "5/4")
    assert done.returncode == 2 and "expected a shard such as 2/3" in done.stderr
    done = snnbench(
        shards, *run_arguments(shards / "tiny.toml", [shards / "good.py", shards / "bad.py"], "--shard", "5/9")
    )
    assert done.returncode == 2 and "fewer cases than shards" in done.stderr
