// Workloads of postgres.js.

import { Readable, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { THINK, fails, load, main, repeat, rows, sleep } from './workload.js';

const listing = process.argv[2] === '--list';
const postgres = listing ? null : await load('postgres');

// A case of a function that gets a pool of one connection.
const withSql = (body, options = {}) => async (role) => {
  const sql = postgres({ user: role, max: 1, connection: { application_name: role },
    onnotice: () => {}, ...options });
  try {
    await body(sql);
  } finally {
    await sql.end({ timeout: 2 });
  }
};

await main({
  with_parameter: withSql((sql) => repeat(20, (i) => sql`SELECT payload FROM item WHERE id = ${i}`)),
  never_prepared: withSql((sql) => repeat(20, (i) => sql`SELECT payload FROM item WHERE id = ${i}`),
    { prepare: false }),
  no_types: withSql((sql) => repeat(20, (i) => sql`SELECT payload FROM item WHERE id = ${i}`),
    { fetch_types: false }),
  simple_protocol: withSql((sql) => repeat(10, () => sql`SELECT 1; SELECT 2`.simple())),
  pipelined: withSql((sql) => Promise.all(Array.from({ length: 20 },
    (_, i) => sql`SELECT payload FROM item WHERE id = ${i}`))),
  pipelined_different: withSql((sql) => repeat(5, (i) => Promise.all([
    sql`SELECT payload FROM item WHERE id = ${i}`,
    sql`SELECT parent FROM item WHERE id = ${i}`,
    sql`INSERT INTO sink VALUES (${i}, ${'x'})`]))),
  pipelined_large: withSql((sql) => repeat(3, () => Promise.all(Array.from({ length: 5 },
    (_, i) => sql`SELECT length(${'x'.repeat(100_000)}::text), ${i}::int`)))),
  transaction: withSql((sql) => repeat(3, () => sql.begin((tx) => repeat(5,
    (i) => tx`INSERT INTO sink VALUES (${i}, 'x')`)))),
  transaction_pipelined: withSql((sql) => repeat(3, () => sql.begin((tx) => Array.from({ length: 5 },
    (_, i) => tx`INSERT INTO sink VALUES (${i}, 'x')`)))),
  insert_many: withSql((sql) => repeat(5, () => sql`INSERT INTO sink ${
    sql(Array.from({ length: 10 }, (_, id) => ({ id, payload: 'x' })))}`)),
  cursor: withSql((sql) => sql`SELECT * FROM item`.cursor(100, async () => {})),
  for_each: withSql((sql) => sql`SELECT * FROM item`.forEach(() => {})),
  copy_in: withSql((sql) => repeat(10, async () => pipeline(
    Readable.from(rows(5)), await sql`COPY sink FROM STDIN`.writable()))),
  copy_in_large: withSql(async (sql) => pipeline(
    Readable.from(rows(30000)), await sql`COPY sink FROM STDIN`.writable())),
  copy_out: withSql(async (sql) => pipeline(
    await sql`COPY item TO STDOUT`.readable(), new Writable({ write: (data, encoding, done) => done() }))),
  large_result: withSql((sql) => repeat(3, () => sql`
    SELECT repeat('x', 1000) FROM generate_series(1, 2000)`)),
  large_parameter: withSql((sql) => repeat(3, () => sql`SELECT length(${'x'.repeat(1_000_000)}::text)`)),
  think: withSql((sql) => repeat(10, async (i) => {
    await sleep(THINK);
    await sql`SELECT payload FROM item WHERE id = ${i}`;
  })),
  n_plus_one: withSql(async (sql) => {
    for (const parent of await sql`SELECT id FROM item WHERE id < ${20}`) {
      await sql`SELECT payload FROM item WHERE parent = ${parent.id}`;
    }
  }),
  errors: withSql((sql) => repeat(5, async () => {
    await fails(sql`SELECT 1 / (${1}::int - 1)`);
    await sql`SELECT 1`;
  })),
  short_connections: (role) => repeat(10, () => withSql((sql) => sql`SELECT 1`)(role)),
});
