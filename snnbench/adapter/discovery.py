"""Discovery of adapters: the adapters of snnbench itself, and the files that a user names."""

from collections.abc import Iterable
from pathlib import Path

from snnbench.adapter.declaration import PACKAGE, Adapter
from snnbench.adapter.reading import read
from snnbench.adapter.refusal import AdapterError


def data_folder(name: str) -> Path:
    """`adapters`, `configs` or `graphs`: beside the package in a checkout, inside it when installed."""
    installed = PACKAGE / "data" / name
    return installed if installed.is_dir() else PACKAGE.parent / name


def replaced(files: Iterable[Path]) -> dict[str, Path]:
    """The names of adapters of snnbench itself that these files replace, with the file of each."""
    own = {path.stem for path in data_folder("adapters").glob("*.py")}
    return {name: path for path in files if (name := path.stem.replace("_", "-")) in own}


def discover(files: Iterable[Path] = ()) -> dict[str, Adapter]:
    """Every adapter by name; a user's file replaces an adapter of the same name. Raises AdapterError."""
    own = sorted(data_folder("adapters").glob("[!.]*.py"))  # an editor's lock is a hidden link to nowhere
    adapters = [read(path) for path in own] + [read(path) for path in files]
    if not adapters:
        raise AdapterError(f"{data_folder('adapters')}: no adapters here")
    return {adapter.name: adapter for adapter in adapters}
