"""Common options of commands, and clean-up when a signal ends them.

    def main():
        options = program.parser(__doc__, "short", "keep").parse_args()
        ...
        return tally.finish()

    if __name__ == "__main__":
        program.run(main)
"""

import argparse
import pathlib
import signal
import sys

COMMON = {
    "short": {"action": "store_true", "help": "what CI needs, in a few minutes"},
    "keep": {"action": "store_true", "help": "leave the temporary directory behind, with all logs"},
    "json": {"type": pathlib.Path, "metavar": "FILE", "help": "write all figures into this file"},
}


def parser(doc, *common):
    """A parser for a program with this docstring and these of the common options."""
    result = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in common:
        result.add_argument(f"--{name}", **COMMON[name])
    return result


def end_on_signal():
    """Turn SIGTERM and SIGHUP into an exception, so that everything that was started is ended."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup has made the program ignore it
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _exit)


def _exit(number, frame):
    sys.exit(128 + number)


def run(main):
    """Run a program to its end."""
    end_on_signal()
    sys.exit(main())
