package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// denials is the service's answer about refused requests.
type denials struct {
	Items []struct {
		At        time.Time
		Code      string
		RequestID string `json:"request_id"`
	}
	Counts []struct {
		Minute            time.Time
		Code, Meter, Rule string
		N                 int64
	}
}

func (d denials) total() (n int64) {
	for _, c := range d.Counts {
		n += c.N
	}
	return n
}

func (in *instance) denials(t testing.TB, tenant string) (d denials) {
	t.Helper()
	in.do(t, http.StatusOK, "GET", "/v1/tenants/"+tenant+"/denials", "", nil).into(t, &d)
	return d
}

// A killed process loses only the denials that it has recorded since its last flush, at most a second before. All
// other denials are counted exactly once.
func TestDenials_Killed_LosesAtMostAnInterval(t *testing.T) {
	in, env := parallelService(t, 1)
	var sent int64
	refuse := func(in *instance, n int) {
		for range n {
			sent++
			in.do(t, http.StatusPaymentRequired, "POST", "/v1/debits", fmt.Sprint("k", sent), debitOf("acme", "api_calls", 5))
		}
	}
	refuse(in, 40)
	testenv.Eventually(t, func() bool { return in.denials(t, "acme").total() >= 40 }, "40 denials are stored")
	refuse(in, 10)
	in.signal(syscall.SIGKILL)
	in.wait()
	again := serve(t, env)
	n := again.denials(t, "acme").total()
	assert.True(t, n >= 40 && n <= 50, "%d are known after the kill, of 50; 40 were stored", n)
	stored := again.denials(t, "acme").total()
	refuse(again, 7)
	again.stop() // a process that is stopped stores its denials
	last := serve(t, env)
	d := last.denials(t, "acme")
	assert.True(t, d.total() == stored+7 && int64(len(d.Items)) == stored+7 && d.Items[0].Code == "credits_exhausted",
		"%d are counted and %d explained, want %d", d.total(), len(d.Items), stored+7)
}

// In a flood of refusals, the number of transactions depends on the duration of the flood. The number of rows depends
// on the number of reasons. Neither number depends on the number of requests.
func TestDenials_Flood_BoundedTransactionsAndRows(t *testing.T) {
	in, env := parallelService(t, 1)
	conn := testenv.Connect(t, strings.TrimPrefix(env[0], "QUOTASVC_DATABASE_URL="))
	const clients, each = 10, 300
	ctx, cancel := context.WithTimeout(t.Context(), testenv.Patience)
	defer cancel()
	began := time.Now()
	testenv.Together(clients, func(c int) {
		for i := range each {
			key := fmt.Sprint("k", c, "-", i)
			debit := func() (answer, error) {
				return in.send(ctx, "POST", "/v1/debits", key, debitOf("acme", "api_calls", 5))
			}
			got, err := debit()
			// On a busy machine an attempt may have waited in vain. It did nothing.
			for err == nil && got.status == http.StatusServiceUnavailable && pace(ctx, 10*time.Millisecond) {
				got, err = debit()
			}
			if err != nil || got.status != http.StatusPaymentRequired {
				t.Errorf("%v, %v", got, err)
				return
			}
		}
	})
	testenv.Eventually(t, func() bool {
		d := in.denials(t, "acme")
		return d.total() == clients*each && len(d.Items) == 100
	}, "all are counted, the last 100 explained")
	took := time.Since(began)
	// Each flush changes the row of the minute once, and replaces the explanations once. So the number of changes in
	// the table's statistics is an upper bound of the number of flushes.
	var rows, changes int64
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT count(*) FROM denial_counts").Scan(&rows))
	require.NoError(t, conn.QueryRow(t.Context(), "SELECT n_tup_ins + n_tup_upd FROM pg_stat_user_tables WHERE relname = 'denials_recent'").Scan(&changes))
	most := int64(took/time.Second) + 2
	assert.True(t, rows <= int64(took/time.Minute)+2 && changes <= most,
		"%d rows, %d changes in %s, want at most %d", rows, changes, took, most)
	t.Logf("%d refusals in %s: %d rows, %d changes", clients*each, took, rows, changes)
}

// The commands of docs/support.md work unchanged with a key that can only read. They show the reason of a refusal.
func TestSupport_Page_Answers(t *testing.T) {
	t.Parallel()
	programOf(t, "curl")
	in := serve(t, backends(t)).setUp(t, 100)
	in.do(t, http.StatusOK, "POST", "/v1/debits", "used", debitOf("acme", "api_calls", 95))
	in.do(t, http.StatusTooManyRequests, "POST", "/v1/debits", "k", debitOf("acme", "api_calls", 100))
	testenv.Eventually(t, func() bool { return in.denials(t, "acme").total() > 0 }, "the denial is listed")
	key := in.newSecret(t, object{"name": "support", "scopes": []string{"read"}})
	tty := openTerminal(t, t.TempDir(),
		append(withoutSettings(os.Environ()), "QUOTASVC_URL="+in.api, "QUOTASVC_KEY="+key, "PROGRAM="+quotasvc(t)))
	tty.paste(`quotasvc() { "$PROGRAM" "$@"; }` + "\n")
	blocks := markedBlocks(t, "docs/support.md")
	for i := range blocks {
		tty.use(&blocks[i])
	}
	tty.leave()
	assert.True(t, expectations(blocks) >= 5, "the page expects %d answers", expectations(blocks))
	near := in.do(t, http.StatusOK, "GET", "/v1/tenants?near=80&meter=api_calls", "", nil)
	assert.Contains(t, string(near.body), `"standing":{"meter":"api_calls","percent":95,"remaining":5,"used":95}`,
		"%s", near)
}
