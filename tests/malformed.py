"""Malformed inputs: documents with something in them that should not be there, and texts that were scribbled on."""

import json
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

STRANGE = [
    None,
    True,
    -1,
    0,
    10**30,
    1e308,
    -0.5,
    "",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "|\n|`\x1b[2J",
    "\ud800",
    "\u202egnp",
    "a" * 5000,
    [],
    {},
    [[[]]],
    {"": {}},
]
strange = st.one_of(
    st.sampled_from(STRANGE),
    st.floats(),
    st.integers(),
    st.text(max_size=20),
    st.lists(st.sampled_from(STRANGE), max_size=3),
)


@st.composite
def mutated(draw: st.DrawFn, document: Any) -> Any:
    """The document with one to three of its values replaced, taken away, or put there twice."""
    result = json.loads(json.dumps(document))
    for _ in range(draw(st.integers(1, 3))):
        parent, key = draw(st.sampled_from(locations(result)))
        action = draw(st.sampled_from(["replace", "replace", "remove", "add"]))
        if action == "replace":
            parent[key] = deepcopy(draw(strange))
        elif action == "remove":
            del parent[key]
        elif isinstance(parent, dict):
            parent[draw(st.text(max_size=10))] = deepcopy(draw(strange))
        else:
            parent.append(deepcopy(draw(strange)))
        if not locations(result):
            break
    return result


def locations(document: Any) -> list[tuple[Any, Any]]:
    """(container, key) of every value in a document."""
    keys = list(document) if isinstance(document, dict) else list(range(len(document)))
    pairs: list[tuple[Any, Any]] = [(document, key) for key in keys]
    for key in keys:
        if isinstance(document[key], dict | list):
            pairs += locations(document[key])
    return pairs


@st.composite
def scribbled(draw: st.DrawFn, text: str) -> bytes:
    """The text in bytes, with a part cut out, or something written over it."""
    data = text.encode("utf-8", errors="surrogatepass")
    start = draw(st.integers(0, len(data)))
    end = draw(st.integers(start, min(len(data), start + 200)))
    return data[:start] + draw(st.binary(max_size=20)) + data[end:]


def dumped(document: Any) -> str:
    """As JSON, be it one that Python alone reads."""
    return json.dumps(document)
