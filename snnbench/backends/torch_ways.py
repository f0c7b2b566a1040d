"""What torch has for running a function in another way: its compiler, and automatic mixed precision."""

import sys
from collections.abc import Callable
from typing import Any

import torch

Forward = Callable[[torch.Tensor], torch.Tensor]

DYNAMO = "torch._dynamo"


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` through torch.compile, for the shapes that it is called with; a module is compiled in place.

    After too many recompilations torch would go on without its compiler, and without a word: here it raises.
    """
    import torch._dynamo

    torch._dynamo.config.fail_on_recompile_limit_hit = True
    if isinstance(function, torch.nn.Module):  # which others look at, and would find another one in its place
        function.compile(dynamic=False)
        result: Callable[..., Any] = function
    else:
        result = torch.compile(function, dynamic=False)
    return result


def graph_breaks() -> int:
    """How often, in this process, the compiler left a function to Python in the middle of it."""
    if DYNAMO not in sys.modules:
        return 0
    counters: dict[str, dict[str, int]] = torch._dynamo.utils.counters
    return sum(counters["graph_break"].values())


def mixed(forward: Forward, device: str, dtype: torch.dtype) -> Forward:
    """`forward` under autocast; its backward pass runs outside of it, as torch's documentation asks for."""

    def run(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device, dtype):
            return forward(x)

    return run
