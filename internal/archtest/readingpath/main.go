package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
)

func main() {
	root := flag.String("C", ".", "the repository's root `directory`")
	trace := flag.Bool("trace", false, "print the walk: a line for each change of file")
	typeNames := flag.Bool("types", false, "print the names of the types that are met")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *root, *trace, *typeNames); err != nil {
		fmt.Fprintln(os.Stderr, "readingpath:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, root string, trace, typeNames bool) (err error) {
	dir, err := os.MkdirTemp("", "quotasvc-reading-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	servers, err := startServers(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, servers.stop()) }()
	paths, err := measure(ctx, root, dir, servers.postgres.URL(), servers.redis.URL())
	if err != nil {
		return err
	}
	for _, p := range paths {
		p.print(out, trace, typeNames)
	}
	return nil
}

// measure records debits and checks on the given servers, and walks what all of a kind ran.
func measure(ctx context.Context, root, dir, databaseURL, redisURL string) ([]*readingPath, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	binary := filepath.Join(dir, "quotasvc")
	if err := build(ctx, root, binary); err != nil {
		return nil, err
	}
	if err := record(ctx, binary, dir, databaseURL, redisURL); err != nil {
		return nil, err
	}
	code, err := load(ctx, root)
	if err != nil {
		return nil, err
	}
	idle, err := readCounters(ctx, filepath.Join(dir, "idle"))
	if err != nil {
		return nil, err
	}
	var paths []*readingPath
	for _, request := range []string{"debit", "check"} {
		records, err := filepath.Glob(filepath.Join(dir, request+"-*"))
		if err != nil {
			return nil, err
		}
		var counted counters
		for _, record := range records {
			one, err := readCounters(ctx, record)
			if err != nil {
				return nil, err
			}
			counted = counted.and(one)
		}
		p, err := walk(request, code, counted, idle)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	return paths, nil
}
