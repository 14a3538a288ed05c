package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

// largeBalances is the default number of balances in this test. Each balance has 200 entries in two archived months.
// `make bench-archive` sets a larger number of balances.
const largeBalances = 20

// The test archives many entries and logs the cost: the time of each step, and the bytes in the database and in the
// files.
func TestArchive_ManyEntries_CostIsShown(t *testing.T) {
	t.Parallel()
	n := largeBalances
	if text := os.Getenv("QUOTASVC_ARCHIVE_BALANCES"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	begin := journal.MonthOf(time.Now()) - 4
	b := newBundle(t, begin).catalogue()
	b.tenant("acme")
	for m := begin; m < begin+3; m++ {
		b.clock(m.Start().Add(24 * time.Hour))
		var debits []*ledger.Debit
		for range 97 {
			debits = append(debits, &ledger.Debit{Tenant: "acme", Key: b.key(), Items: []ledger.Item{{Meter: "calls", Amount: 1}}})
		}
		for _, out := range b.DebitBatch(t.Context(), debits) {
			b.check(out.Err)
		}
	}
	b.clock(time.Now())
	b.debit("acme", "calls", 1)
	// The other balances are copies without a hash chain. chain_start is set to infinity, so the verifier does not
	// expect a chain.
	b.exec("UPDATE chain_start SET at = 'infinity'; UPDATE balances SET chain = NULL")
	for _, table := range []string{"tenants", "tenant_terms", "balances", "grants", "periods", "entries"} {
		own := "jsonb_build_object('tenant_id', 'tenant-' || g)"
		if table == "entries" {
			own = `CASE WHEN o.operation_id LIKE '§%' THEN ` + own + ` ELSE jsonb_build_object('tenant_id', 'tenant-' || g, 'operation_id', gen_random_uuid(),
				'fingerprint', sha256(uuid_send(gen_random_uuid()))) END`
		}
		b.exec(fmt.Sprintf(`INSERT INTO %[1]s SELECT (r).* FROM (SELECT jsonb_populate_record(o, %[2]s) AS r FROM %[1]s o, generate_series(2, $1::integer) g
			WHERE o.tenant_id = 'acme') AS x`, table, own), n)
	}
	b.exec("ANALYZE")
	entries := b.count("SELECT count(*) FROM entries WHERE month < $1", (begin + 2).Start())

	o := b.options(begin+2, filepath.Join(t.TempDir(), "a"))
	sums, err := history.OpenRollups(t.Context(), history.RollupConfig{Target: namedsql.Target(testenv.OnCitus()), DatabaseURL: b.url, Log: b.logger(), Metrics: prometheus.NewRegistry()})
	b.check(err)
	defer func() { b.check(sums.Stop(t.Context())) }()
	o.Rollup = sums.RollupTo
	var step string
	began, since := time.Now(), time.Now()
	took := func(next string) {
		if next != step {
			if step != "" {
				t.Logf("%-40s %8s", step, time.Since(since).Round(time.Millisecond))
			}
			step, since = next, time.Now()
		}
	}
	o.Progress = func(p Progress) { took(strings.Clone(p.Step)) }
	out := b.run(o)
	took("")
	all := time.Since(began)
	database := int64(0)
	for _, m := range out.Months {
		database += m.Bytes
	}
	exported := int64(0)
	for _, f := range out.Manifest.Files {
		if f.Table == "entries" {
			exported += f.Rows
		}
	}
	t.Logf("%d entries of %d balances in %s, %.0f/s; %d MB in the database, %d MB in files, %.0f bytes an entry", exported, n, all.Round(time.Millisecond),
		float64(exported)/all.Seconds(), database>>20, out.Manifest.Bytes()>>20, float64(out.Manifest.Bytes())/float64(exported))
	assert.Equal(t, entries, exported, "exported entries")
	began = time.Now()
	report := b.checkedArchive(o.Dir)
	t.Logf("check of the archive: %s", time.Since(began).Round(time.Millisecond))
	assert.True(t, report.Clean() && report.Entries == entries,
		"%d of %d entries, %v", report.Entries, entries, report.Differences)
	b.check(b.verify(t.Context()))
}
