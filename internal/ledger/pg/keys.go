package pg

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// keyLookup is where a batch looks for its keys. Keys of the last 31 days lie in two or three months. Where a clock was ahead, entries lie in
// later months as well: the batch then looks into every month.
type keyLookup struct {
	tenants, keys []string
	first, last   ledger.Month // the months it looks into
	every         bool         // it looks into all months
}

// keyLookup returns where to look for p's keys, as far as the clock is known before the locks.
func (l *Ledger) keyLookup(p *plan) *keyLookup {
	k := &keyLookup{tenants: make([]string, len(p.ids)), keys: make([]string, len(p.ids))}
	for i, id := range p.ids {
		k.tenants[i], k.keys[i] = id.Tenant, id.Key
	}
	k.first, k.last = ledger.KeyMonths(l.Now())
	k.every = p.everyMonth || l.months.newest() > k.last
	return k
}

// queue queues the look-up into stored.
func (k *keyLookup) queue(out *pgx.Batch, q map[string]string, stored map[ledger.OperationID][]ledger.Entry) {
	if k.every {
		out.Queue(q["EntriesOfOperations"], k.tenants, k.keys).Query(scanEntries(stored))
		return
	}
	months := make([]*time.Time, 3)
	for i, m := 0, k.first; m <= k.last; i, m = i+1, m+1 {
		months[i] = new(m.First())
	}
	out.Queue(q["StoredEntries"], k.tenants, k.keys, months).Query(scanEntries(stored))
}

// remember keeps of what the look-up found what is remembered at the batch's instant. If keys may lie in months that the look-up left out,
// it looks into every month first: one more round trip, after a clock was ahead and once per process then.
func (t *tx) remember(ctx context.Context, k *keyLookup) error {
	b := t.batch
	t.ledger.months.see(t.newestMonth)
	first, _ := ledger.KeyMonths(b.Now)
	if !k.every && (first < k.first || b.KeysMayLieAfter(k.last, t.newestMonth)) {
		out := &pgx.Batch{}
		k.every = true
		clear(b.Stored)
		k.queue(out, t.ledger.sql, b.Stored)
		if err := send(ctx, t.conn, out); err != nil {
			return err
		}
	}
	for id, entries := range b.Stored {
		if entries = ledger.Remembered(entries, first); entries == nil {
			delete(b.Stored, id)
		} else {
			b.Stored[id] = entries
		}
	}
	return nil
}

// knownMonths are the months of which this process knows that the database lists them as holding entries. Its zero value is ready.
type knownMonths struct {
	mu     sync.Mutex
	listed map[ledger.Month]bool
	latest ledger.Month
}

// missing returns the months of entries that may not be listed yet, in order.
func (k *knownMonths) missing(entries []ledger.Entry) []ledger.Month {
	k.mu.Lock()
	defer k.mu.Unlock()
	var out []ledger.Month
	for i := range entries {
		m := ledger.MonthOf(entries[i].CreatedAt)
		if !k.listed[m] && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	slices.Sort(out)
	return out
}

// add notes months that were committed.
func (k *knownMonths) add(months []ledger.Month) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range months {
		if k.listed == nil {
			k.listed = map[ledger.Month]bool{}
		}
		k.listed[m] = true
		k.latest = max(k.latest, m)
	}
}

// see notes the latest month that the database lists.
func (k *knownMonths) see(m ledger.Month) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.latest = max(k.latest, m)
}

// newest returns the latest month that is known to hold entries.
func (k *knownMonths) newest() ledger.Month {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.latest
}

func monthColumn(months []ledger.Month) []time.Time {
	out := make([]time.Time, len(months))
	for i, m := range months {
		out[i] = m.First()
	}
	return out
}
