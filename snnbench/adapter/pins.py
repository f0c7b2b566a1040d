"""Pins: the packages to install for a variant of a library, from the PEP 723 header of its adapter file.

# /// script
# requires-python = ">=3.11"
# dependencies = ["mylibrary==2.0", "torch==2.13.0"]     "mylibrary @ file:.." names its folder, from here
#
# [tool.uv]
# override-dependencies = ["torchvision ; python_version < '3'"]   kept out, though the library asks for it
#
# [[tool.uv.dependency-metadata]]   requirements in place of a distribution's own, for one that also works
# name = "mylibrary"                with a Python or with packages beyond those of its release
# version = "2.0"
# requires-python = ">=3.10"
# requires-dist = []
#
# [tool.snnbench]
# api = 2                           the interface that the file was written for; may be left out
# cuda = ["cuda-core==1.2.2"]       where there is a CUDA device
# built = ["mykernels==1.0"]        compiled against the packages installed before, and installed last
# nir = ["nir==1.0.8"]              for the library's importer and exporter of NIR graphs
#
# [tool.snnbench.variants.old]      keys from above with other values for the variant `old`
# requires-python = "==3.11.*"
# dependencies = ["mylibrary==1.0", "torch==2.13.0"]
# ///
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

HEADER = re.compile(r"(?m)^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$")  # the pattern of PEP 723


@dataclass(frozen=True, slots=True)
class Pins:
    """Requirement strings with exact pins; the first dependency is the library, whose version goes into records.

    `metadata` are tables of TOML, one line each.
    """

    requires_python: str = ">=3.11"
    dependencies: tuple[str, ...] = ("numpy",)
    overrides: tuple[str, ...] = ()
    cuda: tuple[str, ...] = ()
    built: tuple[str, ...] = ()
    metadata: tuple[str, ...] = ()

    @property
    def distribution(self) -> str:
        """The distribution whose version is the library's version."""
        return re.split(r"[=<>!~\[; ]", self.dependencies[0])[0]

    @property
    def version(self) -> str:
        """The library's pinned version; empty if it is not pinned."""
        return self.dependencies[0].partition("==")[2]


def header(text: str) -> dict[str, Any]:
    """The header of a file with this text; empty if it has none. Raises ValueError if the header is malformed."""
    match = HEADER.search(text)
    if match is None:
        return {}
    lines = match.group("content").splitlines(keepends=True)
    table = tomllib.loads("".join(line[2:] if line.startswith("# ") else line[1:] for line in lines))
    tool = _table(table, "tool")
    snnbench, uv = _table(tool, "snnbench"), _table(tool, "uv")
    variants = _table(snnbench, "variants")
    _check(table, snnbench, uv)
    for name in variants:
        own = _table(variants, name)
        _check(own, own, own)
    return table


def _table(header: Mapping[str, Any], name: str) -> dict[str, Any]:
    if not isinstance(table := header.get(name, {}), dict):
        raise ValueError(f"{name} = {table!r} should be a table")
    return table


def _check(script: Mapping[str, Any], snnbench: Mapping[str, Any], uv: Mapping[str, Any]) -> None:
    """Check the types of values: a string in place of a list would be a list of letters. Raises ValueError."""
    if not isinstance(requires_python := script.get("requires-python", ""), str):
        raise ValueError(f"requires-python = {requires_python!r} should be a string")
    lists = (script, "dependencies"), (uv, "override-dependencies"), (snnbench, "cuda"), (snnbench, "built")
    for table, key in (*lists, (snnbench, "modules"), (snnbench, "nir")):
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise ValueError(f"{key} = {value!r} should be a list of strings")
    tables = uv.get("dependency-metadata", [])
    flat = isinstance(tables, list) and all(isinstance(one, dict) for one in tables)
    if not flat or not all(isinstance(value, str | list) for one in tables for value in one.values()):
        raise ValueError("dependency-metadata should be tables [[...]] of strings and lists of strings")


def shared(header: Mapping[str, Any]) -> Pins:
    """The pins of all variants without keys of their own in a header."""
    tool = header.get("tool", {})
    return _changed(Pins(), tool.get("snnbench", {}), tool.get("uv", {}), header)


def of_variant(header: Mapping[str, Any], variant: str) -> Pins:
    """The pins of one variant."""
    own = header.get("tool", {}).get("snnbench", {}).get("variants", {}).get(variant, {})
    return _changed(shared(header), own, own, own)


def _changed(pins: Pins, snnbench: Mapping[str, Any], uv: Mapping[str, Any], script: Mapping[str, Any]) -> Pins:
    """The pins with the values of these tables in their place."""
    lists = {
        "dependencies": script.get("dependencies") or None,
        "overrides": uv.get("override-dependencies"),
        "cuda": snnbench.get("cuda"),
        "built": snnbench.get("built"),
        "metadata": tables if (tables := uv.get("dependency-metadata")) is None else map(_inline, tables),
    }
    changes: dict[str, Any] = {name: tuple(value) for name, value in lists.items() if value is not None}
    if requires_python := script.get("requires-python"):
        changes["requires_python"] = requires_python
    return replace(pins, **changes)


def _inline(table: Mapping[str, Any]) -> str:
    """A table as one line of TOML; JSON strings and lists of strings are valid TOML."""
    values = (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in table.items())
    return f"{{ {', '.join(values)} }}"
