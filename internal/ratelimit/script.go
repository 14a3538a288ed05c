package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
// Scripts of this project reply with a flat array of integers, or with strings of which the first has the integers packed: where
// there are hundreds of them that takes a third of the time. A Script is safe for concurrent use.
type Script struct {
	name    string
	source  string
	sha     string
	metrics *Metrics
	writing sync.Pool // of *writing
}

// Call is one run of a script. All Keys must be in one hash slot.
type Call struct {
	Keys   []string
	Args   []any // strings and integers, or pointers to them
	Packed bool  // the reply is strings
}

// Reply is the answer to a Call: Ints and Texts, or Err. An Err from the script itself means that it changed nothing.
type Reply struct {
	Ints  []int64
	Texts []string // what follows the integers, if they are packed
	Err   error
}

// NewScript makes a script. The name is for errors and metrics; metrics may be nil.
func NewScript(name, source string, metrics *Metrics) *Script {
	if metrics == nil {
		metrics = NewMetrics(nil)
	}
	s := &Script{name: name, source: source, sha: redis.NewScript(source).Hash(), metrics: metrics}
	s.writing.New = func() any { return new(writing) }
	return s
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
	ctx context.Context, client redis.UniversalClient, command, script any, calls []Call, replies []Reply, only []int,
) []int {
	w := s.writing.Get().(*writing)
	if only == nil {
		for i := range calls {
			w.all = append(w.all, i)
		}
		only = w.all
	}
	pipe := client.Pipeline()
	for _, i := range only {
		cmd := newOnce(ctx, calls[i].Packed, w.command(command, script, &calls[i]))
		w.cmds = append(w.cmds, cmd)
		_ = pipe.Process(ctx, cmd) // queues; it cannot fail
	}
	_, execErr := pipe.Exec(ctx) // it returns when go-redis is done with the commands

	var missing []int
	for n, i := range only {
		reply := w.cmds[n].reply()
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
	w.clear()
	s.writing.Put(w)
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

// writing is what a pipeline is written from, in space that is used again.
type writing struct {
	args []any // of the commands, one after the other
	cmds []once
	all  []int
}

// command is a command's part of args.
func (w *writing) command(command, script any, call *Call) []any {
	from := len(w.args)
	w.args = append(w.args, command, script, len(call.Keys))
	for i := range call.Keys {
		w.args = append(w.args, &call.Keys[i]) // a string in an interface would be a copy on the heap
	}
	w.args = append(w.args, call.Args...)
	return w.args[from:len(w.args):len(w.args)]
}

func (w *writing) clear() {
	w.args, w.cmds, w.all = emptied(w.args), emptied(w.cmds), emptied(w.all)
}

// once is a command that go-redis does not send again by itself, alone, in a pipeline or on a cluster.
type once interface {
	redis.Cmder
	reply() Reply
}

func newOnce(ctx context.Context, packed bool, args []any) once {
	if packed {
		return oncePacked{redis.NewStringSliceCmd(ctx, args...)}
	}
	return onceInts{redis.NewIntSliceCmd(ctx, args...)}
}

type onceInts struct{ *redis.IntSliceCmd }

// NoRetry implements redis.Cmder.
func (onceInts) NoRetry() bool { return true }

func (c onceInts) reply() Reply {
	ints, err := c.Result()
	if err == nil && ints == nil {
		err = errNoReply
	}
	return Reply{Ints: ints, Err: err}
}

type oncePacked struct{ *redis.StringSliceCmd }

// NoRetry implements redis.Cmder.
func (oncePacked) NoRetry() bool { return true }

func (c oncePacked) reply() Reply {
	texts, err := c.Result()
	switch {
	case err != nil:
		return Reply{Err: err}
	case len(texts) == 0:
		return Reply{Err: errNoReply}
	}
	ints, err := unpackInts(texts[0])
	return Reply{Ints: ints, Texts: texts[1:], Err: err}
}

// packedSize is the bytes of a packed integer, highest first: the scripts' numbers are exact to 2^53.
const packedSize = 7

func unpackInts(packed string) ([]int64, error) {
	if len(packed)%packedSize != 0 {
		return nil, fmt.Errorf("%w: %d bytes of packed integers", errScript, len(packed))
	}
	ints := make([]int64, len(packed)/packedSize)
	for i := range ints {
		b := packed[i*packedSize:][:packedSize]
		ints[i] = int64(b[0])<<48 | int64(b[1])<<40 | int64(b[2])<<32 | int64(b[3])<<24 | int64(b[4])<<16 | int64(b[5])<<8 | int64(b[6])
	}
	return ints, nil
}
