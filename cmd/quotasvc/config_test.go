package main

import (
	"bytes"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The table of settings in docs/operations/settings.md has exactly the environment variables that serve reads.
func TestSettings_Table_NamesAllOfServe(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/operations/settings.md")
	require.NoError(t, err)
	variable := regexp.MustCompile("`(QUOTASVC_[A-Z_]+)`")
	var named []string
	for line := range strings.Lines(string(page)) {
		if cell, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | "); row {
			for _, m := range variable.FindAllStringSubmatch(cell, -1) {
				named = append(named, m[1])
			}
		}
	}
	var c cli
	parser, err := kong.New(&c, kong.Vars{"listen": "", "ops_listen": "", "clock_skew_max": "1s", "version": ""})
	require.NoError(t, err)
	var read []string
	for _, command := range parser.Model.Children {
		if command.Name == "serve" {
			for _, group := range command.AllFlags(true) {
				for _, f := range group {
					read = append(read, f.Envs...)
				}
			}
		}
	}
	for _, name := range read {
		assert.True(t, slices.Contains(named, name), "the table lacks %s", name)
	}
	for _, name := range named {
		assert.True(t, slices.Contains(read, name), "serve does not read %s", name)
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
		assert.True(t, (c.want == "") == (got == "") && strings.Contains(got, hosts) && !strings.Contains(got, "hush"),
			"%s, %s: %q", c.database, c.redis, got)
		assert.False(t, c.want != "" && (!strings.Contains(got, "PLAIN TEXT") || !strings.Contains(got, "to="+what)),
			"%s, %s: %q", c.database, c.redis, got)
	}
}
