"""One LIF layer over many devices: its time steps, samples or neurons are divided among the ranks of a process group.

Columns (samples times neurons) are independent, so ranks that divide samples or neurons run `lif` on their `part` and
exchange nothing. Time is serial: `temporal_lif` is the pipeline of the temporal-fusion paper (arXiv 2408.00280). Each
rank owns a segment of the steps. In the forward pass the potential after a segment goes to the next rank; in the
backward pass its gradient goes to the rank before. Blocks of columns fill the pipeline: a rank works on a block while
the next rank works on the block before it. analysis/pipelines.py predicts the time.

A process of its own belongs to each rank; the caller starts the processes and initialises torch.distributed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from snnbench.adapter.refusal import Unsupported
from snnbench.cases.blocks import default_blocks
from snnbench.kernels import alone, arguments, buffers, pipeline
from snnbench.kernels.neuron import Neuron, Reset
from snnbench.kernels.parts import pieces
from snnbench.kernels.passes import Layer, Wanted, state_dtype

LINE = 32
"""Blocks of columns begin at multiples of this: a cache line in 16 bits, so that no two blocks write the same line."""


def temporal_lif(
    current: Tensor,
    *,
    beta: float,
    threshold: float,
    reset: Reset = "subtract",
    detach_reset: bool = False,
    surrogate: str = "fast_sigmoid",
    slope: float = 1.0,
    keep: str = "auto",
    kernel: str = "auto",
    group: "dist.ProcessGroup | None" = None,
    blocks: int | None = None,
) -> Tensor:
    """Spikes [T_r, B, N] for the rank's own segment of the currents, `current` [T_r, B, N]; differentiable.

    Rank r of the group owns the r-th segment of time; the segments may differ in length. All other arguments are equal
    on all ranks. The arguments up to `kernel` are those of `linear_lif`, with numbers for `beta` and `threshold`; the
    first potential is 0. The spikes have the bits of one `lif` over all steps. B * N columns are divided in `blocks`
    (`default_blocks` if left out, never more than columns); a message is the state of a block, 4 bytes a column, or 8
    in float64.

    Every rank must run the backward pass, or none: so `current` requires a gradient on all ranks or on no rank, and
    every rank's spikes are part of its loss. Layers run in one order on all ranks. Gradients of a weight before the
    layer are a rank's share; their sum over the ranks is the caller's.

    `group` is a process group, the default one if left out. Messages are point-to-point: gloo for tensors on the CPU,
    NCCL on CUDA, after torch.cuda.set_device. NCCL gives each pair of neighbours a communicator and a stream of its
    own, at the first pass, so do not time that pass. A group that was initialised with `device_id` has one for all
    messages: then a rank's send waits for its next receive, which costs nothing while blocks take equal times.

    Raises ValueError for an invalid argument, for a process outside the group, and without a default group; Unsupported
    and Unavailable as `linear_lif` does, and Unsupported for gloo with a device. If another rank fails, or does not run
    the pass, gloo raises a RuntimeError within the group's timeout; NCCL's watchdog ends the process.
    """
    if isinstance(beta, Tensor) or isinstance(threshold, Tensor):
        raise ValueError("beta and threshold are numbers in temporal_lif: their gradients are not divided among ranks")
    given = float(beta), float(threshold), reset, detach_reset, surrogate, slope, keep, kernel
    neuron, keep, name = arguments.arranged(arguments.kind(current), None, None, None, *given)
    if blocks is not None and blocks < 1:
        raise ValueError(f"{blocks} blocks: expected 1 or more")
    chain = _chain(group, current.device)
    columns = current.shape[1] * current.shape[2]
    count = default_blocks(chain.ranks, columns) if blocks is None else max(1, min(blocks, columns))
    differentiated = torch.is_grad_enabled() and current.requires_grad
    unit = LINE if columns >= LINE * count else 1
    plan = _Pass(chain, pieces(columns, count, unit), neuron, keep if differentiated else "", name)
    spikes: Tensor = _Segment.apply(current, plan)
    return spikes


@dataclass(frozen=True, slots=True)
class _Chain:
    """The ranks of a group in the order of time, and this process's own."""

    group: Any
    rank: int
    ranks: int

    def relay(self, states: Sequence[Tensor], run: Callable[[int, Tensor], Tensor], direction: int) -> None:
        """Run every block in turn: receive its state, run it, send its new state; `direction` is 1 or -1.

        `states` are contiguous; they are filled with messages where there is a rank before this one. `run(number,
        state)` returns the new state, contiguous and not used again.
        """
        source, target = self.rank - direction, self.rank + direction
        receives: list[Any] = []
        sends: list[tuple[Any, Tensor]] = []  # with the tensors, which must live until they are sent
        for number, state in enumerate(states):
            if 0 <= source < self.ranks:
                # The receive of the next block is posted before this block runs, so that it costs no time of its own.
                for ahead in range(len(receives), min(number + 2, len(states))):
                    receives.append(dist.irecv(states[ahead], group=self.group, group_src=source, tag=ahead))
                receives[number].wait()
            result = run(number, state)
            if 0 <= target < self.ranks:
                sends.append((dist.isend(result, group=self.group, group_dst=target, tag=number), result))
        for send, _ in sends:
            send.wait()


def _chain(group: Any, device: torch.device) -> _Chain:
    """This process's position in the group. Raises ValueError, Unsupported."""
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    if rank < 0:
        raise ValueError("this process is not in the group: expected a call on the group's ranks only")
    if device.type != "cpu" and ranks > 1 and dist.get_backend(group) == "gloo":
        raise Unsupported(f"gloo sends no tensors on {device.type}; initialise torch.distributed with nccl")
    return _Chain(group, rank, ranks)


@dataclass(frozen=True, slots=True)
class _Pass:
    """All that determines a pass but for the currents: `parts` are the blocks of the B * N columns."""

    chain: _Chain
    parts: list[slice]
    neuron: Neuron
    keep: str
    kernel_name: str

    @property
    def runs_alone(self) -> bool:
        """Whether the kernel reads and writes columns of wider tensors, so that a block is not copied."""
        return alone.serves(self.kernel_name, False, self.keep)

    def layer(self, inputs: Tensor, state: Tensor) -> Layer:
        """The layer of a block: `inputs` [T, 1, M], `state` [1, M]."""
        return Layer(inputs, None, None, state, self.neuron, self.keep, self.kernel_name)

    def states(self, like: Tensor) -> list[Tensor]:
        """A state of zeros [1, M] for each block."""
        dtype = state_dtype(like.dtype)
        return [like.new_zeros(1, part.stop - part.start, dtype=dtype) for part in self.parts]


class _Segment(torch.autograd.Function):
    """All blocks of a rank's segment in one function, because autograd may run several functions in any order."""

    @staticmethod
    def forward(ctx: Any, current: Tensor, plan: _Pass) -> Tensor:
        """Spikes [T, B, N] for `current` [T, B, N]."""
        output, saved, rows = _Columns(current), [], _rows(current)

        def run(number: int, state: Tensor) -> Tensor:
            block = plan.parts[number]
            inputs = rows[:, :, block]
            if plan.runs_alone:
                _, last, distances = alone.forward(plan.layer(inputs, state), output.part(block))
            else:
                inputs = inputs.contiguous()
                spikes, last, distances = pipeline.forward(plan.layer(inputs, state))
                output.put(spikes, block)
            # Only a pass that computes potentials again needs the currents and the first potential.
            saved.append((distances, inputs, state) if plan.keep == "nothing" else (distances,))
            return last

        plan.chain.relay(plan.states(current), run, 1)
        ctx.save_for_backward(*(tensor for block in saved for tensor in block))
        ctx.plan = plan
        return output.whole().detach()  # autograd would refuse to change a view in place

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        """dL/d current [T, B, N] for dL/d spikes [T, B, N]."""
        plan, tensors = ctx.plan, ctx.saved_tensors
        output, rows = _Columns(cotangent), _rows(cotangent)
        wanted, each = Wanted(True, False, False, False), len(tensors) // len(plan.parts)

        def run(number: int, state: Tensor) -> Tensor:
            block = plan.parts[number]
            given = rows[:, :, block]
            distances, *again = tensors[number * each : (number + 1) * each]
            if plan.runs_alone:
                segment = plan.layer(*again)
                return alone.backward(segment, given, state, distances, wanted, output.part(block)).potential
            given = given.contiguous()
            # If potentials are not computed again, the pass reads the shape and the format of the currents only.
            inputs, start = again or (given, state)
            gradients = pipeline.backward(plan.layer(inputs, start), given, state, distances, wanted)
            output.put(gradients.input, block)
            return gradients.potential

        plan.chain.relay(plan.states(cotangent), run, -1)
        return output.whole(), None


class _Columns:
    """A tensor [T, B, N], filled by blocks of columns; a block of all columns is used as it is."""

    def __init__(self, like: Tensor) -> None:
        self.like = like
        self.rows: Any = None

    def part(self, columns: slice) -> Any:
        """These columns [T, 1, M], to be written in place."""
        if self.rows is None:
            steps, batch, neurons = self.like.shape
            self.rows = buffers.empty((steps, 1, batch * neurons), self.like.dtype, self.like.device)
        return self.rows[:, :, columns]

    def put(self, block: Tensor, columns: slice) -> None:
        """Fill these columns with a block [T, 1, M]."""
        steps, batch, neurons = self.like.shape
        if block.shape[2] == batch * neurons:
            self.rows = block
            return
        if self.rows is None:
            self.rows = block.new_empty(steps, 1, batch * neurons)
        self.rows[:, :, columns] = block

    def whole(self) -> Any:
        """The filled tensor [T, B, N]."""
        return self.rows.view(self.like.shape)


def _rows(tensor: Tensor) -> Tensor:
    """[T, B, N] as a contiguous [T, 1, B * N]."""
    steps, batch, neurons = tensor.shape
    return tensor.contiguous().view(steps, 1, batch * neurons)
