"""The end of a recording that will not be finished: its missing cells stay missing, and it says why."""

from pathlib import Path

from snnbench.exits import UserError
from snnbench.recording import reading, writer
from snnbench.recording.reading import Recording


class CannotClose(UserError):
    """The recording cannot be closed, or the reason is empty; the message says what to do."""


def close(folder: Path, reason: str) -> Recording:
    """Mark a recording as closed for this reason, one line. Raises CannotClose and RecordingError.

    Nothing is measured, and no record is written. The run's own command still continues the recording.
    """
    recording = reading.read(folder)
    reason = " ".join(reason.split()).rstrip(".")
    if not reason:
        raise CannotClose("the reason is empty; say in one line why cells are missing")
    if recording.finished:
        raise CannotClose(f"{folder}: is finished, so that no cell is missing")
    if recording.planned is None:
        raise CannotClose(f"{folder}: does not say how many cells were planned; run its command again")
    with writer.append(folder, recording.config, recording.machine) as entries:
        entries.close(reason)
    return reading.read(folder)
