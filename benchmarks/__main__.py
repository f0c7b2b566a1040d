"""The benchmarks of snnbench itself, in the repository's root.

python -m benchmarks                                a list of them
python -m benchmarks NAME [ARGUMENTS]               run one; `NAME --help` shows its arguments
python -m benchmarks NAME [ARGUMENTS] --json FILE   write its tables, and the machine, as JSON, too
python -m benchmarks summary                        write benchmarks/README.md anew from benchmarks/outcomes/
"""

import ast
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks import outcome, summary

HERE = Path(__file__).parent
NAMES = {
    "speed of the kernels": ("kernels", "limit", "launches", "streaming", "contenders", "memory"),
    "assumptions about a card": ("card",),
    "cost of the harness": ("harness", "cells", "checks", "commands", "page"),
    "trust in its numbers": ("clock", "lies", "drift", "errors", "race", "slower", "history", "steps"),
}
"""The benchmarks by the question that they answer."""


def main() -> int:
    """Run the benchmark that the command line names."""
    match sys.argv[1:]:
        case [] | ["-h" | "--help"]:
            print(listing())
        case ["summary"]:
            summary.write()
        case [name, *arguments] if name in [each for names in NAMES.values() for each in names]:
            return run(name, arguments)
        case [name, *_]:
            print(f"python -m benchmarks: no benchmark is called {name!r}\n\n{listing()}", file=sys.stderr)
            return 2
    return 0


def run(name: str, arguments: Sequence[str]) -> int:
    """Run a benchmark with its own arguments, and write its outcome if --json names a file."""
    own, path = list(arguments), None
    if "--json" in own[:-1]:
        path = Path(own.pop(own.index("--json") + 1))
        own.remove("--json")
    sys.argv = [f"python -m benchmarks {name}", *own]
    status: int = import_module(f"benchmarks.{name}").main()
    if path:
        outcome.write(path, name, own)
    return status


def listing() -> str:
    """Every benchmark with the first sentence of its docstring."""
    lines = ["python -m benchmarks NAME [ARGUMENTS] [--json FILE]"]
    for question, names in NAMES.items():
        lines += ["", f"{question}:", *(f"  {name:<12}{about(name)}" for name in names)]
    return "\n".join(lines)


def about(name: str) -> str:
    """The first line of a benchmark's docstring, read without running it."""
    tree = ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8"))
    return (ast.get_docstring(tree) or "").partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
