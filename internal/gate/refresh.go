package gate

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// refreshDelay is the time in which refreshes are collected: balances that become due within 20 ms are read in one
// query. Their copies can be used for some seconds more.
const refreshDelay = 20 * time.Millisecond

// refresher reads balances again before their copies are too old. Checks use the copies meanwhile. The refresher
// takes one of the loader's slots at a time.
type refresher struct {
	loader *loader

	mu      sync.Mutex
	due     map[string]ledger.CheckRequest // by balances.QuestionKey, at most loadBatchMax, including those that are being read
	running bool
}

func newRefresher(l *loader) *refresher {
	return &refresher{loader: l, due: make(map[string]ledger.CheckRequest)}
}

// add reads the balances of a check soon, unless they are due already or PostgreSQL is away. If there is no room, it
// does nothing: a later check adds the balances. It copies items.
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

// run reads the due balances and ends when none is due. Each round takes at most two budgets of the loader: one for a
// slot, one for the read.
func (r *refresher) run(ctx context.Context) {
	for {
		time.Sleep(refreshDelay)
		keys, questions := r.takeDue()
		if len(keys) == 0 {
			return
		}
		r.loader.refresh(ctx, questions) // if a read fails, a check reads the balance once its copy is too old
		r.mu.Lock()
		for _, key := range keys {
			delete(r.due, key)
		}
		r.mu.Unlock()
	}
}

// takeDue returns the due questions. If it returns no questions, the goroutine must end.
func (r *refresher) takeDue() (keys []string, questions []ledger.CheckRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, q := range r.due {
		keys, questions = append(keys, key), append(questions, q)
	}
	r.running = len(keys) > 0
	return keys, questions
}
