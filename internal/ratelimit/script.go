package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// errNoReply says that a call came back with neither a reply nor an error.
var errNoReply = errors.New("no reply")

// Script is a Lua script that is sent at most once per call.
//
// go-redis sends a command again when its reply was lost, the cluster client even with MaxRetries off, and a script that
// charges must not run twice. Here only the answer NOSCRIPT leads to a second send: it says that the script did not run.
// After any other error of the connection the outcome is unknown.
//
// Scripts of this project reply with a flat array of integers. A Script is safe for concurrent use.
type Script struct {
	name    string
	source  string
	sha     string
	metrics *Metrics
}

// Call is one run of a script. All Keys must be in one hash slot.
type Call struct {
	Keys []string
	Args []any // strings and integers
}

// Reply is the answer to a Call: Ints, or Err. An Err from the script itself means that it changed nothing.
type Reply struct {
	Ints []int64
	Err  error
}

// NewScript makes a script. The name is for errors and metrics; metrics may be nil.
func NewScript(name, source string, metrics *Metrics) *Script {
	if metrics == nil {
		metrics = NewMetrics(nil)
	}
	return &Script{name: name, source: source, sha: redis.NewScript(source).Hash(), metrics: metrics}
}

// Load caches the script on the server, or on every master of a cluster, so that the first calls need no second send.
func (s *Script) Load(ctx context.Context, client redis.UniversalClient) error {
	load := func(ctx context.Context, c redis.Cmdable) error { return c.ScriptLoad(ctx, s.source).Err() }
	var err error
	if cluster, ok := client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return load(ctx, c) })
	} else {
		err = load(ctx, client)
	}
	if err != nil {
		return fmt.Errorf("load script %s: %w", s.name, err)
	}
	return nil
}

// Run runs the script once.
func (s *Script) Run(ctx context.Context, client redis.UniversalClient, call Call) ([]int64, error) {
	replies := s.RunPipelined(ctx, client, []Call{call})
	return replies[0].Ints, replies[0].Err
}

// RunPipelined runs the script for every call in one pipeline: one round trip, and a second one only for the calls that
// answered NOSCRIPT. Calls for one slot run in order. It returns a reply per call, in order; ctx bounds it if the client
// was made with ContextTimeoutEnabled.
func (s *Script) RunPipelined(ctx context.Context, client redis.UniversalClient, calls []Call) []Reply {
	replies := make([]Reply, len(calls))
	started := time.Now() // a measurement only; no decision depends on it
	missing := s.send(ctx, client, "evalsha", s.sha, calls, replies, nil)
	if len(missing) > 0 {
		s.metrics.noScript.WithLabelValues(s.name).Add(float64(len(missing)))
		s.send(ctx, client, "eval", s.source, calls, replies, missing)
	}
	s.metrics.evalSeconds.WithLabelValues(s.name).Observe(time.Since(started).Seconds())
	return replies
}

// send sends calls[i] for every i in only (nil: all) and fills replies[i]. It returns the indices that answered NOSCRIPT.
func (s *Script) send(
	ctx context.Context, client redis.UniversalClient, command, script string, calls []Call, replies []Reply, only []int,
) []int {
	if only == nil {
		only = make([]int, len(calls))
		for i := range only {
			only[i] = i
		}
	}
	cmds := make([]once, len(only))
	pipe := client.Pipeline()
	for n, i := range only {
		cmds[n] = once{redis.NewIntSliceCmd(ctx, commandArgs(command, script, calls[i])...)}
		_ = pipe.Process(ctx, cmds[n]) // queues; it cannot fail
	}
	_, execErr := pipe.Exec(ctx)

	var missing []int
	for n, i := range only {
		ints, err := cmds[n].Result()
		if err == nil && ints == nil {
			// go-redis leaves the commands without an error when it could not set the connection up, after a wrong
			// password for example. A script always replies with an array.
			if err = execErr; err == nil {
				err = errNoReply
			}
		}
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			missing = append(missing, i)
		}
		if err != nil {
			ints, err = nil, fmt.Errorf("script %s: %w", s.name, err)
		}
		replies[i] = Reply{Ints: ints, Err: err}
	}
	return missing
}

// isMoving reports whether a node of a cluster says that it cannot run a call while the slot moves: nothing ran. The client
// has followed redirections already; what is left of them are more than it follows.
func isMoving(err error) bool {
	_, moved := redis.IsMovedError(err)
	_, ask := redis.IsAskError(err)
	return moved || ask || redis.IsTryAgainError(err)
}

// isUnserved reports whether a node of a cluster says that nobody has the slot.
func isUnserved(err error) bool { return redis.HasErrorPrefix(err, "CLUSTERDOWN Hash slot not served") }

func commandArgs(command, script string, call Call) []any {
	args := make([]any, 0, 3+len(call.Keys)+len(call.Args))
	args = append(args, command, script, len(call.Keys))
	for _, key := range call.Keys {
		args = append(args, key)
	}
	return append(args, call.Args...)
}

// once is a command that go-redis does not send again by itself, alone, in a pipeline or on a cluster.
type once struct{ *redis.IntSliceCmd }

// NoRetry implements redis.Cmder.
func (once) NoRetry() bool { return true }
