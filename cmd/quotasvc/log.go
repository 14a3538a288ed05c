package main

import (
	"log/slog"
	"net/url"
	"os"
	"strings"

	"golang.org/x/term"
)

// logConfig says how the process logs. Logs go to standard error; what a command prints as its result goes to standard
// output.
type logConfig struct {
	Level  slog.Level `env:"QUOTASVC_LOG_LEVEL" default:"info" placeholder:"LEVEL" help:"Least level that is logged: debug, info, warn or error."`
	Format string     `env:"QUOTASVC_LOG_FORMAT" default:"auto" enum:"auto,text,json" placeholder:"FORMAT" help:"text, json, or auto: text on a terminal, json elsewhere."`
}

func (c logConfig) logger(out *os.File) *slog.Logger {
	options := &slog.HandlerOptions{Level: c.Level}
	if c.Format == "text" || c.Format == "auto" && term.IsTerminal(int(out.Fd())) {
		return slog.New(slog.NewTextHandler(out, options))
	}
	return slog.New(slog.NewJSONHandler(out, options))
}

// secret is a value that must not be printed: a key, or a URL with a password. It redacts itself in logs and messages;
// string(s) is the value.
type secret string

// String is the value without what is secret in it.
func (s secret) String() string {
	if s == "" {
		return ""
	}
	u, err := url.Parse(string(s))
	if err != nil || u.Host == "" || !strings.Contains(string(s), "://") {
		return "(hidden)"
	}
	u.RawQuery, u.Fragment = "", "" // passwords may come as parameters too
	return u.Redacted()
}

// GoString keeps %#v from printing the value.
func (s secret) GoString() string { return s.String() }

// LogValue is what slog prints.
func (s secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
