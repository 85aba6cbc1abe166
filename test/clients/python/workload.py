"""What the Python programs share: a table of cases, and the command line.

    program --list              the names of its cases, one per line
    program CASE...             run them, each as a role of its own: PREFIX_CASE
"""

import asyncio
import inspect
import os
import sys
import traceback

ROWS = 1000
THINK = 0.03
PREFIX = os.environ.get("DRIVER", "")
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def main():
    if sys.argv[1:] == ["--list"]:
        print("\n".join(CASES))
        return
    for name in sys.argv[1:]:
        try:
            result = CASES[name](f"{PREFIX}_{name}")
            if inspect.isawaitable(result):
                asyncio.run(result)
            print(f"done {name}", flush=True)
        except Exception:
            print(f"error {name}: {traceback.format_exc().splitlines()[-1]}", flush=True)
            if os.environ.get("VERBOSE"):
                traceback.print_exc()
