"""Tests of fakes that do the wrong work: each ends `incorrect`, with a reason and without a time."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import pytest

from snnbench.proof.comparison import verdict
from snnbench.worker.messages import Measure, Reply
from snnbench.workloads.case import PROFILES, Dtype
from snnbench.workloads.outcome import Outcome
from tests.fakes import (
    CASE,
    CORRECT,
    EXAM_VALUES,
    PHASES,
    altered,
    ask,
    cast,
    document,
    overridden,
    profile,
    quantities,
    reply_of,
    request,
)
from tests.recordings import EXACT

MEASURES: tuple[Measure, ...] = get_args(Measure)

CACHED = """
seen = {{}}

def forward(x):
    if {key} not in seen:
        seen[{key}] = (*right.forward(x), x)  # x is kept, so that its identity stays its own
    return seen[{key}][:2]

return Network(forward, right.backward)
"""

STALE = """
first = []

def backward(kept, cotangent):
    if not first or kept[0].size <= {small}:
        first[:] = [right.backward(kept, cotangent)]
    return first[0]

return Network(right.forward, backward)
"""

CARRIED = """
earlier = []

def forward(x):
    spikes = right.forward(np.concatenate([*earlier, x]))[0][-len(x):]
    if x.size > {small}:
        earlier[:] = [x]
    return spikes, right.forward(x)[1]

return Network(forward, right.backward)
"""

UNROLLED = """
def swapped(array):
    return array.transpose(1, 0, 2)

def forward(x):
    spikes, kept = right.forward(swapped(x))
    return {spikes}, kept

def backward(kept, cotangent):
    weights, biases, entering = right.backward(kept, swapped(cotangent))
    return weights, biases, swapped(entering)

return Network(forward, backward)
"""

LARGE = f"x.size > {EXAM_VALUES}"


@dataclass(frozen=True)
class Fault:
    """A fake adapter, the complaint about it, and the kinds of measurement that find it."""

    source: str
    complaint: str
    measures: tuple[Measure, ...] = ("time",)
    case: dict[str, Any] = field(default_factory=dict)


def spikes_fault(expression: str, complaint: str, measures: tuple[Measure, ...] = ("time",)) -> Fault:
    """The right `spikes` (and potentials `u`), changed by this expression."""
    body = f"""
def forward(x):
    spikes, kept = right.forward(x)
    u = kept[1][-1].potential
    return {expression}, kept

return Network(forward, right.backward)
"""
    return Fault(altered(body), complaint, measures)


def gradient_fault(expression: str, complaint: str, measures: tuple[Measure, ...] = ("time",)) -> Fault:
    """The right gradients `w`, `b` and `i` (of weights, biases and input), changed by this expression."""
    body = f"""
def backward(kept, cotangent):
    w, b, i = right.backward(kept, cotangent)
    return {expression}

return Network(right.forward, backward)
"""
    return Fault(altered(body), complaint, measures)


EXAM_SPIKES = r"exam: \d+ of 1480 spikes differ, the first at t=\d, b=\d, n=\d+: u=.*, expected \d, got "
EXAM_GRADIENT = r"exam: gradient of weight is off by .* \(relative; (1e-05|2e-14) allowed\), cosine "
SPOT_SPIKES = r"(spot check|fresh passes) of inference: \d+ of 6720 spikes differ, the first at t=\d+, b=\d, n=\d+: u="
SPOT_BACKWARD = r"(spot check|fresh passes) of backward: gradient of (weight|input) is off by "
FIRST_PASS = r"spot check of (inference|train): \d+ of 6720 spikes differ"

FAULTS = {
    "a single-step cell applied to the whole tensor": Fault(
        altered("""
        def flat(array):
            return array.reshape(1, -1, array.shape[-1])

        def forward(x):
            spikes, kept = right.forward(flat(x))
            return spikes.reshape(x.shape), kept

        def backward(kept, cotangent):
            weights, biases, entering = right.backward(kept, flat(cotangent))
            return weights, biases, entering.reshape(cotangent.shape)

        return Network(forward, backward)
        """),
        EXAM_SPIKES + "0; gradient of weight is off by",
        MEASURES,
    ),
    "the batch axis unrolled instead of time": Fault(
        altered(UNROLLED.format(spikes="swapped(spikes)")), EXAM_SPIKES, MEASURES
    ),
    "T and B swapped in the output": Fault(
        altered(UNROLLED.format(spikes="spikes")),
        r"exam: spikes have the shape \[5, 8, 37\], expected \[8, 5, 37\]",
        MEASURES,
    ),
    "T and B swapped, and as many steps as samples": Fault(
        altered(UNROLLED.format(spikes="spikes")), r"exam: spikes have the shape", case={"time_steps": CASE.batch}
    ),
    "a wrong order declared": Fault(CORRECT + '\nORDER = "BTN"\n', EXAM_SPIKES),
    "wrong decay": Fault(cast("replace(case, beta=case.beta - 0.01)"), EXAM_SPIKES, MEASURES),
    "wrong decay, but right at one half": Fault(
        cast("case if case.beta == 0.5 else replace(case, beta=0.9)"), FIRST_PASS, MEASURES
    ),
    "wrong threshold": Fault(cast("replace(case, threshold=case.threshold - 0.01)"), EXAM_SPIKES),
    "the other reset": Fault(cast("replace(case, reset='zero')"), EXAM_SPIKES),
    "zero surrogate gradient": gradient_fault(
        "[0 * one for one in w], [0 * one for one in b], 0 * i",
        r"exam: gradient of weight is zero; gradient of bias is zero; gradient of input is zero",
        MEASURES,
    ),
    "another surrogate": Fault(cast("replace(case, surrogate='atan')"), EXAM_GRADIENT),
    "detached instead of attached reset": Fault(cast("replace(case, detach_reset=True)"), EXAM_GRADIENT, MEASURES),
    "attached instead of detached reset": Fault(
        cast("replace(case, detach_reset=False)"), EXAM_GRADIENT, case=profile("zero")
    ),
    "state carried over between passes": Fault(altered(CARRIED.format(small=0)), EXAM_SPIKES, MEASURES),
    "state carried over between passes above a size": Fault(
        altered(CARRIED.format(small=EXAM_VALUES)), SPOT_SPIKES, ("time", "verify")
    ),
    "correct exam, silent above a size": spikes_fault(f"spikes * (0 if {LARGE} else 1)", FIRST_PASS, MEASURES),
    "correct exam, last step not written above a size": spikes_fault(
        f"spikes * (np.arange(len(x)) < len(x) - ({LARGE}))[:, None, None]", FIRST_PASS
    ),
    "correct exam, last sample not written above a size": spikes_fault(
        f"spikes * (np.arange(x.shape[1]) < x.shape[1] - ({LARGE}))[:, None]", FIRST_PASS
    ),
    "correct exam, last neuron not written above a size": spikes_fault(
        f"spikes * (np.arange(x.shape[2]) < x.shape[2] - ({LARGE}))", FIRST_PASS
    ),
    "correct exam, gradient of one neuron off above a size": gradient_fault(
        f"[w[0] * (1 + (i.size > {EXAM_VALUES}) * 0.001 * (np.arange(len(w[0])) == len(w[0]) - 1))[:, None]], b, i",
        SPOT_BACKWARD,
        ("time", "verify"),
    ),
    "output cached from the first pass": Fault(altered(CACHED.format(key="0")), EXAM_SPIKES),
    "output cached by the shape of the input": Fault(altered(CACHED.format(key="x.shape")), EXAM_SPIKES),
    "output cached by the identity of the input": Fault(altered(CACHED.format(key="id(x)")), EXAM_SPIKES, MEASURES),
    "output cached by the identity of the input above a size": Fault(
        altered(CACHED.format(key=f"(id(x) if {LARGE} else x.tobytes())")), SPOT_SPIKES, ("time", "verify")
    ),
    "correct spikes with stale gradients": Fault(altered(STALE.format(small=0)), EXAM_GRADIENT, MEASURES),
    "correct spikes with stale gradients above a size": Fault(
        altered(STALE.format(small=EXAM_VALUES)), SPOT_BACKWARD, ("time", "verify")
    ),
    "float16 inside": Fault(
        altered("""
        halves = [(weight.astype(np.float16), bias.astype(np.float16)) for weight, bias in weights]
        half = network(case, halves)

        def forward(x):
            spikes, kept = half.forward(x.astype(np.float16))
            return spikes.astype(x.dtype), kept

        def backward(kept, cotangent):
            w, b, i = half.backward(kept, cotangent.astype(np.float16))
            return [one.astype("f4") for one in w], [one.astype("f4") for one in b], i.astype("f4")

        return Network(forward, backward)
        """),
        EXAM_SPIKES,
        MEASURES,
    ),
    "float16 in the weights": Fault(
        cast(weights="[(weight.astype('f2').astype('f4'), bias) for weight, bias in weights]"),
        r"spot check of inference: \d+ of \d+ spikes differ",
        case={"time_steps": 100, "batch": 16},
    ),
    "float16 in the gradients": gradient_fault(
        "*([one.astype('f2').astype('f4') for one in each] for each in (w, b)), i", EXAM_GRADIENT
    ),
    "float32 inside while claiming float64": Fault(
        altered("""
        single = network(case, [(weight.astype("f4"), bias.astype("f4")) for weight, bias in weights])
        return Network(lambda x: single.forward(x.astype("f4")), single.backward)
        """),
        EXAM_GRADIENT,
        case={"dtype": "float64"},
    ),
    "more than one spike in a step": spikes_fault("spikes * np.maximum(1, u // case.threshold)", EXAM_SPIKES + "2"),
    "graded spikes": spikes_fault("spikes * u", EXAM_SPIKES),
    "NaN spikes": spikes_fault("spikes * np.nan", EXAM_SPIKES + "nan"),
    "output late by one step": Fault(
        altered("""
        def forward(x):
            spikes, kept = right.forward(x)
            return np.concatenate([np.zeros_like(spikes[:1]), spikes[:-1]]), kept

        def backward(kept, cotangent):
            return right.backward(kept, np.concatenate([cotangent[1:], np.zeros_like(cotangent[:1])]))

        return Network(forward, backward)
        """),
        EXAM_SPIKES,
    ),
    "a wrong latency declared": Fault(CORRECT + "\nLATENCY = 1\n", EXAM_SPIKES),
    "bias ignored": Fault(cast(weights="[(weight, 0 * bias) for weight, bias in weights]"), EXAM_SPIKES),
    "weights transposed": Fault(cast(weights="[(weight.T, bias) for weight, bias in weights]"), EXAM_SPIKES),
    "second layer left out": Fault(
        altered("""
        first = network(case, weights[:1])

        def backward(kept, cotangent):
            w, b, i = first.backward(kept, cotangent)
            return w * len(weights), b * len(weights), i

        return Network(first.forward, backward)
        """),
        r"exam: \d+ of 1480 spikes differ.*gradient of weight of layer 1 is off",
        case={"layers": 2},
    ),
    "gradient of a sum": Fault(
        altered("return Network(right.forward, lambda kept, c: right.backward(kept, np.ones_like(c)))"), EXAM_GRADIENT
    ),
    "gradient of a mean over time": Fault(
        altered("""
        def backward(kept, cotangent):
            return right.backward(kept, np.broadcast_to(cotangent.mean(0), cotangent.shape))

        return Network(right.forward, backward)
        """),
        EXAM_GRADIENT,
    ),
    "NaN gradients": gradient_fault("w, b, i * np.nan", r"exam: gradient of input is not finite"),
    "gradients beyond all bounds": gradient_fault(
        "[one.astype('f8') * 1e300 for one in w], b, i", r"exam: gradient of weight is not finite"
    ),
    "wrong gradient of the input": gradient_fault("w, b, i * 1.001", r"exam: gradient of input is off by 0.001"),
    "wrong gradient of the bias": gradient_fault("w, [-one for one in b], i", r"exam: gradient of bias .*cosine -1"),
    "no gradient of the input": gradient_fault("w, b, None", r"exam: gradient of input: got shape none"),
    "gradient of the weight transposed": gradient_fault("[one.T for one in w], b, i", EXAM_GRADIENT),
    "wrong in inference only": Fault(
        overridden("""
        def inference(self):
            return np.roll(super().inference(), 1, axis=0)
        """),
        r"spot check of inference: \d+ of 6720 spikes differ",
        ("time", "verify"),
    ),
    "wrong in a backward pass of its own only": Fault(
        overridden("""
        def backward(self, kept):
            weights, biases, entering = super().backward(kept)
            return weights, biases, -entering
        """),
        r"spot check of backward: gradient of input is off by 2 ",
        ("time", "verify"),
    ),
    "a cotangent that is never replaced": Fault(
        overridden("""
        def load(self, which, cotangent):
            super().load(which, 0)
        """),
        EXAM_GRADIENT,
    ),
}

REQUESTS = [(name, measure) for name, fault in FAULTS.items() for measure in fault.measures]


def reply_to(folder: Path, source: str, measure: Measure, **case: Any) -> Reply:
    """A worker's reply to a request to measure the adapter with this text."""
    folder.mkdir(exist_ok=True)
    return reply_of(ask(folder, source, request(measure, CASE.with_(**case))))


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, Measure], Reply]:
    """Every fault's replies, from two workers at a time: the replies do not depend on timing."""
    home = tmp_path_factory.mktemp("faults")

    def reply(number: int) -> Reply:
        name, measure = REQUESTS[number]
        return reply_to(home / str(number), FAULTS[name].source, measure, **FAULTS[name].case)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(REQUESTS, pool.map(reply, range(len(REQUESTS))), strict=True))


@pytest.mark.parametrize(
    ("name", "dtype", "layers", "measure"),
    [
        *((name, dtype, layers, "time") for name in PROFILES for dtype, layers in (("float32", 1), ("float64", 2))),
        *(("subtract", "float32", 1, measure) for measure in MEASURES if measure != "time"),
    ],
)
def test_correct_fake_is_measured_and_exact(
    tmp_path: Path, name: str, dtype: Dtype, layers: int, measure: Measure
) -> None:
    reply = reply_to(tmp_path, CORRECT, measure, dtype=dtype, layers=layers, **profile(name))
    assert reply.outcome == EXACT
    assert all(check["correct"] for check in reply.checks.values())
    assert set(reply.phases) == (set(PHASES) if measure == "time" else set())
    assert bool(reply.memory) == (measure == "memory")
    assert bool(quantities(document(reply))) == (measure != "verify")


@pytest.mark.parametrize("measure", MEASURES)
def test_correct_fake_with_its_own_session_is_exact(tmp_path: Path, measure: Measure) -> None:
    assert reply_to(tmp_path, overridden("pass"), measure).outcome == EXACT


@pytest.mark.parametrize(("fault", "measure"), REQUESTS)
def test_faulty_fake_is_incorrect_and_has_no_time(
    replies: dict[tuple[str, Measure], Reply], fault: str, measure: Measure
) -> None:
    reply = replies[fault, measure]
    assert (reply.outcome.status, reply.outcome.kind) == ("failed", "incorrect"), reply.outcome
    assert "\n" not in reply.outcome.reason
    assert re.match(FAULTS[fault].complaint, reply.outcome.reason), reply.outcome.reason
    assert reply.phases == {} and reply.memory == {}
    assert quantities(document(reply)) == []
    assert reply.outcome.verdict is None
    assert not all(check["correct"] for check in reply.checks.values())


def test_adapter_that_raises_incorrect_has_no_time(tmp_path: Path) -> None:
    source = altered("""
    from snnbench.adapter import Incorrect

    def backward(kept, cotangent):
        if cotangent.size > 1480:
            raise Incorrect("the spikes carry no gradient")
        return right.backward(kept, cotangent)

    return Network(right.forward, backward)
    """)
    reply = reply_to(tmp_path, source, "time")
    assert reply.outcome == Outcome(status="failed", kind="incorrect", reason="the spikes carry no gradient")
    assert quantities(document(reply)) == []


@pytest.mark.parametrize("measure", MEASURES)
def test_declared_deviation_is_measured_with_its_size(tmp_path: Path, measure: Measure) -> None:
    wrong = FAULTS["wrong decay"].source
    reply = reply_to(tmp_path, wrong + '\nDEVIATION = "the decay is 0.01 less"\n', measure)
    assert reply.outcome == Outcome(status="measured", verdict="deviates", deviation="the decay is 0.01 less")
    exam = reply.checks["exam-1"]
    assert not exam["correct"]
    assert 0 < exam["differing"] < exam["compared"]
    assert exam["gradient_errors"]["weight"] > 1e-5
    assert exam["first_wrong"].startswith("t=")
    assert bool(reply.phases) == (measure == "time") and bool(reply.memory) == (measure == "memory")


def test_invisible_deviation_is_never_exact(tmp_path: Path) -> None:
    reply = reply_to(tmp_path, CORRECT + '\nDEVIATION = "none that a check can see"\n', "time")
    assert reply.outcome.verdict == "deviates"


@pytest.mark.parametrize("dtype", get_args(Dtype))
@pytest.mark.parametrize("precision", ["ieee", "tf32"])
def test_failed_check_is_never_exact(dtype: Dtype, precision: str) -> None:
    case = CASE.with_(dtype=dtype, precision=precision)
    assert verdict(case, False, None) == "incorrect"
    assert verdict(case, False, "declared") == "deviates"
    full = dtype == "float64" or (dtype == "float32" and precision == "ieee")
    assert verdict(case, True, None) == ("exact" if full else "equivalent")
