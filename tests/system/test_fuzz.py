"""Fuzz tests with malformed inputs, 10,000 for a release: each gives a valid result or one clear line, and no hang."""

import functools
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from snnbench import checking, printable
from snnbench.analysis import compare
from snnbench.analysis.comparability import Incomparable
from snnbench.analysis.decision import Thresholds
from snnbench.cases.outcome import decode, failed
from snnbench.plan import config
from snnbench.recording import merge, reading, schema
from snnbench.recording.merge import Disagreement
from snnbench.recording.reading import CONFIG, ENVIRONMENTS, MACHINE, RECORDS
from snnbench.recording.record import RecordingError
from snnbench.report import tidy
from snnbench.report.text import cell_description
from snnbench.run.endings import outcome_of
from snnbench.run.process import Ending
from snnbench.worker.messages import BadRequest, decode_reply, decode_request
from tests.fakes import request
from tests.malformed import dumped, mutated, scribbled
from tests.recordings import reported
from tests.shipped import OTHER_NEURONS, QUICK, RESULTS
from tests.sweep import toml, write_config
from tests.whole import WHOLE

ROOT = Path(__file__).parents[2]
SOUND = RESULTS / QUICK
EXAMPLES = 600 if WHOLE else 60
"""Examples of a test."""
LONGEST_LINE = 2000


LONGEST_CPU_S = 10


def _hangs(number: int, frame: Any) -> None:
    raise AssertionError(f"not done after {LONGEST_CPU_S} s of computing")


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """End an example that computes forever."""
    before = signal.signal(signal.SIGVTALRM, _hangs)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def fuzz(strategy: st.SearchStrategy[Any], examples: int = EXAMPLES) -> Callable[[Any], Any]:
    """Run a test of `data` on this many examples, the same ones every time."""
    with_settings = settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,  # `timed` limits CPU time instead: a busy machine is not a hang
        database=None,
        suppress_health_check=list(HealthCheck),
    )

    def decorated(test: Any) -> Any:
        @functools.wraps(test)
        def timed(*arguments: Any, **named: Any) -> None:
            signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_CPU_S)
            test(*arguments, **named)

        return with_settings(given(data=strategy)(timed))

    return decorated


def lines() -> list[Any]:
    """One record of each kind: a time, a memory, and another neuron."""
    recorded = [json.loads(line) for line in (SOUND / RECORDS).read_text().splitlines()]
    other = RESULTS / OTHER_NEURONS / RECORDS
    own = next(line for line in other.read_text().splitlines() if "own_rule" in line)
    kinds = [next(line for line in recorded if line["measure"] == measure) for measure in ("time", "memory")]
    return [*kinds, json.loads(own)]


LINES = lines()
BASE = reading.read(SOUND)
DOCUMENTS = {name: json.loads((SOUND / name).read_text()) for name in (CONFIG, MACHINE, ENVIRONMENTS)}
REPLY = {
    "protocol": 1,
    **{name: LINES[0][name] for name in ("outcome", "checks", "settings", "phases", "memory", "peaks")},
    "probes": {name: {"looks_ns": [[5, 6], [7, 8]]} for name in ("interpreter", "calls", "copy", "product")},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a recording; every example writes it anew."""
    return tmp_path_factory.mktemp("recording")


def written(folder: Path, line: str | bytes = b"", **documents: str | bytes) -> Path:
    """A recording of two sound lines and this one."""
    text = "".join(f"{json.dumps(sound)}\n" for sound in LINES[:2]).encode()
    (folder / RECORDS).write_bytes(text + (line.encode() if isinstance(line, str) else line) + b"\n")
    for name, document in DOCUMENTS.items():
        given = documents.get(name.partition(".")[0], json.dumps(document))
        (folder / name).write_bytes(given.encode() if isinstance(given, str) else given)
    return folder


def use(folder: Path) -> None:
    """Run all readers of a recording. Their output must be printable, and an error must be short."""
    try:
        recording = reading.read(folder)
    except RecordingError as error:
        assert 0 < len(str(error)) < LONGEST_LINE and "\n" not in str(error)
        return
    texts = [reported(recording), tidy.to_csv(tidy.rows([recording]))]
    texts += [
        "\n".join([*cell_description.lines(recording, one), *cell_description.samples(one)])
        for one in recording.records
    ]
    texts += [f"{one.where} {one.text}" for one in checking.check(folder)]
    try:
        compared = compare.compare(recording, BASE, Thresholds(), allowed=("machine", "protocol"))
        assert all(cell.word for cell in compared.each)
    except Incomparable as error:
        texts.append(str(error))
    try:
        merge._differing([recording, reading.read(folder)])
        merge.cells([recording])
    except Disagreement as error:
        texts.append(str(error))
    for text in texts:
        assert not printable.UNPRINTABLE.search(text)
        text.encode()


@fuzz(st.sampled_from(LINES).flatmap(mutated).map(dumped))
def test_mutated_records(folder: Path, data: str) -> None:
    use(written(folder, data))


@fuzz(st.sampled_from(LINES).map(dumped).flatmap(scribbled))
def test_scribbled_records(folder: Path, data: bytes) -> None:
    use(written(folder, data))


@fuzz(st.sampled_from(sorted(DOCUMENTS)).flatmap(lambda name: st.tuples(st.just(name), mutated(DOCUMENTS[name]))))
def test_mutated_documents(folder: Path, data: tuple[str, Any]) -> None:
    name, document = data
    use(written(folder, **{name.partition(".")[0]: dumped(document)}))


@fuzz(st.sampled_from(sorted(DOCUMENTS)).flatmap(lambda n: st.tuples(st.just(n), scribbled(json.dumps(DOCUMENTS[n])))))
def test_scribbled_documents(folder: Path, data: tuple[str, bytes]) -> None:
    name, text = data
    use(written(folder, **{name.partition(".")[0]: text}))


@fuzz(mutated(REPLY).map(dumped), 2 * EXAMPLES)
def test_mutated_replies(data: str) -> None:
    reply = decode_reply(data.encode() + b"\n")
    outcome = outcome_of(Ending(reply, 0, False, "", 1.0), 10.0)
    assert outcome.status in ("measured", "skipped", "failed")


@fuzz(scribbled(dumped(REPLY)))
def test_scribbled_replies(data: bytes) -> None:
    """A whole reply counts as it is. Any other reply is not believed, and gives no measurement."""
    reply = decode_reply(data)
    outcome = outcome_of(Ending(reply, 1, False, "", 1.0), 10.0)
    whole = reply is not None and not schema.complaint("reply", reply.as_dict())
    if whole and reply is not None and reply.outcome == decode(REPLY["outcome"]):
        assert outcome == reply.outcome
    elif reply is None:
        assert outcome == failed("crash", "exit status 1")
    else:
        assert outcome.status in ("failed", "skipped") or outcome.verdict in ("exact", "equivalent", "deviates")
        assert whole or outcome.kind == "lost"


@fuzz(mutated(json.loads(request("time").encode())).map(dumped), EXAMPLES // 2)
def test_mutated_requests(data: str) -> None:
    try:
        decode_request(data)
    except BadRequest as error:
        assert "\n" not in str(error)


CONFIG_EXAMPLE = {
    "name": "tiny",
    "analysis": "Why.",
    "baseline": "a",
    **{key: value for key, value in DOCUMENTS[CONFIG]["config"].items() if key in ("protocol", "sweep")},
}


@fuzz(mutated(CONFIG_EXAMPLE))
def test_mutated_configs(folder: Path, data: Any) -> None:
    path = folder / "config.toml"
    path.write_text(toml(data if isinstance(data, dict) else {"name": data}), errors="replace")
    load(path)


@fuzz(scribbled((ROOT / "configs" / "quick.toml").read_text()))
def test_scribbled_configs(folder: Path, data: bytes) -> None:
    path = folder / "config.toml"
    path.write_bytes(data)
    load(path)


def load(path: Path) -> None:
    try:
        config.load(path)
    except config.ConfigError as error:
        message = str(error).splitlines()
        assert 0 < len(message) <= 6 and all(len(line) < LONGEST_LINE for line in message)
        assert not printable.UNPRINTABLE.search(str(error).replace("\n", " "))


def test_config_with_too_many_cells_is_refused(tmp_path: Path) -> None:
    path = write_config(tmp_path, ["a"])
    many = str(list(range(1, 2001)))
    with pytest.raises(config.ConfigError, match="sweep 'all': holds 8,000,000,000 cases; at most 100,000"):
        config.load(path, [f"sweep.neurons={many}", f"sweep.seed={many}", f"sweep.batch={many}"])
    with pytest.raises(config.ConfigError, match="trials: 1000000000 should be less than or equal to 10000"):
        config.load(path, ["protocol.trials=1000000000"])


@pytest.mark.parametrize(
    "line", ["[" * 200_000, '{"schema": ' * 100_000, '{"schema": 3, "cell": ' + "9" * 10_000 + "}"]
)
def test_too_deep_or_too_long_line_is_not_a_record(folder: Path, line: str) -> None:
    assert reading.read(written(folder, line)).torn == 1
