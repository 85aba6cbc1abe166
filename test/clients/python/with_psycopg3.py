"""Workloads of psycopg 3."""

import time

import psycopg
from psycopg import sql

from workload import ROWS, THINK, case, main


def connect(role, **options):
    options.setdefault("autocommit", True)
    return psycopg.connect(user=role, application_name=role, **options)


@case
def execute(role):
    """A statement with a parameter, 20 times; prepared by the driver at the sixth."""
    with connect(role) as c:
        for i in range(20):
            c.execute("SELECT payload FROM item WHERE id = %s", (i,)).fetchall()


@case
def execute_never_prepared(role):
    with connect(role, prepare_threshold=None) as c:
        for i in range(20):
            c.execute("SELECT payload FROM item WHERE id = %s", (i,)).fetchall()


@case
def simple_protocol(role):
    with connect(role, cursor_factory=psycopg.ClientCursor) as c:
        for i in range(20):
            c.execute("SELECT payload FROM item WHERE id = %s", (i,)).fetchall()


@case
def several_in_one(role):
    with connect(role) as c:
        for i in range(10):
            c.execute("SELECT 1; SELECT count(*) FROM item; SELECT 3")


@case
def transaction(role):
    with connect(role) as c:
        for _ in range(3):
            with c.transaction():
                for i in range(5):
                    c.execute("INSERT INTO sink VALUES (%s, 'x')", (i,))


@case
def savepoints(role):
    with connect(role) as c:
        with c.transaction():
            for i in range(3):
                try:
                    with c.transaction():
                        c.execute("INSERT INTO sink VALUES (%s, 'x')", (i,))
                        if i == 1:
                            c.execute("SELECT 1 / (%s - %s)", (i, i))
                except psycopg.errors.DivisionByZero:
                    pass


@case
def executemany(role):
    with connect(role) as c:
        for _ in range(10):
            c.cursor().executemany("INSERT INTO sink VALUES (%s, %s)", [(i, "x") for i in range(10)])


@case
def executemany_in_transaction(role):
    with connect(role, autocommit=False) as c:
        for _ in range(10):
            c.cursor().executemany("INSERT INTO sink VALUES (%s, %s)", [(i, "x") for i in range(10)])
        c.commit()


@case
def pipeline(role):
    """20 pipelines of 3 statements: 20 round trips and one to prepare nothing."""
    with connect(role, prepare_threshold=None) as c:
        c.execute("SELECT 1")
        for i in range(20):
            with c.pipeline():
                for j in range(3):
                    c.execute("SELECT payload FROM item WHERE id = %s", (i + j,))


@case
def pipeline_prepared(role):
    with connect(role, prepare_threshold=2) as c:
        for i in range(10):
            with c.pipeline():
                for j in range(3):
                    c.execute("SELECT payload FROM item WHERE id = %s", (i + j,))


@case
def pipeline_with_fetches(role):
    with connect(role) as c:
        with c.pipeline() as p:
            for i in range(10):
                c.execute("INSERT INTO sink VALUES (%s, 'x')", (i,))
                c.execute("SELECT payload FROM item WHERE id = %s", (i,)).fetchone()
            p.sync()


@case
def pipeline_error(role):
    with connect(role) as c:
        for i in range(5):
            try:
                with c.pipeline():
                    c.execute("SELECT 1")
                    c.execute("SELECT 1 / (%s::int - %s::int)", (i, i))
                    c.execute("SELECT 2")
            except psycopg.errors.DivisionByZero:
                pass
            c.execute("SELECT 3")


@case
def pipeline_cannot_commit(role):
    """What is fetched is asked for with Flush; the constraint is checked at Sync.  psycopg cannot go on after that."""
    for _ in range(3):
        try:
            with connect(role) as c:
                c.execute("CREATE TEMPORARY TABLE late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED)")
                with c.pipeline():
                    c.execute("INSERT INTO late VALUES (1), (1) RETURNING id").fetchone()
        except psycopg.Error:
            pass


@case
def copy_in(role):
    with connect(role) as c:
        for i in range(10):
            with c.cursor().copy("COPY sink FROM STDIN") as copy:
                for j in range(5):
                    copy.write_row((j, "x"))


@case
def copy_in_large(role):
    with connect(role) as c:
        block = b"".join(b"%d\t%s\n" % (i, b"x" * 100) for i in range(1000))
        with c.cursor().copy("COPY sink FROM STDIN") as copy:
            for _ in range(30):
                copy.write(block)


@case
def copy_in_slow(role):
    """The client thinks between rows: that is receiving, not a round trip."""
    with connect(role) as c:
        with c.cursor().copy("COPY sink FROM STDIN") as copy:
            for i in range(5):
                copy.write(b"%d\t%s\n" % (i, b"x" * 200_000))
                time.sleep(THINK)


@case
def copy_failed(role):
    with connect(role) as c:
        for i in range(5):
            try:
                with c.cursor().copy("COPY sink FROM STDIN") as copy:
                    copy.write(b"not a number\tx\n")
                    for j in range(3000):
                        copy.write(b"%d\t%s\n" % (j, b"x" * 200))
            except psycopg.errors.InvalidTextRepresentation:
                pass
            c.execute("SELECT 1")


@case
def copy_abandoned(role):
    with connect(role) as c:
        for i in range(3):
            try:
                with c.cursor().copy("COPY sink FROM STDIN") as copy:
                    copy.write(b"1\tx\n")
                    raise KeyError
            except KeyError:
                pass
            c.execute("SELECT 1")


@case
def notified_in_copy(role):
    """A notification comes behind the response; the server reads it in a transaction of its own."""
    with connect(role) as c, connect(role) as other:
        c.execute("LISTEN here")
        for _ in range(3):
            with c.cursor().copy("COPY sink FROM STDIN") as copy:
                other.execute("NOTIFY here")
                copy.write_row((1, "x"))
            c.execute("SELECT 1")


@case
def copy_out(role):
    with connect(role) as c:
        for _ in range(3):
            with c.cursor().copy("COPY item TO STDOUT") as copy:
                for _ in copy:
                    pass


@case
def server_cursor(role):
    with connect(role, autocommit=False) as c:
        with c.cursor("named") as cursor:
            cursor.itersize = 100
            cursor.execute("SELECT * FROM item")
            assert sum(1 for _ in cursor) == ROWS
        c.commit()


@case
def stream(role):
    with connect(role) as c:
        for _ in c.cursor().stream("SELECT * FROM item"):
            pass


@case
def large_result(role):
    with connect(role) as c:
        for _ in range(3):
            c.execute("SELECT repeat('x', 1000) FROM generate_series(1, 2000)").fetchall()


@case
def large_literal(role):
    with connect(role, cursor_factory=psycopg.ClientCursor) as c:
        for _ in range(5):
            c.execute("SELECT length(%s)", ("x" * 1_000_000,)).fetchall()


@case
def large_parameter(role):
    with connect(role) as c:
        for _ in range(5):
            c.execute("SELECT length(%s)", ("x" * 1_000_000,)).fetchall()


@case
def think(role):
    with connect(role) as c:
        for _ in range(10):
            c.execute("SELECT 1")
            time.sleep(THINK)


@case
def think_in_transaction(role):
    with connect(role, autocommit=False) as c:
        for _ in range(10):
            c.execute("SELECT 1")
            time.sleep(THINK)
        c.commit()


@case
def n_plus_one(role):
    with connect(role) as c:
        for parent, in c.execute("SELECT id FROM item WHERE id < %s", (20,)).fetchall():
            c.execute("SELECT payload FROM item WHERE parent = %s", (parent,)).fetchall()


@case
def n_plus_one_in_transaction(role):
    with connect(role, autocommit=False) as c:
        for parent, in c.execute("SELECT id FROM item WHERE id < %s", (20,)).fetchall():
            c.execute("SELECT payload FROM item WHERE parent = %s", (parent,)).fetchall()
        c.commit()


@case
def many_statements(role):
    """A loop over 20 different statements is a loop."""
    with connect(role) as c:
        for _ in range(3):
            for i in range(20):
                columns = sql.SQL(", ").join([sql.Identifier("id")] * (i + 1))
                c.execute(sql.SQL("SELECT {} FROM item WHERE id = %s").format(columns), (i,)).fetchall()


@case
def errors(role):
    with connect(role) as c:
        for i in range(5):
            try:
                c.execute("SELECT 1 / (%s::int - %s::int)", (i, i))
            except psycopg.errors.DivisionByZero:
                pass
            c.execute("SELECT 1")


@case
def think_after_two_packets(role):
    """If nobody answers, the kernel sends the second packet again: the client thinks, nothing is lost."""
    with connect(role) as c:
        for i in range(40):
            c.execute("SELECT payload FROM item WHERE parent = %s", (i,)).fetchall()
            if i >= 30:
                time.sleep(3 * THINK)


@case
def short_connections(role):
    for _ in range(10):
        with connect(role) as c:
            c.execute("SELECT 1")


@case
def end_in_transaction(role):
    for i in range(5):
        c = connect(role, autocommit=False)
        c.execute("INSERT INTO sink VALUES (1, 'x')")
        c.close()


main()
