package main

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/testenv"
)

// Every attack that the page names is held by a test.
func TestSecurity_Table_EveryAttackHasTests(t *testing.T) {
	t.Parallel()
	rows := heldRows(t, "security.md", 2)
	if len(rows) < 50 {
		t.Errorf("%d attacks", len(rows))
	}
	seen := map[string]bool{}
	for _, row := range rows {
		if seen[row.what] {
			t.Errorf("%q has two rows", row.what)
		}
		seen[row.what] = true
	}
}

// Who can write Redis can put an old copy of a balance back. A check of an instance that knows no better believes it; a debit does not.
func TestRedis_OldBalancePutBack_DebitIsRefused(t *testing.T) {
	t.Parallel()
	postgres, server := testenv.Postgres(t), testenv.RedisPrivate(t)
	env := []string{"QUOTASVC_DATABASE_URL=" + postgres, "QUOTASVC_REDIS_URL=" + server.URL, "QUOTASVC_ADMIN_KEY=" + testKey, "QUOTASVC_VERIFY_EVERY=0s"}
	attacker := redis.NewClient(server.Options())
	defer func() { _ = attacker.Close() }()
	ctx := t.Context()

	in := serve(t, env)
	in.setUp(t, 10)
	in.do(t, 200, "POST", "/v1/debits", "first", debitOf("acme", "api_calls", 1))
	var key, old string
	eventually(t, "the copy is in Redis", func() bool {
		keys, err := attacker.Keys(ctx, "quota:*").Result()
		if err != nil || len(keys) != 1 {
			return false
		}
		key = keys[0]
		old, err = attacker.Dump(ctx, key).Result()
		return err == nil
	})
	in.do(t, 200, "POST", "/v1/debits", "rest", debitOf("acme", "api_calls", 9))
	in.stop()
	if err := attacker.RestoreReplace(ctx, key, 0, old).Err(); err != nil {
		t.Fatal(err)
	}

	in = serve(t, env)
	if got := in.do(t, 200, "POST", "/v1/check", "", debitOf("acme", "api_calls", 1)); !strings.Contains(string(got.body), `"allowed":true`) {
		t.Errorf("docs/security.md says that a check believes the copy: %s", got)
	}
	in.do(t, 429, "POST", "/v1/debits", "beyond", debitOf("acme", "api_calls", 1))
	if b := in.balance(t, "acme", "api_calls"); b.Used != 10 || b.Remaining != 0 {
		t.Errorf("%+v", b)
	}
	must(t, env, "verify")
}
