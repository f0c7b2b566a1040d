"""Tests of fakes that skip work that few samples show, or work after the clock: none gets a time."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from snnbench.worker.messages import Reply
from tests.fakes import CASE, EXAM_VALUES, altered, ask, reply_of, request
from tests.proof.test_kept_answers import assert_incorrect, timed

pytestmark = pytest.mark.quiet

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
TRIALS = {"compared whole": 1, "compared in parts": 3}
"""The most trials, each in a process of its own. The part is 32 of 48 neurons in each of four checks of gradients, so
one trial in 70 misses one neuron's gradient; three miss it once in 300,000."""


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
    """The first reply that refuses the lie, or else the last. Wrong answers need no quiet: two workers run at once."""
    home = tmp_path_factory.mktemp("lies")

    def replied(name: str, when: str, budget: str) -> Reply:
        time_request = request("time", CASE.with_(time_steps=60), check_ns=BUDGETS[budget], repetitions=6)
        folder = home / f"{LIES.index((name, when))}-{budget}"
        folder.mkdir()
        for _ in range(TRIALS[budget]):
            reply = reply_of(ask(folder, lies(when)[name], time_request, timeout_s=60))
            if reply.outcome and reply.outcome.status == "failed":
                break
        return reply

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
class Lazy(np.ndarray):
    def __array__(self, *given, **named):
        return right.forward(self.entering)[0]

def forward(x):
    if x.size <= {small}:
        return right.forward(x)
    lazy = np.zeros_like(x).view(Lazy)
    lazy.entering = x.copy()
    return lazy, None

return Network(forward, right.backward)
"""


def test_gradient_filled_in_after_the_clock_is_incorrect(tmp_path: Path) -> None:
    reply = timed(tmp_path, altered(AFTER_THE_CLOCK.format(small=EXAM_VALUES)), phases=("backward", "train"))
    assert_incorrect(reply, "gradient of weight is|was not done when the clock stopped")


def test_answer_computed_when_read_is_incorrect(tmp_path: Path) -> None:
    reply = timed(tmp_path, altered(WHEN_READ.format(small=EXAM_VALUES)), phases=("inference",))
    assert_incorrect(reply, r"an output is a .*\.Lazy, expected numpy.ndarray: return plain arrays")
