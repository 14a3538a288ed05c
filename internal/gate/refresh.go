package gate

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// refreshDelay is the time for which refreshes are collected: balances that become due within 20 ms are read in one
// query. Their copies can be used for some more seconds.
const refreshDelay = 20 * time.Millisecond

// refresher reads balances from PostgreSQL before their copies are too old. Meanwhile checks use the copies. The
// refresher takes one slot of the loader at a time.
type refresher struct {
	loader *loader

	mu      sync.Mutex
	due     map[string]ledger.CheckRequest // questions to read or being read, by balances.QuestionKey; at most loadBatchMax
	running bool
}

func newRefresher(l *loader) *refresher {
	return &refresher{loader: l, due: make(map[string]ledger.CheckRequest)}
}

// add makes the refresher read the balances of a check soon. It does nothing if they are already due, or if
// PostgreSQL is down. It also does nothing if due is full; then a later check adds them. It copies items, so the
// caller may change items afterwards.
func (r *refresher) add(ctx context.Context, tenant, subject string, items []ledger.Item) {
	if r.loader.away() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.due) == loadBatchMax {
		return
	}
	key := balances.QuestionKey(tenant, subject, items)
	if _, known := r.due[key]; known {
		return
	}
	r.due[key] = ledger.CheckRequest{Tenant: tenant, Subject: subject, Items: slices.Clone(items)}
	if !r.running {
		r.running = true
		go r.run(context.WithoutCancel(ctx))
	}
}

// run reads the due balances and ends when no balance is due. Each round takes at most twice the budget of the
// loader: once for a slot, once for the read.
func (r *refresher) run(ctx context.Context) {
	for {
		time.Sleep(refreshDelay)
		keys, questions := r.takeDue()
		if len(keys) == 0 {
			return
		}
		r.loader.refresh(ctx, questions) // if the read fails, a check reads the balance when its copy is too old
		r.mu.Lock()
		for _, key := range keys {
			delete(r.due, key)
		}
		r.mu.Unlock()
	}
}

// takeDue returns the due questions. If it returns no questions, the goroutine of run must end.
func (r *refresher) takeDue() (keys []string, questions []ledger.CheckRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, q := range r.due {
		keys, questions = append(keys, key), append(questions, q)
	}
	r.running = len(keys) > 0
	return keys, questions
}
