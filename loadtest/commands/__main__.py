# SPDX-License-Identifier: Apache-2.0
"""loadtest/rig NAME ARGUMENTS: finds commands/NAME.py and runs it."""
import importlib
import pathlib
import sys

from servers import ServerError

# Files of this folder that are no commands but stand behind them.
BEHIND = {"__init__", "__main__", "house", "packages"}


def names():
    folder = pathlib.Path(__file__).parent
    return sorted(file.stem for file in folder.glob("*.py")
                  if file.stem not in BEHIND)


def usage():
    lines = ["usage: loadtest/rig COMMAND ...", ""]
    for name in names():
        said = importlib.import_module(f"commands.{name}").__doc__ or ""
        lines.append(f"  {name:10} {said.strip().splitlines()[0]}")
    lines += ["", "loadtest/rig COMMAND --help says more."]
    return "\n".join(lines)


def main(argv):
    if not argv or argv[0] in ("--help", "-h", "help"):
        print(usage())
        return 0 if argv else 2
    if argv[0] not in names():
        print(f'rig: there is no command "{argv[0]}"\n{usage()}',
              file=sys.stderr)
        return 2
    try:
        return importlib.import_module(f"commands.{argv[0]}").run(argv[1:]) or 0
    except ServerError as error:
        print(f"rig: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


sys.exit(main(sys.argv[1:]))
