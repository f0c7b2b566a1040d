"""NeuroBench's own metrics of a network, printed as JSON: a script for the Python of its environment.

python neurobench_run.py ARRAYS.npz < NETWORK.json

NETWORK has `operations` (kind, name, of and sizes), and `beta`, `threshold` and `reset` of snnTorch's Leaky, which
stands at each site of neurons. ARRAYS has the input [T, B, ...] and the parameters "NAME:NUMBER", float32.
"""

import json
import sys

import numpy as np
import snntorch
import torch
from neurobench.benchmarks import Benchmark
from neurobench.metrics.static import ConnectionSparsity, Footprint, ParameterCount
from neurobench.metrics.workload import (
    ActivationSparsity,
    ActivationSparsityByLayer,
    MembraneUpdates,
    NeuronOperations,
    SynapticOperations,
)
from neurobench.models import SNNTorchModel
from torch.utils.data import DataLoader, TensorDataset


class Network(torch.nn.Module):
    """One step of the network; the spikes of all steps are remembered by site."""

    def __init__(self, document, arrays):
        super().__init__()
        self.operations = document["operations"]
        self.spikes = {}
        for operation in self.operations:
            module = make(operation, document)
            for parameter, number in zip(module.parameters(), range(2), strict=False):
                parameter.data = torch.from_numpy(arrays[f"{operation['name']}:{number}"])
            self.add_module(operation["name"], module)

    def forward(self, image):
        values = {"input": image}
        for operation in self.operations:
            name, entering = operation["name"], [values[each] for each in operation["of"]]
            values[name] = self.get_submodule(name)(*entering)
            if operation["kind"] == "Neurons":
                self.spikes.setdefault(name, []).append(values[name].numpy().copy())
        return values[self.operations[-1]["name"]], None


class Mean(torch.nn.Module):
    def forward(self, image):
        return image.mean((2, 3))


def make(operation, document):
    """The module of an operation."""
    match operation["kind"]:
        case "Linear":
            return torch.nn.Linear(operation["inputs"], operation["shape"][0])
        case "Convolution":
            sizes = operation["inputs"], operation["shape"][0], operation["size"]
            return torch.nn.Conv2d(*sizes, stride=operation["stride"], padding=operation["padding"], bias=False)
        case "Normalisation":
            module = torch.nn.BatchNorm2d(operation["shape"][0], eps=operation["epsilon"])
            module.running_var.fill_(operation["variance"])
            return module
        case "MaximumPool":
            return torch.nn.MaxPool2d(operation["size"], operation["stride"], operation["padding"])
        case "Average":
            return Mean()
        case "Neurons":
            names = {"beta": document["beta"], "threshold": document["threshold"]}
            return snntorch.Leaky(
                **names, init_hidden=True, reset_mechanism=document["reset"], reset_delay=document["delayed"]
            )
    raise ValueError(operation["kind"])


document, arrays = json.load(sys.stdin), dict(np.load(sys.argv[1]))
network = Network(document, arrays)
buffers = sum(buffer.numel() * buffer.element_size() for buffer in network.buffers())
data = torch.from_numpy(arrays["input"]).transpose(0, 1)
loader = DataLoader(TensorDataset(data, torch.zeros(len(data))), batch_size=len(data))
static = [Footprint, ParameterCount, ConnectionSparsity]
workload = [ActivationSparsity, ActivationSparsityByLayer, SynapticOperations, MembraneUpdates, NeuronOperations]
with torch.no_grad():
    results = Benchmark(SNNTorchModel(network), loader, [], [], [static, workload]).run(quiet=True)
spikes = {name: np.stack(steps).reshape(-1).astype(int).tolist() for name, steps in network.spikes.items()}
print(json.dumps({"results": results, "buffers": buffers, "spikes": spikes}))
