"""A fault in one line: an exception, and the last statement of the adapter or of a library on the way to it."""

import traceback
from pathlib import Path

import snnbench

PACKAGE = str(Path(snnbench.__file__).parent)


def fault(error: BaseException, adapter: Path) -> str:
    """The class of an exception, the first line of its message, and where it was raised."""
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        _, installed, file = frame.filename.rpartition("site-packages/")
        if frame.filename == str(adapter.absolute()):
            return f"{text} ({adapter.name}:{frame.lineno})"
        if installed and not frame.filename.startswith(PACKAGE):
            return f"{text} ({file}:{frame.lineno})"
    return text
