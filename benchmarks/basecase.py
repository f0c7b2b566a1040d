"""The case from which every benchmark makes its own, by `CASE.with_(...)`, and a case as a part of a config."""

from typing import Any

from snnbench.workloads.linear_lif import Case

CASE = Case(
    neurons=256,
    batch=16,
    time_steps=100,
    layers=1,
    device="cpu",
    dtype="float32",
    precision="ieee",
    threads=1,
    beta=0.9,
    threshold=1.0,
    reset="subtract",
    detach_reset=False,
    surrogate="fast_sigmoid",
    slope=1.0,
    input_rate=0.1,
    input_gradient=True,
    seed=1,
)


def axes(case: Case) -> dict[str, Any]:
    """The case as the table [case] of a config."""
    fields = {
        name: value for name, value in case.as_dict().items() if name not in ("workload", "reset", "detach_reset")
    }
    return {"profile": case.profile, **fields}
