package ledger

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// Operations of a tenant are found by their ids, so two events of a tenant must not share one.
func TestSystemID_DifferentEvents_DifferentIDs(t *testing.T) {
	t.Parallel()
	name, none := rapid.StringMatching(testenv.NamePattern), rapid.StringMatching("|"+testenv.NamePattern)
	id := rapid.StringMatching(testenv.IDPattern)
	type event struct{ meter, subject, grant string }
	draw := func(t *rapid.T) event {
		return event{id.Draw(t, "meter"), none.Draw(t, "subject"), name.Draw(t, "grant")}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t), draw(t)
		of := func(e event) string {
			return systemID("expire", BalanceKey{"acme", e.meter, e.subject}, e.grant)
		}
		require.True(t, (of(a) == of(b)) == (a == b), "%q and %q: %s", a, b, of(a))
	})
	ann := BalanceKey{"acme", "api_calls", "ann"}
	require.Equal(t, "§expire/api_calls/ann/g1", systemID("expire", ann, "g1"), "as ever")
}
