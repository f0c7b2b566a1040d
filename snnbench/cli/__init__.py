"""The command line. Data goes to standard output, everything else to standard error.

Commands import their modules when they run, so that `snnbench --help` answers at once. A command takes a parameter for
each of its options.
"""

import os
import signal
import sys
from contextlib import suppress
from io import TextIOWrapper
from types import FrameType
from typing import Annotated

import typer

import snnbench
from snnbench.cli import (
    ab,
    check,
    close,
    compare,
    data,
    doctor,
    env,
    export,
    merge,
    operations,
    rank,
    report,
    request,
    run,
    show,
    site,
    verify,
)
from snnbench.cli.flags import Command, Group
from snnbench.cli.list import list_adapters
from snnbench.cli.status import status
from snnbench.exits import Exit, UserError

ALONE = """\
snnbench times spiking-network libraries on work that was proved to be the same.

Which library is the fastest for my network?
  snnbench run -N 1000 -T 200 -B 64
Did my change make my library slower?
  snnbench ab --new path/to/clone@my-branch
Does my library do the same work?
  snnbench verify --adapter my_library.py

More: snnbench list (libraries), snnbench doctor (this machine), snnbench --help"""

EPILOG = "Exit codes: " + "; ".join(f"{int(code)} {code.meaning}" for code in Exit) + "."

app = typer.Typer(
    cls=Group,
    help="Times spiking-network libraries, and only on work that was proved to be the same work.",
    epilog=EPILOG,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)
app.command(name="run", cls=Command)(run.run)
app.command(name="verify", cls=Command)(verify.verify)
app.command(name="list", cls=Command)(list_adapters)
app.command(name="report", cls=Command)(report.report)
app.command(name="site", cls=Command)(site.site)
app.command(name="export", cls=Command)(export.export)
app.command(name="merge", cls=Command)(merge.merge)
app.command(name="close", cls=Command)(close.close)
app.command(name="ab", cls=Command)(ab.ab)
app.command(name="compare", cls=Command)(compare.compare)
app.command(name="status", cls=Command)(status)
app.command(name="show", cls=Command)(show.show)
app.command(name="doctor", cls=Command)(doctor.doctor)
app.command(name="check", cls=Command)(check.check)
app.command(name="rank", cls=Command)(rank.rank)
app.command(name="operations", cls=Command)(operations.operations)
app.command(name="request", cls=Command)(request.request)
app.add_typer(env.app, name="env")
app.add_typer(data.app, name="data")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"snnbench {snnbench.__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """Options of every command."""
    if context.invoked_subcommand is None:
        typer.echo(ALONE)
        raise typer.Exit(Exit.USAGE)


def main() -> int:
    """Run a command and return its exit code; an error prints one line that says what to do."""
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as nohup sets it
        signal.signal(signal.SIGHUP, _interrupt)
    debug = "--debug" in sys.argv
    _open_streams()
    try:
        if sys.stdout is None:
            raise ClosedOutput("standard output is closed; send it to /dev/null if nobody reads it")
        code = int(app(standalone_mode=False) or 0)
        sys.stdout.flush()
    except typer.TyperException as error:
        if message := error.format_message():  # empty if a command without arguments has shown its help
            typer.echo(f"snnbench: {message} (snnbench --help tells more)", err=True)
        return int(Exit.USAGE)
    except (KeyboardInterrupt, typer.Abort):
        code = int(Exit.INTERRUPTED)
    except BrokenPipeError:  # the reader has what it wanted, as `head` does
        _drop_output()
        return int(Exit.ERROR)
    except (UserError, OSError) as error:
        if debug:
            raise
        _drop_output()
        typer.echo(f"snnbench: {error or type(error).__name__}", err=True)
        return int(error.code if isinstance(error, UserError) else Exit.ERROR)
    except MemoryError:
        if debug:
            raise
        typer.echo("snnbench: out of memory; choose smaller sizes, or a limit above them", err=True)
        return int(Exit.ERROR)
    except Exception as error:
        if debug:
            raise
        typer.echo(f"snnbench: internal error: {type(error).__name__}: {error} (--debug shows where)", err=True)
        return int(Exit.INTERNAL)
    if code == Exit.INTERRUPTED:  # typer itself turns an interrupt into this code
        typer.echo("snnbench: interrupted", err=True)
    return code


class ClosedOutput(UserError):
    """Standard output is closed; the message says what to do."""


def _open_streams() -> None:
    """Take the descriptors of closed streams: a file that got one would also get what a library prints.

    Characters that a stream's encoding lacks are replaced.
    """
    for descriptor in range(3):
        with suppress(OSError):
            os.fstat(descriptor)
            continue
        os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, this one
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    """Forget what standard output could not take: at its end Python would try again, and print a traceback."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _interrupt(signal_number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
