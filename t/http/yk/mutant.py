# SPDX-License-Identifier: Apache-2.0
"""The product broken on purpose: what cannot be seen to fail proves nothing.

One source file is changed, compiled as the build compiles it, and put before
libyoyaku when the module is linked anew. Nothing of the tree is touched.
"""
import json
import os
import pathlib
import shlex
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]


def _run(argv, where):
    done = subprocess.run(argv, cwd=where, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, f"{shlex.join(argv)}\n{done.stderr[-2000:]}"


def _compile(build, source, copy, target):
    with open(os.path.join(build, "compile_commands.json")) as file:
        entries = [entry for entry in json.load(file)
                   if entry["file"] == str(source)]
    argv = shlex.split(entries[0]["command"])
    argv[argv.index("-o") + 1] = target
    argv[argv.index(str(source))] = copy
    argv.insert(1, f"-I{source.parent}")
    _run([word for word in argv if word != "-Werror"],
         entries[0]["directory"])


def _link(build, target, thing):
    path = os.path.join(build, "CMakeFiles", "mod_yoyaku.dir", "link.txt")
    with open(path) as file:
        argv = shlex.split(file.read())
    argv[argv.index("-o") + 1] = target
    argv.insert(argv.index("libyoyaku.a"), thing)
    _run(argv, build)


def broken(build, folder, file, *changes):
    """A folder to be used as a build, whose module differs in one file.

    file     below mod_yoyaku/, of the library
    changes  pairs (text as it is, text as it shall be); each must be there
    """
    source = ROOT / "mod_yoyaku" / file
    text = source.read_text()
    for before, after in changes:
        assert before in text, f"{file} says no more: {before}"
        text = text.replace(before, after)
    os.makedirs(folder)
    copy = os.path.join(folder, source.name)
    pathlib.Path(copy).write_text(text)
    _compile(build, source, copy, copy + ".o")
    _link(build, os.path.join(folder, "mod_yoyaku.so"), copy + ".o")
    for name in ("yoyakuctl", "schema"):
        os.symlink(os.path.realpath(os.path.join(build, name)),
                   os.path.join(folder, name))
    return folder
