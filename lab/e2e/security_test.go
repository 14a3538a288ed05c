package e2e

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// Every attack in attacks.md has a row that names its tests.
func TestSecurity_Table_EveryAttackHasTests(t *testing.T) {
	t.Parallel()
	rows := heldRows(t, "../lab/e2e/attacks.md", 2)
	assert.True(t, len(rows) >= 50, "%d attacks", len(rows))
	seen := map[string]bool{}
	for _, row := range rows {
		assert.False(t, seen[row.what], "%q has two rows", row.what)
		seen[row.what] = true
	}
}

// An attacker who can write to Redis can store a copy of a balance there. If the copy seems newer than the instance's
// own data, a check uses it. A debit never uses it. A copy that is older than the instance's own data is not used at
// all.
func TestRedis_OldBalancePutBack_DebitIsRefused(t *testing.T) {
	t.Parallel()
	postgres, server := testenv.Postgres(t), testenv.RedisPrivate(t)
	env := []string{"QUOTASVC_DATABASE_URL=" + postgres, "QUOTASVC_REDIS_URL=" + server.URL, "QUOTASVC_ADMIN_KEY=" + testKey, "QUOTASVC_VERIFY_EVERY=0s"}
	attacker := testenv.CloseAtEnd(t, redis.NewClient(server.Options()))
	ctx := t.Context()

	in := serve(t, env).setUp(t, 10)
	allowed := func() bool {
		got := in.do(t, 200, "POST", "/v1/check", "", debitOf("acme", "api_calls", 1))
		return strings.Contains(string(got.body), `"allowed":true`)
	}
	require.True(t, allowed(), "there are ten units")
	var key, old string
	testenv.Eventually(t, func() bool {
		keys, err := attacker.Keys(ctx, "quota:{*").Result()
		if err != nil || len(keys) != 1 {
			return false
		}
		key = keys[0]
		old, err = attacker.Get(ctx, key).Result()
		return err == nil
	}, "the copy is in Redis")
	in.do(t, 200, "POST", "/v1/debits", "all", debitOf("acme", "api_calls", 10))
	put := func(text string) {
		require.NoError(t, attacker.Set(ctx, key, text, 0).Err())
	}
	for range 10 {
		put(old)
		assert.False(t, allowed(), "an old copy is believed")
	}
	forged := strings.Fields(old) // its seq and format; the last field is the instant of the copy
	forged[0], forged[len(forged)-1] = "1000", strconv.FormatInt(time.Now().UnixMicro(), 10)
	put(strings.Join(forged, " "))
	testenv.Eventually(t, allowed, "docs/security.md says that a check believes the copy")
	in.do(t, 429, "POST", "/v1/debits", "beyond", debitOf("acme", "api_calls", 1))
	b := in.balance(t, "acme", "api_calls")
	assert.True(t, b.Used == 10 && b.Remaining == 0, b)
	require.NoError(t, attacker.Del(ctx, key).Err()) // verify also compares copies, and would report this copy
	must(t, env, "verify")
}
