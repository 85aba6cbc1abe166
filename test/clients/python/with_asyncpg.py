"""Workloads of asyncpg."""

import asyncio

import asyncpg

from workload import ROWS, THINK, case, main

SELECT = "SELECT payload FROM item WHERE id = $1"


class connect:
    def __init__(self, role, **options):
        self.options = dict(user=role, server_settings={"application_name": role}, **options)

    async def __aenter__(self):
        self.connection = await asyncpg.connect(**self.options)
        return self.connection

    async def __aexit__(self, *exc_info):
        await self.connection.close()


@case
async def fetch(role):
    async with connect(role) as c:
        for i in range(20):
            await c.fetch(SELECT, i)


@case
async def fetchrow(role):
    async with connect(role) as c:
        for i in range(20):
            await c.fetchrow(SELECT, i)


@case
async def fetchval(role):
    async with connect(role) as c:
        for i in range(20):
            await c.fetchval(SELECT, i)


@case
async def fetchrow_of_many(role):
    """The first row of many: the portal stays suspended."""
    async with connect(role) as c:
        for i in range(10):
            await c.fetchrow("SELECT id FROM item WHERE id > $1", i)


@case
async def no_statement_cache(role):
    async with connect(role, statement_cache_size=0) as c:
        for i in range(10):
            await c.fetch(SELECT, i)


@case
async def simple_protocol(role):
    async with connect(role) as c:
        for i in range(10):
            await c.execute(f"INSERT INTO sink VALUES ({i}, 'x')")
        await c.execute("SELECT 1; SELECT 2; SELECT 3")


@case
async def prepared(role):
    async with connect(role) as c:
        statement = await c.prepare(SELECT)
        for i in range(20):
            await statement.fetch(i)


@case
async def transaction(role):
    async with connect(role) as c:
        for _ in range(3):
            async with c.transaction():
                for i in range(5):
                    await c.execute("INSERT INTO sink VALUES ($1, 'x')", i)


@case
async def savepoints(role):
    async with connect(role) as c:
        async with c.transaction():
            for i in range(3):
                try:
                    async with c.transaction():
                        await c.execute("INSERT INTO sink VALUES ($1, 'x')", i)
                        await c.execute("SELECT 1 / ($1::int - 1)", i)
                except asyncpg.DivisionByZeroError:
                    pass


@case
async def executemany(role):
    async with connect(role) as c:
        for _ in range(5):
            await c.executemany("INSERT INTO sink VALUES ($1, $2)", [(i, "x") for i in range(10)])


@case
async def executemany_failed(role):
    """The rest of the request is still on its way when an early part fails."""
    async with connect(role) as c:
        for _ in range(3):
            try:
                await c.executemany("SELECT 1 / ($1::int - 5), length($2)", [(i, "x" * 50000) for i in range(40)])
            except asyncpg.DivisionByZeroError:
                pass
            await asyncio.sleep(THINK)


@case
async def fetchmany(role):
    async with connect(role) as c:
        for _ in range(3):
            await c.fetchmany("INSERT INTO sink VALUES ($1, $2) RETURNING id", [(i, "x") for i in range(10)])


@case
async def cursor(role):
    async with connect(role) as c:
        async with c.transaction():
            count = 0
            async for _ in c.cursor("SELECT * FROM item", prefetch=100):
                count += 1
            assert count == ROWS


@case
async def copy_in(role):
    async with connect(role) as c:
        for _ in range(10):
            await c.copy_records_to_table("sink", records=[(i, "x") for i in range(5)])


@case
async def copy_in_large(role):
    async with connect(role) as c:
        await c.copy_records_to_table("sink", records=[(i, "x" * 100) for i in range(30000)])


@case
async def copy_failed(role):
    async with connect(role) as c:
        for _ in range(5):
            try:
                await c.copy_to_table("sink", source=failing())
            except asyncpg.PostgresError:
                pass
            await c.fetch("SELECT 1")


async def failing():
    yield b"not a number\tx\n"
    for i in range(30):
        yield b"%d\t%s\n" % (i, b"x" * 20000)


@case
async def copy_out(role):
    async def discard(data):
        pass

    async with connect(role) as c:
        for _ in range(3):
            await c.copy_from_query("SELECT * FROM item", output=discard)


@case
async def large_result(role):
    async with connect(role) as c:
        for _ in range(3):
            await c.fetch("SELECT repeat('x', 1000) FROM generate_series(1, 2000)")


@case
async def large_parameter(role):
    async with connect(role) as c:
        for _ in range(5):
            await c.fetch("SELECT length($1)", "x" * 1_000_000)


@case
async def think(role):
    async with connect(role) as c:
        for _ in range(10):
            await c.fetch("SELECT 1")
            await asyncio.sleep(THINK)


@case
async def think_in_transaction(role):
    async with connect(role) as c:
        async with c.transaction():
            for _ in range(10):
                await c.fetch("SELECT 1")
                await asyncio.sleep(THINK)


@case
async def n_plus_one(role):
    async with connect(role) as c:
        for row in await c.fetch("SELECT id FROM item WHERE id < $1", 20):
            await c.fetchrow("SELECT payload FROM item WHERE parent = $1", row["id"])


@case
async def introspection(role):
    """A type that the driver does not know makes it ask for it."""
    async with connect(role) as c:
        await c.fetch("SELECT $1::mood", "good")
        await c.fetch("SELECT ARRAY[$1::mood]", "good")


@case
async def errors(role):
    async with connect(role) as c:
        for _ in range(5):
            try:
                await c.fetch("SELECT 1 / ($1::int - 1)", 1)
            except asyncpg.DivisionByZeroError:
                pass
            await c.fetch("SELECT 1")


@case
async def pool(role):
    """Each release of a pooled connection resets the session."""
    async with asyncpg.create_pool(user=role, min_size=2, max_size=2,
                                   server_settings={"application_name": role}) as p:
        for i in range(5):
            await asyncio.gather(p.fetchval(SELECT, i), p.fetchval(SELECT, i))


@case
async def short_connections(role):
    for _ in range(10):
        async with connect(role) as c:
            await c.fetchval("SELECT 1")


main()
