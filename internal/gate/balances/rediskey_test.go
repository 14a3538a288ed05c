package balances

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

func TestRedisKey_DifferentBalances_DifferentKeys_InTheSlotOfTheTenant(t *testing.T) {
	t.Parallel()
	name, none := rapid.StringMatching(testenv.NamePattern), rapid.StringMatching("|"+testenv.NamePattern)
	id := rapid.StringMatching(testenv.IDPattern)
	draw := func(t *rapid.T) ledger.BalanceKey {
		return ledger.BalanceKey{
			Tenant: name.Draw(t, "tenant"), Meter: id.Draw(t, "meter"),
			Subject: none.Draw(t, "subject"),
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t), draw(t)
		require.True(t, (redisKey(a) == redisKey(b)) == (a == b), "%q and %q: %s", a, b, redisKey(a))
		require.Equal(t, bound.Tag(a.Tenant), redisstore.HashTag(redisKey(a)), "hash tag of %q", a)
		_, err := redisstore.NewReads(bound.Tag(a.Tenant), []string{redisKey(a)})
		require.NoError(t, err)
	})
	key := ledger.BalanceKey{Tenant: "acme", Meter: "api_calls", Subject: "team:ann"}
	require.Equal(t, "quota:{acme}:bal:api_calls:team:ann", redisKey(key), "as ever")
}
