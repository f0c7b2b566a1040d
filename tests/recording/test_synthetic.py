"""Tests of the recording that benchmarks measure: all of its lines are records, so that they measure what they say."""

from pathlib import Path

from benchmarks import synthetic
from snnbench.recording.reading import read


def test_every_line_of_a_synthetic_recording_is_a_record(tmp_path: Path) -> None:
    synthetic.write(tmp_path / "recording", 120)
    recording = read(tmp_path / "recording")
    assert (len(recording.records), recording.torn) == (120, 0)
    assert {record.measure for record in recording.records} == {"time", "memory"}
    assert all(record.phases or record.memory for record in recording.records)
