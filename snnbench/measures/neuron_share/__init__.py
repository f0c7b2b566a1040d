"""How much of a pass is the neuron: the pass beside the same pass with the identity in place of each neuron."""
