# SPDX-License-Identifier: Apache-2.0
"""Debian's packages from t/packages: what is missing is installed.

No service comes up by it: while packages are installed a policy-rc.d says no
to every start.

Run as a program it installs the groups it is given.
"""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
POLICY = pathlib.Path("/usr/sbin/policy-rc.d")


def listed(groups):
    wanted = []
    for line in (ROOT / "t" / "packages").read_text().splitlines():
        words = line.split("#")[0].split()
        if len(words) == 2 and words[0] in groups:
            wanted.append(words[1])
    return wanted


def is_installed(name):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}",
                           name], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.startswith("ii")


@contextlib.contextmanager
def no_services():
    """Nothing is started while packages are installed."""
    ours = not POLICY.exists()
    if ours:
        POLICY.write_text("#!/bin/sh\nexit 101\n")
        POLICY.chmod(0o755)
    try:
        yield
    finally:
        if ours:
            POLICY.unlink()


def install(groups, say=print, names=()):
    """The groups and these names. Raises RuntimeError with a sentence when
    something stays missing."""
    if not shutil.which("dpkg-query"):
        return  # not Debian: what is missing will be named when it is needed
    wanted = listed(groups)
    wanted += [name for name in names if name not in wanted]
    missing = [name for name in wanted if not is_installed(name)]
    if not missing:
        return
    if os.geteuid() != 0:
        raise RuntimeError("these packages are missing: " + " ".join(missing) +
                           "\nInstall them, or run this as root.")
    say(f"installing {len(missing)} packages: {' '.join(missing)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    apt = ["apt-get", "-q", "-y", "-o", "Dpkg::Use-Pty=0"]
    with no_services():
        for argv in (apt + ["update"],
                     apt + ["install", "--no-install-recommends"] + missing):
            done = subprocess.run(argv, env=environment, text=True, check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True)
            if done.returncode != 0 and "install" in argv:
                raise RuntimeError("apt-get failed:\n" + done.stdout[-1500:] +
                                   done.stderr[-1500:])


if __name__ == "__main__":
    try:
        install(sys.argv[1:], lambda text: print(text, flush=True))
    except RuntimeError as error:
        sys.exit(str(error))
