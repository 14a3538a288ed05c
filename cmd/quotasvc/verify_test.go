package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/ledger/audit"
)

// The result names balances that could not be read, whether or not there are differences.
func TestVerify_Unread_NeverAllAgree(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]audit.Report{
		"3 balances, 0 entries, 0 grants, 0 closed periods, " +
			"0 cached copies (0 of them due for renewal): all agree (0s)\n": {
			Balances: 3, CopiesCompared: true,
		},
		"2 balances, 5 entries, 0 grants, 0 closed periods since the last clean verification (1 balances unchanged); " +
			"cached copies were not compared (no Redis is configured): " +
			"all others agree, 2 balances NOT READ (a time-out or a lock), the first: acme/api_calls/ann (0s)\n": {
			Balances: 2, Entries: 5, Incremental: true, Unchanged: 1, Unread: 2,
			UnreadFirst: []audit.Key{{Tenant: "acme", Meter: "api_calls", Subject: "ann"}},
		},
		"4 DIFFERENCES, 1 balances NOT READ (a time-out or a lock), the first: acme (0s)\n": {
			Count: 4, Unread: 1, UnreadFirst: []audit.Key{{Tenant: "acme"}},
		},
	} {
		var out strings.Builder
		err := printReport(&out, &r)
		assert.True(t, err == nil && strings.HasSuffix(out.String(), want), "%v: %s, want %s", err, out.String(), want)
	}
}
