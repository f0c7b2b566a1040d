"""A small world to run commands in: sound files of every kind that snnbench reads, and a copy of each to spoil."""

import json
import random
import shutil
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

from tests.fakes import CORRECT, write
from tests.nir_graphs import dense
from tests.shipped import QUICK, shipped
from tests.sweep import write_config

LEFT_OUT = object()
STRANGE: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 10**15, 10**30, 10**400, -0.0, 0.5, 1e308, 5e-324, float("nan"), float("inf")),
    *("", "-", "x", ".", "../..", "a" * 5000, "a|b<c>\n\x1b[31m`", "\ud800", "\u202egnp", "=1+1", "2026-13-45", "1/0"),
    *("2026-11-27T00:00:00", "9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00", "base", "failed", "cuda:0"),
    *([], {}, [[]], [1], ["x"], {"": {}}, {"a": 1}, LEFT_OUT),
]
RECORDING = "one"
"""The sound recording; `bad` is the copy that is spoiled, and `sides` a recording of two sides."""


def make(folder: Path) -> None:
    """Write the files of the world."""
    _recording(folder / "results" / RECORDING, QUICK)
    _recording(folder / "results" / "sides", QUICK)
    _give_sides(folder / "results" / "sides")
    write(folder, CORRECT, "lib")
    write_config(folder, ["lib", "torch-loop"])
    dense(folder / "small.nir")
    (folder / "tables.md").write_text("<!-- report: start -->\n<!-- report: end -->\n")
    (folder / "empty").touch()
    (folder / "quick").mkdir()
    (folder / "loop").symlink_to("loop")
    (folder / "latest").symlink_to(Path("results") / RECORDING)
    (folder / "run" / "1of1").mkdir(parents=True)
    config = json.loads((folder / "results" / RECORDING / "config.json").read_text())
    (folder / "run" / "config.json").write_text(json.dumps(config | {"shards": ["1/1"], "planned": 3}))
    (folder / "run" / "jobs.json").write_text('{"1/1": "12_1"}')


def _recording(folder: Path, name: str) -> None:
    """The first records of a shipped recording: enough for every table, and quick to read."""
    shutil.copytree(shipped(name), folder)
    lines = (folder / "records.jsonl").read_text().splitlines()
    chosen = [line for line in lines if json.loads(line)["library"] in ("torch-loop", "fused", "norse", "genn")]
    (folder / "records.jsonl").write_text("".join(f"{line}\n" for line in (chosen or lines)[:12]))


def _give_sides(folder: Path) -> None:
    """Make the recording one of an A/B test: every record of it on both sides."""
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()][:6]
    both = [record | {"side": side, "cell": record["cell"] + side} for record in records for side in ("base", "new")]
    (folder / "records.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in both))
    config = json.loads((folder / "config.json").read_text())
    about = {"sides": {"base": [], "new": ["x==1"]}, "stops_early": True, "planned": len(both)}
    (folder / "config.json").write_text(json.dumps(config | about))


def spoil(folder: Path, draw: random.Random) -> str:
    """Put a spoiled copy of one file of the world at its place in `bad`; returns what was done."""
    source = draw.choice(["results/one"] * 6 + ["results/sides"] * 2 + ["run", "tiny.toml", "lib.py"])
    bad = folder / "bad"
    shutil.rmtree(bad, ignore_errors=True)
    bad.mkdir()
    if (folder / source).is_dir():
        shutil.copytree(folder / source, bad / "results" / "two")
        path = draw.choice(sorted((bad / "results" / "two").glob("*.json*")))
    else:
        path = Path(shutil.copy(folder / source, bad))
    kind = draw.choice([_strange_values, _strange_values, _strange_values, _scribble, _replace])
    kind(path, draw)
    return f"{kind.__name__} {path.relative_to(folder)}"


def _strange_values(path: Path, draw: random.Random) -> None:
    """Replace one to three values in a document, or in one line of it."""
    if path.suffix not in (".json", ".jsonl"):
        return _scribble(path, draw)
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    for number in draw.sample(range(len(lines)), min(len(lines), draw.choice([1, 1, 3]))):
        document = json.loads(lines[number])
        for _ in range(draw.choice([1, 1, 1, 2, 3])):
            places = list(_places(document))
            if places:
                parent, key = draw.choice(places)
                value = draw.choice(STRANGE)
                if value is LEFT_OUT:
                    del parent[key]
                else:
                    parent[key] = deepcopy(value)
        lines[number] = json.dumps(document)
    path.write_text("".join(f"{line}\n" for line in lines))


def _places(value: Any) -> Any:
    """(container, key) of every value in a document."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _scribble(path: Path, draw: random.Random) -> None:
    """Cut out a part, or write over it."""
    data = path.read_bytes()
    start = draw.randrange(len(data) + 1)
    end = draw.randrange(start, min(len(data), start + 200) + 1)
    path.write_bytes(data[:start] + draw.randbytes(draw.randrange(20)) + data[end:])


def _replace(path: Path, draw: random.Random) -> None:
    """Put something else in the place of a file."""
    path.unlink()
    others: list[Callable[[], object]] = [
        *(path.mkdir, path.touch, lambda: path.symlink_to(path.name), lambda: path.symlink_to("/dev/null")),
        *(lambda: path.write_text("[" * 3000), lambda: path.write_text("1" * 5000), lambda: path.write_text("null")),
        *(lambda: path.write_bytes(b"\xff\xfe\x00"), lambda: path.write_text("\ufeff{}"), lambda: None),
    ]
    draw.choice(others)()
