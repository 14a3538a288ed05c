package main

import (
	"context"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"golang.org/x/term"
)

// logConfig configures logging. Logs go to standard error; the result of a command goes to standard output.
type logConfig struct {
	Level  slog.Level `env:"QUOTASVC_LOG_LEVEL" default:"info" placeholder:"LEVEL" help:"Lowest level that is logged: debug, info, warn or error."`
	Format string     `env:"QUOTASVC_LOG_FORMAT" default:"auto" enum:"auto,text,json" placeholder:"FORMAT" help:"text, json or auto. auto is text on a terminal and json elsewhere."`
}

// handler returns the handler of the log, which writes to out. Its lines pass through its queue. level can be changed
// while the process runs.
func (c logConfig) handler(out *os.File, level *slog.LevelVar) *flood {
	level.Set(c.Level)
	options := &slog.HandlerOptions{Level: level}
	format := func(to io.Writer) slog.Handler { return slog.NewJSONHandler(to, options) }
	if c.Format == "text" || c.Format == "auto" && term.IsTerminal(int(out.Fd())) {
		format = func(to io.Writer) slog.Handler { return slog.NewTextHandler(to, options) }
	}
	return newFlood(newLogQueue(out, format))
}

// byLevel is a slog.Handler that passes a line to the handler of its level. So the queue knows the level of each line.
type byLevel [len(logLevels)]slog.Handler

// Enabled implements slog.Handler.
func (h byLevel) Enabled(ctx context.Context, level slog.Level) bool {
	return h[levelIndex(level)].Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h byLevel) Handle(ctx context.Context, line slog.Record) error {
	return h[levelIndex(line.Level)].Handle(ctx, line)
}

// WithAttrs implements slog.Handler.
func (h byLevel) WithAttrs(attrs []slog.Attr) slog.Handler {
	for i := range h {
		h[i] = h[i].WithAttrs(attrs)
	}
	return h
}

// WithGroup implements slog.Handler.
func (h byLevel) WithGroup(name string) slog.Handler {
	for i := range h {
		h[i] = h[i].WithGroup(name)
	}
	return h
}

// secret is a value that must not be printed: a key, or a URL with a password. Its secret parts are removed in logs
// and messages. string(s) returns the value.
type secret string

// String returns the value without its secret parts. A URL is returned without its password and its query. Any other
// value is returned as (hidden).
func (s secret) String() string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(string(s))
	if err != nil || u.Host == "" || !strings.Contains(string(s), "://") {
		return "(hidden)"
	}
	u.RawQuery, u.Fragment = "", "" // a parameter may contain a password
	return u.Redacted()
}

// GoString returns the value for %#v, without its secret parts.
func (s secret) GoString() string { return s.String() }

// LogValue returns the value for slog, without its secret parts.
func (s secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
