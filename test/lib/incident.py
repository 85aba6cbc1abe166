#!/usr/bin/python3
"""An incident on a private server, and what pgnetlat shows of it: the second half of scripts/demo.

    incident.py [--keep] [--no-restart] [--nearer] [--readme FILE] [--report FILE [--picture FILE]]

Six applications use one server.  Two are healthy.  One thinks while it holds a lock that
others wait for, one sends a statement for each row of an earlier result, one is far away,
and one does not read its results.  As root, on a kernel with TUN devices, the far one
really is 20 ms away.

"--readme" also puts the output into a page, between its lines <!-- incident: NAME --> and
<!-- end -->; "--report" writes the page of pgnetlat_report() into a file, and "--picture" a
picture of its top; "--no-restart" starts the server without the library, which
sessions then load; "--nearer" then does what the prediction is about, and compares; "--keep"
leaves everything running until Enter is pressed.
"""

import contextlib
import pathlib
import re
import subprocess
import sys
import textwrap
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "netlab")]
sys.dont_write_bytecode = True

from harness import poll, postgres, program, workspace

DURATION = 24                   # seconds until the queries are run
FAR = 0.020                     # round trip of the far application, seconds
NEARER = 0.0005                 # and of the one that the prediction is about
MEASURED = 10                   # seconds, of a window, until that is compared

TABLES = """
    CREATE TABLE stock AS SELECT id, 1000 AS amount FROM generate_series(1, 100) id;
    CREATE TABLE orders AS SELECT id FROM generate_series(1, 40) id;
    CREATE TABLE order_lines AS SELECT id, 1 + id % 40 AS order_id, md5(id::text) AS item
      FROM generate_series(1, 4000) id;
    CREATE INDEX ON order_lines (order_id);
    CREATE TABLE visits (id bigint, at timestamptz);
    ANALYZE;
"""

# Name, distance, and work of each application; all of it ends with its shell.
LOOP = "while :; do {}; done | psql -qXAt >/dev/null"
BILLING = ("(echo 'BEGIN; UPDATE stock SET amount = amount - 1 WHERE id = 7;'; tail --pid=$$ -f /dev/null) | psql -qX")
SHOP = LOOP.format("echo 'UPDATE stock SET amount = amount - 1 WHERE id = 7;'; sleep 0.1")
REPORT = ("psql -qX -c \"COPY (SELECT repeat(md5(n::text), 30) FROM generate_series(1, 100000000) n) TO STDOUT\""
          " | while [ $(head -c 300000 | wc -c) -gt 0 ]; do sleep 0.2; done")
BACKOFFICE = LOOP.format("echo 'BEGIN; SELECT id FROM orders;'; for i in $(seq 1 40); do"
                         " echo \"SELECT item FROM order_lines WHERE order_id = $i;\"; done; echo 'COMMIT;'; sleep 0.2")
MOBILE = LOOP.format("printf '%s;\\n' BEGIN 'SELECT item FROM order_lines WHERE id = 1'"
                     " 'SELECT amount FROM stock WHERE id = 1' 'INSERT INTO visits VALUES (1, now())'"
                     " 'SELECT count(*) FROM orders' 'SELECT amount FROM stock WHERE id = 2' COMMIT")
WEB = "while :; do echo 'SELECT item FROM order_lines WHERE order_id = 3;'; sleep 0.01; done | psql -qXAt >/dev/null"
APPLICATIONS = [
    ("billing", "near", BILLING, 1),
    ("shop", "near", SHOP, 3),
    ("backoffice", "far", BACKOFFICE, 1),
    ("mobile", "far", MOBILE, 4),
    ("report", "near", REPORT, 1),
    ("web", "near", WEB, 2),
]

# Name, query, and the text before its result.
QUESTIONS = [
    ("now", "SELECT * FROM pgnetlat_now",
     "What is happening now?  (bar: # server, ! blocked, + waiting for a CPU, = network, . client)"),
    ("diagnose", """
SELECT severity, verdict, subject, round(lost_sessions::numeric, 1) AS lost, evidence, advice
  FROM pgnetlat_diagnose('20 s') LIMIT 3""",
     "What is wrong, and what to do about it?"),
    ("blockers", """
SELECT application_name, blocked_sessions AS blocked, round(blocked_time / 1000) AS seconds,
       round(blocked_by_exec_time / 1000) AS executing, round(blocked_by_client_time / 1000) AS thinking
  FROM pgnetlat_blockers WHERE blocked_time > 1000""",
     "Who blocks whom, and what is the holder doing?"),
    ("what_if", """
SELECT application_name, round(throughput::numeric, 1) AS throughput,
       round(predicted_throughput::numeric, 1) AS predicted,
       round(predicted_throughput_low::numeric, 1) AS low, round(predicted_throughput_high::numeric, 1) AS high
  FROM pgnetlat_what_if(rtt => 0.5, duration => '20 s') WHERE application_name = 'mobile'""",
     "What would it be like if mobile were half a millisecond away?"),
]
PREDICTION = """
SELECT predicted_throughput, predicted_throughput_low, predicted_throughput_high
  FROM pgnetlat_what_if(rtt => 0.5, duration => '20 s') WHERE application_name = 'mobile'"""
THROUGHPUT = f"""
SELECT 1000 * transactions / window_time, rtt FROM pgnetlat_clients_last('{MEASURED} s') WHERE application_name = 'mobile'"""
WIDTH = 120


@contextlib.contextmanager
def laboratory(preload="pgnetlat"):
    """The server, a function that starts a program near it or far away, and the laboratory if there is one."""
    try:
        import lab as netlab
        with netlab.Lab(awake=False, preload=preload) as lab:
            lab.path(rtt=FAR)
            yield lab.server, lambda command, distance, **environment: lab.start(
                "tun" if distance == "far" else "lo", command, environment=environment, start_new_session=True), lab
    except workspace.Unavailable as reason:
        print(f"# nobody is far away: {reason}")
        with workspace.Workspace("incident") as space, \
                postgres.Server(space, settings={"shared_preload_libraries": preload}).initialise() as server:
            yield server, lambda command, distance, **environment: space.start(
                command, environment={**server.environment(), **environment}, start_new_session=True), None


def ask(server, query):
    """The answer as psql prints it."""
    answer = server.program("psql", "-X", "-P", "footer=off", *(["-x"] if "advice" in query else []), "-c", query)
    return "\n".join(short for line in str(answer).rstrip().splitlines() for short in folded(line))


def folded(line):
    """Wrap a line of psql's expanded output below the beginning of its value."""
    if line.startswith("-[ RECORD"):
        return [line[:WIDTH]]
    indent = " " * (line.find("| ") + 2)
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent) if len(line) > WIDTH else [line.rstrip()]


def show(answers):
    for name, query, title in QUESTIONS:
        print(f"\n-- {title}\n{query.strip()};\n\n{answers[name]}")


def compare_nearer(server, lab):
    """The prediction, and what comes of it."""
    expected, low, high = map(float, server.sql(PREDICTION)[1])
    lab.path(rtt=NEARER)
    # a window is at most a third longer
    time.sleep(MEASURED * 1.5)
    found, rtt = map(float, server.sql(THROUGHPUT)[1])
    print(f"\n{'ok  ' if low <= found <= high else 'MISS'} mobile at {rtt:.2f} ms: {found:.0f} transactions per second,"
          f" predicted {expected:.0f} ({low:.0f} to {high:.0f}): {100 * (expected / found - 1):+.0f} %")


def too_wide(answers):
    return [line for answer in answers.values() for line in answer.splitlines() if len(line) > WIDTH]


def write(page, answers):
    """Put the results between their marks in a page."""
    text = page.read_text()
    for name, query, _ in QUESTIONS:
        block = f"```\n{query.strip()};\n\n{answers[name]}\n```"
        text = re.sub(rf"(<!-- incident: {name} -->\n).*?(\n<!-- end -->)",
                      lambda match, block=block: match[1] + block + match[2], text, flags=re.DOTALL)
    page.write_text(text)


def load_by_sessions(server):
    """As on a server in production that nobody restarts: doc/install.md."""
    server.sql("ALTER SYSTEM SET session_preload_libraries = 'pgnetlat'", "SELECT pg_reload_conf()")
    poll.until(lambda: server.value("SHOW session_preload_libraries") == "pgnetlat", "the setting")


def prepare(server):
    roles = sorted({name for name, *_ in APPLICATIONS})
    server.sql("ALTER SYSTEM SET pgnetlat.history_interval = '1s'", "SELECT pg_reload_conf()",
               "CREATE EXTENSION pgnetlat", TABLES, *(f"CREATE ROLE {name} LOGIN" for name in roles),
               "GRANT ALL ON ALL TABLES IN SCHEMA public TO " + ", ".join(roles))


def begin(start):
    for name, distance, command, number in APPLICATIONS:
        for _ in range(number):
            start(["bash", "-c", "exec 2>/dev/null; " + command], distance, PGAPPNAME=name, PGUSER=name)
        time.sleep(0.5)


def main():
    parser = program.parser(__doc__, "keep")
    parser.add_argument("--no-restart", action="store_true")
    parser.add_argument("--nearer", action="store_true")
    parser.add_argument("--readme", type=pathlib.Path)
    parser.add_argument("--report", type=pathlib.Path)
    parser.add_argument("--picture", type=pathlib.Path)
    options = parser.parse_args()
    if options.picture and not options.report:
        parser.error("--picture goes with --report")
    with laboratory("" if options.no_restart else "pgnetlat") as (server, start, lab):
        if options.no_restart:
            load_by_sessions(server)
        prepare(server)
        begin(start)
        time.sleep(DURATION)
        answers = {name: ask(server, query) for name, query, _ in QUESTIONS}
        show(answers)
        if options.readme:
            write(options.readme, answers)
        # it goes with the server, unless it has been asked for
        report = options.report or server.space.directory / "report.html"
        report.write_text(server.program("psql", "-XAt", "-c", "SELECT pgnetlat_report('20 s')"))
        if options.report or options.keep:
            print(f"\nThe same as a page, for a browser: {report}")
        if options.report and options.picture:
            run = HERE.parent / "report" / "run"
            subprocess.run([run, "--page", options.report, "--picture", options.picture], check=True)
        if options.nearer and lab:
            compare_nearer(server, lab)
        if options.keep:
            environment = server.environment()
            print(f"\nTo look around: psql -h {environment['PGHOST']} -p {environment['PGPORT']}"
                  f" -U {environment['PGUSER']} postgres\nEnter ends it.", flush=True)
            sys.stdin.readline()
    for line in too_wide(answers):
        print(f"FAIL wider than {WIDTH} columns: {line}")
    return 1 if too_wide(answers) else 0


if __name__ == "__main__":
    program.run(main)
