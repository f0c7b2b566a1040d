"""Workloads: one piece of work in numbers, its neuron, its data, and its float64 reference."""
