package main

import (
	"strings"
	"testing"

	"github.com/quotasvc/quotasvc/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// The bounds of one debit and one check. The aims are 240 returns and 65 types for a debit, and no more returns for a check than at
// commit c2e5241. Keys with scopes and tenants, the actor, the caller's deadline and units by meter added 19 returns and twelve types
// to a debit, and ten types to a check; what is answered from memory, and who is interested in a balance, six returns and seven types to a
// debit, and eight types to a check; overrides and the life of the data in Redis ten returns to a debit and fourteen to a check
// (docs/reading-path.md); shard groups and refused questions eleven returns and two types to a debit; rules in versions 22 returns and two types
// to a check.
const (
	debitReturnsMax, debitTypesMax = 240 + 19 + 6 + 10 + 11 + 26, 65 + 12 + 7 + 6 + 2 + 7
	checkReturnsMax, checkTypesMax = 376 + 14 + 22 + 4, 115 + 10 + 8 + 8 + 2 + 2
)

func TestReadingPath_DebitAndCheck_WithinBounds(t *testing.T) {
	t.Parallel()
	testenv.NotOnCitus(t, "the path that a newcomer reads is that on one server")
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
