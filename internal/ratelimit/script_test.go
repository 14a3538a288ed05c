package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/testenv"
	"github.com/quotasvc/quotasvc/lua"
)

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

// evalCalls is how often the server was asked to run a script.
func evalCalls(t *testing.T, client *redis.Client) int {
	t.Helper()
	info, err := client.Info(context.Background(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, line := range strings.Split(info, "\r\n") {
		if rest, ok := strings.CutPrefix(line, "cmdstat_eval"); ok {
			_, rest, _ = strings.Cut(rest, "calls=")
			n, err := strconv.Atoi(rest[:strings.IndexByte(rest, ',')])
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
	}
	return total
}

// TestLostReplyChargesOnce: the client libraries' retries would send the script up to four times.
func TestLostReplyChargesOnce(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(o *redis.Options) redis.UniversalClient{
		"single": func(o *redis.Options) redis.UniversalClient {
			c, err := NewClient((&url.URL{Scheme: "redis", User: url.UserPassword(o.Username, o.Password), Host: o.Addr}).String())
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		// The worst case: a client somebody else made, with retries on.
		"single, default options": func(o *redis.Options) redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: o.Addr, Username: o.Username, Password: o.Password})
		},
		// MaxRetries does not stop a cluster client.
		"cluster": func(o *redis.Options) redis.UniversalClient {
			opts := baseOptions().Cluster()
			opts.Addrs, opts.Username, opts.Password = []string{o.Addr}, o.Username, o.Password
			opts.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: o.Addr}}}}, nil
			}
			return redis.NewClusterClient(opts)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.RedisPrivate(t)
			direct := patientClient(t, server.Options())
			proxy := newLossyProxy(t, server.Options().Addr)
			o := server.Options()
			o.Addr = proxy.addr
			client := connect(o)
			defer func() { _ = client.Close() }()
			r := compile(t, rule.Spec{Rate: "1/day", Burst: 100, OnBackendError: "closed"})
			req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}}
			l := patientLimiter(t, client, Config{})
			if err := l.Start(context.Background()); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Consume(context.Background(), req); err != nil {
				t.Fatal(err)
			}
			before := evalCalls(t, direct)

			proxy.lose.Store(true)
			if _, err := l.Consume(context.Background(), req); !errors.Is(err, ErrUnavailable) {
				t.Fatalf("a lost reply answers %v, want ErrUnavailable", err)
			}
			proxy.lose.Store(false)

			if sent := evalCalls(t, direct) - before; sent != 1 {
				t.Errorf("the script was sent %d times", sent)
			}
			d, err := l.Peek(context.Background(), req)
			if err != nil || d.Verdicts[0].Remaining != 98 {
				t.Errorf("%d tokens left (%v), want 98 of 100 after two charges", d.Verdicts[0].Remaining, err)
			}
		})
	}
}

// TestMissingScriptIsSentAgainAndNothingIsLostOrDoubled flushes the server's scripts all the time.
func TestMissingScriptIsSentAgainAndNothingIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	client := patientClient(t, server.Options())
	metrics := NewMetrics(nil)
	l := patientLimiter(t, client, Config{Metrics: metrics})
	const capacity, clients, each = 700, 16, 60 // 960 requests for 700 tokens per tenant
	r := compile(t, rule.Spec{Rate: "1/day", Burst: capacity, OnBackendError: "closed"})

	ctx, cancel := context.WithCancel(context.Background())
	var flusher sync.WaitGroup
	flusher.Go(func() {
		for ctx.Err() == nil {
			client.ScriptFlush(ctx)
		}
	})
	var admitted [2]atomic.Int64
	var load sync.WaitGroup
	for c := range clients {
		load.Go(func() {
			for range each {
				for tenant := range admitted {
					d, err := l.Consume(ctx, Request{Tenant: fmt.Sprintf("t%d", tenant), Charges: []Charge{{Rule: r}}})
					if err != nil {
						t.Errorf("client %d: %v", c, err)
						return
					}
					if d.Allowed {
						admitted[tenant].Add(1)
					}
				}
			}
		})
	}
	load.Wait()
	cancel()
	flusher.Wait()
	for tenant := range admitted {
		if got := admitted[tenant].Load(); got != capacity {
			t.Errorf("tenant %d: %d admitted, want %d", tenant, got, capacity)
		}
	}
	if testutil.ToFloat64(metrics.noScript.WithLabelValues("limits")) == 0 {
		t.Error("the script was never missing: the test proved nothing")
	}
}

// TestOnlyTheCallsThatMissedTheScriptAreSentAgain uses two servers, of which one has the script.
func TestOnlyTheCallsThatMissedTheScriptAreSentAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := NewScript("count", `return {redis.call('INCR', KEYS[1])}`, nil)
	var servers [2]*redis.Options
	for i := range servers {
		servers[i] = testenv.RedisPrivate(t).Options()
	}
	if err := s.Load(ctx, patientClient(t, servers[0])); err != nil {
		t.Fatal(err)
	}
	opts := baseOptions().Cluster()
	opts.Addrs = []string{servers[0].Addr}
	opts.ReadTimeout, opts.PoolTimeout = patience, patience
	opts.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{
			{Start: 0, End: 8191, Nodes: []redis.ClusterNode{{Addr: servers[0].Addr}}},
			{Start: 8192, End: 16383, Nodes: []redis.ClusterNode{{Addr: servers[1].Addr}}},
		}, nil
	}
	opts.NewClient = func(o *redis.Options) *redis.Client {
		for _, server := range servers {
			if strings.HasSuffix(server.Addr, o.Addr) { // go-redis drops a loopback host
				o.Password = server.Password
			}
		}
		return redis.NewClient(o)
	}
	client := redis.NewClusterClient(opts)
	defer func() { _ = client.Close() }()
	var calls []Call
	for i := range 20 { // keys in slots of both halves
		calls = append(calls, Call{Keys: []string{fmt.Sprintf("key-%d", i)}})
	}
	for i, reply := range s.RunPipelined(ctx, client, calls) {
		if reply.Err != nil || reply.Ints[0] != 1 {
			t.Errorf("key %d: ran %v times (%v)", i, reply.Ints, reply.Err)
		}
	}
	for i, server := range servers {
		if n := patientClient(t, server).DBSize(ctx).Val(); n < 3 {
			t.Errorf("server %d got %d of the keys: the test proved nothing", i, n)
		}
	}
}

func TestRunPipelinedAnswersEachCallInOrder(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.Redis(t))
	s := NewScript("echo", `if ARGV[1] == 'bad' then return redis.error_reply('ERR echo: bad') end return {tonumber(ARGV[1]), #KEYS}`, nil)
	replies := s.RunPipelined(context.Background(), client, []Call{
		{Keys: []string{"a"}, Args: []any{7}}, {Keys: []string{"b"}, Args: []any{"bad"}}, {Keys: []string{"a", "b"}, Args: []any{int64(9)}},
	})
	if got := fmt.Sprint(replies[0].Ints, replies[2].Ints); got != "[7 1] [9 2]" || replies[0].Err != nil || replies[2].Err != nil {
		t.Errorf("replies %+v", replies)
	}
	if err := replies[1].Err; err == nil || !strings.Contains(err.Error(), "script echo: ERR echo: bad") {
		t.Errorf("the refused call answers %v", err)
	}
	ints, err := s.Run(context.Background(), client, Call{Keys: []string{"a"}, Args: []any{1}})
	if err != nil || fmt.Sprint(ints) != "[1 1]" {
		t.Errorf("Run: %v, %v", ints, err)
	}
}

// TestPipelinesLeaveNothingBehind: the space they are written in is used again, and must not grow or keep a request alive.
func TestPipelinesLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	var w writing
	for range 2 {
		for range 3 {
			args := w.command("evalsha", "sha", &Call{Keys: []string{"a", "b"}, Args: []any{1, "c"}})
			if len(args) != 7 {
				t.Errorf("the command %v", args)
			}
			w.cmds, w.all = append(w.cmds, newOnce(t.Context(), true, args)), append(w.all, 1)
		}
		w.clear()
		if len(w.args) != 0 || len(w.cmds) != 0 || len(w.all) != 0 || holds(w.args) || holds(w.cmds) {
			t.Errorf("left behind: %+v", w)
		}
	}
}

func TestLoadMakesTheFirstCallFindTheScript(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.RedisPrivate(t).Options())
	metrics := NewMetrics(nil)
	s := NewScript("limits", lua.Limits, metrics)
	if err := s.Load(context.Background(), client); err != nil {
		t.Fatal(err)
	}
	call := Call{Keys: []string{"k"}, Args: []any{0, 0, 1, 1, 3, 1, 1, 1, 136, 0, 1, 1, 0, 1, 64}, Packed: true}
	if _, err := s.Run(context.Background(), client, call); err != nil {
		t.Fatal(err)
	}
	if n := testutil.ToFloat64(metrics.noScript.WithLabelValues("limits")); n != 0 {
		t.Errorf("the script was missing %v times", n)
	}
}

func TestScriptErrorsDoNotHideTheConnections(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	_ = ln.Close() // nobody listens there now
	client, err := NewClient("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	s := NewScript("limits", lua.Limits, nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = s.Run(ctx, client, Call{Keys: []string{"k"}})
	var op *net.OpError
	if !errors.As(err, &op) && !errors.Is(err, io.EOF) {
		t.Errorf("an unreachable server answers %v", err)
	}
}
