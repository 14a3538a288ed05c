package main

import (
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

// handler returns the handler of the log. level can be changed while the process runs.
func (c logConfig) handler(out *os.File, level *slog.LevelVar) *flood {
	level.Set(c.Level)
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "text" || c.Format == "auto" && term.IsTerminal(int(out.Fd())) {
		return newFlood(slog.NewTextHandler(out, options))
	}
	return newFlood(slog.NewJSONHandler(out, options))
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
