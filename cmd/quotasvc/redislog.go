package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// While a server is down go-redis prints a line per attempt to connect. These constants bound the number of lines in the log.
// The limiter and the balance cache log each change that affects callers.
const (
	redisLogLines = 5
	redisLogEvery = 10 * time.Second
)

// redisLog is the logger of go-redis. go-redis has one logger for all clients of a process, so only main sets it.
type redisLog struct {
	log *slog.Logger
	now func() time.Time

	mu       sync.Mutex
	began    time.Time // start of the interval in which lines are counted
	lines    int
	withheld int
}

// Printf implements the logging interface of go-redis.
func (l *redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.mu.Lock()
	now, withheld := l.now(), 0
	if now.Sub(l.began) >= redisLogEvery {
		withheld = l.withheld
		l.began, l.lines, l.withheld = now, 0, 0
	}
	l.lines++
	quiet := l.lines > redisLogLines
	if quiet {
		l.withheld++
	}
	l.mu.Unlock()
	if quiet {
		return
	}
	l.log.WarnContext(ctx, "redis client", "detail", fmt.Sprintf(format, v...), "withheld_before", withheld)
}
