package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// go-redis prints thousands of lines during an outage.
func TestRedisLog_Outage_LinesBounded(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(1_700_000_000, 0)
	l := &redisLog{log: slog.New(slog.NewJSONHandler(&out, nil)), now: func() time.Time { return now }}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { l.Printf(context.Background(), "dial %s: %d", "127.0.0.1:1", 7) })
	}
	all.Wait()
	if n := strings.Count(out.String(), `"detail":"dial 127.0.0.1:1: 7"`); n != redisLogLines {
		t.Errorf("%d lines of 100, want %d:\n%s", n, redisLogLines, out.String())
	}
	out.Reset()
	now = now.Add(redisLogEvery)
	l.Printf(context.Background(), "later")
	l.Printf(context.Background(), "later still")
	if got := out.String(); !strings.Contains(got, `"withheld_before":95`) || strings.Count(got, "\n") != 2 || !strings.Contains(got, `"withheld_before":0`) {
		t.Errorf("after a while: %s", got)
	}
}
