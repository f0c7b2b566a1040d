"""The nodes of a Slurm job, and the ranks of a case that run on each of them."""

import os
import shutil
import subprocess
from collections.abc import Mapping

NODES = "SLURM_JOB_NUM_NODES"
OWN_NODE = "SLURMD_NODENAME"
LISTING_S = 30.0


def count(environ: Mapping[str, str] = os.environ) -> int:
    """The nodes of this process's Slurm job; 1 outside of a job, and without srun."""
    if OWN_NODE not in environ or shutil.which("srun", path=environ.get("PATH")) is None:
        return 1
    return max(1, int(environ.get(NODES, "1")))


def names(environ: Mapping[str, str] = os.environ) -> list[str]:
    """The names of the job's nodes, this process's own first. Raises OSError if Slurm does not list them."""
    command = ["scontrol", "show", "hostnames", environ["SLURM_JOB_NODELIST"]]
    try:
        listing = subprocess.run(command, capture_output=True, text=True, timeout=LISTING_S, check=True).stdout
    except subprocess.SubprocessError as error:
        raise OSError(f"scontrol: {error}") from error
    return [environ[OWN_NODE], *(name for name in listing.split() if name != environ[OWN_NODE])]


def node_of(rank: int, ranks: int, nodes: int) -> int:
    """The number of a rank's node, 0 for the own one; neighbours share a node."""
    return rank * min(nodes, ranks) // ranks


def most_on_a_node(ranks: int, nodes: int) -> int:
    """The ranks of the node that has most of them: node 0."""
    return -(-ranks // nodes)
