package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// TestKeys_CreatedByCommand_WorkAtOnce: a key that the command creates works at once on a running instance, until the
// key is rotated or revoked.
func TestKeys_CreatedByCommand_WorkAtOnce(t *testing.T) {
	t.Parallel()
	env := backends(t)
	s := serve(t, env)
	run := func(args ...string) string {
		t.Helper()
		return must(t, env, append([]string{"keys"}, args...)...)
	}
	type key struct {
		ID     string `json:"key_id"`
		Secret string `json:"secret"`
	}
	made := func(text string) (k key) {
		t.Helper()
		err := json.Unmarshal([]byte(text), &k)
		require.True(t, err == nil && k.Secret != "", "%s: %v", text, err)
		return k
	}
	k := made(run("create", "--name", "reports", "--scope", "read", "--expires-in", "24h", "--json"))
	assert.Equal(t, 200, s.authorized(t, k.Secret), "a new key")
	list := run("list")
	assert.True(t, strings.Contains(list, k.ID) && strings.Contains(list, "reports") &&
		!strings.Contains(list, k.Secret[12:]), list)
	next := made(run("rotate", k.ID, "--overlap", "1h", "--json"))
	for _, secret := range []string{k.Secret, next.Secret} {
		assert.Equal(t, 200, s.authorized(t, secret), "during the overlap")
	}
	run("revoke", k.ID)
	testenv.Eventually(t, func() bool {
		return s.authorized(t, k.Secret) == 401 && s.authorized(t, next.Secret) == 401
	}, "both secrets are refused")
	text := run("create", "--name", "gateway", "--scopes", "use", "--tenant", "acme", "--expires-at", "2097-01-01T00:00:00Z")
	assert.True(t, strings.Contains(text, "tenant  acme") && strings.Contains(text, "shown only once"), text)
	for _, args := range [][]string{
		{"create", "--name", "x", "--scope", "root"}, {"create", "--name", "x", "--scope", "use", "--expires-in", "-1h"}, {"rotate", k.ID, "--overlap", "200h"},
	} {
		fails(t, env, exitUsage, "", append([]string{"keys"}, args...)...)
	}
	fails(t, env, 1, "does not exist", "keys", "revoke", "key_none")
	lines := string(s.do(t, 200, "GET", "/v1/audit?actor=command", "", nil).body)
	assert.True(t, strings.Contains(lines, `"key.revoke"`) && strings.Contains(lines, "quotasvc keys ("), lines)
}
