"""The machine.json of a merged or continued recording, with the facts that vary between its machines or halves.

The model must be the same. Other facts may differ between machines of one model and still change a time: the kernel,
the driver, environment variables, the image.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from snnbench.recording.facts import flat

Machine = Mapping[str, Any]
Varying = dict[str, list[Any]]
"""Path of a fact, such as `environment.OMP_NUM_THREADS`, -> its values; null for a machine that lacks it."""

NOT_FACTS = ("host", "hosts", "load", "varying")
OWN_FACTS = ("gpus.uuid", "cpu.allowed_cpus")
"""Facts that identify a single card, or the CPUs of one process."""


def joined(machines: Iterable[Machine]) -> dict[str, Any]:
    """One machine.json from several; their order and earlier merges do not change it.

    It holds the facts of one machine, all `hosts`, and the `varying` facts, if there are any.
    """
    parts = list(machines)
    single = [{name: value for name, value in one.items() if name not in ("hosts", "varying")} for one in parts]
    machine = min(single, key=_text) | {"hosts": sorted({host for one in parts for host in _hosts(one)})}
    differing = varying(parts)
    return machine | ({"varying": differing} if differing else {})


def continued(machine: Machine, now: Machine, versions: tuple[str | None, str | None]) -> dict[str, Any]:
    """The machine.json of a recording that continues on a machine with the facts `now`.

    `versions` are those of the snnbench that began it, and of the one that continues it.
    """
    hosts = sorted({*_hosts(machine), *_hosts(now)})
    differing = varying({**one, "snnbench": version} for one, version in zip((machine, now), versions, strict=True))
    whole = dict(machine) | ({"hosts": hosts} if len(hosts) > 1 else {})
    return whole | ({"varying": differing} if differing else {})


def varying(machines: Iterable[Machine]) -> Varying:
    """The facts that differ between machines, including those that an earlier merge found."""
    parts = [(dict(_facts(one)), dict(one.get("varying", {}))) for one in machines]
    paths = {path for facts, differing in parts for path in (*facts, *differing)}
    values = {
        path: {_text(value) for facts, differing in parts for value in differing.get(path, [facts.get(path)])}
        for path in sorted(paths)
    }
    return {path: [json.loads(text) for text in sorted(found)] for path, found in values.items() if len(found) > 1}


def _facts(machine: Machine) -> Iterator[tuple[str, Any]]:
    """(path, value) of every known fact. Facts of cards have the values of all cards: any card may do the work."""
    for name, value in machine.items():
        if name == "gpus":
            keys = sorted({key for card in value for key in card})
            cards = ((f"gpus.{key}", sorted({_text(card.get(key)) for card in value})) for key in keys)
            pairs = [(path, [json.loads(text) for text in texts]) for path, texts in cards]
        else:
            pairs = list(flat(value, name)) if name not in NOT_FACTS else []
        yield from ((path, value) for path, value in pairs if path not in OWN_FACTS and value is not None)


def _hosts(machine: Machine) -> list[str]:
    return list(machine.get("hosts", [])) or [str(machine.get("host"))]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
