package balances

import (
	"sync"

	"github.com/quotasvc/quotasvc/internal/ledger"
)

// roomKept is the number of copies for which an empty queue keeps its memory: a busy queue has about this many. The
// memory for pendingMax copies would be 6 MB.
const roomKept = 2 * publishMax

// pendingCopies contains the copies that wait to be published. Of each balance it has only the newest copy.
type pendingCopies struct {
	max int // largest number of copies; at least 1

	mu      sync.Mutex
	copies  map[ledger.BalanceKey]*ledger.BalanceCopy
	most    int    // the largest length of copies so far: the map keeps memory for it
	dropped uint64 // number of copies for which there was no room
}

func newPendingCopies(limit int) *pendingCopies {
	return &pendingCopies{max: limit, copies: make(map[ledger.BalanceKey]*ledger.BalanceCopy)}
}

// add queues copies. A copy replaces an older copy of the same balance. If max copies wait, a copy of another balance
// is dropped and counted.
func (p *pendingCopies) add(copies []*ledger.BalanceCopy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range copies {
		key := keyOf(c)
		old, waits := p.copies[key]
		switch {
		case waits && !newer(c, old):
		case !waits && len(p.copies) >= p.max:
			p.dropped++
		default:
			p.copies[key] = c
			p.most = max(p.most, len(p.copies))
		}
	}
}

// take removes up to n copies from the queue and returns them in out[:0].
func (p *pendingCopies) take(n int, out []*ledger.BalanceCopy) []*ledger.BalanceCopy {
	p.mu.Lock()
	defer p.mu.Unlock()
	out = out[:0]
	for key, c := range p.copies {
		if len(out) == n {
			break
		}
		out = append(out, c)
		delete(p.copies, key)
	}
	if len(p.copies) == 0 && p.most > roomKept {
		p.copies, p.most = make(map[ledger.BalanceKey]*ledger.BalanceCopy), 0
	}
	return out
}

func (p *pendingCopies) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.copies)
}

func (p *pendingCopies) droppedTotal() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}
