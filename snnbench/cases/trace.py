"""A trace: what the neurons of a layer did in a forward pass."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Trace:
    """Charged potentials u, fired spikes s and the potentials before charging (beta * v[t-1]), all [T, ...]."""

    potential: Array
    spikes: Array
    decayed: Array
