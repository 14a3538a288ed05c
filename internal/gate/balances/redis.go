package balances

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
	"github.com/quotasvc/quotasvc/lua"
)

// redisCallMax is the largest number of keys in one command or script call. 256 copies take Redis about 0.5 ms, so
// the scripts of limits do not wait long for such a call.
const redisCallMax = 256

const (
	// interestKey is the Redis key of the set of announced balances. It differs from all keys of copies, which have a
	// brace after the colon.
	interestKey = "quota:interest"

	// announceMax and noticesMax are the largest numbers of announcements that one exchange sends and receives. They
	// bound the exchange to about 1 ms in Redis.
	announceMax, noticesMax = 512, 2048
)

// Stored returns the copies of keys in Redis. A copy is nil if Redis does not have it. In local mode all copies are
// nil. Stored is a pg.CopyReader for verification.
func (c *Cache) Stored(ctx context.Context, keys []ledger.BalanceKey) ([]*ledger.BalanceCopy, error) {
	if c.redis == nil {
		return make([]*ledger.BalanceCopy, len(keys)), nil
	}
	return c.redis.get(ctx, keys)
}

// redisCopies reads and writes the copies in Redis, which all instances share. It is safe for concurrent use.
type redisCopies struct {
	store     *redisstore.Store
	perTenant bool // in a cluster, the keys of one command must be of one tenant
	script    *redisstore.Script
	interest  *redisstore.Script
	keepFor   time.Duration
}

func newRedisCopies(store *redisstore.Store, keepFor time.Duration) *redisCopies {
	return &redisCopies{
		store: store, perTenant: store.IsCluster(), keepFor: keepFor,
		script: store.NewScript("balances", lua.Balances), interest: store.NewScript("interest", lua.Interest),
	}
}

// get reads the copies of keys, in the order of keys. A copy is nil if Redis does not have it.
func (r *redisCopies) get(ctx context.Context, keys []ledger.BalanceKey) ([]*ledger.BalanceCopy, error) {
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = redisKey(keys[i])
	}
	texts, err := r.store.ReadAll(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("read balance copies: %w", err)
	}
	out := make([]*ledger.BalanceCopy, len(keys))
	for i, text := range texts {
		if text != "" {
			out[i], _ = decodeCopy(keys[i], text)
		}
	}
	return out, nil
}

// put writes the copies that are newer than the copies in Redis. It is safe to put a copy again. failed contains the
// copies that were not written, or perhaps not written. err is the error of the first of them. refused is the number
// of copies that the script rejects as invalid. They are not in failed, because the script would reject them again.
func (r *redisCopies) put(ctx context.Context, copies []*ledger.BalanceCopy) (failed []*ledger.BalanceCopy, refused int, err error) {
	errs := make([]error, len(copies))
	r.send(ctx, copies, r.groups(len(copies), func(i int) string { return copies[i].Tenant }), errs)
	var alone [][]int // copies in a slot that moves: its keys are on two nodes, so each copy needs a separate call
	for i := range errs {
		if errors.Is(errs[i], redisstore.ErrMoving) {
			alone = append(alone, []int{i})
		}
	}
	if len(alone) > 0 {
		r.send(ctx, copies, alone, errs)
	}
	for i := range errs {
		switch {
		case errs[i] == nil:
		case errors.Is(errs[i], redisstore.ErrScript): // an error of lua/balances.lua itself
			refused++
		default:
			failed, err = append(failed, copies[i]), cmp.Or(err, errs[i])
		}
	}
	return failed, refused, err
}

// send writes groups of copies, one script call for each group. It sets the errors of the copies in errs.
func (r *redisCopies) send(ctx context.Context, copies []*ledger.BalanceCopy, groups [][]int, errs []error) {
	now := time.Now()
	calls := make([]redisstore.Call, len(groups))
	for g, group := range groups {
		call := redisstore.Call{Keys: make([]string, len(group)), Args: make([]any, 0, 3*len(group))}
		for j, i := range group {
			c := copies[i]
			call.Keys[j] = redisKey(keyOf(c))
			call.Args = append(call.Args, c.Seq, r.ttl(c, now).Milliseconds(), encodeCopy(c))
		}
		calls[g] = call
	}
	for g, reply := range r.script.Run(ctx, calls...) {
		for _, i := range groups[g] {
			errs[i] = reply.Err
		}
	}
}

// exchange announces the balances with these ids, at most announceMax, because checks read them. It returns the
// announcements of all instances since cursor, and the next cursor. If it returns noticesMax announcements, Redis may
// have more.
func (r *redisCopies) exchange(ctx context.Context, ids []uint64, cursor int64) (heard []uint64, next int64, err error) {
	call := redisstore.Call{Keys: []string{interestKey}, Args: make([]any, 0, 3+len(ids))}
	call.Args = append(call.Args, cursor, interestFor.Milliseconds(), noticesMax)
	for _, id := range ids {
		call.Args = append(call.Args, int64(id))
	}
	reply := r.interest.Run(ctx, call)[0]
	if reply.Err != nil || len(reply.Ints) == 0 {
		return nil, 0, fmt.Errorf("exchange announcements: %w", reply.Err)
	}
	for _, id := range reply.Ints[1:] {
		heard = append(heard, uint64(id))
	}
	return heard, reply.Ints[0], nil
}

// ttl returns the lifetime of c in Redis. It ends at the next event of the balance, after at most keepFor. It is at
// least 1 ms, the minimum of the script.
func (r *redisCopies) ttl(c *ledger.BalanceCopy, now time.Time) time.Duration {
	ttl := r.keepFor
	if !c.ValidUntil.IsZero() {
		ttl = min(ttl, c.ValidUntil.Sub(now))
	}
	return max(ttl, time.Millisecond)
}

// groups divides the indexes 0..n-1 into groups of at most redisCallMax, one for each command. In a cluster each
// group has one tenant.
func (r *redisCopies) groups(n int, tenant func(i int) string) [][]int {
	var out [][]int
	open := make(map[string]int) // by tenant: the index of its unfinished group in the slice out
	for i := range n {
		name := ""
		if r.perTenant {
			name = tenant(i)
		}
		g, ok := open[name]
		if !ok || len(out[g]) == redisCallMax {
			g = len(out)
			open[name] = g
			out = append(out, nil)
		}
		out[g] = append(out[g], i)
	}
	return out
}
