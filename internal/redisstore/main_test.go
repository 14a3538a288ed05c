package redisstore

import (
	"context"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/quotasvc/quotasvc/internal/testenv"
)

func TestMain(m *testing.M) {
	redis.SetLogger(mute{}) // it has one logger for all clients, and outages make it talk
	// A client that could not connect looks again after a second, and only then sees that it has been closed.
	testenv.Main(m, goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

type mute struct{}

func (mute) Printf(context.Context, string, ...any) {}

// patience replaces the production timeouts, so that a busy machine does not fail a test.
const patience = 20 * time.Second

// patientClient is a client as NewClient makes it, except for its patience.
func patientClient(t testing.TB, o *redis.Options) *redis.Client {
	t.Helper()
	opts := baseOptions()
	opts.Addrs, opts.Username, opts.Password = []string{o.Addr}, o.Username, o.Password
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout = patience, patience, patience, patience
	c := redis.NewClient(opts.Simple())
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// storeOn is a store that is stopped before its client is closed.
func storeOn(t testing.TB, client redis.UniversalClient, cfg Config) *Store {
	t.Helper()
	s := New(client, cfg)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error("stop:", err)
		}
	})
	return s
}

// holds reports whether s has something, also beyond its end.
func holds[T any](s []T) bool {
	for _, x := range s[:cap(s)] {
		if !reflect.ValueOf(&x).Elem().IsZero() {
			return true
		}
	}
	return false
}

// lossyProxy forwards to a server and, when told to, swallows the next reply to a script call and closes the connection:
// the server has done the work and the client does not know.
type lossyProxy struct {
	addr   string
	lose   atomic.Bool
	server atomic.Pointer[string] // of new connections
}

func newLossyProxy(t *testing.T, server string) *lossyProxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &lossyProxy{addr: ln.Addr().String()}
	p.server.Store(&server)
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = ln.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(client, *p.server.Load()) })
		}
	})
	return p
}

func (p *lossyProxy) serve(client net.Conn, server string) {
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		_ = client.Close()
		return
	}
	var both sync.WaitGroup
	var script atomic.Bool
	both.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := client.Read(buf)
			if strings.Contains(strings.ToLower(string(buf[:n])), "eval") {
				script.Store(true)
			}
			if _, werr := upstream.Write(buf[:n]); err != nil || werr != nil {
				break
			}
		}
		_ = upstream.Close()
	})
	both.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := upstream.Read(buf)
			if err != nil || script.Load() && p.lose.Load() {
				break
			}
			if _, err := client.Write(buf[:n]); err != nil {
				break
			}
		}
		_ = client.Close()
	})
	both.Wait()
}
