"""Code that the tests and benches written in Python share.

    poll        wait until something is true, with a deadline
    tally       the result: one line for each check, the counts, the exit status
    program     common options of commands, and their end on a signal
    workspace   a temporary directory, and processes in it as an unprivileged user
    postgres    the PostgreSQL of PG_CONFIG, private servers, queries by psql
    network     network namespaces
    machine     time that the hypervisor takes
    picture     charts as SVG files
    pgclient    a client of the raw protocol that sends exactly what it is told

A program puts test/lib into its path and imports what it needs:

    sys.path.insert(0, str(HERE.parent / "test" / "lib"))
    from harness import postgres, program, tally, workspace

Nothing here knows pgnetlat, and nothing needs more than Python's own library.
"""
