"""One piece of work in numbers: its case, its problem, its neuron and the float64 reference."""
