"""Tests of epochs: each strategy is exact and learns the same, and every lie has its name."""

import os
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from snnbench.feeding import samples
from snnbench.feeding.epoch import Loop
from snnbench.worker.messages import Reply
from snnbench.worker.used_cpus import UsedCpus
from snnbench.workloads import loading
from tests.small_epochs import LEARNING, LOOP, SMALL, reply_to

STRATEGIES = get_args(loading.Strategy)
ALL = [pair for pair in product(STRATEGIES, (0, 1)) if pair != ("device-sparse", 1)]
FROM_LOADER = ["reading", "transforming", "collating"]
IN_LOOP = ["waiting", "transfer", "forward", "backward"]


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Reply]:
    """The reply for each strategy and number of workers."""
    home = tmp_path_factory.mktemp("replies")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SNNBENCH_HOME", str(home / "home"))
        return {pair: reply_to(home, SMALL.with_(strategy=pair[0], workers=pair[1])) for pair in ALL}


@pytest.mark.parametrize("pair", ALL, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_every_strategy_is_exact(replies: dict[tuple[str, int], Reply], pair: tuple[str, int]) -> None:
    reply = replies[pair]
    assert reply.outcome and reply.outcome.verdict == "exact", reply.outcome
    assert set(reply.checks) == {
        *("exam-1", "spot-train", "step-train", "losses-epoch", "losses-compute"),
        *("content-epoch", "content-compute", "content-loader"),
    }
    assert set(reply.phases) == {"epoch", "compute", "loader"}


@pytest.mark.parametrize(("cpus", "allowed"), [((), True), (tuple(sorted(os.sched_getaffinity(0))), False)])
def test_process_of_a_loader_has_a_cpu_of_its_own_only_where_nothing_is_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpus: tuple[int, ...], allowed: bool
) -> None:
    monkeypatch.setattr(UsedCpus, "cpus", lambda *_: 1.9)
    reply = reply_to(tmp_path, SMALL.with_(strategy="memory", workers=1), phases=("epoch",), cpus=cpus)
    assert reply.outcome and (reply.outcome.verdict == "exact") is allowed, reply.outcome
    assert allowed or reply.outcome.reason == "epoch uses 1.9 CPUs where the case has 1 thread"


def test_all_strategies_have_the_same_losses(replies: dict[tuple[str, int], Reply]) -> None:
    epochs = [reply.phases["epoch"] for reply in replies.values()]
    assert len({(epoch["losses_digest"], *epoch["losses"], *epoch["accuracies"]) for epoch in epochs}) == 1
    assert len({reply.settings["content"] for reply in replies.values()}) == 1


@pytest.mark.parametrize("pair", ALL, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_parts_add_up_to_the_epoch(replies: dict[tuple[str, int], Reply], pair: tuple[str, int]) -> None:
    """The loop's own statements are not in any part: they take far less than a batch."""
    strategy, workers = pair
    epoch = replies[pair].phases["epoch"]
    spent_ns = sum(ns for (ns,) in epoch["parts_ns"].values())
    assert 0.8 * epoch["repetitions_ns"][0] < spent_ns <= epoch["repetitions_ns"][0]
    assert {*IN_LOOP} <= set(epoch["parts_ns"])
    of_loader = set(epoch["loader_ns"] if workers else epoch["parts_ns"])
    made = strategy in ("naive", "disk-cold")
    assert of_loader >= {*FROM_LOADER} if made else not of_loader & {"transforming", "caching"}
    assert ("caching" in of_loader) == made  # of naive, what is left of a sample's time


def test_cache_is_filled_before_the_clock(replies: dict[tuple[str, int], Reply]) -> None:
    filled = {strategy: replies[strategy, 0].settings["feeding"]["cache_bytes"] > 0 for strategy in STRATEGIES}
    assert filled == dict.fromkeys(STRATEGIES, True) | {"naive": False, "disk-cold": False}


def test_optimiser_learns_and_is_proved(tmp_path: Path) -> None:
    reply = reply_to(tmp_path, LEARNING.with_(strategy="memory"), phases=("epoch",), repetitions=4)
    assert reply.outcome and reply.outcome.verdict == "exact", reply.outcome
    epoch = reply.phases["epoch"]
    assert "optimiser" in epoch["parts_ns"] and len(epoch["repetitions_ns"]) == 4
    assert epoch["losses"][-1] < 0.8 * epoch["losses"][0]


def test_loss_that_overflows_is_named(tmp_path: Path) -> None:
    case = LEARNING.with_(strategy="memory", optimiser="sgd", learning_rate=1e38)
    reply = reply_to(tmp_path, case, phases=("epoch",), repetitions=2)
    assert reply.outcome and reply.outcome.kind == "incorrect"
    assert reply.outcome.reason and "it learns too fast, or overflows" in reply.outcome.reason


def test_scaled_neuron_learns_the_same(tmp_path: Path) -> None:
    """A library that takes its current ten times as large has weights ten times as large, and steps of that size."""
    scaled = LOOP.replace(
        "def layer(current, own=None, carried=None):\n",
        "def layer(current, own=None, carried=None):\n        current = current / 8\n",
    ).replace("Neuron(lambda neurons: layer,", "Neuron(lambda neurons: layer, gain=8.0,")
    assert scaled.count("/ 8") == scaled.count("gain=8.0") == 1
    plain, other = (
        reply_to(tmp_path, LEARNING.with_(strategy="memory", optimiser=optimiser), source, ("epoch",), repetitions=3)
        for optimiser in ("adam",)
        for source in (LOOP, scaled)
    )
    assert other.outcome and other.outcome.verdict == "exact", other.outcome
    assert np.allclose(plain.phases["epoch"]["losses"], other.phases["epoch"]["losses"], rtol=1e-4)


LIES = {
    "half of the steps of a batch": ("current[25:] = 0 * current[25:]", "outputs"),
    "no gradient in every other batch": ("if (CALLS[0] // 2) % 2: current = current.detach()", "after the epoch"),
    "the answer to the batch before": ("if KEPT: return KEPT[0].detach() + 0 * current", "outputs"),
    "another threshold": ("current = current / 1.01", "outputs"),
}


@pytest.mark.parametrize("lie", LIES)
def test_neuron_that_lies_while_it_is_timed_is_incorrect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    """The neuron is honest in the exam, in the layerwise check and in the loop over the reference's batches."""
    statement, complaint = LIES[lie]
    lying = LOOP.replace(
        "def layer(current, own=None, carried=None):\n",
        "def layer(current, own=None, carried=None):\n"
        "        CALLS[0] += 1\n"
        "        current = current.clone()\n"
        f"        if TIMED:\n            {statement}\n",
    ).replace(
        "        return torch.stack(spikes)\n", "        KEPT[:] = [torch.stack(spikes)]\n        return KEPT[0]\n"
    )
    lying += "\n\nTIMED, KEPT, CALLS = [], [], [0]\nimport builtins\nbuiltins.varying_sizes = TIMED, KEPT\n"
    run, runs = Loop.run, []

    def timed(self: Any, *given: Any) -> Any:
        """The first loop is timed; the second one runs over the reference's batches."""
        import builtins

        flag, last_answer = builtins.varying_sizes  # type: ignore[attr-defined]
        runs.append(self)
        flag[:] = [1] * (len(runs) == 1)
        last_answer.clear()
        epoch = run(self, *given)
        flag.clear()
        return epoch

    monkeypatch.setattr(Loop, "run", timed)
    reply = reply_to(tmp_path, SMALL, lying, ("epoch",))
    assert reply.outcome and reply.outcome.kind == "incorrect", reply.outcome
    assert reply.outcome.reason and reply.outcome.reason.startswith("losses of epoch: ")
    assert complaint in reply.outcome.reason
    assert not reply.phases


@pytest.mark.parametrize("phase", ["epoch", "loader"])
def test_loader_of_other_frames_is_incorrect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str) -> None:
    """A loader that leaves out the last step of each sample."""
    made = samples.frames_of

    def shorter(steps: int) -> Any:
        whole = made(steps)

        def transform(events: Any) -> Any:
            frames = whole(events)
            frames[20] = 0
            return frames

        return transform

    monkeypatch.setattr(samples, "frames_of", shorter)
    reply = reply_to(tmp_path, SMALL, phases=(phase,))
    assert reply.outcome and reply.outcome.kind == "incorrect", reply.outcome
    assert reply.outcome.reason and reply.outcome.reason.startswith(f"content of {phase}: ")
    assert "frame [20, " in reply.outcome.reason


def test_wrong_neuron_fails_the_exam(tmp_path: Path) -> None:
    reply = reply_to(tmp_path, SMALL, LOOP.replace("case.beta * v", "0.99 * case.beta * v"))
    assert reply.outcome and reply.outcome.kind == "incorrect"
    assert reply.outcome.reason and reply.outcome.reason.startswith("exam: ")


def test_neuron_that_is_wrong_beyond_the_exam_is_named(tmp_path: Path) -> None:
    """A current that is a thousandth too small, but not in the exam, which has another width."""
    wrong = LOOP.replace(
        "own=None, carried=None):\n",
        "own=None, carried=None):\n        current = current * (0.999 if case.width == 32 else 1)\n",
    )
    reply = reply_to(tmp_path, SMALL, wrong, ("epoch",))
    assert reply.outcome and reply.outcome.kind == "incorrect"
    assert reply.outcome.reason and "layer 1 neurons by themselves" in reply.outcome.reason
