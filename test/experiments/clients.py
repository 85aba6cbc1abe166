"""Real drivers on the path: loads.py is run, and pgnetlat is asked about it."""

import pathlib

from harness import poll

import drivers

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = HERE.parent / "cures" / "schema.sql"


def prepare(lab):
    """Tables and drivers; Unavailable without the latter."""
    drivers.PYTHON.prepare()
    if lab.admin.query("SELECT to_regclass('parent') IS NOT NULL") == [["t"]]:
        return
    for statement in SCHEMA.read_text().strip().rstrip(";").split(";\n"):
        lab.admin.query(statement)


def run(lab, load, variant, size):
    """Run a load to its end; the seconds that it took."""
    role = load.replace(" ", "_")
    if not lab.admin.query(f"SELECT FROM pg_roles WHERE rolname = '{role}'"):
        lab.admin.query(f"CREATE ROLE {role} LOGIN")
    lab.admin.query("SELECT pgnetlat_reset()")
    output = lab.run("tun", [*drivers.PYTHON.command(HERE / "loads.py"), load, variant, size],
                     environment={"PGUSER": role})
    poll.until(lambda: not lab.admin.query(f"SELECT FROM pgnetlat_sessions WHERE usename = '{role}'"), "its sessions end")
    return float(output)


def ask(lab, load, question):
    """What pgnetlat_what_if() says about the load that was run last."""
    row, = lab.admin.dictionaries(
        "SELECT transaction_time, predicted_transaction_time, predicted_throughput, predicted_throughput_low,"
        f"      predicted_throughput_high FROM pgnetlat_what_if({question}, duration => '15 min')"
        f" WHERE usename = '{load.replace(' ', '_')}'")
    return {name: float(value) for name, value in row.items()}


def finding(lab, load):
    """The first one of pgnetlat_diagnose(); what it saves, in seconds."""
    row = lab.admin.dictionaries(
        "SELECT verdict, evidence,"
        "       saving_sessions * (SELECT max(window_time) / 1000 FROM pgnetlat_clients_last('15 min')) AS saving"
        f" FROM pgnetlat_diagnose('15 min') WHERE usename = '{load.replace(' ', '_')}'")[0]
    return {**row, "saving": float(row["saving"] or 0)}
