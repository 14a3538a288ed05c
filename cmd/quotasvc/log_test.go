package main

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
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
			assert.True(t, got == want, "%s of %q is %q, want %q", form, value, got, want)
		}
	}
}
