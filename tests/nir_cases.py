"""A case of the workload `nir`; its graph is to be given."""

from snnbench.workloads import nir
from tests.fakes import LIF, profile

SHARED = {name: value for name, value in LIF.as_dict().items() if name in nir.Case.names() and name != "workload"}
NIR = nir.Case(**SHARED | profile("zero") | {"batch": 3}, graph="", dt=1e-3, input_rate=0.2, amplitude=1.0)
