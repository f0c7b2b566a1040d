"""The machine: facts that speed depends on, usable CPUs and GPUs, and conditions that would spoil a measurement."""
