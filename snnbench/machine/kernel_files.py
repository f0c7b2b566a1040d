"""Reading files of the kernel in /proc and /sys; a missing file reads as empty."""

import re
from pathlib import Path

ROOT = Path("/")


def match_in(pattern: str, path: Path) -> str | None:
    match = re.search(pattern, text_in(path))
    return match[1] if match else None


def integer_in(path: Path) -> int | None:
    text = text_in(path)
    return int(text) if text.lstrip("-").isdigit() else None


def text_in(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def cgroup(root: Path, controller: str, name: str) -> list[str]:
    """Content of file `name` in this process's control group and in all groups above it, in versions 1 and 2."""
    texts = []
    for line in text_in(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            base = root / "sys/fs/cgroup" / (controller if controllers else "")
            folder = base / path.lstrip("/")
            texts += [text_in(place / name) for place in (folder, *folder.parents) if place.is_relative_to(base)]
    return [text for text in texts if text]
