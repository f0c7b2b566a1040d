"""Submission of one Slurm array job through submitit, with a task for every argument."""

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from snnbench.run.slurm import scheduler
from snnbench.run.slurm.scheduler import SlurmError


def require() -> None:
    """Raise SlurmError if submitit or Slurm is missing."""
    if find_spec("submitit") is None:
        raise SlurmError("--executor slurm needs submitit; get it with: pip install submitit")
    scheduler.require()


def submit(
    function: Callable[..., Any],
    arguments: Sequence[Any],
    folder: Path,
    name: str,
    options: Mapping[str, str | bool],
) -> list[str]:
    """Submit a call of `function` for each of `arguments`, each in its own job; returns job numbers such as 12_0.

    The nodes must see `folder`: it holds the calls and the logs. Raises SlurmError.
    """
    import submitit
    from submitit.core.utils import FailedJobError, FailedSubmissionError

    folder.mkdir(parents=True, exist_ok=True)
    try:
        # -P: nothing is imported from the folder of the command, which may be a stranger's recording.
        executor = submitit.SlurmExecutor(folder.absolute(), python=f"{shlex.quote(sys.executable)} -P")
        # Override submitit's own defaults, such as a time limit of 5 minutes.
        executor.update_parameters(
            job_name=name,
            time=None,
            wckey=None,
            use_srun=False,
            array_parallelism=len(arguments),
            additional_parameters=dict(options),
        )
        jobs = executor.map_array(function, arguments)
    except (FailedJobError, FailedSubmissionError, ValueError, OSError) as error:
        raise SlurmError(f"sbatch: {_refusal(str(error))}") from error
    return [str(job.job_id) for job in jobs]


def log(folder: Path, job: str) -> Path:
    """The file with a job's errors and progress."""
    return folder / f"{job}_0_log.err"


def _refusal(text: str) -> str:
    """sbatch's own message, without submitit's text around it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line.removeprefix("sbatch: error: ") for line in lines if line.startswith("sbatch: error:")]
    return "; ".join(errors) or (lines[-1] if lines else "failed")
