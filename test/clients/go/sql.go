package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
)

// sqlWith makes a case of a function that gets a database with one connection.
func sqlWith(driver, options string, body func(ctx context.Context, db *sql.DB) error) func(context.Context, string) error {
	return func(ctx context.Context, role string) error {
		db, err := sql.Open(driver, fmt.Sprintf("user=%s application_name=%s %s", role, role, options))
		if err != nil {
			return err
		}
		defer db.Close()
		db.SetMaxOpenConns(1)
		return body(ctx, db)
	}
}

func drain(result *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer result.Close()
	for result.Next() {
	}
	return result.Err()
}

// selectItems runs a statement with a parameter 20 times.
func selectItems(ctx context.Context, db *sql.DB) error {
	return repeat(20, func(i int) error {
		var payload string
		return db.QueryRowContext(ctx, selectItem, i).Scan(&payload)
	})
}

// sqlCases are what every driver below database/sql can do.
func sqlCases(driver string) []workload {
	with := func(body func(ctx context.Context, db *sql.DB) error) func(context.Context, string) error {
		return sqlWith(driver, "", body)
	}
	return []workload{
		{"with_argument", with(selectItems)},
		{"without_argument", with(func(ctx context.Context, db *sql.DB) error {
			return repeat(20, func(int) error { return drain(db.QueryContext(ctx, "SELECT count(*) FROM item")) })
		})},
		{"prepared", with(func(ctx context.Context, db *sql.DB) error {
			statement, err := db.PrepareContext(ctx, selectItem)
			if err != nil {
				return err
			}
			defer statement.Close()
			return repeat(20, func(i int) error { return drain(statement.QueryContext(ctx, i)) })
		})},
		{"exec", with(func(ctx context.Context, db *sql.DB) error {
			return repeat(10, func(i int) error {
				_, err := db.ExecContext(ctx, insertSink, i, "x")
				return err
			})
		})},
		{"transaction", with(func(ctx context.Context, db *sql.DB) error {
			return repeat(3, func(int) error {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				err = repeat(5, func(i int) error {
					_, err := tx.ExecContext(ctx, insertSink, i, "x")
					return err
				})
				if err != nil {
					return err
				}
				return tx.Commit()
			})
		})},
		{"large_result", with(func(ctx context.Context, db *sql.DB) error {
			return repeat(3, func(int) error {
				return drain(db.QueryContext(ctx, "SELECT repeat('x', 1000) FROM generate_series(1, 2000)"))
			})
		})},
		{"large_parameter", with(func(ctx context.Context, db *sql.DB) error {
			return repeat(3, func(int) error {
				return drain(db.QueryContext(ctx, "SELECT length($1::text)", strings.Repeat("x", 1_000_000)))
			})
		})},
		{"think", with(func(ctx context.Context, db *sql.DB) error {
			return repeat(10, func(i int) error {
				time.Sleep(think)
				return drain(db.QueryContext(ctx, selectItem, i))
			})
		})},
		{"n_plus_one", with(func(ctx context.Context, db *sql.DB) error {
			if err := drain(db.QueryContext(ctx, "SELECT id FROM item WHERE id < $1", 20)); err != nil {
				return err
			}
			return repeat(20, func(parent int) error {
				return drain(db.QueryContext(ctx, "SELECT payload FROM item WHERE parent = $1", parent))
			})
		})},
		{"errors", with(func(ctx context.Context, db *sql.DB) error {
			return repeat(5, func(int) error {
				if err := drain(db.QueryContext(ctx, "SELECT 1 / ($1::int - 1)", 1)); err == nil {
					return fmt.Errorf("no error")
				}
				return drain(db.QueryContext(ctx, "SELECT 1"))
			})
		})},
		{"short_connections", func(ctx context.Context, role string) error {
			return repeat(10, func(int) error {
				return with(func(ctx context.Context, db *sql.DB) error {
					return drain(db.QueryContext(ctx, "SELECT 1"))
				})(ctx, role)
			})
		}},
	}
}

func copyIn(ctx context.Context, db *sql.DB, count int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	statement, err := tx.Prepare(pq.CopyIn("sink", "id", "payload"))
	if err != nil {
		return err
	}
	for i := 0; i < count; i++ {
		if _, err := statement.Exec(i, strings.Repeat("x", 100)); err != nil {
			return err
		}
	}
	if _, err := statement.Exec(); err != nil {
		return err
	}
	if err := statement.Close(); err != nil {
		return err
	}
	return tx.Commit()
}

var libpqCases = []workload{
	{"binary_parameters", sqlWith("postgres", "binary_parameters=yes", selectItems)},
	{"copy_in", sqlWith("postgres", "", func(ctx context.Context, db *sql.DB) error {
		return repeat(10, func(int) error { return copyIn(ctx, db, 5) })
	})},
	{"copy_in_large", sqlWith("postgres", "", func(ctx context.Context, db *sql.DB) error {
		return copyIn(ctx, db, 30000)
	})},
}
