"""Adapters of real libraries with one setting that a user forgets or mistakes: each computes another neuron."""

from dataclasses import dataclass
from pathlib import Path

from snnbench.adapter.declaration import Adapter


@dataclass(frozen=True)
class Edit:
    """A change of a library's adapter, and a profile in which a variant shows it."""

    library: str
    variant: str
    old: str
    new: str
    profile: str = "subtract"


EDITS = {
    "norse-without-lift": Edit(
        "norse", "box", "first_output(norse.Lift(box_cell(case)))", "first_output(box_cell(case))"
    ),
    "norse-default-synapse": Edit(
        "norse",
        "lif",
        "tau_syn_inv=torch.tensor((1 - case.alpha) / DT",
        "tau_syn_inv=torch.tensor(200.0",
        "zero-attached",
    ),
    "sinabs-normalised-input": Edit("sinabs", "default", 'tau_mem, "norm_input": False', 'tau_mem, "norm_input": True'),
    "sinabs-several-spikes": Edit(
        "sinabs", "default", "spike_fn=activation.SingleSpike", "spike_fn=activation.MultiSpike"
    ),
    "sinabs-kept-state": Edit("sinabs", "default", "reset=Neurons.reset_states", "reset=Neurons.zero_grad"),
    "snntorch-default-reset": Edit(
        "snntorch", "unbind", 'reset_mechanism="zero"', 'reset_mechanism="subtract"', "zero"
    ),
    "spikingjelly-divided-input": Edit("spikingjelly", "auto", '"decay_input": False', '"decay_input": True'),
    "spikingjelly-default-surrogate": Edit(
        "spikingjelly", "auto", '"fast_sigmoid": SuperSpike', '"fast_sigmoid": Sigmoid'
    ),
    "rockpool-several-spikes": Edit(
        "rockpool",
        "torch",
        "(potential >= threshold).to(potential.dtype)",
        "torch.floor(potential / threshold).clamp(min=0)",
    ),
    "spyx-over-the-batch": Edit(
        "spyx",
        "run",
        "spyx.nn.run(nnx.merge(graph, params, fixed), x)[0]",
        "spyx.nn.run(nnx.merge(graph, params, fixed), x, batch_major=True)[0]",
    ),
    "spyx-subtracts-after-the-decay": Edit(
        "spyx", "run", "spyx.nn.CuBaLIF(shape, alpha=case.alpha, ", "spyx.nn.LIF(shape, "
    ),
}
"""Name of the adapter -> its edit. Two are of the chart published by Open Neuromorphic: the single step of Norse, and
Spyx over the batch."""


def written(folder: Path, adapters: dict[str, Adapter]) -> dict[Path, Edit]:
    """The edited adapters, as files in `folder`."""
    files = {}
    for name, edit in EDITS.items():
        text = adapters[edit.library].path.read_text(encoding="utf-8")
        assert text.count(edit.old) == 1, edit.old
        path = folder / f"{name}.py"
        path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
        files[path] = edit
    return files
