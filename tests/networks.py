"""Cases of whole networks at a small size."""

from snnbench.workloads import network
from tests.fakes import LIF

SHARED = {name: value for name, value in LIF.as_dict().items() if name not in ("workload", "neurons")}
SMALL = network.Case(
    **SHARED | {"time_steps": 6, "batch": 3, "beta": 0.9},
    width=6,
    model="convolutional",
    image="mnist",
    normalisation="batch",
    input_rate=0.3,
)
RESNET = SMALL.with_(model="spiking-resnet18", image="cifar10", width=4)
SEW = RESNET.with_(model="sew-resnet18")
