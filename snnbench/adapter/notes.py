"""Notes: what a user should know of a library before choosing it, from a file beside its adapter.

adapters/norse.toml
[[note]]
topic = "recurrent"         the page of the documentation that lists it, by its subject
text = "`LIFRecurrent` detaches its reset, where its `LIF` attaches it."
source = "norse/torch/functional/lif.py of release 1.1.0, lines 238 and 400"
link = "https://..."        the address of the source; left out if it has none that stays
"""

import tomllib
from dataclasses import dataclass

from snnbench.adapter.declaration import Adapter


@dataclass(frozen=True, slots=True)
class Note:
    """A fact of a library's own code, in Markdown, and where it stands there."""

    topic: str
    text: str
    source: str
    link: str = ""


def notes(adapter: Adapter) -> list[Note]:
    """The notes beside an adapter file, in their order; none without a file of its name that ends in .toml."""
    path = adapter.path.with_suffix(".toml")
    if not path.is_file():
        return []
    return [Note(**each) for each in tomllib.loads(path.read_text(encoding="utf-8"))["note"]]
