package main

import (
	"strings"
	"testing"

	"github.com/quotasvc/quotasvc/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// The bounds of one debit and one check. 240 returns are the aim for a debit. The other bounds are slightly above the
// figures of the day on which they were last set; lower them when the figures fall. The aim for a debit is 65 types.
const (
	debitReturnsMax, debitTypesMax = 240, 65
	checkReturnsMax, checkTypesMax = 376, 118
)

func TestReadingPath_DebitAndCheck_WithinBounds(t *testing.T) {
	t.Parallel()
	paths, err := measure(t.Context(), "../../..", t.TempDir(), testenv.Postgres(t), testenv.RedisURL(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, bound := range []struct {
		request        string
		returns, types int
	}{{"debit", debitReturnsMax, debitTypesMax}, {"check", checkReturnsMax, checkTypesMax}} {
		p := paths[i]
		var report strings.Builder
		p.print(&report, false, false)
		t.Log(report.String())
		if p.request != bound.request || p.returns > bound.returns || len(p.types) > bound.types {
			t.Errorf("one %s returns %d times to a file left before and meets %d types; at most %d and %d are allowed: see make reading-path ARGS='-trace -types'",
				p.request, p.returns, len(p.types), bound.returns, bound.types)
		}
		if p.functions < 50 || p.returns == 0 || len(p.types) == 0 {
			t.Errorf("one %s runs %d functions only: is the right request recorded?", p.request, p.functions)
		}
	}
}
