"""Exit codes, and which error ends with which."""

from enum import IntEnum


class Exit(IntEnum):
    """How the program can end. Click itself ends with 2 for a usage error."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> "Exit":
        """A number that carries its meaning."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "all is well"
    ERROR = 1, "something else went wrong, such as a results folder that cannot be written"
    USAGE = 2, "the command line is not understood"
    CONFIG = 3, "the config is invalid"
    UNAVAILABLE = 4, "an environment or adapter is unavailable"
    FAILED_CELLS = 5, "finished, with failed cells"
    FOUND = 6, "a comparison found what --fail-on names"
    UNSOUND = 7, "a recording does not keep the rules of measurement"
    INCOMPARABLE = 8, "two recordings are not of the same work, protocol, precision or machine model"
    INTERRUPTED = 130, "interrupted"


def exit_for(error: Exception) -> Exit:
    """The exit code of an error that reached the top."""
    from snnbench.adapter.contender import UnknownContender
    from snnbench.adapter.refusal import AdapterError
    from snnbench.analysis.comparability import Incomparable
    from snnbench.environments.uv_program import EnvironmentFailed
    from snnbench.machine.gpus import UnknownCard
    from snnbench.plan.config_file import ConfigError
    from snnbench.plan.selection import SelectionError
    from snnbench.plan.shard import ShardError
    from snnbench.plan.side import SideError
    from snnbench.recording.lookup import UnknownCell
    from snnbench.recording.merge import Disagreement
    from snnbench.run.slurm.scheduler import UnknownOption

    if isinstance(error, ConfigError):
        return Exit.CONFIG
    if isinstance(error, AdapterError | EnvironmentFailed):
        return Exit.UNAVAILABLE
    usage = SelectionError | UnknownContender | UnknownCell | UnknownCard | ShardError | SideError | UnknownOption
    if isinstance(error, usage):
        return Exit.USAGE
    if isinstance(error, Incomparable | Disagreement):
        return Exit.INCOMPARABLE
    return Exit.ERROR
