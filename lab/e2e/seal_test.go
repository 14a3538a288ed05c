package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestSeal_File_IsCheckedByVerify(t *testing.T) {
	t.Parallel()
	url, dir := testenv.Postgres(t), t.TempDir()
	env := []string{"QUOTASVC_DATABASE_URL=" + url}
	exec := func(sql string) {
		t.Helper()
		tag, err := testenv.Connect(t, url).Exec(t.Context(), sql)
		require.True(t, err == nil && tag.RowsAffected() == 1, "%s: %v, %v", sql, tag, err)
	}
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "seal.json")
	public := strings.TrimSpace(must(t, nil, "seal", "--new-key", key, "--key-name", "ledger.example.com"))
	private := testenv.Must(t).Get(os.ReadFile(key))
	info, err := os.Stat(key)
	assert.True(t, err == nil && info.Mode().Perm() == 0o600, "the key's file: %v, %v", info, err)
	yesterday := time.Now().UTC().Add(-time.Minute).AddDate(0, 0, -1).Format(time.DateOnly)
	printed := must(t, env, "seal", "--seal-key-file", key)
	must(t, append(env, "QUOTASVC_SEAL_KEY="+string(private)), "seal", "--day", yesterday, "--out", file)
	must(t, env, "seal", "--out", file) // a second run writes the same seal
	written, err := os.ReadFile(file)
	assert.True(t, err == nil && string(written) == printed && strings.Contains(printed, `"day": "`+yesterday) &&
		strings.Contains(printed, "— ledger.example.com "), "printed:\n%s\nwritten:\n%s (%v)", printed, written, err)
	assert.Contains(t, must(t, env, "verify", "--seal", file, "--seal-key", public), "1 seals until "+yesterday, "verify")
	put := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	other := strings.TrimSpace(must(t, nil, "seal", "--new-key", filepath.Join(dir, "other")))
	unsigned := put("unsigned", printed[:strings.Index(printed, `\n\n—`)]+`\n`+printed[strings.Index(printed, `",`+"\n"+`  "inclusion`):])
	for _, c := range []struct {
		status int
		says   string
		args   []string
	}{
		{2, "--day: \"monday\" is not a day", []string{"seal", "--day", "monday"}},
		{2, "--day: " + time.Now().UTC().AddDate(0, 0, 2).Format(time.DateOnly) + " has not ended; the newest day", []string{"seal", "--day", time.Now().UTC().AddDate(0, 0, 2).Format(time.DateOnly)}},
		{2, "--day: 2020-01-01 was not sealed on its own", []string{"seal", "--day", "2020-01-01"}},
		{1, "has something else", []string{"seal", "--out", put("notes", "x")}},
		{2, "(QUOTASVC_SEAL_KEY_FILE): is not a private key", []string{"seal", "--seal-key-file", put("nokey", "x")}},
		{2, "no such file", []string{"seal", "--seal-key-file", "/nowhere"}},
		{2, "--key-name", []string{"seal", "--new-key", filepath.Join(dir, "k"), "--key-name", "two words"}},
		{1, "exists", []string{"seal", "--new-key", key}},
		{2, "no such file", []string{"verify", "--seal", filepath.Join(dir, "none")}},
		{2, "--seal-key: needs --seal", []string{"verify", "--seal-key", public}},
		{2, "--seal: cannot be combined", []string{"verify", "--seal", file, "--tenant", "acme"}},
		{2, "--seal-key: is not a public key", []string{"verify", "--seal", file, "--seal-key", "x"}},
		{1, "is not signed by the key of quotasvc", []string{"verify", "--seal", file, "--seal-key", other}},
		{1, "is not signed; the key of", []string{"verify", "--seal", unsigned, "--seal-key", public}},
		{1, "has another checkpoint", []string{"verify", "--seal", unsigned}},
		{1, "does not contain what the seal says", []string{"verify", "--seal", put("altered", strings.Replace(printed, `"heads": 0`, `"heads": 1`, 1))}},
		{1, "is not the JSON of a seal", []string{"verify", "--seal", put("rubbish", "rubbish")}},
	} {
		status, stdout, stderr := tool(t, env, c.args...)
		assert.True(t, status == c.status && strings.Contains(stdout+stderr, c.says) &&
			!strings.Contains(stdout+stderr, strings.TrimSpace(string(private))),
			"%q ended with %d, want %d and %q:\n%s%s", c.args, status, c.status, c.says, stdout, stderr)
	}
	exec("UPDATE seals SET heads = 5")
	status, stdout, _ := tool(t, env, "verify", "--seal", file)
	assert.True(t, status == 1 && strings.Contains(stdout, "DIFFERENCES"),
		"a changed log: ended with %d: %s", status, stdout)
	exec("UPDATE database_identity SET database_id = gen_random_uuid()")
	fails(t, env, 1, "another database", "verify", "--seal", file)
}
