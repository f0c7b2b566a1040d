"""`snnbench` on a simulated card: the real command, whose machine and workers are made up.

    python -m benchmarks.simulated_run HOME run ...

HOME is the folder of snnbench, with the parts of a cell; what the command prints goes to its file `log`.
"""

import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from snnbench import cli
from snnbench.machine import cpus, description, gpus
from snnbench.machine.gpus import Card
from snnbench.run import process
from snnbench.units import GIB

CPUS = 16
MEMORY_BYTES = 128 * GIB
CARD = Card("GPU-simulated", None, "simulated card", 141 * 10**9)
WORKER = Path(__file__).with_name("simulated_worker.py")
facts_here = description.facts


def facts() -> dict[str, Any]:
    """The facts of this machine, with the memory of the simulated one and a model that cannot be taken for another."""
    return facts_here() | {
        "memory": {"total_bytes": MEMORY_BYTES, "limit_bytes": None},
        "model": f"{CARD.model}, {CPUS} CPUs",
    }


def main() -> int:
    """Run the command, with the functions replaced that ask for the machine and that start a worker."""
    folder = Path(sys.argv.pop(1))
    os.environ |= {"SNNBENCH_HOME": str(folder), "SNNBENCH_SLOTS": str(folder)}  # another simulation may go on
    replaced: list[tuple[Any, str, Any]] = [
        (gpus, "visible", lambda: [CARD]),
        (gpus, "has_cuda", lambda: True),
        (os, "sched_getaffinity", lambda _: set(range(CPUS))),
        (cpus, "quota_cpus", lambda _: None),
        (description, "facts", facts),
        (process, "command", lambda python, adapter: [str(python), "-P", str(WORKER), str(adapter)]),
    ]
    for module, name, function in replaced:
        setattr(module, name, function)
    with (folder / "log").open("a") as log, redirect_stdout(log), redirect_stderr(log):
        return cli.main()


if __name__ == "__main__":
    sys.exit(main())
