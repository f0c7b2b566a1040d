"""Test that a worker's reply names the way in which the work is divided among processes."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from snnbench import workloads
from snnbench.adapter.discovery import data_folder
from snnbench.run.process import environment, run
from tests.fakes import DIVIDED, profile, reply_of, request

PATH = data_folder("adapters") / "fused-devices.py"
ALONE = DIVIDED.with_(**profile("zero"))


@pytest.mark.parametrize("variant", ["temporal", "batch", "neurons"])
def test_reply_names_the_split(tmp_path: Path, variant: str) -> None:
    pytest.importorskip("torch")
    train = replace(request("verify", ALONE, phases=("train",)), variant=variant)
    reply = reply_of(run(Path(sys.executable), PATH, train, environment(1, tmp_path, {}), 60.0))
    assert reply.outcome and reply.outcome.measured, reply.outcome
    assert reply.settings["split"] == variant
    assert workloads.of(ALONE).pipeline_blocks(ALONE, reply.settings["split"]) == (1 if variant == "temporal" else None)
