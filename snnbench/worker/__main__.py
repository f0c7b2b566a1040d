"""The worker: one process that does one measurement of one variant of one adapter, and replies.

    snnbench request norse/box | python -m snnbench.worker adapters/norse.py

A request comes on standard input. The reply goes to standard output or to the descriptor in --reply-fd; output of
libraries goes to standard error. The worker imports the standard library, NumPy and the adapter's own libraries only.
With --serve it answers many requests (worker/server.py).
"""

import argparse
import importlib.metadata
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from snnbench import workloads
from snnbench.adapter import loading, reading, refusal
from snnbench.adapter.loading import Loaded
from snnbench.cases.outcome import FailureKind, failed, skipped
from snnbench.worker import garbage, server
from snnbench.worker.channel import die_with_parent, end, own_descriptor
from snnbench.worker.fault import fault
from snnbench.worker.instructions import Count, counter, uncounted
from snnbench.worker.messages import (
    EXCHANGES,
    Announce,
    BadRequest,
    Note,
    Reply,
    Request,
    decode_request,
    silent,
)
from snnbench.worker.relay import Follower, Leader, Relay
from snnbench.worker.turns import Turns

ANNOUNCE_S = 1.0


def main() -> int:
    """Read a request, do it, reply. The exit status says only whether a reply was written."""
    parser = argparse.ArgumentParser(prog="python -m snnbench.worker", description=__doc__.split("\n\n")[0])
    parser.add_argument("adapter", type=Path, help="the adapter file")
    parser.add_argument("--reply-fd", type=int, help="descriptor for the reply; standard output if left out")
    parser.add_argument("--begins", type=_ends, help="READER,WRITER: pipes to a worker that takes turns after this one")
    parser.add_argument("--joins", type=_ends, help="READER,WRITER: pipes to a worker that takes turns before this one")
    parser.add_argument("--leads", type=_ends, help="READER,...: pipes from workers that measure after this one")
    parser.add_argument("--follows", type=_ends, help="GATE,READY: measure once GATE opens; READY leads to the leader")
    parser.add_argument("--uses-card", action="store_true", help="use the card before its turn")
    parser.add_argument("--serve", action="store_true", help="answer many requests, each of which a null byte ends")
    options = parser.parse_args()
    garbage.collect_rarely()
    reply_fd = own_descriptor(options.reply_fd)
    if options.serve:
        die_with_parent(reply_fd)
        return server.serve(
            reply_fd,
            lambda first: _load_within(decode_request(first), options.adapter),
            lambda loaded, text: _answer(decode_request(text), lambda: loaded, reply_fd, options),
            options.adapter,
        )
    try:
        request = decode_request(sys.stdin.read())
    except BadRequest as error:
        print(error, file=sys.stderr)
        return 2
    return _answer(request, lambda: _load(options.adapter, request), reply_fd, options)


def _answer(request: Request, load: Callable[[], Loaded | Reply], reply_fd: int, options: argparse.Namespace) -> int:
    """Do one request and write the reply. Returns the exit status."""
    if options.reply_fd is not None:
        die_with_parent(options.reply_fd)
    with os.fdopen(reply_fd, "wb") as stream:
        if request.measure in EXCHANGES:
            from snnbench.worker import exchange  # it reads graphs with a package that other cells need not have

            stream.write(exchange.reply_to(request, load()).encode())
            return 0
        _confine(request)
        # The counter covers threads that start after it, so it opens before a framework starts any.
        instructions = counter() if request.measure == "time" else uncounted
        with suppress(Exception):  # the answer imports it again, and says why it cannot
            import_module("snnbench.worker.measurement")  # the clock and the comparison, before the adapter
        turns = _turns(options, request)
        relay = _relay(options, request)
        announce = silent if options.reply_fd is None else _announcing(stream)
        stream.write(_reply(request, load(), instructions, turns, relay, announce).encode())
    return 0


def _load_within(request: Request, path: Path) -> Loaded | Reply:
    """Load the adapter and what its requests need, within the limits of the first request."""
    _confine(request)
    loaded = _load(path, request)
    if isinstance(loaded, Loaded):
        variant = loaded.declared.variants[request.variant]
        with suppress(Exception):  # the answer imports it again, and says why it cannot
            import_module("snnbench.worker.measurement")
            import_module(f"snnbench.backends.{variant.backend}")
            if variant.compiles and variant.backend == "torch":
                import_module("torch._inductor.compile_fx")
    return loaded


def _announcing(stream: BinaryIO) -> Announce:
    """A function that writes notes: at most one in each ANNOUNCE_S seconds, and the last one."""
    last = -ANNOUNCE_S

    def announce(note: Note) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= ANNOUNCE_S or note.done == note.count:
            last = now
            stream.write(note.encode())
            stream.flush()

    return announce


def _ends(given: str) -> tuple[int, ...]:
    """The descriptors of pipes, which this process's children do not get."""
    descriptors = tuple(map(int, given.split(",")))
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    return descriptors


def _turns(options: argparse.Namespace, request: Request) -> Turns | None:
    """The turns with another worker, if there is one; this returns once it is this one's turn."""
    if not (ends := options.begins or options.joins):
        return None
    reader, writer = ends
    turns = Turns(reader, writer, request.patience_s)
    if options.joins:
        turns.wait()
    return turns


def _relay(options: argparse.Namespace, request: Request) -> Relay | None:
    """This worker's part in a relay, if it takes part in one."""
    if options.leads:
        return Leader(options.leads, request.patience_s, options.uses_card)
    if not options.follows:
        return None
    gate, ready = options.follows
    return Follower(gate, ready, options.uses_card)


def _load(path: Path, request: Request) -> Loaded | Reply:
    """The adapter and its libraries, or the reply that says why they cannot be loaded.

    The backend comes first: it sets up its framework, and an adapter that is imported may already start it.
    """
    try:
        import_module(f"snnbench.backends.{reading.read(path).variants[request.variant].backend}")
        return loading.read_and_load(path)
    except MemoryError as error:
        return _failed("oom-host", error)
    except refusal.Unavailable as error:
        return Reply(skipped("unavailable", _text(error)))
    except Exception as error:  # an import runs third-party code, which may raise anything
        traceback.print_exc()
        known = isinstance(error, refusal.AdapterError | ImportError)  # its message names the place or the module
        return _failed("import", error) if known else Reply(failed("import", fault(error, path)))


def _reply(
    request: Request,
    loaded: Loaded | Reply,
    instructions: Count,
    turns: Turns | None,
    relay: Relay | None,
    announce: Announce,
) -> Reply:
    """Do the request; every result and every error becomes a reply."""
    if isinstance(loaded, Reply):
        return loaded
    declared, module = loaded
    reply = Reply()
    backend = None
    if relay and request.case.device.startswith("cuda") and not relay.uses_card:
        request = relay.wait(request)
    try:
        from snnbench.backends import open_backend
        from snnbench.worker.measurement import Measurement, Surroundings

        variant = declared.variants[request.variant]
        backend = open_backend(variant.backend, request.case)
        own_rule = loading.own_rule(module)
        build = workloads.of(request.case).builder(module)
        around = Surroundings(instructions, turns, relay, announce)
        Measurement(request, backend, build, own_rule, variant, around).run(reply)
        reply.settings |= backend.settings()
    except refusal.Unsupported as error:
        return Reply(skipped("unsupported", _text(error)))
    except refusal.Unavailable as error:
        return Reply(skipped("unavailable", _text(error)))
    except refusal.Incorrect as error:
        return _failed("incorrect", error)
    except Exception as error:  # a pass may raise anything, too
        traceback.print_exc()
        known = backend.failure_kind(error) if backend else None
        kind = known or ("oom-host" if isinstance(error, MemoryError) else "crash")
        return Reply(failed("crash", fault(error, declared.path))) if kind == "crash" else _failed(kind, error)
    reply.settings |= _process_settings(variant.pins.distribution)
    return reply


def _process_settings(distribution: str) -> dict[str, Any]:
    """Versions, CPUs and allocator settings of this process, read back."""
    try:
        version: str | None = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        version = None
    return {
        "version": version,
        "python": sys.version.split()[0],
        "cpus": sorted(os.sched_getaffinity(0)),
        "malloc": {name: value for name, value in os.environ.items() if name.startswith("MALLOC_")},
    }


def _failed(kind: FailureKind, error: BaseException) -> Reply:
    text = _text(error)
    name = type(error).__name__
    if kind == "incorrect" or text == name:
        return Reply(failed(kind, text))
    return Reply(failed(kind, f"{name}: {text.splitlines()[0]}"))


def _text(error: BaseException) -> str:
    """The message of an error; without one, the name of its class, for an outcome has a reason."""
    return str(error).strip() or type(error).__name__


def _confine(request: Request) -> None:
    """Limit CPUs and memory, before a framework starts its threads."""
    if request.cpus:
        os.sched_setaffinity(0, request.cpus)
    if request.memory_limit_bytes is not None:
        # RLIMIT_DATA and not RLIMIT_AS: frameworks reserve far more address space than they use.
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        unlimited = hard == resource.RLIM_INFINITY
        limit = request.memory_limit_bytes if unlimited else min(hard, request.memory_limit_bytes)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


if __name__ == "__main__":
    end(main())
