package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSecret_AnyFormat_Redacted(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"": "",
		"postgres://user:hunter2@db:5432/q?password=hunter2": "postgres://user:xxxxx@db:5432/q",
		"redis+cluster://:hunter2@a:1,b:2":                   "redis+cluster://:xxxxx@a:1,b:2",
		"host=db password=hunter2":                           "(hidden)",
		"0123456789abcdef0123456789abcdef":                   "(hidden)",
	} {
		s := secret(value)
		for form, got := range map[string]string{
			"String": s.String(),
			"%v":     fmt.Sprintf("%v", s),
			"%#v":    fmt.Sprintf("%#v", s),
			"slog":   slog.AnyValue(s).Resolve().String(),
		} {
			if got != want {
				t.Errorf("%s of %q is %q, want %q", form, value, got, want)
			}
		}
	}
}

func TestPlainText_RemoteHosts_Warned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		database, redis string
		want            string
	}{
		{"postgres://u:hush@127.0.0.1/d", "redis://:hush@localhost:6379", ""},
		{"postgres://u:hush@/d?host=/run/postgresql", "redis://:hush@[::1]:6379", ""},
		{"postgres://u:hush@db.example/d", "", "PostgreSQL [db.example]"},
		{"postgres://u:hush@db.example/d?sslmode=disable", "", "PostgreSQL [db.example]"},
		{"postgres://u:hush@db.example/d?sslmode=require", "rediss://r.example", ""},
		{"postgres://u:hush@127.0.0.1,db2.example/d", "", "PostgreSQL [db2.example]"},
		{"postgres://u:hush@127.0.0.1/d", "redis+cluster://:hush@127.0.0.1:1,10.0.0.2:2", "Redis [10.0.0.2]"},
		{"postgres://u:hush@127.0.0.1/d", "rediss+sentinel://s1,s2/m", ""},
	} {
		var log bytes.Buffer
		cfg := serviceConfig{}
		cfg.DatabaseURL, cfg.RedisURL = secret(c.database), secret(c.redis)
		cfg.warnPlainText(slog.New(slog.NewTextHandler(&log, nil)))
		got := log.String()
		what, hosts, _ := strings.Cut(c.want, " ")
		if (c.want == "") != (got == "") || !strings.Contains(got, hosts) || strings.Contains(got, "hush") {
			t.Errorf("%s, %s: %q", c.database, c.redis, got)
		}
		if c.want != "" && (!strings.Contains(got, "PLAIN TEXT") || !strings.Contains(got, "to="+what)) {
			t.Errorf("%s, %s: %q", c.database, c.redis, got)
		}
	}
}
