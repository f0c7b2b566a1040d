"""Torch's other ways of running a function: its compiler, and automatic mixed precision."""

import sys
from collections.abc import Callable
from typing import Any

import torch

Forward = Callable[..., Any]

DYNAMO = "torch._dynamo"
MOST_COMPILATIONS = 256
"""Compilations of one function: of each site's shape in a network, with and without gradients. By default torch allows
8."""
_asked: list[int] = []


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` through torch.compile, for the shapes of its calls; a module is compiled in place.

    After too many recompilations torch would silently continue without its compiler; here it raises.
    """
    import torch._dynamo

    _asked.append(1)
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    torch._dynamo.config.recompile_limit = MOST_COMPILATIONS
    if isinstance(function, torch.nn.Module):  # others hold this module, so it must stay the same object
        function.compile(dynamic=False)
        result: Callable[..., Any] = function
    else:
        result = torch.compile(function, dynamic=False)
    return result


def compilations() -> int:
    """The number of calls of `compiled` in this process."""
    return len(_asked)


def graphs() -> int:
    """The number of graphs that the compiler has made in this process."""
    return int(_counters("stats").get("unique_graphs", 0))


def graph_breaks() -> int:
    """The number of graph breaks of the compiler in this process."""
    return sum(_counters("graph_break").values())


def _counters(name: str) -> dict[str, int]:
    """The compiler's own counts; empty if it is not imported, because importing it costs a second and 100 MB."""
    if DYNAMO not in sys.modules:
        return {}
    counters: dict[str, dict[str, int]] = torch._dynamo.utils.counters
    return counters[name]


def mixed(forward: Forward, device: str, dtype: torch.dtype) -> Forward:
    """`forward` under autocast; the backward pass runs outside of it, as torch's documentation requires."""

    def run(*inputs: Any) -> Any:
        with torch.autocast(device, dtype):
            return forward(*inputs)

    return run
