package redisstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/lua"
)

// TestScript_OnlyMissingCallsAreSentAgain uses two servers. Only one of them has the script.
func TestScript_OnlyMissingCallsAreSentAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	var servers [2]*redis.Options
	for i := range servers {
		servers[i] = testenv.RedisPrivate(t).Options()
	}
	const source = `return {redis.call('INCR', KEYS[1])}`
	require.NoError(t, patientClient(t, servers[0]).ScriptLoad(ctx, source).Err())
	opts := baseOptions().Cluster()
	opts.Addrs = []string{servers[0].Addr}
	opts.ReadTimeout, opts.PoolTimeout = testenv.Patience, testenv.Patience
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
	client := testenv.CloseAtEnd(t, redis.NewClusterClient(opts))
	var calls []Call
	for i := range 20 { // keys in slots of both servers
		calls = append(calls, Call{Keys: []string{fmt.Sprintf("key-%d", i)}})
	}
	s := storeOn(t, client, Config{}).NewScript("count", source)
	for i, reply := range s.Run(ctx, calls...) {
		assert.True(t, reply.Err == nil && reply.Ints[0] == 1, "key %d: ran %v times (%v)", i, reply.Ints, reply.Err)
	}
	for i, server := range servers {
		n := patientClient(t, server).DBSize(ctx).Val()
		assert.True(t, n >= 3, "server %d got %d of the keys: the test proved nothing", i, n)
	}
}

func TestScript_AnswersEachCallInOrder(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.Redis(t))
	s := storeOn(t, client, Config{}).NewScript("echo", `if ARGV[1] == 'bad' then return redis.error_reply('ERR echo: bad') end return {tonumber(ARGV[1]), #KEYS}`)
	replies := s.Run(context.Background(), []Call{
		{Keys: []string{"a"}, Args: []any{7}}, {Keys: []string{"b"}, Args: []any{"bad"}}, {Keys: []string{"a", "b"}, Args: []any{int64(9)}},
	}...)
	assert.True(t, fmt.Sprint(replies[0].Ints, replies[2].Ints) == "[7 1] [9 2]" && replies[0].Err == nil && replies[2].Err == nil,
		"replies %+v", replies)
	if err := replies[1].Err; err == nil || !strings.Contains(err.Error(), "script: ERR echo: bad") || !errors.Is(err, ErrScript) || errors.Is(err, ErrAway) {
		t.Errorf("the refused call answers %v", err)
	}
	one := s.Run(context.Background(), Call{Keys: []string{"a"}, Args: []any{1}})[0]
	assert.True(t, one.Err == nil && fmt.Sprint(one.Ints) == "[1 1]", "Run: %+v", one)
}

// TestSendBuffers_KeepNothing: the buffers are reused. They must not grow, and must not refer to earlier requests.
func TestSendBuffers_KeepNothing(t *testing.T) {
	t.Parallel()
	var w sendBuffers
	for range 2 {
		for range 3 {
			args := w.command("evalsha", "sha", &Call{Keys: []string{"a", "b"}, Args: []any{1, "c"}})
			assert.Len(t, args, 7, "the command")
			w.cmds, w.all = append(w.cmds, newCommand(t.Context(), true, args)), append(w.all, 1)
		}
		w.clear()
		assert.True(t, len(w.args) == 0 && len(w.cmds) == 0 && len(w.all) == 0 && !holds(w.args) && !holds(w.cmds),
			"left behind: %+v", w)
	}
}

func TestStart_LoadsTheScripts(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.RedisPrivate(t).Options())
	metrics := NewMetrics(nil)
	store := storeOn(t, client, Config{Metrics: metrics})
	s := store.NewScript("limits", lua.Limits)
	require.NoError(t, store.Start(context.Background()))
	call := Call{Keys: []string{"k"}, Args: []any{0, 1, 1, 0, 3, 1, 1, 1, 136, 0, 1, 1, 0, 1, 64}, Packed: true}
	reply := s.Run(context.Background(), call)[0]
	require.True(t, reply.Err == nil, reply.Err)
	assert.Zero(t, testutil.ToFloat64(metrics.noScript.WithLabelValues("limits")), "calls without the script")
}

func TestScript_ErrorKeepsTheConnectionsError(t *testing.T) {
	t.Parallel()
	ln := testenv.Must(t).Get(net.Listen("tcp", "127.0.0.1:0"))
	addr := ln.Addr().String()
	_ = ln.Close() // now no server listens there
	client := testenv.CloseAtEnd(t, testenv.Must(t).Get(NewClient("redis://"+addr)))
	s := storeOn(t, client, Config{}).NewScript("limits", lua.Limits)
	err := s.Run(t.Context(), Call{Keys: []string{"k"}})[0].Err
	var op *net.OpError
	assert.False(t, !errors.As(err, &op) && !errors.Is(err, io.EOF), "an unreachable server answers %v", err)
}

func TestUnpackInts_IsExact(t *testing.T) {
	t.Parallel()
	got, err := unpackInts("\x00\x00\x00\x00\x00\x00\x00" + "\x1f\xff\xff\xff\xff\xff\xff" + "\x01\x02\x03\x04\x05\x06\x07")
	assert.True(t, err == nil && slices.Equal(got, []int64{0, 1<<53 - 1, 0x01020304050607}), "%x, %v", got, err)
	_, err = unpackInts("12345678")
	assert.ErrorIs(t, err, ErrScript)
}

// TestScript_LostPipelineRunsOnce: if the replies to a pipeline are lost, each of its calls has run exactly once.
// This is true for every kind of client.
func TestScript_LostPipelineRunsOnce(t *testing.T) {
	t.Parallel()
	server := testenv.RedisPrivate(t)
	direct := patientClient(t, server.Options())
	proxy := testenv.NewLossyProxy(t, server.Addr)
	opts := baseOptions()
	opts.Addrs, opts.Password = []string{proxy.Addr}, server.Options().Password
	cluster := opts.Cluster()
	cluster.ClusterSlots = func(context.Context) ([]redis.ClusterSlot, error) {
		return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: proxy.Addr}}}}, nil
	}
	const source = `return {redis.call('INCR', KEYS[1])}`
	require.NoError(t, direct.ScriptLoad(t.Context(), source).Err())
	proxy.Lose.Store(true)
	for name, client := range map[string]redis.UniversalClient{
		"single": redis.NewClient(opts.Simple()), "cluster": redis.NewClusterClient(cluster),
	} {
		t.Cleanup(func() { _ = client.Close() })
		s := storeOn(t, client, Config{}).NewScript("count", source)
		var calls []Call
		for i := range 20 {
			calls = append(calls, Call{Keys: []string{fmt.Sprint(name, i)}})
		}
		var all sync.WaitGroup
		all.Go(func() {
			for i, reply := range s.Run(t.Context(), calls...) {
				assert.NotNil(t, reply.Err, "%s: call %d got a reply: %v", name, i, reply.Ints)
			}
		})
		all.Wait()
		var counts []string
		for _, call := range calls {
			counts = append(counts, direct.Get(t.Context(), call.Keys[0]).Val())
		}
		assert.Equal(t, []string{"1"}, slices.Compact(slices.Clone(counts)), "%s: the calls ran %v times", name, counts)
	}
}
