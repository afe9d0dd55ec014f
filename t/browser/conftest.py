# SPDX-License-Identifier: Apache-2.0
"""Pages in a real browser: httpd as in t/http, one Chromium for all of a run.

  --build DIR   where the module was built (YK_BUILD)
"""
import os
import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "loadtest"), str(ROOT / "t" / "http")]

import chromium  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--build", default=os.environ.get("YK_BUILD",
                                                       str(ROOT / "build")))


@pytest.fixture(scope="session")
def build(request):
    return os.path.abspath(request.config.getoption("--build"))


@pytest.fixture(scope="session")
def folder(build):
    """Where this run's servers live; what an earlier run left is dropped."""
    path = os.path.join(build, "t", f"browser-{os.getpid()}")
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    yield path
    if not os.environ.get("YK_KEEP"):
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def browser(folder):
    if chromium.program() is None:
        pytest.skip("there is no chromium (t/packages)")
    made = chromium.Chromium(os.path.join(folder, "chromium"))
    yield made
    made.stop()
