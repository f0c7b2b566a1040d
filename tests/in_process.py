"""Commands of snnbench in the test's own process: a new interpreter would import for a second before each of them."""

import io
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

from snnbench.cli import main


def run(arguments: Sequence[str | Path], cwd: Path, environment: Mapping[str, str]) -> "CompletedProcess[str]":
    """Run a command as a process with this folder and environment would, and leave this process as it was."""
    words = [str(argument) for argument in arguments]
    output, messages = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with (
            chdir(cwd),
            mock.patch.dict(os.environ, environment, clear=True),
            mock.patch.object(sys, "argv", ["snnbench", *words]),
            redirect_stdout(output),
            redirect_stderr(messages),
        ):
            code = _ended()
    finally:
        signal.signal(signal.SIGTERM, handler)
    return CompletedProcess(["snnbench", *words], code, _text(output), _text(messages))


def _ended() -> int:
    """The exit code of the command in sys.argv, as the interpreter would end with it."""
    try:
        return main()
    except SystemExit as ended:
        return int(ended.code or 0)
    except Exception:  # of --debug
        traceback.print_exc()
        return 1


def _text(stream: io.TextIOWrapper) -> str:
    """The text of a stream, with newlines as a pipe in text mode gives them."""
    stream.seek(0)
    return stream.read()
