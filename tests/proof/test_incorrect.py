"""Tests of fakes that do the wrong work: each ends `incorrect`, with a reason and without a time."""

import re

import pytest

from snnbench.worker.messages import Measure, Reply
from tests.fakes import CASE, CORRECT, EXAM_VALUES, altered, cast, document, overridden, profile, quantities
from tests.faults import CACHED, CARRIED, MEASURES, STALE, UNROLLED, Fault, gradient_fault, reply_to, spikes_fault

LARGE = f"x.size > {EXAM_VALUES}"

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
        EXAM_SPIKES + "0",
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
        r"exam: \d+ of 1480 spikes differ",
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


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, Measure], Reply]:
    """Every fault's replies."""
    folder = tmp_path_factory.mktemp("faults")
    return {
        (name, measure): reply_to(folder, FAULTS[name].source, measure, **FAULTS[name].case)
        for name, measure in REQUESTS
    }


@pytest.mark.parametrize(("fault", "measure"), REQUESTS)
def test_faulty_fake_is_incorrect_and_has_no_time(
    replies: dict[tuple[str, Measure], Reply], fault: str, measure: Measure
) -> None:
    reply = replies[fault, measure]
    assert (reply.outcome.status, reply.outcome.kind) == ("failed", "incorrect"), reply.outcome
    assert "\n" not in reply.outcome.reason
    causes = [check["cause"] for check in reply.checks.values() if "cause" in check]
    reason = reply.outcome.reason.replace(f"{causes[0]}; ", "", 1) if causes else reply.outcome.reason
    assert re.match(FAULTS[fault].complaint, reason), reply.outcome.reason
    assert reply.phases == {} and reply.memory == {}
    assert quantities(document(reply)) == []
    assert reply.outcome.verdict is None
    assert not all(check["correct"] for check in reply.checks.values())
