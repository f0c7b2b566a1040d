"""Drawn command lines: for every command of snnbench, and for every argument and option that it declares."""

import random
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import typer

from snnbench.cli import app

ODD = [
    *("", " ", "-", "x", ".", "..", "0", "1", "-1", "2/3", "1e400", "nan", "inf", "é", "\udcff", "\x1b[31m", "a=b"),
    *("1" * 5000, "[" * 3000, "x" * 300, "~nobody.here/x", "/dev/null", "/dev/null/x", "/proc/x", "\n", "{0}", "%s"),
    *("*", "!*", "a|b", "1,2", "None", "[bold]", "=", "==", "@", "loop", "empty", "quick", "absent"),
]
PATHS = [
    *("bad/results/two", "bad/results/two", "bad/results/two", "results/one", "results/one", "results/sides", "latest"),
    *("results", "bad/results", "bad", "run", "small.nir", "tables.md", "lib.py", "."),
    *("tiny.toml", "bad/tiny.toml", "bad/lib.py", "loop", "empty", "absent", "quick", "out/new", "out/new.md"),
]
CONFIGS = ["tiny.toml", "tiny.toml", "tiny.toml", "quick", "exam", "bad/tiny.toml", "absent", "loop", "."]
SOME: dict[str, list[str]] = {
    "config": CONFIGS,
    "plan": CONFIGS,
    "adapter": ["lib.py", "lib.py", "bad/lib.py", "tiny.toml", "absent.py"],
    "only": ["neurons=24", "neurons>1e9", "library=lib", "library=nosuch", "reset!=zero", "device=cuda", "neurons"],
    "settings": [
        *("case.neurons=8", "protocol.trials=1", "sweep.neurons=[8,16]", "sweep.all.layers=2", "name=x", "sweep=1"),
        *("case.neurons=x", "case.beta=nan", "sweep.libraries=[]", "sweep.neurons=[]", "protocol.timeout_seconds=inf"),
        *(f"case.seed={'1' * 5000}", f"case.seed={'[' * 3000}", "case.layers=99999999999", "a.b.c.d=1"),
    ],
    "env": ["current", "current", "managed"],
    "shard": ["1/1", "1/2", "2/1", "0/0", f"1/{'1' * 5000}"],
    "base": ["numpy==1.0", "lib.py", "x==1", "python=/bin/false", "A=1", ".@HEAD", "x @ file:///x", "UV_A=1"],
    "new": ["numpy==1.0", "lib.py", "x==1", "python=/bin/false", "A=1", ".@HEAD", "x @ file:///x", "UV_A=1"],
    "library": ["norse", "norse/box", "lib", "torch-loop/*", "nosuch", "norse==1"],
    "libraries": ["norse", "norse/box", "lib", "!norse", "nosuch", "norse==1"],
    "cell": ["4fc1", "0", "abcd", "e"],
    "allow": ["machine", "contended", "drift", "work", "machine,protocol,precision,threads,contended,drift"],
    "fail_on": ["slower", "failed,missing", "slow"],
    "retry": ["crash", "timeout,crash", "crush"],
    "devices": ["0", "0,1", "GPU-1"],
    "slurm": ["time=1", "nodes=2", "nodes=0", "exclusive"],
    "dt": ["0.001", "1", "0"],
    "commit": ["abc", ""],
}
"""What a user may type for a parameter, right or wrong."""
WRITES = {"output", "figures", "splice", "folder"}
"""Parameters that name what is written: only inside the world."""
SMALL = {"trials": ["1", "2", "4", "5"], "samples": ["1", "2"], "time_steps": ["1", "5"], "batch": ["1", "2"]}


def commands() -> dict[tuple[str, ...], Any]:
    """Every command, by the words that name it."""
    return dict(_commands(typer.main.get_command(app), ()))


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from _commands(inner, (*words, name))
    else:
        yield words, command


def drawn(words: tuple[str, ...], command: Any, draw: random.Random) -> list[str]:
    """A command line: the arguments that the command needs nearly always, and some of its options."""
    line = ["--debug"] * (draw.random() < 0.01) + list(words)
    for parameter in command.params:
        is_option = bool(parameter.opts) and parameter.opts[0].startswith("-")
        share = 0.97 if parameter.required else 0.2 if is_option else 0.5
        if draw.random() > share or parameter.name == "help":
            continue
        for _ in range(draw.choice([1, 1, 2]) if parameter.multiple or parameter.nargs == -1 else 1):
            if not is_option:
                line.append(_value(parameter, draw))
            elif parameter.is_flag:
                line.append(draw.choice(parameter.opts))
            else:
                line += [draw.choice(parameter.opts), _value(parameter, draw)]
    return line


def _value(parameter: Any, draw: random.Random) -> str:
    name = parameter.name
    odd = draw.random() < 0.15
    if name in SMALL:
        return draw.choice(["0", "-1", "x", "1" * 5000] if odd else SMALL[name])
    if name in WRITES:
        return draw.choice(["out/new", "out/new.md", "results/one", "empty", "loop", "/dev/null/x", "-", "", "out.md"])
    if odd:
        return draw.choice(ODD)
    if name in SOME:
        return draw.choice(SOME[name])
    kind = parameter.type_descriptor.annotation
    kind = next(iter(get_args(kind)), kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return str(draw.choice(list(kind)).value)
    if kind is Path:
        return draw.choice(PATHS)
    return draw.choice(["0", "1", "2", "0.05", "-1", "nan", "inf"] if kind in (int, float) else [*PATHS, "a text"])
