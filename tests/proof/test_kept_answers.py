"""Tests of fakes that keep answers, work after the clock, or skip work that few samples show: none gets a time."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from snnbench.worker.messages import Reply
from tests.fakes import CASE, CORRECT, EXAM_VALUES, altered, ask, document, overridden, quantities, reply_of, request
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
    """Then the repetitions are honest, but the warm-up is not: such a library gets no time."""
    reply = timed(tmp_path, keeper(entries=64), min_repetition_ns=1)
    assert_incorrect(reply, "a pass of inference takes .* times as long on content")


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
    """Passes of 3 ms: in shorter passes the allowance of 0.1 ms would hide much of the saving."""
    reply = timed(tmp_path, altered(SAVED.format(steps=120)), time_steps=240, phases=("inference",))
    assert_incorrect(reply, r"a pass of inference takes [12]\.\d+ times as long on content")


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
            assert min(phase["passes"], 2) == passes
            assert len(phase["fresh_ns"]) >= (5 if passes == 2 else 3) and len(phase["drawn_ns"]) >= 1
            check = reply.checks[f"fresh-{name}"]
            assert check["correct"] and check["compared"] >= 3 * CASE.updates


WRONG_WHERE = """
def forward(x):
    spikes, kept = right.forward(x)
    if x.size > {small} and {when}:
        spikes = spikes.copy()
        spikes[{place}] = 0
    return spikes, kept

calls = [0]

def count():
    calls[0] += 1
    return calls[0]

return Network(forward, right.backward)
"""
WRONG_GRADIENT = """
def backward(kept, cotangent):
    weights, biases, entering = right.backward(kept, cotangent)
    if cotangent.size > {small} and {when}:
        {part}[{place}] = 0
    return weights, biases, entering

calls = [0]

def count():
    calls[0] += 1
    return calls[0]

return Network(right.forward, backward)
"""
SILENT = {
    "four neurons in one sample": ":, 2, 10:14",
    "a block of neurons": ":, :, 40:48",
    "a step": "31",
    "a sample": ":, 4",
    "a step of a sample": "17, 5",
}
ZERO = {
    "the input's in one sample": ("entering", ":, 3"),
    "the input's in a step": ("entering", "11"),
    "the input's of a block": ("entering", ":, :, 8:16"),
    "the weights' of one neuron": ("weights[0]", "21"),
    "the bias's of one neuron": ("biases[0]", "21"),
}
WHEN = {"always": "True", "every third pass": "count() % 3 == 0"}
BUDGETS = {"compared whole": 2 * 10**9, "compared in parts": 0}


def lies(when: str) -> dict[str, str]:
    """Fakes that leave something out above the size of the exam."""
    wrong = {
        f"silent: {name}": altered(WRONG_WHERE.format(small=EXAM_VALUES, when=WHEN[when], place=place))
        for name, place in SILENT.items()
    }
    return wrong | {
        f"zero: {name}": altered(WRONG_GRADIENT.format(small=EXAM_VALUES, when=WHEN[when], part=part, place=place))
        for name, (part, place) in ZERO.items()
    }


LIES = [(name, when) for when in WHEN for name in lies(when)]


@pytest.fixture(scope="module")
def left_out(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], Reply]:
    """Each lie's reply. The answers are wrong regardless of timing, so two workers run at once."""
    home = tmp_path_factory.mktemp("lies")

    def replied(name: str, when: str, budget: str) -> Reply:
        time_request = request("time", CASE.with_(time_steps=60), check_ns=BUDGETS[budget], repetitions=6)
        folder = home / f"{LIES.index((name, when))}-{budget}"
        folder.mkdir()
        return reply_of(ask(folder, lies(when)[name], time_request, timeout_s=60))

    keys = [(name, when, budget) for name, when in LIES for budget in BUDGETS]
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(keys, pool.map(lambda key: replied(*key), keys), strict=True))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("name", "when"), LIES)
def test_omitted_work_is_found(left_out: dict[tuple[str, str, str], Reply], name: str, when: str, budget: str) -> None:
    """Partial checks find it, too: fresh passes move samples, and every process and phase compares other neurons."""
    assert_incorrect(left_out[name, when, budget], "spikes differ|gradient of (weight|bias|input) is")


AFTER_THE_CLOCK = """
import threading

def backward(kept, cotangent):
    late = [np.zeros_like(w) for w, _ in weights]

    def fill():
        got = right.backward(kept, cotangent)
        for target, source in zip(late, got[0], strict=True):
            target[...] = source

    _, biases, entering = right.backward(kept, cotangent)
    if cotangent.size > {small}:
        threading.Thread(target=fill).start()
    else:
        fill()
    return late, biases, entering

return Network(right.forward, backward)
"""
WHEN_READ = """
def train(self):
    if self.input.size <= {small}:
        return super().train()
    return [], None

def answer(self, spikes, gradients):
    if isinstance(spikes, list):
        spikes[:] = spikes or super().train()
        spikes, gradients = spikes
    return super().answer(spikes, gradients)
"""


def test_gradient_filled_in_after_the_clock_is_incorrect(tmp_path: Path) -> None:
    reply = timed(tmp_path, altered(AFTER_THE_CLOCK.format(small=EXAM_VALUES)), phases=("backward", "train"))
    assert_incorrect(reply, "gradient of weight is|was not done when the clock stopped")


def test_answer_computed_when_read_is_incorrect(tmp_path: Path) -> None:
    source = overridden(WHEN_READ.format(small=EXAM_VALUES))
    case = CASE.with_(time_steps=1000)
    time_request = request("time", case, phases=("train",), repetitions=6)
    reply = reply_of(ask(tmp_path, source, time_request, timeout_s=60))
    assert_incorrect(reply, "train was not done when the clock stopped: ")
