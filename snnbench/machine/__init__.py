"""The machine: what speed depends on here, which CPUs and GPUs may be used, and what would spoil a measurement."""
