"""The scenarios of the accuracy suite, one module each.

A module's docstring says what is done, and what the truth is.  TITLE names it on
the page, and REASONS may say why figures miss their goals.  run(lab, results, short) does it; the short form
leaves out long cases and keeps at least one of every kind.
"""

import importlib

MODULES = {
    1: "s01_statements",
    2: "s02_think_time",
    3: "s03_transactions",
    4: "s04_large_result",
    5: "s05_drain",
    6: "s06_copy",
    7: "s07_pipelines",
    8: "s08_bad_paths",
    9: "s09_tls_and_load",
    10: "s10_many_sessions",
    11: "s11_four_cases",
    12: "s12_predictions",
    13: "s13_connecting",
    14: "s14_poolers",
    15: "s15_replication",
}


def load(number):
    return importlib.import_module(f"scenarios.{MODULES[number]}")
