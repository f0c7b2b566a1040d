# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6"]
# ///
"""A dishonest PyTorch adapter: each variant does all the work, with more CPUs than its case gives it.

Only the variant `honest` may get a time. `python -m benchmarks lies` checks this.
"""

import os

import torch
from torch import multiprocessing

from snnbench.backends.torch import Network
from snnbench.kernels import Neuron, lif_ref

BACKEND = "torch"
EXACT = ("subtract",)
DEFAULT = "honest"
VARIANTS = {
    "honest": "uses the CPUs of its case",
    "more-threads": "undoes the limits of CPUs and of threads",
    "more-threads-in-passes": "undoes them during each pass only",
    "process": "has a process of its own multiply half of the input",
}
EXAM_NEURONS = 37
"""The exam's networks are smaller than any case: everything here is honest there."""


def take_all():
    """Let all threads of this process run on all CPUs."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), range(os.cpu_count()))
    torch.set_num_threads(os.cpu_count())


def serve(pipe, x, weight, bias, answer):
    """Multiply the second half of the batch, on any CPU, each time the pipe says so."""
    take_all()
    while pipe.recv():
        half = x.shape[1] // 2
        answer.copy_(torch.nn.functional.linear(x[:, half:], weight, bias))
        pipe.send(True)


def build(case, weights, variant):
    linear = weights[0].linear()
    parameters = Neuron(case.beta, case.threshold, "subtract", surrogate=case.surrogate, slope=case.slope)
    lies = case.neurons > EXAM_NEURONS
    pinned = os.sched_getaffinity(0)
    if lies and variant == "more-threads":
        take_all()
    helper = []

    def halves(x):
        """The currents; a process of its own makes one half meanwhile."""
        half = x.shape[1] // 2
        if not helper:
            there, here = multiprocessing.Pipe()
            shared = torch.empty_like(x).share_memory_()
            answer = torch.empty(x.shape[0], x.shape[1] - half, case.neurons).share_memory_()
            content = [tensor.detach().clone().share_memory_() for tensor in (linear.weight, linear.bias)]
            process = multiprocessing.get_context("fork").Process(target=serve, args=(there, shared, *content, answer))
            process.daemon = True
            process.start()
            helper.extend((here, shared, answer))
        here, shared, answer = helper
        shared.copy_(x)
        here.send(True)
        mine = linear(x[:, :half])
        here.recv()
        return torch.cat([mine, answer], 1)

    def forward(x):
        if lies and variant == "more-threads-in-passes":
            take_all()
        current = halves(x) if lies and variant == "process" and not torch.is_grad_enabled() else linear(x)
        spikes = lif_ref.lif(current, parameters)[0]
        if lies and variant == "more-threads-in-passes":
            for thread in os.listdir("/proc/self/task"):
                os.sched_setaffinity(int(thread), pinned)
        return spikes

    return Network(forward, [linear])
