"""Tests of sequences in chunks: their case, exam and refusals. Lies about them are in tests/frameworks/workloads."""

from pathlib import Path
from typing import Any

import pytest

from snnbench import workloads
from snnbench.adapter.discovery import discover
from snnbench.plan import config
from snnbench.plan.cell import Cell
from snnbench.plan.config_file import ConfigError
from snnbench.proof.exam import run_exam
from snnbench.report.wording import heading, setting_name, title
from tests.bench import PROTOCOL
from tests.examination import reply_to
from tests.fakes import CASE, CORRECT, CUT, request
from tests.plan.test_configs import CONFIGS
from tests.programs import Program

CHUNKED = CASE.with_(**CUT)
CARRIED = CASE.with_(chunk_steps=5)


def test_case_without_chunks_keeps_its_key_and_its_words() -> None:
    fields = CASE.as_dict()
    assert "chunk_steps" not in fields and "carried_gradient" not in fields
    assert workloads.decode(fields).key == CASE.key and "chunk" not in title(CASE) + heading(CASE)
    assert Cell(CASE, "a", "default", 0, "time").key("x", "y", "z", PROTOCOL) == "17585ec7577f16d6"


def test_cases_in_chunks_have_keys_and_words_of_their_own() -> None:
    cases = [CASE, CARRIED, CHUNKED]
    assert len({case.key for case in cases}) == len({title(case) for case in cases}) == 3
    assert "chunks of 5 steps, " in title(CARRIED)
    assert "chunks of 5 steps with the gradient cut between them, " in heading(CHUNKED)
    assert setting_name(CHUNKED, cases).endswith("chunks of 5 steps, gradient cut")
    assert workloads.decode(CHUNKED.as_dict()) == CHUNKED


def test_exam_has_two_chunks_and_three() -> None:
    """A right program passes it: with the gradient carried, its answer is that of one call."""
    for case in (CARRIED.with_(layers=2), CHUNKED.with_(layers=2)):
        problems = workloads.of(case).exams(case)
        assert sorted(each.case.time_steps // each.case.chunk_steps for each in problems) == [2, 2, 3, 3]
        for each in problems:
            assert run_exam(each, lambda which, cotangent, each=each: Program()(each, which, cotangent)).correct  # type: ignore[misc]


def test_cut_without_chunks_is_refused_in_one_line() -> None:
    loaded = config.load(CONFIGS / "quick.toml", ["case.carried_gradient=false"], default_threads=2)
    with pytest.raises(ConfigError, match="between chunks, and needs chunk_steps") as error:
        config.expand(loaded, discover())
    assert "\n" not in str(error.value)


def test_library_that_declares_no_chunks_is_not_asked_for_them() -> None:
    adapters = discover()
    refused = {name: one.variants[one.default].refusal(CHUNKED) for name, one in adapters.items()}
    assert refused["rockpool"] == "a sequence in chunks: this adapter carries no state from one call to the next"
    assert not refused["torch-loop"] and not refused["jax-scan"]


@pytest.mark.parametrize(("declared", "reason"), [("", "this adapter"), ("CHUNKS = True\n", "networks of NumPy")])
def test_network_of_numpy_is_unsupported(tmp_path: Path, declared: str, reason: str) -> None:
    outcome: Any = reply_to(tmp_path, declared + CORRECT, request("verify", CHUNKED)).outcome
    assert outcome.kind == "unsupported" and f"in chunks: {reason}" in outcome.reason
