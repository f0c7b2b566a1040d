"""A small library of spiking neurons in a git repository, with pull requests as branches, and its adapter."""

import subprocess
from pathlib import Path

PROJECT = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "tinylif"
version = "1.0"

[tool.setuptools]
py-modules = ["tinylif"]
"""
LIBRARY = '''\
"""Leaky integrate-and-fire neurons that subtract their threshold."""

import time

import torch


class Fire(torch.autograd.Function):
    """A step, whose derivative is that of a fast sigmoid."""

    @staticmethod
    def forward(ctx, distance):
        ctx.save_for_backward(distance)
        return (distance >= 0).to(distance.dtype)

    @staticmethod
    def backward(ctx, gradient):
        (distance,) = ctx.saved_tensors
        return gradient / (1 + distance.abs()) ** 2


def lif(currents, beta, threshold):
    """Spikes of the same shape as the currents [T, B, N]."""
    started = time.perf_counter()
    potential, spikes = 0.0, []
    for current in currents.unbind(0):
        potential = beta * potential + current
        spikes.append(Fire.apply(potential - threshold))
        potential = potential - threshold * spikes[-1]
    ended = time.perf_counter()
    while time.perf_counter() < ended + SLOWER * (ended - started):
        pass
    return torch.stack(spikes)


SLOWER = 0.0
"""The time that a call waits, as a share of its own."""
'''
ADAPTER = '''\
# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.13.0", "numpy==2.4.6", "tinylif==1.0"]
#
# [tool.snnbench]
# api = 2
# ///
"""tinylif: a library of one function."""

from tinylif import lif

from snnbench.adapter import require
from snnbench.backends.torch import Neuron

BACKEND = "torch"
EXACT = ("subtract",)
RESETS = "tinylif subtracts, with the gradient attached"


def neuron(case, variant):
    require(case, "tinylif has this surrogate only", surrogate="fast_sigmoid", slope=1.0)
    return Neuron(lambda neurons: lambda currents: lif(currents, case.beta, case.threshold))
'''
BRANCHES = {
    "same": ("Leaky integrate-and-fire neurons", "Neurons"),
    "slower": ("SLOWER = 0.0", "SLOWER = 0.8"),
}
"""The one change of each pull request. A forward pass takes about half of a training pass, so the second one makes a
training pass at least 30 % slower."""


class Repository:
    """The library's repository in `folder`: the tag `base`, and a branch for each pull request."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "benchmarks").mkdir(parents=True)
        (folder / "pyproject.toml").write_text(PROJECT)
        (folder / "tinylif.py").write_text(LIBRARY)
        (folder / "benchmarks" / "tinylif.py").write_text(ADAPTER)
        self._git("init", "--quiet")
        self._commit("base")
        self._git("tag", "base")
        for name, change in BRANCHES.items():
            self._git("checkout", "--quiet", "-b", name, "base")
            (folder / "tinylif.py").write_text(LIBRARY.replace(*change, 1))
            self._commit(name)

    def switch(self, branch: str) -> None:
        """Check out a pull request."""
        self._git("checkout", "--quiet", branch)

    def _commit(self, message: str) -> None:
        self._git("add", "pyproject.toml", "tinylif.py", "benchmarks")
        self._git("commit", "--quiet", "-m", message)

    def _git(self, *arguments: str) -> None:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", "-C", self.folder, *identity, *arguments], check=True, capture_output=True)
