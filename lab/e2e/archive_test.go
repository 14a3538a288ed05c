package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// monthsAgo sets the clock of a database back by n months. This applies to every session that begins after the call.
func monthsAgo(t *testing.T, url string, n int) *testenv.DatabaseClock {
	t.Helper()
	c := testenv.MoveClock(t, url)
	c.Ahead("-" + strconv.Itoa(n) + " months")
	return c
}

// An operator archives old months: first with --dry-run, then with the command, and then with the same command again.
// The test then checks the service's answers and the archived copy.
func TestArchive_Command_OldMonthsLeaveFiguresStay(t *testing.T) {
	t.Parallel()
	env := backends(t)
	url := testenv.AsSuperuser(t, strings.TrimPrefix(env[0], "QUOTASVC_DATABASE_URL="))
	moved := monthsAgo(t, url, 4)
	env = append(env, "QUOTASVC_CLOCK_SKEW_MAX=8760h")
	owner := []string{"QUOTASVC_DATABASE_URL=" + url} // may remove months from the database; the service's role may not
	must(t, owner, "migrate", "partitions")
	in := serve(t, env)
	in.do(t, http.StatusCreated, "PUT", "/v1/meters/credits", "", object{"unit": "credit"})
	in.do(t, http.StatusCreated, "PUT", "/v1/plans/basic", "", object{"allowances": []object{}})
	in.do(t, http.StatusCreated, "PUT", "/v1/tenants/acme", "", object{"plan": "basic"})
	in.do(t, http.StatusCreated, "POST", "/v1/tenants/acme/grants", "paid", object{"meter": "credits", "amount": 100, "source": "topup"})
	in.do(t, http.StatusOK, "POST", "/v1/debits", "old", debitOf("acme", "credits", 30))
	in.stop()
	moved.Ahead("0")
	in = serve(t, env)
	in.do(t, http.StatusOK, "POST", "/v1/debits", "new", debitOf("acme", "credits", 5))
	was := in.balance(t, "acme", "credits")
	month := func(ago int) string { return firstOfMonth().AddDate(0, -ago, 0).Format("2006-01") }

	dir := filepath.Join(t.TempDir(), "a")
	foreign := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "notes"), []byte("x"), 0o600))
	for _, c := range []struct {
		says string
		args []string
	}{
		{"--before", []string{"--to", dir}},
		{"--to", []string{"--before", month(2)}},
		{`--before: "monday"`, []string{"--before", "monday", "--to", dir}},
		{"--before: " + month(0) + " would archive keys that must still be remembered (31 days)", []string{"--before", month(0), "--to", dir}},
		{"lies in the future", []string{"--before", month(-1), "--to", dir}},
		{"--to", []string{"--before", month(2), "--to", foreign}},
	} {
		fails(t, owner, 2, c.says, append([]string{"archive"}, c.args...)...)
	}
	out := must(t, owner, "archive", "--before", month(2), "--to", dir, "--dry-run")
	assert.True(t, strings.Contains(out, month(4)) && strings.Contains(out, "would be archived"), "--dry-run: %s", out)
	_, err := os.Stat(dir)
	assert.Error(t, err, "--dry-run has made the directory")
	assert.Contains(t, must(t, owner, "archive", "--before", month(2), "--to", dir), "The oldest instant for queries is "+month(2)+"-01T00:00:00Z", "archive")
	lines := string(in.do(t, http.StatusOK, "GET", "/v1/audit?action=journal.archive", "", nil).body)
	assert.True(t, strings.Count(lines, `"key_id":"command"`) == 1 && strings.Contains(lines, month(4)), "audit log: %s", lines)
	must(t, owner, "archive", "--before", month(2), "--to", dir) // a second run changes nothing
	assert.Contains(t, must(t, env, "verify", "--archive", dir), "all agree", "verify --archive")
	must(t, env, "verify", "--full")

	now := in.balance(t, "acme", "credits")
	assert.True(t, now.Remaining == was.Remaining && now.Remaining == 65,
		"%d remain, before %d", now.Remaining, was.Remaining)
	var refused struct {
		Code   string
		Detail string
	}
	at := firstOfMonth().AddDate(0, -3, 0).Format(time.RFC3339)
	in.do(t, http.StatusGone, "GET", "/v1/tenants/acme/balances/credits?as_of="+at, "", nil).into(t, &refused)
	assert.True(t, refused.Code == "archived" && strings.Contains(refused.Detail, month(2)+"-01T00:00:00Z"),
		"the past: %+v", refused)
	in.do(t, http.StatusGone, "POST", "/v1/refunds", "r1", object{"tenant": "acme", "operation_id": "old"}).into(t, &refused)
	in.do(t, http.StatusOK, "POST", "/v1/refunds", "r2", object{"tenant": "acme", "operation_id": "new"})

	files, err := filepath.Glob(filepath.Join(dir, "entries-*.parquet"))
	require.True(t, err == nil && len(files) != 0, "files %v, %v", files, err)
	require.NoError(t, os.Truncate(files[0], 10))
	status, out, stderr := tool(t, env, "verify", "--archive", dir)
	assert.True(t, status == 1 && strings.Contains(out+stderr, filepath.Base(files[0])),
		"a file was cut: ended with %d: %s%s", status, out, stderr)
}

// firstOfMonth returns the first instant of the present month, in UTC.
func firstOfMonth() time.Time {
	now := time.Now().UTC()
	return time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
}
