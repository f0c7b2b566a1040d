"""Programs of snnbench itself, compiled once for a machine: XLA may tune a product on a card for seconds.

Programs of libraries are never kept between trials: what their tuning varies is theirs.
"""

import hashlib
import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import jax
from jax.experimental import serialize_executable

FOLDER = "SNNBENCH_JAX_PROGRAMS"
"""The environment variable that names the folder of the programs; without it nothing is kept."""
_of_process: dict[Any, Any] = {}


def kept(function: Any, *arguments: jax.Array) -> Any:
    """The program of a jitted function for arrays like these: loaded if there is one, or else compiled and kept.

    Without a folder it is the function itself, which takes less time to call.
    """
    if not os.environ.get(FOLDER):
        return function
    like = function, *((each.shape, each.dtype.name) for each in arguments)
    if like not in _of_process:
        _of_process[like] = _loaded_or_compiled(function.lower(*arguments), next(iter(arguments[0].devices())))
    return _of_process[like]


def _loaded_or_compiled(lowered: Any, device: Any) -> Any:
    platform = device.client.platform_version
    about = "\n".join([jax.__version__, platform, device.device_kind, lowered.as_text()])
    path = Path(os.environ[FOLDER]) / hashlib.sha256(about.encode()).hexdigest()
    try:
        return serialize_executable.deserialize_and_load(*pickle.loads(path.read_bytes()))
    except (OSError, EOFError, ValueError, pickle.UnpicklingError, jax.errors.JaxRuntimeError):
        program = lowered.compile()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        pickle.dump(serialize_executable.serialize(program), file)
    os.replace(file.name, path)
    return program
