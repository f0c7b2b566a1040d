"""The parts of the reference pages, made from the code: fill.py writes them into the pages.

Names, types, defaults and limits come from the code. If the code has no sentence on a name, meanings.toml has it. A
name without a sentence, or a sentence without a name, is an error.
"""

import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from typer.main import get_command

from snnbench import checking
from snnbench.adapter import notes as adapter_notes
from snnbench.adapter.discovery import data_folder, discover
from snnbench.cases import outcome
from snnbench.cases.case import PROFILES
from snnbench.cli import app
from snnbench.exits import Exit
from snnbench.plan import axes, config
from snnbench.recording import flags, schema
from snnbench.report import tidy
from snnbench.workloads import DEFAULT, WORKLOADS

MEANINGS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("meanings.toml").read_text(encoding="utf-8")
)
TIDY_TYPES = {"str": "text", "int": "whole number", "float": "number", "bool": "true or false"}


def commands(command: Any = None, path: str = "snnbench") -> Iterator[tuple[str, Any]]:
    """(full name, command) of each command that is not a group, in the order of the help."""
    command = command or get_command(app)
    for name, subcommand in getattr(command, "commands", {}).items():
        yield from commands(subcommand, f"{path} {name}")
    if not hasattr(command, "commands"):
        yield path, command


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; a bar inside of a cell is escaped."""
    head = list(head)
    lines = [head, ["---"] * len(head), *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def meanings(section: str, names: Iterable[str]) -> Mapping[str, str]:
    """The sentences of a section. Raises ValueError unless each of `names`, and nothing else, has one."""
    names, sentences = list(names), MEANINGS[section]
    missing = [name for name in names if name not in sentences]
    stale = [name for name in sentences if name not in names]
    if missing or stale:
        raise ValueError(f"docs/hooks/meanings.toml [{section}]: missing {missing}, stale {stale}")
    return sentences


def code(text: object) -> str:
    return f"`{text}`"


def commands_section() -> str:
    """A section for each command: usage, help, arguments, options."""
    parts = []
    for path, command in commands():
        arguments = [given for given in command.params if given.param_type_name == "argument"]
        options = [given for given in command.params if given.param_type_name == "option" and not given.hidden]
        usage = " ".join([path, "[OPTIONS]", *(_argument(given) for given in arguments)])
        parts += [f"## {path}\n", _help(command.help), f"```text\n{usage}\n```\n"]
        if arguments:
            rows = [(code(given.metavar or given.name.upper()), given.help or "") for given in arguments]
            parts.append(table(("argument", "meaning"), rows))
        if options:
            parts.append(table(("option", "value", "if left out", "meaning"), map(_option, options)))
    return "\n".join(parts)


def general_options() -> str:
    """The options of snnbench itself."""
    rows = [(_names(given), given.help) for given in get_command(app).params]
    return table(("option", "meaning"), [*rows, ("`--help`", "Show the help of snnbench, or of a command, and exit.")])


def _help(text: str) -> str:
    """The help of a command; a paragraph that is a command line becomes a block of code."""
    paragraphs = (f"```sh\n{part}\n```" if part.startswith("snnbench ") else part for part in text.split("\n\n"))
    return "\n\n".join(paragraphs) + "\n"


def _argument(given: Any) -> str:
    name = given.metavar or given.name.upper()
    return name if given.required else f"[{name.strip('[]')}]"


def _names(given: Any) -> str:
    return ", ".join(code(name) for name in given.opts)


def _option(given: Any) -> tuple[str, str, str, str]:
    default = given.default.value if isinstance(given.default, Enum) else given.default
    shown = given.show_default and not given.is_flag and default not in (None, "", ())
    absent = "required" if given.required else code(default) if shown else ""
    return _names(given), _value(given), absent, given.help or ""


def _value(given: Any) -> str:
    """The values that an option takes: a placeholder, a closed list or a number."""
    if given.is_flag:
        return ""
    members = [member for kind in _parts(given.type_descriptor.annotation) for member in _members(kind)]
    if members:
        return ", ".join(map(code, members))
    if given.metavar:
        return code(given.metavar)
    least = "" if given.min is None else f", at least {given.min}"
    return f"{TIDY_TYPES.get(given.type_descriptor.annotation.__name__, 'text')}{least}"


def _parts(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in getattr(annotation, "__args__", ()):
        yield from _parts(part)


def _members(kind: Any) -> list[str]:
    return [member.value for member in kind] if isinstance(kind, type) and issubclass(kind, Enum) else []


def described(field: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """The type of a field of a JSON schema in words."""
    if "$ref" in field:
        return f"[{_title(field['$ref'])}](#{_title(field['$ref']).lower()})"
    if parts := field.get("anyOf", field.get("oneOf")):
        described_parts = (described(part, definitions) for part in parts)
        return " or ".join(dict.fromkeys(described_parts))
    if "const" in field:
        return code(field["const"])
    if "enum" in field:
        return ", ".join(code(value or '""') for value in field["enum"])
    match field.get("type"):
        case "array":
            return f"list of: {described(field.get('items', {}), definitions)}"
        case "object":
            inner = next(iter(field.get("patternProperties", {}).values()), field.get("additionalProperties"))
            if inner == {"type": "null"}:
                return "an empty object"
            return f"object of: {described(inner, definitions)}" if isinstance(inner, dict) and inner else "object"
        case "null":
            return "null"
        case "boolean":
            return "true or false"
        case "integer" | "number" as kind:
            return {"integer": "whole number", "number": "number"}[kind] + _limits(field)
    return "text" if field.get("type") == "string" else "any"


def _limits(field: Mapping[str, Any]) -> str:
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most"}
    limits = [f"{word} {field[key]:g}" for key, word in words.items() if key in field and abs(field[key]) <= 10**6]
    return f", {', '.join(limits)}" if limits else ""


def _title(reference: str) -> str:
    """`Case` for the name of any document of a case: each workload has one, and they are numbered."""
    return re.sub(r"Document(__\d+)?$", "", reference.rpartition("/")[2]).rpartition("__")[2]


def config_top() -> str:
    """The keys outside of any section."""
    known = meanings("config", config.keys(WORKLOADS)[""])
    return table(("key", "meaning"), ((code(name), text) for name, text in known.items()))


def config_protocol() -> str:
    """The keys of [protocol]."""
    return _model("protocol", config.Protocol)


def config_sweep() -> str:
    """The keys that a [[sweep]] alone has."""
    return _model("sweep", config.Sweep, without=("workload",))


def _model(section: str, model: Any, without: Iterable[str] = ()) -> str:
    document = model.model_json_schema()
    fields = {name: field for name, field in document["properties"].items() if name not in without}
    known = meanings(section, fields)
    rows = []
    for name, field in fields.items():
        default = "required" if name in document["required"] else code(field["default"]) if field.get("default") else ""
        rows.append((code(f"{section}.{name}"), described(field, {}), default, known[name]))
    return table(("key", "value", "if left out", "meaning"), rows)


def config_case() -> str:
    """The keys of [case], which a [[sweep]] may have, too, and the workloads whose cases have them."""
    every = {"workload": list(WORKLOADS)}
    for workload in WORKLOADS:
        for name in axes.types(workload):
            every.setdefault(name, []).append(workload)
    known = meanings("case", every)
    fields = {name: field for workload in WORKLOADS for name, field in _properties(workload).items()}
    values = {name: described(fields[name], {}).removeprefix("list of: ") for name in every}
    values["profile"] = ", ".join(map(code, PROFILES))
    defaults = {"workload": code(DEFAULT), "threads": "every usable CPU"}  # config.load puts the threads in
    rows = (
        (code(name), values[name], defaults.get(name, "required"), _some(workloads), known[name])
        for name, workloads in every.items()
    )
    return table(("key", "value", "if left out", "workload", "meaning"), rows)


def _properties(workload: str) -> dict[str, Any]:
    """The JSON schema of each key of a workload's sweeps."""
    properties: dict[str, Any] = config.sweep_of(workload).model_json_schema()["properties"]
    return properties


def _some(workloads: Collection[str]) -> str:
    """Which workloads: `all`, or their names."""
    return "all" if len(workloads) == len(WORKLOADS) else ", ".join(map(code, workloads))


def workloads() -> str:
    """The workloads, each with the sizes of its cases."""
    rows = (
        (code(name), _about(workload), ", ".join(f"{code(axis)} {letter}" for axis, (letter, _) in sizes.items()))
        for name, workload in WORKLOADS.items()
        if (sizes := workload.Case.SIZES)
    )
    return table(("workload", "work of a case", "sizes"), rows)


def _about(workload: Any) -> str:
    """The rest of the first line of a workload's docstring, after its name."""
    return str(workload.__doc__).partition("\n")[0].partition(": ")[2].removesuffix(".")


def profiles() -> str:
    """The pairs of reset and gradient."""
    rows = ((code(name), code(reset), "no" if detached else "yes") for name, (reset, detached) in PROFILES.items())
    return table(("profile", "reset", "the reset carries a gradient"), rows)


def record_fields() -> str:
    """A section for each document of a recording, in the order of first use."""
    parts: list[str] = []
    shown: set[str] = set()
    for document in ("RecordDocument", "ConfigDocument", "MachineDocument"):
        whole = TypeAdapter(getattr(schema, document)).json_schema()
        definitions = whole.get("$defs", {})
        top = whole if "properties" in whole else definitions[document]
        parts += _document(document, top, definitions)
        cases = [shape for name, shape in definitions.items() if _title(name) == "Case"]
        inner = {name: shape for name, shape in definitions.items() if _title(name) not in ("Case", _title(document))}
        if cases:
            parts += _document("CaseDocument", _merged(cases), definitions)
        for name, shape in inner.items():
            parts += [] if name in shown else _document(name, shape, definitions)
        shown |= inner.keys()
    return "\n".join(parts)


def _merged(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """One document in place of the cases of all workloads; a field is always there if all of them have it."""
    properties = {name: field for case in reversed(cases) for name, field in case["properties"].items()}
    names = [name for case in cases for name in case["properties"]]
    properties["workload"] = {"enum": list(WORKLOADS)}
    always = set.intersection(*(set(case["required"]) for case in cases))
    text = "The work of a cell. The fields that are not always there belong to some workloads only."
    return {"properties": {name: properties[name] for name in names}, "required": always, "description": text}


def _document(name: str, shape: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[str]:
    title, required = _title(name), shape.get("required", ())
    known = meanings(f"record.{title}", shape["properties"])
    rows = [
        (code(field), described(kind, definitions), "yes" if field in required else "no", known[field])
        for field, kind in shape["properties"].items()
    ]
    text = " ".join((shape.get("description") or "").split())
    return [f"## {title}\n", f"{text}\n", table(("field", "type", "always there", "meaning"), rows)]


def named(head: str, meaning: Mapping[str, str]) -> Callable[[], str]:
    """A table of names and meanings that the code has."""
    return lambda: table((head, "meaning"), ((code(name), text) for name, text in meaning.items()))


def configs() -> str:
    """The configs that come with snnbench, each with the first sentence of its purpose."""
    rows = []
    for path in sorted(data_folder("configs").glob("*.toml")):
        purpose = " ".join(tomllib.loads(path.read_text(encoding="utf-8"))["analysis"].split())
        rows.append((code(path.stem), re.split(r"(?<=[.?]) (?=[A-Z])", purpose)[0]))
    return table(("config", "purpose"), rows)


def libraries() -> str:
    """The libraries that have an adapter."""
    rows = ((code(name), adapter.about, ", ".join(map(code, adapter.variants))) for name, adapter in discover().items())
    return table(("library", "description", "variants"), rows)


def notes() -> dict[str, str]:
    """The notes on libraries by their topic: a sentence, or a list of several."""
    by_topic: dict[str, list[str]] = {}
    for adapter in discover().values():
        for note in adapter_notes.notes(adapter):
            source = f"[{note.source}]({note.link})" if note.link else note.source
            by_topic.setdefault(note.topic, []).append(f"{note.text.strip()} Source: {source}.")
    return {
        topic: "\n".join(f"- {each}" for each in listed) if len(listed) > 1 else listed[0]
        for topic, listed in by_topic.items()
    }


def exit_codes() -> str:
    """The exit codes."""
    return table(("exit code", "meaning"), ((str(int(member)), member.meaning) for member in Exit))


def tidy_columns() -> str:
    """The columns of tidy data."""
    known = meanings("tidy", tidy.COLUMNS)
    rows = ((code(name), TIDY_TYPES[tidy.TYPES.get(name, "str")], known[name]) for name in tidy.COLUMNS)
    return table(("column", "type", "meaning"), rows)


def metrics() -> str:
    """The values of the column `metric`."""
    return table(("metric", "meaning"), ((code(name), text) for name, text in MEANINGS["metric"].items()))


GENERATORS: dict[str, Callable[[], str]] = {
    "commands": commands_section,
    "general-options": general_options,
    "config-top": config_top,
    "config-protocol": config_protocol,
    "config-case": config_case,
    "config-sweep": config_sweep,
    "workloads": workloads,
    "profiles": profiles,
    "record-fields": record_fields,
    "verdicts": named("verdict", outcome.VERDICTS),
    "failures": named("failed as", outcome.FAILURES),
    "skips": named("skipped as", outcome.SKIPS),
    "flags": named("flag", flags.FLAGS),
    "rules": named("rule", checking.RULES),
    "configs": configs,
    "libraries": libraries,
    "exit-codes": exit_codes,
    "tidy-columns": tidy_columns,
    "metrics": metrics,
}
