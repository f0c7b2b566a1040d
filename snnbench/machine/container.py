"""The container around this process: its engine, and the labels of its image."""

import json
from collections.abc import Mapping
from pathlib import Path

IMAGE = "etc/snnbench-image.json"
"""Written by docker/Dockerfile: version, revision, created, base, device and libraries, as in the image's labels."""
DIGEST = "SNNBENCH_IMAGE_DIGEST"
"""The environment variable for the image's digest, which an image cannot contain."""


def engine(root: Path, environ: Mapping[str, str]) -> str | None:
    """`docker`, `podman`, `apptainer` or `kubernetes`; None without a sign of one."""
    signs = {
        "kubernetes": "KUBERNETES_SERVICE_HOST" in environ,
        "apptainer": "APPTAINER_CONTAINER" in environ or "SINGULARITY_CONTAINER" in environ,
        "docker": (root / ".dockerenv").exists(),
        "podman": (root / "run/.containerenv").exists(),
    }
    return next((name for name, sign in signs.items() if sign), None)


def image(root: Path, environ: Mapping[str, str]) -> dict[str, str] | None:
    """The labels of the snnbench image around this process, and its digest if the user gives it; None outside one."""
    try:
        labels = json.loads((root / IMAGE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    digest = environ.get(DIGEST)
    return {name: str(value) for name, value in labels.items()} | ({"digest": digest} if digest else {})
