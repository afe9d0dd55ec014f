# SPDX-License-Identifier: Apache-2.0
"""Runs every test and counts them all.

  t/run                  everything
  t/run unit contract    these parts
  t/run http -k name     what follows a part's name goes to pytest

Parts: rules, unit, contract, interleave, snapshot (these two once more, with
innodb_snapshot_isolation), http (prefork, then event, each once more for the
desk without lanes), browser.
What it builds lies in build/check, apart from everybody else's. The last line
is "N passed, N failed", with ", N skipped" when some were. CI=true makes a
skipped test a failure.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

from commands import packages

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "check"
PARTS = ("rules", "unit", "contract", "interleave", "snapshot", "http",
         "browser")
# A part that takes longer than this hangs.
LIMIT = 35 * 60
# So many failures of tests with servers may be a busy machine's doing: each is
# run again, alone. One that fails then has failed; one that passes is named.
AGAIN = 8


class Result:
    def __init__(self, name):
        self.name, self.passed, self.failed, self.skipped = name, 0, 0, 0
        self.output, self.seconds, self.names = "", 0.0, []

    def line(self):
        text = f"{self.name:24} {self.passed:5} passed, {self.failed} failed"
        if self.skipped:
            text += f", {self.skipped} skipped"
        return f"{text}  ({self.seconds:.0f} s)"


def command(result, argv, env=None):
    """Run it; its output is kept. Returns its status, or None: too long."""
    begun = time.monotonic()
    try:
        done = subprocess.run(argv, cwd=ROOT, env={**os.environ, **(env or {})},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", timeout=LIMIT,
                              stdin=subprocess.DEVNULL, check=False)
        result.output, status = done.stdout, done.returncode
    except subprocess.TimeoutExpired as late:
        result.output = ((late.stdout or b"").decode(errors="replace") +
                         f"\nstill running after {LIMIT} s")
        status = None
    result.seconds = time.monotonic() - begun
    return status


# ---- the two kinds of tests ----

CHECKED = re.compile(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)",
                     re.M)


def run_check(binary, name=None, env=None):
    """A Check binary: it says itself how many. It starts what it needs."""
    result = Result(name or binary.name)
    status = command(result, [str(binary)],
                     {"CK_TIMEOUT_MULTIPLIER": "4", **(env or {})})
    for checks, failures, errors in CHECKED.findall(result.output):
        bad = int(failures) + int(errors)
        result.failed += bad
        result.passed += int(checks) - bad
    if result.passed + result.failed == 0 or (status != 0 and
                                              result.failed == 0):
        result.failed += 1  # it did not come to its end, or ran nothing
    return result


def run_pytest(name, folder, more=(), env=None, paths=()):
    result = Result(name)
    report = BUILD / f"{name.replace(' ', '-')}.xml"
    report.unlink(missing_ok=True)
    status = command(result, [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "--tb=short", f"--junitxml={report}",
        *(paths or [str(folder)]), *more], env)
    try:
        for suite in xml.etree.ElementTree.parse(report).iter("testsuite"):
            bad = int(suite.get("failures")) + int(suite.get("errors"))
            result.failed += bad
            result.skipped += int(suite.get("skipped"))
            result.passed += (int(suite.get("tests")) - bad -
                              int(suite.get("skipped")))
            result.names += failed_in(suite, folder)
    except (OSError, xml.etree.ElementTree.ParseError):
        pass
    nothing_chosen = status == 5 and more
    if status != 0 and result.failed == 0 and not nothing_chosen:
        result.failed += 1
    return result


def failed_in(suite, folder):
    """What pytest calls the tests that failed or broke."""
    return sorted({f"{folder}/{case.get('classname').split('.')[-1]}.py::"
                   f"{case.get('name')}" for case in suite.iter("testcase")
                   if case.find("failure") is not None or
                   case.find("error") is not None})


def run_servers(name, folder, more, paths=()):
    """Tests that start servers; the few that fail are run again, alone."""
    result = run_pytest(name, folder, more, paths=paths)
    if not 0 < len(result.names) <= AGAIN:
        return result
    print(result.output, flush=True)
    second = run_pytest(name + " again", folder, more, paths=result.names)
    if second.passed + second.failed < len(result.names):
        return result  # it did not come to its end
    calm = [name for name in result.names if name not in second.names]
    if calm:
        print(f"{name}: passed only when run again, alone:\n  " +
              "\n  ".join(calm), flush=True)
    result.passed += max(0, result.failed - second.failed)
    result.failed, result.output = second.failed, second.output
    return result


# ---- the parts ----

def binaries(prefix):
    return sorted(path for path in BUILD.glob(f"check_{prefix}*")
                  if os.access(path, os.X_OK) and path.is_file())


def part_rules(more):
    return [run_pytest("rules", ROOT / "t" / "rules", more,
                       {"YK_BUILD": str(BUILD)})]


def part_unit(_):
    return [run_check(binary) for binary in binaries("unit")]


def part_contract(_):
    return [run_check(binary) for binary in binaries("contract")]


def part_interleave(_):
    return [run_check(binary) for binary in binaries("interleave")]


# Both MPMs, and with the second what MariaDB 11.6 has on by default.
HTTP = {"prefork": "", "event": "innodb_snapshot_isolation=ON"}
# What the desk promises; here with a transaction for each of its deeds, too.
DESK = ("test_desk_answers.py", "test_desk_claim.py", "test_desk_count.py",
        "test_desk_form.py", "test_desk_limits.py", "test_desk_shop.py",
        "test_desk_text.py")


def part_http(more):
    folder = ROOT / "t" / "http"
    for mpm, options in HTTP.items():
        argv = [f"--mpm={mpm}", f"--db-options={options}", f"--build={BUILD}"]
        yield run_servers(f"http {mpm}", folder, [*argv, *more])
        yield run_servers(f"http {mpm} without lanes", folder,
                          [*argv, "--lanes=off", *more],
                          [str(folder / name) for name in DESK])


def part_snapshot(_):
    """Newer MariaDB has it on from the start: a row that changed since the
    transaction's first look is an error, 1020, where it used to be read."""
    env = {"YOYAKU_TEST_MARIADBD": "--innodb-snapshot-isolation=ON"}
    return [run_check(binary, f"{binary.name} snapshot", env)
            for binary in binaries("contract") + binaries("interleave")]


def part_browser(more):
    folder = ROOT / "t" / "browser"
    if not list(folder.glob("test_*.py")):
        return []
    return [run_servers("browser", folder, [f"--build={BUILD}", *more])]


# ---- all of it ----

def build():
    """With warnings as errors, in a folder of its own."""
    BUILD.mkdir(parents=True, exist_ok=True)
    for argv in (["cmake", "-S", str(ROOT), "-B", str(BUILD),
                  "-DYOYAKU_WERROR=ON"],
                 ["cmake", "--build", str(BUILD), "-j",
                  str(os.cpu_count() or 1)]):
        result = Result("build")
        if command(result, argv) != 0:
            sys.exit(result.output[-6000:] + "\nt/run: it does not build\n"
                     "0 passed, 1 failed")


def show(result):
    if result.failed:
        print(result.output, flush=True)
    print(result.line(), flush=True)


def run(parts, more):
    """What starts httpd is one line, the rest is another beside it."""
    results = []

    def go(line):
        for part in line:
            for result in globals()[f"part_{part}"](more):
                show(result)
                results.append(result)

    web = [part for part in parts if part in ("http", "browser")]
    rest = [part for part in parts if part not in web]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(go, (rest, web)))
    return results


def main(argv):
    if argv and argv[0] in ("--help", "-h"):
        print(__doc__.strip())
        return 0
    parts = []
    while argv and argv[0] in PARTS:
        parts.append(argv.pop(0))
    more = argv
    if more and not parts:
        print(f"t/run: there is no part {more[0]}\n\n{__doc__.strip()}",
              file=sys.stderr)
        return 2
    try:
        packages.install(("build", "run", "test"),
                         lambda text: print(text, flush=True))
    except RuntimeError as error:
        sys.exit(f"t/run: {error}\n0 passed, 1 failed")
    build()
    results = run(parts or PARTS, more)
    passed = sum(result.passed for result in results)
    failed = sum(result.failed for result in results)
    skipped = sum(result.skipped for result in results)
    print(f"{passed} passed, {failed} failed" +
          (f", {skipped} skipped" if skipped else ""), flush=True)
    strict = os.environ.get("CI") == "true" and skipped
    return 1 if failed or strict or passed == 0 else 0


sys.exit(main(sys.argv[1:]))
