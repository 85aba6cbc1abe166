// Workloads of node-postgres.

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

import { THINK, fails, load, main, repeat, rows, sleep } from './workload.js';

const listing = process.argv[2] === '--list';
const pg = listing ? {} : await load('pg');
const Cursor = listing ? null : await load('pg-cursor');
const copy = listing ? null : await load('pg-copy-streams');
const QueryStream = listing ? null : await load('pg-query-stream');

const SELECT = 'SELECT payload FROM item WHERE id = $1';
const INSERT = 'INSERT INTO sink VALUES ($1, $2)';

// A case of a function that gets a connected client.
const withClient = (body, options = {}) => async (role) => {
  const client = new pg.Client({ user: role, application_name: role, ...options });
  await client.connect();
  try {
    await body(client);
  } finally {
    await client.end();
  }
};

await main({
  with_parameter: withClient((c) => repeat(20, (i) => c.query(SELECT, [i]))),
  without_parameter: withClient((c) => repeat(20, () => c.query('SELECT count(*) FROM item'))),
  named: withClient((c) => repeat(20, (i) => c.query({ name: 'item', text: SELECT, values: [i] }))),
  several_in_one: withClient((c) => repeat(5, () => c.query('SELECT 1; SELECT 2; SELECT 3'))),
  queued: withClient((c) => Promise.all(Array.from({ length: 20 }, (_, i) => c.query(SELECT, [i])))),
  transaction: withClient((c) => repeat(3, async () => {
    await c.query('BEGIN');
    await repeat(5, (i) => c.query(INSERT, [i, 'x']));
    await c.query('COMMIT');
  })),
  max_rows: withClient((c) => repeat(10, () => c.query({ text: 'SELECT * FROM item', rows: 100 }))),
  cursor: withClient(async (c) => {
    const cursor = c.query(new Cursor('SELECT * FROM item'));
    let got;
    do {
      got = await cursor.read(100);
    } while (got.length);
    await cursor.close();
  }),
  cursor_closed_early: withClient((c) => repeat(3, async () => {
    const cursor = c.query(new Cursor('SELECT * FROM item'));
    await cursor.read(10);
    await cursor.close();
  })),
  query_stream: withClient(async (c) => {
    for await (const row of c.query(new QueryStream('SELECT * FROM item', [], { batchSize: 100 })));
  }),
  copy_in: withClient((c) => repeat(10, () => pipeline(
    Readable.from(rows(5)), c.query(copy.from('COPY sink FROM STDIN'))))),
  copy_in_large: withClient((c) => pipeline(
    Readable.from(rows(30000)), c.query(copy.from('COPY sink FROM STDIN')))),
  copy_failed: withClient((c) => repeat(5, async () => {
    await fails(pipeline(Readable.from(['not a number\tx\n', ...rows(3000)]),
      c.query(copy.from('COPY sink FROM STDIN'))));
    await c.query('SELECT 1');
  })),
  copy_out: withClient((c) => repeat(3, async () => {
    for await (const data of c.query(copy.to('COPY item TO STDOUT')));
  })),
  large_result: withClient((c) => repeat(3, () => c.query(
    "SELECT repeat('x', 1000) FROM generate_series(1, 2000)"))),
  large_parameter: withClient((c) => repeat(3, () => c.query('SELECT length($1)', ['x'.repeat(1_000_000)]))),
  think: withClient((c) => repeat(10, async (i) => {
    await sleep(THINK);
    await c.query(SELECT, [i]);
  })),
  n_plus_one: withClient(async (c) => {
    const parents = await c.query('SELECT id FROM item WHERE id < $1', [20]);
    for (const parent of parents.rows) {
      await c.query('SELECT payload FROM item WHERE parent = $1', [parent.id]);
    }
  }),
  errors: withClient((c) => repeat(5, async () => {
    await fails(c.query('SELECT 1 / ($1::int - 1)', [1]));
    await c.query('SELECT 1');
  })),
  pool: async (role) => {
    const pool = new pg.Pool({ user: role, application_name: role, max: 2 });
    await repeat(5, (i) => Promise.all([pool.query(SELECT, [i]), pool.query(SELECT, [i])]));
    await pool.end();
  },
  short_connections: (role) => repeat(10, () => withClient((c) => c.query('SELECT 1'))(role)),
});
