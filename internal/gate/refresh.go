package gate

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// refreshGather is how long what is to be read again waits for company. There are seconds left, and a read of many costs a fraction
// of as many reads.
const refreshGather = 20 * time.Millisecond

// refresher reads the balances of copies that are good but growing old, while checks go on being answered from them. It takes one
// turn of the loader's at a time.
type refresher struct {
	loader *loader

	mu      sync.Mutex
	due     map[string]ledger.CheckRequest // by questionKey, at most loadBatchMax; those that are being read included
	running bool
}

func newRefresher(l *loader) *refresher {
	return &refresher{loader: l, due: make(map[string]ledger.CheckRequest)}
}

// add has a question asked soon, unless it is due already or PostgreSQL is away. What finds no room is added by a later check. The
// items are copied.
func (r *refresher) add(ctx context.Context, tenant, subject string, items []ledger.Item) {
	if r.loader.away() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.due) == loadBatchMax {
		return
	}
	key := questionKey(tenant, subject, items)
	if _, known := r.due[key]; known {
		return
	}
	r.due[key] = ledger.CheckRequest{Tenant: tenant, Subject: subject, Items: slices.Clone(items)}
	if !r.running {
		r.running = true
		go r.run(context.WithoutCancel(ctx))
	}
}

// run asks until nothing is due. In each round a turn and its read take a budget of the loader's each at most.
func (r *refresher) run(ctx context.Context) {
	for {
		time.Sleep(refreshGather)
		keys, questions := r.take()
		if len(keys) == 0 {
			return
		}
		r.loader.readAhead(ctx, questions) // what is not answered grows old, and is asked for by a check
		r.mu.Lock()
		for _, key := range keys {
			delete(r.due, key)
		}
		r.mu.Unlock()
	}
}

// take lists what is due. When nothing is, the goroutine must end.
func (r *refresher) take() (keys []string, questions []ledger.CheckRequest) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, q := range r.due {
		keys, questions = append(keys, key), append(questions, q)
	}
	r.running = len(keys) > 0
	return keys, questions
}
