"""Tests of fakes that keep answers: fresh passes find them, and none gets a time."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from snnbench.worker.messages import Reply
from tests.fakes import CASE, CORRECT, EXAM_VALUES, altered, ask, document, quantities, reply_of, request
from tests.recordings import EXACT

pytestmark = pytest.mark.quiet

KEPT = """
answers, gradients, history = {{}}, {{}}, []
calls = [0]

def seen(x):
    history.append(x.tobytes())
    return history[-9:].count(history[-1])

def kept(store, key, compute):
    while len(store) > {entries}:
        store.pop(next(iter(store)))
    if key not in store:
        store[key] = compute()
    return store[key]

def forward(x):
    for weight, _ in weights:
        x @ weight.T  # the product is paid in every pass
    calls[0] += 1
    if not {active}:
        return right.forward(x)
    spikes, (_, traces) = kept(answers, {key}, lambda: right.forward(x.copy()))
    return spikes, (x, traces)

def backward(kept_forward, cotangent):
    x, traces = kept_forward
    for weight, _ in weights:
        cotangent @ weight
    if not {active}:
        return right.backward(kept_forward, cotangent)
    return kept(gradients, ({key}, {other}), lambda: right.backward((x.copy(), traces), cotangent))

return Network(forward, backward)
"""


def keeper(key: str = "x.tobytes()", other: str = "cotangent.tobytes()", entries: int = 1, active: str = "True") -> str:
    """A fake that keeps `entries` right answers, by a key of the input and a key of the cotangent."""
    return altered(KEPT.format(key=key, other=other, entries=entries, active=active))


PER_SAMPLE = """
answers = {}

def forward(x):
    for weight, _ in weights:
        x @ weight.T
    keys = [x[:, b].tobytes() for b in range(x.shape[1])]
    missing = [b for b, key in enumerate(keys) if key not in answers]
    if missing:
        spikes, (_, traces) = right.forward(x[:, missing].copy())
        for number, b in enumerate(missing):
            answers[keys[b]] = [[a[:, number] for a in (t.potential, t.spikes, t.decayed)] for t in traces]
    chosen = [answers[key] for key in keys]
    traces = [
        reference.Trace(*(np.stack([one[layer][part] for one in chosen], 1) for part in range(3)))
        for layer in range(len(weights))
    ]
    return traces[-1].spikes, (x, traces)

return Network(forward, right.backward)
"""
KEEPERS = {
    "by content": keeper(),
    "by content, two of them": keeper(entries=2),
    "by content, eight of them": keeper(entries=8),
    "by content, 64 of them": keeper(entries=64),
    "by a hash of a sample": keeper("hash(x[:, 0].tobytes())", "hash(cotangent[:, 0].tobytes())", 64),
    "by a hash of a step": keeper("hash(x[0].tobytes())", "hash(cotangent[0].tobytes())", 64),
    "by identity and a checksum": keeper("(id(x), x[::2].tobytes())", "cotangent[::2].tobytes()", 8),
    "by content above a size": keeper(active=f"x.size > {EXAM_VALUES}"),
    "by content, a third of all passes honest": keeper(entries=64, active="calls[0] * 2654435761 % 1009 % 3"),
    "by content, every third pass honest": keeper(active="calls[0] % 3"),
    "by content, after two honest passes": keeper(entries=64, active="seen(x) > 2"),
    "by the content of each sample": altered(PER_SAMPLE),
}
"""Fakes that keep answers and are always right."""


def timed(folder: Path, source: str, time_steps: int = 60, **changes: Any) -> Reply:
    """Repetitions of many passes, so that content repeats."""
    folder.mkdir(exist_ok=True)
    changes = {"min_repetition_ns": 20_000_000, "warmup_passes": 2} | changes
    return reply_of(ask(folder, source, request("time", CASE.with_(time_steps=time_steps), **changes), timeout_s=120))


def assert_incorrect(reply: Reply, complaint: str) -> None:
    assert (reply.outcome.status, reply.outcome.kind) == ("failed", "incorrect"), reply.outcome
    assert re.search(complaint, reply.outcome.reason), reply.outcome.reason
    assert reply.phases == {} and quantities(document(reply)) == []


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reply]:
    home = tmp_path_factory.mktemp("keepers")
    sources = {name: KEEPERS[name] for name in KEEPERS}
    with ThreadPoolExecutor(2) as pool:
        done = pool.map(lambda pair: timed(home / str(pair[0]), pair[1]), enumerate(sources.values()))
        return dict(zip(sources, done, strict=True))


@pytest.mark.parametrize("name", KEEPERS)
def test_kept_answers_are_found_by_fresh_passes(replies: dict[str, Reply], name: str) -> None:
    assert_incorrect(replies[name], r"takes .* times as long on content (drawn anew|in another order)|spikes differ")


@pytest.mark.parametrize("phase", ["inference", "forward", "backward", "train"])
def test_kept_answers_are_found_in_every_phase(tmp_path: Path, phase: str) -> None:
    reply = timed(tmp_path, keeper(entries=64), phases=(phase,))
    assert_incorrect(reply, f"a pass of {phase} takes .* times as long on content")


def test_kept_answers_are_found_with_fresh_repetitions(tmp_path: Path) -> None:
    """A kept pass is short, so a repetition is several of them, or else a single one, on content that nothing keeps."""
    reply = timed(tmp_path, keeper(entries=64), min_repetition_ns=1)
    if reply.outcome.status == "measured":
        assert {phase["passes"] for phase in reply.phases.values()} == {1}
    else:
        assert_incorrect(reply, r"a pass of \w+ takes .* times as long on content drawn anew")


SAVED = """
seen = {{}}

def forward(x):
    key = x.tobytes()
    if key in seen:
        right.forward(x[:{steps}])  # as much of the work is done again
    else:
        seen[key] = right.forward(x.copy())
    return seen[key][0], (x, seen[key][1][1])

return Network(forward, right.backward)
"""


def test_answer_that_saves_half_of_the_work_is_found(tmp_path: Path) -> None:
    """Passes of 3 ms: in shorter passes the allowance of 0.1 ms would hide much of the saving.

    A disturbance as long as a pass may hide it from a trial, so three trials look for it.
    """
    for trial in range(3):
        source = altered(SAVED.format(steps=120))
        reply = timed(tmp_path / str(trial), source, time_steps=240, phases=("inference",))
        if reply.outcome.status == "failed":
            break
    assert_incorrect(reply, r"a pass of inference takes [\d.]+ times as long on content")


@pytest.mark.parametrize("batch", [1, 2, 4])
def test_kept_answers_of_small_batches_are_found(tmp_path: Path, batch: int) -> None:
    """A small batch has few orders, so its content is drawn anew."""
    tmp_path.mkdir(exist_ok=True)
    case = CASE.with_(time_steps=60, batch=batch, neurons=96)
    for source, outcome in ((CORRECT, "measured"), (keeper(entries=64), "failed")):
        time_request = request("time", case, min_repetition_ns=20_000_000, warmup_passes=2)
        reply = reply_of(ask(tmp_path, source, time_request, timeout_s=60))
        assert reply.outcome.status == outcome, reply.outcome


def test_fresh_passes_of_an_honest_library_are_recorded(tmp_path: Path) -> None:
    for passes, changes in ((2, {}), (1, {"min_repetition_ns": 1, "repetitions": 4})):
        reply = timed(tmp_path, CORRECT, **changes)
        assert reply.outcome == EXACT
        for name, phase in reply.phases.items():
            assert min(phase["contested_passes"] or phase["passes"], 2) == passes  # a busy machine may contest a phase
            assert len(phase["fresh_ns"]) == (3 if passes == 2 else 1) and len(phase["drawn_ns"]) >= 3
            check = reply.checks[f"fresh-{name}"]
            assert check["correct"] and check["compared"] >= 3 * CASE.updates
