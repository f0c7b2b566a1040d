"""One process of a group of four: it runs every case of test_ranks.py that its rank is in, and writes the results.

    python -m tests.frameworks.kernels.rank_process FOLDER RANK

Each process compares its own part with `lif` over the whole problem. The last two groups have a rank that fails.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from snnbench.kernels import lif
from snnbench.kernels.parts import part
from snnbench.kernels.ranks import temporal_lif

RANKS = 4
LONGEST_S = 60
"""The life of a process, so that none outlives a test that was killed."""
IDLE, LOST = "idle", "lost"
"""The cases with a rank that does not run its backward pass, and with one that exits; both are rank 1."""
TIMEOUTS_S = {IDLE: 1.0, LOST: 8.0}


@dataclass(frozen=True, slots=True)
class Case:
    """One layer on these members of the group: its kind, shape [T, B, N], and way of splitting."""

    members: tuple[int, ...] = (0, 1, 2, 3)
    split: str = "temporal"
    reset: str = "subtract"
    detach: bool = False
    shape: tuple[int, int, int] = (22, 3, 7)
    blocks: int | None = None
    dtype: torch.dtype = torch.float32
    keep: str = "potential"
    kernel: str = "torch"

    @property
    def kind(self) -> dict[str, Any]:
        """The keyword arguments of `lif`."""
        return {
            **{"beta": 0.9, "threshold": 0.8, "reset": self.reset, "detach_reset": self.detach},
            **{"slope": 2.0, "keep": self.keep, "kernel": self.kernel},
        }


PROFILES = [("subtract", False), ("subtract", True), ("zero", False), ("zero", True)]
CASES = {
    **{f"{count} ranks": Case(tuple(range(count))) for count in (1, 2, 3, 4)},
    **{
        f"{reset} {'detached' if detach else 'attached'} {kernel}": Case(reset=reset, detach=detach, kernel=kernel)
        for reset, detach in PROFILES
        for kernel in ("torch", "cpu")
    },
    **{f"{blocks} blocks": Case(blocks=blocks) for blocks in (1, 3, 100)},
    **{
        f"{blocks} blocks of {count} ranks": Case(tuple(range(count)), blocks=blocks)
        for blocks in (1, 3, 100)
        for count in (1, 2)
    },
    "bfloat16": Case(dtype=torch.bfloat16, kernel="cpu"),
    "float16": Case(dtype=torch.float16, reset="zero", kernel="cpu"),
    "float64": Case(dtype=torch.float64),
    "nothing kept": Case(keep="nothing", blocks=2),
    "bfloat16 kept": Case(keep="bfloat16", blocks=2),
    "a step each": Case(shape=(4, 2, 3)),
    "ranks 1 and 3": Case((1, 3)),
    "batch": Case(split="batch", shape=(20, 6, 5)),
    "neurons": Case(split="neurons", shape=(20, 2, 7), reset="zero"),
    "batch of 3": Case((0, 1, 2), split="batch", shape=(20, 4, 5), kernel="cpu"),
}


def problem(shape: tuple[int, int, int], dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Currents and a dense random cotangent [T, B, N], the same in every process."""
    random = torch.Generator().manual_seed(1)
    current = 0.7 * torch.randn(shape, generator=random) + 0.2
    return current.to(dtype), torch.randn(shape, generator=random).to(dtype)


def trained(layer: Callable[[torch.Tensor], torch.Tensor], current: torch.Tensor, cotangent: torch.Tensor) -> Any:
    """Spikes and the gradient of the current."""
    leaf = current.clone().requires_grad_()
    spikes = layer(leaf)
    return spikes.detach(), torch.autograd.grad(spikes, leaf, cotangent)[0]


def compared(actual: Any, expected: Any) -> dict[str, float]:
    """Whether the spikes are equal, and the relative norm of the gradients' difference."""
    (spikes, gradient), (right, right_gradient) = actual, expected
    error = (gradient.double() - right_gradient.double()).norm() / right_gradient.double().norm()
    same = spikes.dtype == right.dtype and gradient.dtype == right_gradient.dtype and torch.equal(spikes, right)
    return {"equal": float(same), "error": float(error)}


def run(case: Case, group: Any) -> dict[str, float]:
    """This rank's part of a case, compared with the same part of a whole pass; `rate` is that of all spikes."""
    current, cotangent = problem(case.shape, case.dtype)
    own = part(case.split, case.shape, dist.get_rank(group), len(case.members))  # type: ignore[arg-type]
    right = trained(lambda leaf: lif(leaf, **case.kind), current, cotangent)

    def layer(leaf: torch.Tensor) -> torch.Tensor:
        if case.split != "temporal":
            return lif(leaf, **case.kind)
        return temporal_lif(leaf, group=group, blocks=case.blocks, **case.kind)

    result = compared(trained(layer, current[own], cotangent[own]), [tensor[own] for tensor in right])
    return {**result, "rate": float(right[0].float().mean())}


def stacked() -> dict[str, dict[str, float]]:
    """Two layers with a product between them, three passes in a row; the last without gradients."""
    shape, kind = (18, 2, 6), Case().kind
    current, cotangent = problem(shape, torch.float32)
    weight = torch.eye(6) + 0.3 * torch.randn(6, 6, generator=torch.Generator().manual_seed(2))
    own = part("temporal", shape, dist.get_rank(), RANKS)
    right = trained(lambda leaf: lif(lif(leaf, **kind) @ weight, **kind), current, cotangent)
    expected = [tensor[own] for tensor in right]

    def layers(leaf: torch.Tensor) -> torch.Tensor:
        return temporal_lif(temporal_lif(leaf, **kind) @ weight, blocks=3, **kind)

    passes = {f"pass {number}": compared(trained(layers, current[own], cotangent[own]), expected) for number in (1, 2)}
    with torch.no_grad():
        passes["inference"] = compared((layers(current[own]), expected[1]), expected)
    leaf = current[own].clone().requires_grad_()
    spikes = temporal_lif(leaf, **kind)
    twice = [torch.autograd.grad(spikes, leaf, cotangent[own], retain_graph=True)[0] for _ in range(2)]
    passes["retained"] = compared((spikes, twice[1]), (spikes, twice[0]))
    right = trained(lambda leaf: lif(leaf, **kind), current, torch.ones(()).expand(shape))
    strided = current.transpose(1, 2).contiguous().transpose(1, 2)[own]
    actual = trained(lambda leaf: temporal_lif(leaf, blocks=4, **kind), strided, torch.ones(()).expand(strided.shape))
    changed = trained(
        lambda leaf: temporal_lif(leaf, blocks=4, **kind).mul_(1.0), current[own], torch.ones(()).expand(strided.shape)
    )
    passes["changed in place"] = compared(changed, [tensor[own] for tensor in right])
    passes["strides"] = compared(actual, [tensor[own] for tensor in right])
    return passes


def refusal(call: Callable[[], Any]) -> str:
    """The error of a call, by type and message."""
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def refusals(others: Any) -> dict[str, str]:
    """Calls that are refused before any message."""
    current, kind = torch.ones(5, 2, 3), {"beta": 0.9, "threshold": 1.0}
    return {
        "blocks": refusal(lambda: temporal_lif(current, blocks=0, **kind)),
        "learned": refusal(lambda: temporal_lif(current, beta=torch.tensor(0.9), threshold=1.0)),  # type: ignore[arg-type]
        "keep": refusal(lambda: temporal_lif(current, keep="all", **kind)),
        "shape": refusal(lambda: temporal_lif(current[0], **kind)),
        "device": refusal(lambda: temporal_lif(current.to("meta"), **kind)),
        "outside": refusal(lambda: temporal_lif(current, group=others, **kind)),
    }


def failing(name: str, group: Any) -> dict[str, Any]:
    """The error of a pass in which rank 1 does not take part, and the seconds until it is raised."""
    current, cotangent = problem((8, 2, 3), torch.float32)
    own = part("temporal", (8, 2, 3), dist.get_rank(group), dist.get_world_size(group))
    leaf, start = current[own].clone().requires_grad_(), time.monotonic()

    def both() -> None:
        spikes = temporal_lif(leaf, group=group, beta=0.9, threshold=1.0, kernel="torch")
        if not (name == IDLE and dist.get_rank(group) == 1):
            spikes.backward(cotangent[own])

    return {"error": refusal(both), "seconds": time.monotonic() - start}


def main(folder: Path, rank: int) -> None:
    """Run all cases as this rank, and write the results to `folder`."""
    signal.alarm(LONGEST_S)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = f"file://{folder / 'store'}"
    dist.init_process_group("gloo", store, rank=rank, world_size=RANKS, timeout=timedelta(seconds=30))
    members = sorted({case.members for case in CASES.values()} | {(number,) for number in range(RANKS)})
    groups = {ranks: dist.new_group(list(ranks)) for ranks in members}
    results: dict[str, Any] = {}
    for name, case in CASES.items():
        if rank in case.members:
            results[name] = run(case, groups[case.members])
    results |= stacked()
    results |= refusals(groups[((rank + 1) % RANKS,)])
    for name, seconds in TIMEOUTS_S.items():
        group = dist.new_group(list(range(RANKS)), timeout=timedelta(seconds=seconds))
        dist.barrier()
        if name == LOST and rank == 1:
            break
        results[name] = failing(name, group)
    (folder / f"{rank}.json").write_text(json.dumps(results))
    os._exit(0)  # destroying a group with a lost rank may wait for that rank


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
