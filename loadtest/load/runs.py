# SPDX-License-Identifier: Apache-2.0
"""Runs kept under build/load/: one folder each with run.json."""
import json
import pathlib
import time

from servers import ServerError

from .stand import RUNS


def folder(kind):
    made = RUNS / f"{time.strftime('%Y%m%d-%H%M%S')}-{kind}"
    n = 1
    while made.exists():
        n += 1
        made = made.with_name(f"{made.name.split('~')[0]}~{n}")
    made.mkdir(parents=True)
    return made


def keep(where, run):
    """Write run.json; returns its path."""
    path = pathlib.Path(where) / "run.json"
    path.write_text(json.dumps(run, indent=1))
    latest = RUNS / "latest"
    latest.unlink(missing_ok=True)
    latest.symlink_to(pathlib.Path(where).name)
    return path


def load(name=None):
    """A run by folder, by file, by its name under build/load, or the last."""
    tried = [pathlib.Path(name), RUNS / name] if name else [RUNS / "latest"]
    for path in tried:
        for file in (path, path / "run.json"):
            if file.is_file():
                try:
                    run = json.loads(file.read_text())
                except ValueError as error:
                    raise ServerError(f"{file} is no run: {error}") from None
                run["from"] = str(file)
                return run
    raise ServerError("there is no run" + (f" {name}" if name else
                                           " yet; loadtest/rig rush makes one"))
