"""What torch has for running a function in another way: its compiler, and automatic mixed precision."""

import sys
from collections.abc import Callable
from typing import Any

import torch

Forward = Callable[[torch.Tensor], torch.Tensor]

DYNAMO = "torch._dynamo"
_asked: list[int] = []


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` through torch.compile, for the shapes that it is called with; a module is compiled in place.

    After too many recompilations torch would go on without its compiler, and without a word: here it raises.
    """
    import torch._dynamo

    _asked.append(1)
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    if isinstance(function, torch.nn.Module):  # which others look at, and would find another one in its place
        function.compile(dynamic=False)
        result: Callable[..., Any] = function
    else:
        result = torch.compile(function, dynamic=False)
    return result


def compilations() -> int:
    """How often, in this process, something was given to the compiler."""
    return len(_asked)


def graphs() -> int:
    """How many graphs the compiler has made in this process."""
    return int(_counters("stats").get("unique_graphs", 0))


def graph_breaks() -> int:
    """How often, in this process, the compiler left a function to Python in the middle of it."""
    return sum(_counters("graph_break").values())


def _counters(name: str) -> dict[str, int]:
    """The compiler's own counts; it costs a second and 100 MB to import, and is asked where somebody else did."""
    if DYNAMO not in sys.modules:
        return {}
    counters: dict[str, dict[str, int]] = torch._dynamo.utils.counters
    return counters[name]


def mixed(forward: Forward, device: str, dtype: torch.dtype) -> Forward:
    """`forward` under autocast; its backward pass runs outside of it, as torch's documentation asks for."""

    def run(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device, dtype):
            return forward(x)

    return run
