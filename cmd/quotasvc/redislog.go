package main

import (
	"context"
	"fmt"
	"log/slog"
)

// redisLog is the logger of go-redis. While a server is down go-redis prints a line per attempt to connect; the log's
// handler drops floods. go-redis has one logger for all clients of a process, so only main sets it.
type redisLog struct{ log *slog.Logger }

// Printf implements the logging interface of go-redis.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.log.WarnContext(ctx, "redis client", "detail", fmt.Sprintf(format, v...))
}
