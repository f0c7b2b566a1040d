"""Workloads: one piece of work in numbers, its neuron, its data, and the float64 reference that says what is right."""
