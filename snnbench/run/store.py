"""Where the records of a run go: into the folder of a recording, or into memory for a command that prints them."""

from collections.abc import Collection

from snnbench.cases.outcome import Outcome
from snnbench.recording import in_progress
from snnbench.recording.attempts import Attempts
from snnbench.recording.record import Record
from snnbench.recording.writer import Writer


class InFolder:
    """The recording that a writer writes; marks that an earlier runner left are removed."""

    interrupted = "interrupted; the same command continues here"

    def __init__(self, writer: Writer) -> None:
        self._writer, self.done, self.attempts = writer, writer.done, writer.attempts
        in_progress.clear(writer.folder)

    def mark(self, draft: Record) -> None:
        """Mark a cell as running, in a file beside the records."""
        in_progress.put(self._writer.folder, draft)

    def add(self, record: Record) -> None:
        """Append a record. The mark goes even if the disk is full, which is not the cell's fault."""
        try:
            self._writer.add(record)
        finally:
            in_progress.remove(self._writer.folder, record.cell)


class InMemory:
    """A list of records, in the order in which their cells ended."""

    interrupted = "interrupted"

    def __init__(self) -> None:
        self.records: list[Record] = []

    def done(self, retry: Collection[str]) -> dict[str, Outcome]:
        """No outcomes: every cell is run."""
        return {}

    def attempts(self) -> Attempts:
        """No attempts: nothing is measured again."""
        return Attempts({}, {})

    def mark(self, draft: Record) -> None:
        """Nobody else looks at the running cells."""

    def add(self, record: Record) -> None:
        """Keep a record."""
        self.records.append(record)


Store = InFolder | InMemory
"""A place for records. `interrupted` is the reason of a cell that an interrupt stopped."""
