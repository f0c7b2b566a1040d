"""The training step of a network on a batch of data: forward, loss, backward, and the optimiser's step.

The loss is the cross entropy of the outputs' sum over time. Gradients arrive in the parameters' `.grad`, as in a user's
loop. Without an optimiser they add up, batch after batch.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from snnbench.adapter.refusal import Incorrect
from snnbench.backends.torch.session import Session

OPTIMISERS: dict[str, Callable[..., torch.optim.Optimizer]] = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


class Trainer:
    """The training steps of a session's network; `steps` is the optimiser and its learning rate, or None."""

    def __init__(self, session: Session, steps: tuple[str, float] | None) -> None:
        self._session, self._steps = session, steps
        self._initial = [parameter.detach().clone() for parameter in session.parameters]
        self._time_axis = session.layout.order.index("T")
        self._optimiser: torch.optim.Optimizer | None = None
        self.restart()

    @property
    def batch_first(self) -> bool:
        """Whether the library has the batch before time."""
        return self._time_axis == 1

    def restart(self) -> None:
        """Set the parameters to their first values, without gradients, and the optimiser to its first state."""
        self.put(self._session, self._initial)
        for parameter in self._session.parameters:
            parameter.grad = None
        if self._steps:
            self._optimiser = self._new_optimiser(*self._steps)

    def put(self, session: Any, parameters: Sequence[torch.Tensor] | None = None) -> None:
        """Set the parameters of a session of the same network to these, or to the first ones."""
        with torch.no_grad():
            for mine, other in zip(session.parameters, parameters or self._initial, strict=True):
                mine.copy_(other)

    def parameters(self) -> list[torch.Tensor]:
        """Copies of the parameters."""
        return [parameter.detach().clone() for parameter in self._session.parameters]

    def own(self, parameters: Sequence[torch.Tensor]) -> list[NDArray[np.float32]]:
        """Parameters of the network as the harness's own."""
        pairs = zip(parameters, self._session.scales, strict=True)
        return [(each.cpu().double() / scale).float().numpy() for each, scale in pairs]

    @contextmanager
    def apart(self) -> Iterator[list[NDArray[Any]]]:
        """Within it runs one step, whose gradients are in the list afterwards: those of the harness's own parameters.

        They add to earlier gradients only at the end.
        """
        gradients: list[NDArray[Any]] = []
        if self._optimiser:
            hook = self._optimiser.register_step_pre_hook(lambda *_: gradients.extend(self.gradients()))
            yield gradients
            hook.remove()
            return
        before = [parameter.grad for parameter in self._session.parameters]
        for parameter in self._session.parameters:
            parameter.grad = None
        yield gradients
        gradients.extend(self.gradients())
        for parameter, earlier in zip(self._session.parameters, before, strict=True):
            if earlier is not None and parameter.grad is not None:
                parameter.grad = earlier.add_(parameter.grad)

    def _new_optimiser(self, name: str, learning_rate: float) -> torch.optim.Optimizer:
        """The optimiser, by which the harness's own parameters learn the same whatever a library's scale of them.

        A parameter p times s has gradients 1/s as large. Adam's step does not depend on the size of gradients, so it
        has to be s times as large; a plain step has to be s^2 times as large.
        """
        groups: list[dict[str, Any]] = []
        for parameter, scale in zip(self._session.parameters, self._session.scales, strict=True):
            own = (
                {"lr": learning_rate * scale, "eps": 1e-8 / scale}
                if name == "adam"
                else {"lr": learning_rate * scale**2}
            )
            groups.append({"params": [parameter], **own})
        return OPTIMISERS[name](groups)

    def step(
        self, frames: torch.Tensor, labels: torch.Tensor, mark: Callable[[str], None]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The loss and the outputs [B, classes] of a batch; `mark(part)` is called at the end of each part."""
        loss, outputs = self.backward(frames, labels, mark)
        if self._optimiser:
            self._optimiser.step()
            self._optimiser.zero_grad()
            mark("optimiser")
        return loss, outputs

    def backward(
        self, frames: torch.Tensor, labels: torch.Tensor, mark: Callable[[str], None] = lambda part: None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The same without the optimiser. Raises Incorrect if the outputs carry no gradient."""
        outputs = self.outputs(frames)
        loss = torch.nn.functional.cross_entropy(outputs, labels)
        if not loss.requires_grad:
            raise Incorrect("the outputs carry no gradient")
        mark("forward")
        loss.backward()
        mark("backward")
        return loss.detach(), outputs.detach()

    def outputs(self, frames: torch.Tensor) -> torch.Tensor:
        """The outputs' sum over time, [B, classes]."""
        if self._session.network.reset:
            self._session.network.reset()
        summed: torch.Tensor = self._session.forwards(frames).sum(self._time_axis)
        return summed

    def state(self) -> list[torch.Tensor]:
        """Copies of the parameters if they learn, else of the gradients that added up."""
        parameters = self._session.parameters
        held = parameters if self._steps else [parameter.grad for parameter in parameters]
        return [torch.zeros(()) if each is None else each.detach().clone() for each in held]

    def gradients(self) -> list[NDArray[Any]]:
        """The gradients in the parameters' `.grad`, of the harness's own parameters."""
        pairs = zip(self._session.parameters, self._session.scales, strict=True)
        return [np.array(parameter.grad.detach().cpu().float()) * scale for parameter, scale in pairs]

    def placed(self, frames: NDArray[np.float32], labels: NDArray[np.int64]) -> tuple[torch.Tensor, torch.Tensor]:
        """Frames [T, B, channels] in the library's order, and labels [B], on the device, in PyTorch's own memory."""
        ordered = np.ascontiguousarray(frames.swapaxes(0, 1) if self.batch_first else frames)
        device, dtype = self._session.device, self._session.dtype
        return torch.from_numpy(ordered).clone().to(device, dtype), torch.from_numpy(labels).clone().to(device)

    def arriving(self, outputs: torch.Tensor, labels: torch.Tensor) -> NDArray[np.float32]:
        """dL/d(output) of each step, [T, B, classes], of the loss of these outputs and labels."""
        leaf = outputs.detach().requires_grad_()
        torch.nn.functional.cross_entropy(leaf, labels).backward()
        gradient: Any = leaf.grad
        steps = self._session.problem.case.time_steps
        return np.ascontiguousarray(np.broadcast_to(gradient.cpu().float().numpy(), (steps, *gradient.shape)))
