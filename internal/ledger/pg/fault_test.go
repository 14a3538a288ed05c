package pg

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// proxy connects a ledger to PostgreSQL. It can cut the connection instead of passing on the answer to a COMMIT. Then
// the commit is done, and the ledger gets no answer.
type proxy struct {
	listener net.Listener
	target   string
	every    atomic.Int64 // every n-th answer to COMMIT is lost; 0: no answer is lost
	commits  atomic.Int64
	refuse   atomic.Bool // new connections are refused
	lost     atomic.Int64
	mu       sync.Mutex
	conns    []net.Conn
	wg       sync.WaitGroup
}

// commitDone is the server's CommandComplete for COMMIT: type, length, tag.
var commitDone = []byte("C\x00\x00\x00\x0bCOMMIT\x00")

// startProxy returns a proxy, and a URL that leads through the proxy to the database at databaseURL.
func startProxy(t *testing.T, databaseURL string) (*proxy, string) {
	t.Helper()
	p, through, err := openProxy(databaseURL)
	require.NoError(t, err)
	t.Cleanup(p.close)
	return p, through
}

func openProxy(databaseURL string) (*proxy, string, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return nil, "", err
	}
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	p := &proxy{listener: l, target: u.Host}
	p.wg.Go(p.accept)
	u.Host = l.Addr().String()
	return p, u.String(), nil
}

// close cuts every connection and accepts no more.
func (p *proxy) close() {
	p.refuse.Store(true)
	_ = p.listener.Close()
	p.cut()
	p.wg.Wait()
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if p.refuse.Load() {
			_ = client.Close()
			continue
		}
		server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		late := p.refuse.Load() // the value may have changed since the check above
		p.mu.Unlock()
		if late {
			p.cut()
			continue
		}
		p.wg.Go(func() { p.pipe(server, client, func([]byte) bool { return false }) })
		p.wg.Go(func() { p.pipe(client, server, p.loses) })
	}
}

// loses reports whether to cut the connection instead of passing on chunk.
func (p *proxy) loses(chunk []byte) bool {
	every := p.every.Load()
	if every == 0 || !bytes.Contains(chunk, commitDone) || p.commits.Add(1)%every != 0 {
		return false
	}
	p.lost.Add(1)
	return true
}

func (p *proxy) pipe(to, from net.Conn, loses func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 1<<20)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if loses(buf[:n]) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func TestBatch_LostCommitAnswers_ChargeOnce_NeverFail(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 100_000)
	p, through := startProxy(t, b.url)
	l := openLedger(t, through, throughCoordinator)
	p.every.Store(3)
	testenv.Together(20, func(client int) {
		for i := range 20 {
			_, err := Do(t.Context(), l, debitOf("acme", fmt.Sprintf("c%d-%d", client, i), 1))
			assert.NoError(t, err, "debit")
		}
	})
	assert.GreaterOrEqual(t, p.lost.Load(), int64(10), "too few answers were lost: the test proves too little")
	wantEqual(t, "used", b.mustBalance("acme", "api_calls").Used, 400)
	b.mustVerify()
}

func TestBatch_DatabaseAwayAfterCommit_OutcomeUnknown(t *testing.T) {
	t.Parallel()
	b := newBundle(t).simple("acme", 10)
	p, through := startProxy(t, b.url)
	lossy := b.on(openLedger(t, through, throughCoordinator)).answersInTime()
	lossy.mustDebit(debitOf("acme", "k0", 1))
	p.every.Store(1)
	p.refuse.Store(true)
	started := time.Now()
	e := wantRefusal(lossy, errcode.OutcomeUnknown, debitOf("acme", "k1", 2))
	assert.True(t, e.RetryAfter >= time.Second, "retry after %v", e.RetryAfter)
	wantRefusal(lossy, errcode.Unavailable, debitOf("acme", "k2", 2))
	assert.LessOrEqual(t, time.Since(started), 20*refusalMax, "the callers waited")
	p.every.Store(0)
	p.refuse.Store(false)
	testenv.Eventually(t, func() bool { return lossy.breaker.Cause() == nil })
	assert.True(t, lossy.mustDebit(debitOf("acme", "k1", 2)).Replayed, "the first attempt had committed")
	assert.False(t, lossy.mustDebit(debitOf("acme", "k2", 2)).Replayed, "nothing had been done")
	wantEqual(t, "used", b.mustBalance("acme", "api_calls").Used, 5)
	b.mustVerify()
}

func TestBatch_KillsUnderLoad_LoseNoAnswer(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresPrivate(t)
	b := newBundleOn(t, server.URL)
	const tenants, clients = 8, 24
	b.several(tenants, 1_000_000)
	other := openLedger(t, b.url)
	var answered, failed atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				l := []*Ledger{b.Ledger, other}[(client+i)%2]
				d := debitOf(fmt.Sprint("t", client%tenants), fmt.Sprintf("c%d-%d", client, i), 1)
				// The test retries with the same key until there is an answer, as callers should do.
				for {
					_, err := Do(context.Background(), l, d)
					if err == nil {
						answered.Add(1)
						break
					}
					if code := errcode.Of(err); code != errcode.Unavailable && code != errcode.OutcomeUnknown && code != errcode.QueueFull {
						t.Errorf("debit: %v", err)
						return
					}
					failed.Add(1)
					backOff()
				}
			}
		})
	}
	wait := func(n int64) {
		testenv.Eventually(t, func() bool { return answered.Load() >= n })
	}
	wait(300)
	b.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'quotasvc-writer'")
	wait(answered.Load() + 300)
	server.Kill()
	server.Start()
	wait(answered.Load() + 300)
	stop()
	wg.Wait()
	b.reconnect()
	var used int64
	for i := range tenants {
		used += b.mustBalance(fmt.Sprint("t", i), "api_calls").Used
	}
	assert.True(t, used == answered.Load(),
		"used %d, answered %d (%d attempts failed)", used, answered.Load(), failed.Load())
	b.mustVerify()
	b.wantNoDeadlocks()
}

func (b *bundle) wantNoDeadlocks() {
	b.t.Helper()
	const deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
	assert.Zero(b.t, one[int](b, deadlocks), "deadlocks")
}

func TestBatch_TwoInstances_SeveralMeters_NoDeadlock(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	at := time.Now().Add(-time.Hour).UTC()
	b.plan("multi", 1, at, "m1 1000000 month calendar", "m2 1000000 month calendar", "m3 1000000 month calendar")
	b.tenant("acme", "multi", at, at, "UTC")
	other := openLedger(t, b.url)
	testenv.Together(16, func(client int) {
		for i := range 25 {
			meters := []string{"m1", "m2", "m3"}
			d := &ledger.Debit{Tenant: "acme", Key: fmt.Sprintf("c%d-%d", client, i)}
			for j := range meters {
				d.Items = append(d.Items, ledger.Item{Meter: meters[(client+i+j*(1+client%2))%3], Amount: 1})
			}
			assert.NoError(t, errOf(Do(t.Context(), []*Ledger{b.Ledger, other}[client%2], d)), "debit")
		}
	})
	b.wantNoDeadlocks()
	wantEqual(t, "used", b.mustBalance("acme", "m2").Used, 400)
	b.mustVerify()
}
