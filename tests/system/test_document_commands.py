"""Tests that the commands of the documents work for a reader who follows a page from its top.

They run in a folder like a clone, with the files that the page tells its reader to save. A command that would measure
only plans: `run --dry-run`, with the same config, libraries and adapters.
"""

import os
import re
import shutil
import subprocess
from contextlib import chdir
from itertools import pairwise
from pathlib import Path

import pytest

from snnbench.plan import side
from tests import in_process
from tests.documents import DOCUMENTS, ROOT, calls, command_lines, fences, saved, written

QUICK = "results/2026-11-27_quick_epyc-2cpu"
RECORDINGS = ("RECORDING", "OLD", "NEW")
"""Names that stand for a recording of the reader."""
STANDS_FOR = {"CELL": "7b19574b", "LIBRARY": "sinabs"}
MEASURING = {"run", "verify", "ab"}
CHOICES = {"--config", "--only", "--set", "--adapter", "--executor", "--slurm", "--shard", "--nir", "--dt", "-B", "-T"}
"""Options of measuring commands that `run --dry-run` has, too."""
DEAR = {"nir", "env", "site", "network", "--figures", "--replay", "--samples"}
"""Words of commands of which only the files are looked up here; test_documented.py parses them."""
FILE = re.compile(r"(\.\./)?[\w./-]+(\.(py|toml|nir|md)|@[\w-]+)")
PAGES = [*DOCUMENTS, ROOT / "docker" / "README.md"]
OF_A_CHECKOUT = ("add-a-workload.md", "add-a-measure.md")
"""Tutorials that add to the package: tests/system/test_new_workload.py and test_new_measure.py have them."""
GUIDES = [path for path in PAGES if command_lines(written(path)) and path.name not in OF_A_CHECKOUT]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture
def followed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    """(text of a page, a clone as the reader of the page has it)."""
    folder, text = tmp_path / "clone", written(request.param)
    (folder / "results").mkdir(parents=True)
    for part in ("adapters", "configs", "graphs", "docker"):
        (folder / part).symlink_to(ROOT / part)
    for recording in set(re.findall(r"results/(\d{4}-[\w-]+)", text)):
        (folder / "results" / recording).symlink_to(ROOT / "results" / recording)
    for recording in RECORDINGS:
        copy = shutil.copytree(ROOT / QUICK, folder / "results" / recording)
        if "snnbench close" in text:
            config = (copy / "config.json").read_text()
            (copy / "config.json").write_text(config.replace('"finished": true', '"finished": false'))
    for file, code in saved(request.param).items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(code)
    if "../norse@" in text:
        repository(tmp_path / "norse")
    return text, folder


def repository(folder: Path) -> None:
    """A git repository of a package, with two branches."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text('[project]\nname = "norse"\nversion = "1"\n')
    git = ["git", "-C", folder, "-c", "user.name=reader", "-c", "user.email=reader@example.org"]
    for arguments in (["init", "-qb", "main"], ["add", "."], ["commit", "-qm", "package"], ["branch", "my-branch"]):
        subprocess.run([*git, *arguments], check=True)


def planned(arguments: list[str]) -> list[str]:
    """The command that plans the cells of a measuring command."""
    command, *rest = arguments
    kept = [word for option, value in pairwise(rest) if option in CHOICES for word in (option, value)]
    libraries = rest[:1] if command == "verify" and not rest[0].startswith("-") else []
    kept += [word for library in libraries for word in ("--only", f"library={library}/*")]
    return ["run", *([] if {"--config", "--nir"} & set(kept) else ["--config", "exam"]), *kept, "--dry-run"]


@pytest.mark.parametrize("followed", GUIDES, indirect=True, ids=name)
def test_commands_of_a_page_work(followed: tuple[str, Path]) -> None:
    (text, clone), made = followed, set[str]()
    environment = {**os.environ, "SNNBENCH_HOME": str(clone / "home"), "COLUMNS": "110"}
    for words in command_lines(text):
        arguments = [STANDS_FOR.get(word, word) for word in words]
        outputs = {value for option, value in pairwise(arguments) if option in ("-o", "--output")}
        inputs = set(arguments) - outputs - {"--"}
        later, made = inputs & made, made | outputs
        files = [word.partition("@")[0] for word in inputs - made if FILE.fullmatch(word)]
        lacking = [file for file in files if not (clone / file).exists()]
        assert not lacking, f"snnbench {' '.join(words)}: no page says where {lacking} comes from"
        if DEAR & set(arguments) or any(not (clone / word).exists() for word in later):
            continue
        if arguments[0] == "ab":
            with chdir(clone):
                sides = [side.parse([value]) for option, value in pairwise(arguments) if option in ("--base", "--new")]
            assert sides
        for output in outputs:
            (clone / output).parent.mkdir(parents=True, exist_ok=True)
        command = planned(arguments) if arguments[0] in MEASURING else arguments
        expanded = [found for word in command for found in ([*clone.glob(word)] if word.endswith("*/") else [word])]
        done = in_process.run(expanded, clone, environment)
        assert done.returncode == 0, f"snnbench {' '.join(words)}: {done.stderr or done.stdout}"


def container_runs() -> list[str]:
    """The lines of documents that run a command of snnbench in a container."""
    code = "\n".join(block for path in PAGES for block in fences(written(path), "sh")).replace("\\\n", " ")
    return [line for line in code.splitlines() if re.match(r"(docker|apptainer) run ", line)]


def test_nobody_is_sent_to_an_index_that_has_no_snnbench() -> None:
    for path in (*PAGES, *(ROOT / "snnbench").rglob("*.py")):
        assert not re.search(r"(pip|pipx|tool) install ['\"]?snnbench", written(path)), path


def test_containers_with_an_adapter_may_use_the_network() -> None:
    """An image has environments for its own libraries only, and forbids uv the network."""
    runs = [line for line in container_runs() if "--adapter" in line]
    assert runs and all("-e UV_OFFLINE=0 " in line for line in runs)


def test_large_config_is_run_in_part_where_an_hour_counts() -> None:
    """On a card that is shared, and on a cluster, an example is of one device and size, and of some hundred cells."""
    cluster = command_lines(written(ROOT / "docs" / "tutorials" / "on-a-cluster.md"))
    cards = [words for line in container_runs() if "--gpus" in line or "--nv" in line for words in calls(line)]
    examples = [words for words in (*cluster, *cards) if "core" in words]
    assert len(examples) == 5 and all("device=cuda,neurons=512" in words for words in examples)


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_shell_expands_no_pattern_of_a_command(path: Path) -> None:
    """zsh refuses a word with `*`, `?` or `[` that matches no file, and every shell reads `<` as a file's name."""
    for code in fences(written(path), "sh"):
        bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", code)
        words = [word for word in bare.split() if re.search(r"[*?\[<]", word)]
        assert not [word for word in words if not [*ROOT.glob(word)]]


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_programs_of_a_virtual_environment_are_on_the_path(path: Path) -> None:
    """After `python3 -m venv`, a page activates the environment before it calls a program by its name alone."""
    _, made, after = "\n".join(fences(written(path), "sh")).partition("python3 -m venv .venv")
    before_activation = re.split(r"(?<![\w.-])(?:\.|source) \.venv/bin/activate", after)[0]
    assert not re.findall(r"(?:^|&& )(?:snnbench|pip|pytest)\b.*", before_activation if made else "", re.MULTILINE)


def test_line_of_a_screen_in_the_readme_is_in_a_tutorial() -> None:
    """Their screens are held to what the commands print."""
    pages = (ROOT / "docs" / "tutorials").glob("*.md")
    tutorials = " ".join(word for page in pages for word in written(page).split())
    lines = [line for block in fences(written(ROOT / "README.md"), "text") for line in block.splitlines()]
    assert len(lines) == 7
    assert [line for line in lines if " ".join(line.split()) not in tutorials] == []
