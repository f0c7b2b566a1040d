"""Ways of running a library's network that a harness can add without the library's help; backends know how.

An adapter names those that its users could use, and each becomes a variant: its default variant, run that way.
"""

WAYS = {
    "compile": "the whole network through torch.compile, the loop over time unrolled",
    "cuda-graph": "the whole pass captured in a CUDA graph, and replayed",
    "amp": "weights in float32, products under autocast in the case's 16-bit format",
}
"""What each is; all are ways of PyTorch."""
