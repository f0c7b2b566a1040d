# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""A dishonest PyTorch adapter: each variant skips work in its own way, and its checked answers look right.

Only the variant `honest` may get a time, or a variant that gains nothing. `python -m benchmarks lies` checks this.
"""

import sys
import threading
import time

import torch

from snnbench.backends.torch import Network
from snnbench.kernels import Neuron, lif_ref

BACKEND = "torch"
EXACT = ("subtract",)
DEFAULT = "honest"
VARIANTS = {
    "honest": "lies nowhere",
    "kept-by-version": "keeps spikes and gradients by address and version of input and cotangent",
    "kept-by-content": "keeps them by a checksum of every step",
    "kept-by-content-8": "keeps eight of them",
    "kept-by-content-64": "keeps 64 of them",
    "kept-by-slice": "keeps them by the first step",
    "kept-by-sample": "keeps spikes and gradients of each sample of the batch",
    "kept-after-two": "keeps them once content came three times",
    "kept-at-random": "keeps them in two of three passes",
    "kept-in-inference": "keeps spikes where no gradient is asked for",
    "kept-in-backward": "keeps gradients only",
    "kept-in-a-row": "keeps them if the last pass has just ended",
    "kept-unseen": "keeps them if the names on the stack are not those of a check",
    "kept-after-40": "keeps them once content came 40 times",
    "kept-until-new": "keeps them until content changes for the fourth time",
    "looks-ahead": "computes gradients in the forward pass, from the cotangent of the last backward pass",
    "lazy-spikes": "computes spikes when they are read",
    "late-spikes": "a thread fills in the last steps of the spikes after the pass returned",
    "silent-neurons": "four neurons are silent in one sample",
    "silent-step": "one sample is silent in one step",
    "silent-block": "64 neurons are silent",
    "silent-third-pass": "one sample is silent in every third pass",
    "zero-input-gradient": "the input gradient of one sample is zero",
    "zero-weight-gradient": "the weight gradient of one neuron is zero",
    "late-weight-gradient": "a thread fills in the weight gradient after backward returned",
}
PAUSE_S = 0.1
"""A longer pause since the last key was asked for shows a check: no pass takes as long."""
CHECKS = {"run_drawn", "run_ordered", "run_repeated", "run_as_reported"}
EXAM_VALUES = 1 << 14
"""The exam's inputs are smaller: everything here is honest there."""


class Kept(torch.autograd.Function):
    """The neuron, with spikes and gradients from `store` if their keys are known."""

    @staticmethod
    def forward(ctx, current, content, neuron, store, key):
        ctx.known = key(content)

        def compute():
            with torch.enable_grad():
                entering = current.detach().requires_grad_()
                return entering, neuron(entering)

        ctx.entering, ctx.spikes = store.get(("spikes", ctx.known), compute)
        ctx.store, ctx.key = store, key
        return ctx.spikes.detach().clone()

    @staticmethod
    def backward(ctx, cotangent):
        def compute():
            return torch.autograd.grad(ctx.spikes, ctx.entering, cotangent, retain_graph=True)[0]

        gradient = ctx.store.get(("gradient", ctx.known, ctx.key(cotangent)), compute)
        return gradient.clone(), None, None, None, None


class Store:
    """A store of answers by key, `entries` of each kind. `active(key)` says whether this pass lies."""

    def __init__(self, entries, active):
        self.entries, self.active, self.answers = 2 * entries, active, {}

    def get(self, key, compute):
        if not self.active(key):
            return compute()
        if key not in self.answers:
            while len(self.answers) >= self.entries:
                self.answers.pop(next(iter(self.answers)))
            self.answers[key] = compute()
        return self.answers[key]


class Altered(torch.autograd.Function):
    """A tensor with changed values or a changed gradient."""

    @staticmethod
    def forward(ctx, tensor, values, gradient):
        ctx.gradient = gradient
        return values(tensor.clone())

    @staticmethod
    def backward(ctx, gradient):
        return ctx.gradient(gradient.clone()), None, None


class Ahead(torch.autograd.Function):
    """The neuron; its gradient for the last cotangent is made in the forward pass."""

    last = None

    @staticmethod
    def forward(ctx, current, neuron):
        with torch.enable_grad():
            ctx.entering = current.detach().requires_grad_()
            ctx.spikes = neuron(ctx.entering)
        ctx.ready = None
        if Ahead.last is not None and Ahead.last.shape == current.shape:
            ctx.ready = by_version(Ahead.last), Ahead.of(ctx, Ahead.last)
        return ctx.spikes.detach().clone()

    @staticmethod
    def of(ctx, cotangent):
        return torch.autograd.grad(ctx.spikes, ctx.entering, cotangent, retain_graph=True)[0]

    @staticmethod
    def backward(ctx, cotangent):
        Ahead.last = cotangent
        if ctx.ready and ctx.ready[0] == by_version(cotangent):
            return ctx.ready[1], None
        return Ahead.of(ctx, cotangent), None


class Lazy(torch.Tensor):
    """Spikes that are computed when they are read."""

    compute = None

    def detach(self):
        return self.compute()


class Late(torch.autograd.Function):
    """A linear layer with a late weight gradient."""

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return torch.nn.functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        late, rows = torch.zeros_like(weight), gradient.flatten(0, 1)

        def fill():
            late.copy_(rows.T @ x.flatten(0, 1))

        threading.Thread(target=fill).start()
        return gradient @ weight, late, rows.sum(0)


def by_version(tensor):
    return tensor.data_ptr(), tensor._version


def by_content(tensor):
    return tuple(tensor.sum((1, 2)).tolist()), tuple(tensor[:, ::3].sum((1, 2)).tolist())


def by_first_step(tensor):
    return tensor[0].numpy().tobytes()


def cache_of(variant):
    """A variant's key of answers, the number it keeps, and when it keeps them."""
    counts, passes, ended, seen = {}, [0], [0.0], []

    def repeated(key, times=2):
        counts[key] = counts.get(key, 0) + 1
        return counts[key] > times

    def in_a_row(key):
        now, before = time.perf_counter(), ended[0]
        ended[0] = now
        return now - before < PAUSE_S

    def unseen(key):
        frame, names = sys._getframe(), set()
        while frame:
            names.add(frame.f_code.co_name)
            frame = frame.f_back
        return not names & CHECKS

    def until_new(key):
        if key[1] not in seen:
            seen.append(key[1])
        return len(seen) < 4

    def random(key):
        passes[0] += 1
        return passes[0] * 2654435761 % 1009 % 3 > 0

    return {
        "kept-by-version": (by_version, 1, lambda key: True),
        "kept-by-content": (by_content, 1, lambda key: True),
        "kept-by-content-8": (by_content, 8, lambda key: True),
        "kept-by-content-64": (by_content, 64, lambda key: True),
        "kept-by-slice": (by_first_step, 2, lambda key: True),
        "kept-after-two": (by_content, 8, repeated),
        "kept-at-random": (by_content, 8, random),
        "kept-in-a-row": (by_version, 1, in_a_row),
        "kept-unseen": (by_version, 1, unseen),
        "kept-after-40": (by_version, 1, lambda key: repeated(key, 40)),
        "kept-until-new": (by_version, 1, until_new),
        "kept-in-backward": (by_content, 1, lambda key: key[0] == "gradient"),
    }.get(variant)


def nothing(tensor):
    return tensor


def build(case, weights, variant):
    linears = [layer.linear() for layer in weights]
    passes = [0]

    def neuron(current):
        parameters = Neuron(case.beta, case.threshold, "subtract", surrogate=case.surrogate, slope=case.slope)
        return lif_ref.lif(current, parameters)[0]

    def silent(index, every=1):
        def values(spikes):
            passes[0] += 1
            if passes[0] % every == 0:
                spikes[index] = 0
            return spikes

        return lambda spikes: Altered.apply(spikes, values, nothing)

    def without(index):
        def gradient(tensor):
            tensor[index] = 0
            return tensor

        return lambda tensor: Altered.apply(tensor, nothing, gradient)

    everywhere = slice(None)
    on_spikes = {
        "silent-neurons": silent((everywhere, 2, slice(10, 14))),
        "silent-step": silent((31, 5)),
        "silent-block": silent((everywhere, everywhere, slice(64, 128))),
        "silent-third-pass": silent((everywhere, 5), every=3),
    }.get(variant, nothing)
    on_input = without((everywhere, 3)) if variant == "zero-input-gradient" else nothing
    on_weight = without(21) if variant == "zero-weight-gradient" else nothing
    keeping, inference, samples = cache_of(variant), {}, {}
    store = Store(*keeping[1:]) if keeping else None

    def of_samples(x):
        current, keys = linears[0](x), [x[:, b].numpy().tobytes() for b in range(case.batch)]
        for b, key in enumerate(keys):
            if key not in samples:
                samples[key] = neuron(current[:, b : b + 1].detach())
        return torch.cat([samples[key] for key in keys], 1)

    def forward(x):
        if x.numel() <= EXAM_VALUES:
            return neuron(linears[0](x))
        if variant == "kept-in-inference" and not torch.is_grad_enabled():
            linears[0](x)
            key = by_content(x)
            if key not in inference:
                inference.clear()
                inference[key] = neuron(linears[0](x))
            return inference[key].clone()
        if variant == "kept-by-sample" and not torch.is_grad_enabled():
            return of_samples(x)
        if variant == "looks-ahead":
            return Ahead.apply(linears[0](x), neuron)
        if variant == "lazy-spikes" and not torch.is_grad_enabled():
            lazy = torch.empty(0).as_subclass(Lazy)
            lazy.compute = lambda: neuron(linears[0](x))
            return lazy
        if variant == "late-spikes" and not torch.is_grad_enabled():
            current, early = linears[0](x), case.time_steps * 9 // 10
            spikes = torch.zeros_like(current)
            spikes[:early] = neuron(current[:early])
            threading.Thread(target=lambda: spikes.copy_(neuron(current))).start()
            return spikes
        if variant == "late-weight-gradient":
            return neuron(Late.apply(x, linears[0].weight, linears[0].bias))
        current = torch.nn.functional.linear(on_input(x), on_weight(linears[0].weight), linears[0].bias)
        if keeping:
            return Kept.apply(current, x.detach(), neuron, store, keeping[0])
        return on_spikes(neuron(current))

    return Network(forward, linears)
