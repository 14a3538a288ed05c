package main

import (
	"context"
	"fmt"
	"log/slog"
)

// redisLog is the logger for go-redis. While a server is down, go-redis prints a line for each attempt to connect,
// and flood drops most of these lines. go-redis has one logger for all clients of a process, so only main sets the
// logger.
type redisLog struct{ log *slog.Logger }

// Printf implements the logging interface of go-redis.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.WarnContext(ctx, "redis client", "detail", fmt.Sprintf(format, v...))
}
