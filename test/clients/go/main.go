// Workloads of Go's drivers.
//
//	clients DRIVER --list       the names of the driver's cases
//	clients DRIVER CASE...      run them, each as a role of its own
package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

const (
	rows  = 1000
	think = 30 * time.Millisecond

	selectItem = "SELECT payload FROM item WHERE id = $1"
	insertSink = "INSERT INTO sink VALUES ($1, $2)"
)

type workload struct {
	name string
	run  func(ctx context.Context, role string) error
}

var drivers = map[string][]workload{
	"pgx":              pgxCases,
	"database_sql_pgx": sqlCases("pgx"),
	"lib_pq":           append(sqlCases("postgres"), libpqCases...),
}

func main() {
	cases := drivers[os.Args[1]]
	if len(os.Args) == 3 && os.Args[2] == "--list" {
		for _, c := range cases {
			fmt.Println(c.name)
		}
		return
	}
	prefix := os.Getenv("DRIVER")
	for _, name := range os.Args[2:] {
		for _, c := range cases {
			if c.name != name {
				continue
			}
			if err := c.run(context.Background(), prefix+"_"+name); err != nil {
				fmt.Printf("error %s: %v\n", name, err)
			} else {
				fmt.Printf("done %s\n", name)
			}
		}
	}
}

// repeat calls a function with 0 to count-1 until one fails.
func repeat(count int, body func(i int) error) error {
	for i := 0; i < count; i++ {
		if err := body(i); err != nil {
			return err
		}
	}
	return nil
}
