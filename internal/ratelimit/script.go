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
// Scripts of this project reply with a flat array of integers, some with strings behind them. A Script is safe for
// concurrent use.
type Script struct {
	name    string
	source  string
	sha     string
	metrics *Metrics
}

// Call is one run of a script. All Keys must be in one hash slot.
type Call struct {
	Keys  []string
	Args  []any // strings and integers
	Texts int   // how many strings the reply ends with
}

// Reply is the answer to a Call: Ints and Texts, or Err. An Err from the script itself means that it changed nothing.
type Reply struct {
	Ints  []int64
	Texts []string
	Err   error
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
		cmds[n] = newOnce(ctx, calls[i].Texts, commandArgs(command, script, calls[i]))
		_ = pipe.Process(ctx, cmds[n]) // queues; it cannot fail
	}
	_, execErr := pipe.Exec(ctx)

	var missing []int
	for n, i := range only {
		reply := cmds[n].reply(calls[i].Texts)
		if errors.Is(reply.Err, errNoReply) && execErr != nil {
			// go-redis leaves the commands without an error when it could not set the connection up, after a wrong
			// password for example. A script always replies with an array.
			reply.Err = execErr
		}
		if redis.HasErrorPrefix(reply.Err, "NOSCRIPT") {
			missing = append(missing, i)
		}
		if reply.Err != nil {
			reply = Reply{Err: fmt.Errorf("script %s: %w", s.name, reply.Err)}
		}
		replies[i] = reply
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
type once interface {
	redis.Cmder
	reply(texts int) Reply
}

func newOnce(ctx context.Context, texts int, args []any) once {
	if texts == 0 {
		return onceInts{redis.NewIntSliceCmd(ctx, args...)}
	}
	return onceMixed{redis.NewSliceCmd(ctx, args...)}
}

type onceInts struct{ *redis.IntSliceCmd }

// NoRetry implements redis.Cmder.
func (onceInts) NoRetry() bool { return true }

func (c onceInts) reply(int) Reply {
	ints, err := c.Result()
	if err == nil && ints == nil {
		err = errNoReply
	}
	return Reply{Ints: ints, Err: err}
}

type onceMixed struct{ *redis.SliceCmd }

// NoRetry implements redis.Cmder.
func (onceMixed) NoRetry() bool { return true }

func (c onceMixed) reply(texts int) Reply {
	values, err := c.Result()
	switch {
	case err != nil:
		return Reply{Err: err}
	case values == nil:
		return Reply{Err: errNoReply}
	case len(values) < texts:
		return Reply{Err: fmt.Errorf("%w: a reply of %d values, want %d strings", errScript, len(values), texts)}
	}
	r := Reply{Ints: make([]int64, len(values)-texts), Texts: make([]string, texts)}
	for i, v := range values[:len(r.Ints)] {
		n, ok := v.(int64)
		if !ok {
			return Reply{Err: fmt.Errorf("%w: value %d of a reply is not an integer", errScript, i)}
		}
		r.Ints[i] = n
	}
	for i, v := range values[len(r.Ints):] {
		text, ok := v.(string)
		if !ok {
			return Reply{Err: fmt.Errorf("%w: value %d of a reply is not a string", errScript, len(r.Ints)+i)}
		}
		r.Texts[i] = text
	}
	return r
}
