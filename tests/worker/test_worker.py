"""Tests of the worker: every action of its adapter becomes a reply, on a descriptor with no other writer."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from snnbench.cases.outcome import Outcome
from snnbench.run.process import ALLOCATOR, environment, run
from snnbench.units import GIB, KIB
from snnbench.worker.messages import Reply, Request, decode_reply
from tests.fakes import CASE, CORRECT, PHASES, altered, ask, document, quantities, reply_of, request, write
from tests.recordings import EXACT

BRIEF = request("verify")


def replied(folder: Path, source: str, sent: Request = BRIEF) -> Reply:
    """A worker's reply about the adapter with this text."""
    return reply_of(ask(folder, source, sent))


def piped(folder: Path, source: str, standard_input: str) -> "subprocess.CompletedProcess[bytes]":
    """A worker driven by hand: the request on its standard input, the reply on its standard output."""
    return subprocess.run(
        [sys.executable, "-m", "snnbench.worker", str(write(folder, source))],
        input=standard_input.encode(),
        capture_output=True,
        env=environment(1, folder),
        timeout=30,
    )


LOUD = """
import os
import re
print("at import")
os.system("echo from a child")
""" + altered("""
    print("in build", flush=True)
    os.write(1, b"past Python")
    return right
    """).lstrip()


def test_standard_output_of_a_pipe_has_only_the_reply(tmp_path: Path) -> None:
    done = piped(tmp_path, LOUD, request("time").encode())
    reply = decode_reply(done.stdout)
    assert done.returncode == 0
    assert reply is not None and reply.outcome == EXACT
    assert set(reply.phases) == set(PHASES)
    for printed in (b"at import", b"from a child", b"in build", b"past Python"):
        assert printed in done.stderr


@pytest.mark.parametrize("text", ["", "{}", "what?"])
def test_malformed_request_is_one_line_and_a_status(tmp_path: Path, text: str) -> None:
    done = piped(tmp_path, CORRECT, text)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"request: ") and done.stderr.count(b"\n") == 1


def test_printed_text_is_logged_beside_the_reply(tmp_path: Path) -> None:
    ending = ask(tmp_path, LOUD, request("time"))
    assert reply_of(ending).outcome.status == "measured"
    assert "in build" in ending.log


@pytest.mark.parametrize(
    ("source", "kind", "reason"),
    [
        ("import no_such_library\n" + CORRECT, "import", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("1 / 0\n" + CORRECT, "import", "ZeroDivisionError: division by zero"),
        ("raise MemoryError('no room')\n" + CORRECT, "oom-host", "MemoryError: no room"),
        ("this is no Python\n" + CORRECT, "import", "AdapterError: "),
        (CORRECT.replace("BACKEND", "_BACKEND"), "import", "AdapterError: "),
        (altered("raise ValueError('first line\\nsecond line')"), "crash", "ValueError: first line"),
        (altered("raise ValueError"), "crash", "ValueError"),
        (altered("raise MemoryError"), "oom-host", "MemoryError"),
        (altered("return Network(lambda x: 1 / 0, right.backward)"), "crash", "ZeroDivisionError: division by zero"),
        (altered("return Network(right.forward, lambda kept, c: 1 / 0)"), "crash", "ZeroDivisionError: "),
        (altered("return None"), "crash", "AttributeError: 'NoneType' object has no attribute 'forward'"),
    ],
)
def test_every_exception_becomes_a_reply(tmp_path: Path, source: str, kind: str, reason: str) -> None:
    ending = ask(tmp_path, source, BRIEF)
    outcome = reply_of(ending).outcome
    assert (outcome.status, outcome.kind) == ("failed", kind)
    assert outcome.reason.startswith(reason) and "\n" not in outcome.reason
    assert ending.status == 0, "the status says only that a reply was written"
    assert "Traceback" in ending.log or kind == "oom-host"


def test_late_exception_leaves_no_time(tmp_path: Path) -> None:
    source = altered("""
    calls = []

    def backward(kept, cotangent):
        calls.append(1)
        if cotangent.size > 1480 and len(calls) > 5:
            raise ValueError("tired")
        return right.backward(kept, cotangent)

    return Network(right.forward, backward)
    """)
    reply = replied(tmp_path, source, request("time"))
    line = source.splitlines().index('            raise ValueError("tired")') + 1
    assert reply.outcome == Outcome(status="failed", kind="crash", reason=f"ValueError: tired (fake.py:{line})")
    assert quantities(document(reply)) == []


def test_unsupported_exception_is_a_skip_with_its_reason(tmp_path: Path) -> None:
    source = altered("from snnbench.adapter import Unsupported; raise Unsupported('no such reset here')")
    assert replied(tmp_path, source).outcome == Outcome(
        status="skipped", kind="unsupported", reason="no such reset here"
    )


@pytest.mark.parametrize(
    ("name", "status", "kind"),
    [
        ("Unsupported", "skipped", "unsupported"),
        ("Unavailable", "skipped", "unavailable"),
        ("Incorrect", "failed", "incorrect"),
        ("ValueError", "failed", "crash"),
    ],
)
def test_exception_without_a_message_has_its_class_as_reason(tmp_path: Path, name: str, status: str, kind: str) -> None:
    """An outcome without a reason is invalid: the cell would be lost."""
    source = altered(f"from snnbench.adapter import Incorrect, Unavailable, Unsupported; raise {name}")
    outcome = replied(tmp_path, source).outcome
    assert (outcome.status, outcome.kind, outcome.reason.split(" (")[0]) == (status, kind, name)


def test_crash_names_the_last_statement_of_a_library(tmp_path: Path) -> None:
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "a_library.py").write_text("def call(function):\n    return function()\n")
    source = altered(f"import sys; sys.path.append({str(package)!r}); import a_library\na_library.call(right.forward)")
    assert replied(tmp_path, source).outcome.reason.endswith(" (a_library.py:2)")


@pytest.mark.parametrize("change", [{"device": "cuda"}, {"dtype": "float16"}, {"precision": "tf32"}])
def test_unsupported_case_of_the_backend_is_skipped(tmp_path: Path, change: dict[str, Any]) -> None:
    assert replied(tmp_path, CORRECT, request("time", CASE.with_(**change))).outcome.kind == "unsupported"


COMPILING = (
    CORRECT
    + """
from snnbench.backends import numpy as driver

compiled = []
driver.Backend.compilations = lambda self: compiled.append(1) or len(compiled)
"""
)


def test_compilation_inside_the_clock_leaves_no_time(tmp_path: Path) -> None:
    reply = replied(tmp_path, COMPILING, request("time", phases=("train",)))
    assert (reply.outcome.status, reply.outcome.kind) == ("failed", "recompiled")
    reason = re.fullmatch(r"(\d+) compilations in the timed region of train", reply.outcome.reason)
    assert reason and int(reason[1]) >= 3, "one a repetition, and more where fresh passes look slow"
    assert quantities(document(reply)) == []


def test_more_memory_than_allowed_is_out_of_memory(tmp_path: Path) -> None:
    source = altered("np.ones(2 << 30, np.uint8); return right")
    reply = replied(tmp_path, source, request("time", memory_limit_bytes=1 << 30))
    assert (reply.outcome.status, reply.outcome.kind) == ("failed", "oom-host")
    assert "Unable to allocate 2.00 GiB" in reply.outcome.reason
    assert replied(tmp_path, CORRECT, request("time", memory_limit_bytes=1 << 30)).outcome.status == "measured"


def test_settings_in_force_are_read_back(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    settings = replied(tmp_path, CORRECT, request("memory", cpus=(cpu,))).settings
    assert settings["cpus"] == [cpu]
    assert settings["malloc"] == ALLOCATOR
    assert settings["numpy"] == settings["version"]
    assert settings["provider"] == "numpy"
    assert settings["python"] == sys.version.split()[0]


def test_worker_imports_no_heavy_package(tmp_path: Path) -> None:
    """A worker imports neither the harness's own dependencies nor a framework that its adapter does not use."""
    source = CORRECT + (
        "\nimport atexit, sys\n"
        "atexit.register(lambda: print('modules:', *sorted({name.split('.')[0] for name in sys.modules})))\n"
    )
    ending = ask(tmp_path, source, request("time"))
    assert reply_of(ending).outcome.status == "measured"
    loaded = set(ending.log.split("modules:")[1].split())
    assert {"numpy", "snnbench", "_snnbench_adapter_fake"} <= loaded
    assert loaded & {"typer", "pydantic", "pandas", "rich", "click", "yaml", "psutil", "uv", "torch", "jax"} == set()


@pytest.mark.parametrize("name", ["numpy", "json", "snnbench"])
def test_adapter_name_shadows_no_library(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the file's folder, nor in the harness's working directory."""
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, CORRECT, name)
    reply = reply_of(run(Path(sys.executable), path, BRIEF, environment(1, tmp_path / "home"), 30))
    assert reply.outcome == EXACT


def test_json_printed_by_an_adapter_is_not_a_reply(tmp_path: Path) -> None:
    lie = json.dumps({"protocol": 1, "outcome": {"status": "measured", "verdict": "exact"}})
    done = piped(tmp_path, f"print({lie!r})\n" + altered("raise ValueError('really')"), BRIEF.encode())
    reply = decode_reply(done.stdout)
    assert reply is not None and reply.outcome.reason.startswith("ValueError: really ")


def test_worker_runs_no_destructor_after_its_reply(tmp_path: Path) -> None:
    source = CORRECT + (
        "\nclass Slow:\n    def __del__(self):\n        print('taken apart')\n\n"
        "slow = Slow()\nimport atexit\natexit.register(print, 'at exit')\n"
    )
    log = ask(tmp_path, source, request("verify")).log
    assert "at exit" in log and "taken apart" not in log


def test_limit_of_the_users_shell_stays(tmp_path: Path) -> None:
    """No process may raise its hard limit."""
    hard = 8 * GIB
    line = f"ulimit -Hd {hard // KIB}; exec {sys.executable} -m snnbench.worker {write(tmp_path, CORRECT)}"
    env = environment(1, tmp_path)
    asked = request("verify", memory_limit_bytes=64 * GIB).encode()
    done = subprocess.run(["sh", "-c", line], input=asked, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr


def test_neuron_of_the_library_itself_is_named(tmp_path: Path) -> None:
    source = CORRECT.split("def build")[0] + "class LIF: pass\n\n\ndef neuron(case, variant):\n    return LIF()\n"
    reason = replied(tmp_path, source).outcome.reason
    assert "neuron(case, variant) returned a LIF; expected a Neuron of snnbench.backends" in reason


def test_work_in_the_build_is_recorded(tmp_path: Path) -> None:
    """A library could compile there, and have a short first call."""
    slow = altered("import time\ntime.sleep(0.2)\nreturn right")
    timing = reply_of(ask(tmp_path, slow, request("time", phases=("inference",)))).phases["inference"]
    assert timing["first_call_ns"] < 200_000_000 <= timing["build_ns"]
