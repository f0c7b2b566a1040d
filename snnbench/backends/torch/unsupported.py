"""Networks that PyTorch does not run in a variant's way."""

from snnbench.adapter.declaration import Variant
from snnbench.adapter.refusal import Unsupported
from snnbench.backends import operations
from snnbench.cases.problem import Graph, Problem

FORMATS = ("float32", "float64", "bfloat16", "float16")
"""The number formats of networks of operations."""


def refuse(problem: Problem, variant: Variant) -> None:
    """Refuse a network that PyTorch does not run in the variant's way. Raises Unsupported."""
    if problem.case.chunk_steps and variant.way == "cuda-graph":
        raise Unsupported("a sequence in chunks is not captured in a CUDA graph, so far")
    if not isinstance(problem, Graph):
        return
    operations.check(problem, variant, FORMATS)
    if variant.way and problem.case.is_fed:
        raise Unsupported(f"epochs do not run with the way {variant.way}, so far")
    if variant.way == "compile":
        operations.require_frozen(problem, "torch.compile")
