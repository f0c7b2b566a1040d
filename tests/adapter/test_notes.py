"""Tests of notes: what a user should know of a library, from the file beside its adapter."""

from snnbench.adapter.discovery import data_folder, discover
from snnbench.adapter.notes import notes


def test_every_file_of_notes_is_of_an_adapter_and_names_its_sources() -> None:
    by_name = {adapter.path.stem: notes(adapter) for adapter in discover().values()}
    files = {path.stem for path in data_folder("adapters").glob("*.toml")}
    assert files and files == {name for name, each in by_name.items() if each}
    for note in (note for each in by_name.values() for note in each):
        assert note.text and note.source and (not note.link or note.link.startswith("https://"))
