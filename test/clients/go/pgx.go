package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func pgxConfig(role string) *pgx.ConnConfig {
	config, err := pgx.ParseConfig("")
	if err != nil {
		panic(err)
	}
	config.User = role
	config.RuntimeParams["application_name"] = role
	return config
}

// pgxWith makes a case of a function that gets a connection.
func pgxWith(mode pgx.QueryExecMode, body func(ctx context.Context, c *pgx.Conn) error) func(context.Context, string) error {
	return func(ctx context.Context, role string) error {
		config := pgxConfig(role)
		config.DefaultQueryExecMode = mode
		c, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		defer c.Close(ctx)
		return body(ctx, c)
	}
}

// selects runs a statement with a parameter 20 times.
func selects(ctx context.Context, c *pgx.Conn) error {
	return repeat(20, func(i int) error {
		var payload string
		return c.QueryRow(ctx, selectItem, i).Scan(&payload)
	})
}

func discard(result pgx.Rows, err error) error {
	if err != nil {
		return err
	}
	for result.Next() {
	}
	return result.Err()
}

type slowReader struct {
	blocks int
	pause  time.Duration
	rest   string
}

func (r *slowReader) Read(buffer []byte) (int, error) {
	if r.rest == "" {
		if r.blocks == 0 {
			return 0, io.EOF
		}
		r.blocks--
		r.rest = strings.Repeat("1\t"+strings.Repeat("x", 100)+"\n", 1000)
		time.Sleep(r.pause)
	}
	n := copy(buffer, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func insertRows(ctx context.Context, tx pgx.Tx) error {
	return repeat(5, func(i int) error {
		_, err := tx.Exec(ctx, insertSink, i, "x")
		return err
	})
}

var pgxCases = []workload{
	{"cache_statement", pgxWith(pgx.QueryExecModeCacheStatement, selects)},
	{"cache_describe", pgxWith(pgx.QueryExecModeCacheDescribe, selects)},
	{"describe_exec", pgxWith(pgx.QueryExecModeDescribeExec, selects)},
	{"exec", pgxWith(pgx.QueryExecModeExec, selects)},
	{"simple_protocol", pgxWith(pgx.QueryExecModeSimpleProtocol, selects)},
	{"transaction", pgxWith(pgx.QueryExecModeCacheStatement, func(ctx context.Context, c *pgx.Conn) error {
		return repeat(3, func(int) error {
			return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return insertRows(ctx, tx) })
		})
	})},
	{"batch", pgxWith(pgx.QueryExecModeCacheStatement, func(ctx context.Context, c *pgx.Conn) error {
		return repeat(5, func(int) error {
			batch := &pgx.Batch{}
			for i := 0; i < 10; i++ {
				batch.Queue(insertSink, i, "x")
				batch.Queue(selectItem, i)
			}
			return c.SendBatch(ctx, batch).Close()
		})
	})},
	{"batch_exec", pgxWith(pgx.QueryExecModeExec, func(ctx context.Context, c *pgx.Conn) error {
		return repeat(5, func(int) error {
			batch := &pgx.Batch{}
			for i := 0; i < 10; i++ {
				batch.Queue(insertSink, i, "x")
			}
			return c.SendBatch(ctx, batch).Close()
		})
	})},
	{"pipeline", pgxWith(pgx.QueryExecModeExec, func(ctx context.Context, c *pgx.Conn) error {
		pipeline := c.PgConn().StartPipeline(ctx)
		for i := 0; i < 10; i++ {
			pipeline.SendQueryParams("SELECT count(*) FROM item", nil, nil, nil, nil)
			if err := pipeline.Sync(); err != nil {
				return err
			}
		}
		for i := 0; i < 20; i++ {
			if _, err := pipeline.GetResults(); err != nil {
				return err
			}
		}
		return pipeline.Close()
	})},
	{"copy_from", pgxWith(pgx.QueryExecModeCacheStatement, func(ctx context.Context, c *pgx.Conn) error {
		return repeat(10, func(int) error {
			_, err := c.CopyFrom(ctx, pgx.Identifier{"sink"}, []string{"id", "payload"},
				pgx.CopyFromSlice(5, func(i int) ([]any, error) { return []any{i, "x"}, nil }))
			return err
		})
	})},
	{"copy_from_large", pgxWith(pgx.QueryExecModeCacheStatement, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.CopyFrom(ctx, pgx.Identifier{"sink"}, []string{"id", "payload"},
			pgx.CopyFromSlice(30000, func(i int) ([]any, error) { return []any{i, strings.Repeat("x", 100)}, nil }))
		return err
	})},
	{"copy_slow", pgxWith(pgx.QueryExecModeCacheStatement, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.PgConn().CopyFrom(ctx, &slowReader{blocks: 5, pause: think}, "COPY sink FROM STDIN")
		return err
	})},
	{"copy_failed", pgxWith(pgx.QueryExecModeExec, func(ctx context.Context, c *pgx.Conn) error {
		return repeat(5, func(int) error {
			data := "not a number\tx\n" + strings.Repeat("1\t"+strings.Repeat("x", 200)+"\n", 1000)
			if _, err := c.PgConn().CopyFrom(ctx, strings.NewReader(data), "COPY sink FROM STDIN"); err == nil {
				return fmt.Errorf("no error")
			}
			_, err := c.Exec(ctx, "SELECT 1")
			return err
		})
	})},
	{"copy_to", pgxWith(pgx.QueryExecModeExec, func(ctx context.Context, c *pgx.Conn) error {
		return repeat(3, func(int) error {
			_, err := c.PgConn().CopyTo(ctx, io.Discard, "COPY item TO STDOUT")
			return err
		})
	})},
	{"large_result", pgxWith(pgx.QueryExecModeCacheStatement, func(ctx context.Context, c *pgx.Conn) error {
		return repeat(3, func(int) error {
			return discard(c.Query(ctx, "SELECT repeat('x', 1000) FROM generate_series(1, 2000)"))
		})
	})},
	{"large_parameter", pgxWith(pgx.QueryExecModeExec, func(ctx context.Context, c *pgx.Conn) error {
		return repeat(3, func(int) error {
			return discard(c.Query(ctx, "SELECT length($1::text)", strings.Repeat("x", 1_000_000)))
		})
	})},
	{"think", pgxWith(pgx.QueryExecModeCacheStatement, func(ctx context.Context, c *pgx.Conn) error {
		return repeat(10, func(i int) error {
			time.Sleep(think)
			return discard(c.Query(ctx, selectItem, i))
		})
	})},
	{"n_plus_one", pgxWith(pgx.QueryExecModeCacheStatement, func(ctx context.Context, c *pgx.Conn) error {
		result, err := c.Query(ctx, "SELECT id FROM item WHERE id < $1", 20)
		if err != nil {
			return err
		}
		parents, err := pgx.CollectRows(result, pgx.RowTo[int])
		if err != nil {
			return err
		}
		for _, parent := range parents {
			if err := discard(c.Query(ctx, "SELECT payload FROM item WHERE parent = $1", parent)); err != nil {
				return err
			}
		}
		return nil
	})},
	{"errors", pgxWith(pgx.QueryExecModeCacheStatement, func(ctx context.Context, c *pgx.Conn) error {
		return repeat(5, func(int) error {
			if err := discard(c.Query(ctx, "SELECT 1 / ($1::int - 1)", 1)); err == nil {
				return fmt.Errorf("no error")
			}
			return discard(c.Query(ctx, "SELECT 1"))
		})
	})},
	{"pool", func(ctx context.Context, role string) error {
		config, err := pgxpool.ParseConfig("pool_max_conns=2")
		if err != nil {
			return err
		}
		config.ConnConfig.User = role
		config.ConnConfig.RuntimeParams["application_name"] = role
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return err
		}
		defer pool.Close()
		var group sync.WaitGroup
		for worker := 0; worker < 2; worker++ {
			group.Add(1)
			go func() {
				defer group.Done()
				repeat(10, func(i int) error { return discard(pool.Query(ctx, selectItem, i)) })
			}()
		}
		group.Wait()
		return nil
	}},
	{"short_connections", func(ctx context.Context, role string) error {
		return repeat(10, func(int) error {
			return pgxWith(pgx.QueryExecModeExec, func(ctx context.Context, c *pgx.Conn) error {
				return discard(c.Query(ctx, "SELECT 1"))
			})(ctx, role)
		})
	}},
}
