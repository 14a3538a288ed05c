package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// errNoReply means that go-redis returned neither a reply nor an error for a command.
var errNoReply = errors.New("no reply")

// Script is a Lua script that is sent at most once per call.
//
// A script that charges must not run twice. But go-redis sends a command again if its reply was lost, and its cluster
// client does this even with MaxRetries off. This package sends a script a second time only after the reply NOSCRIPT,
// which means that the script did not run. After an error of the connection it is unknown whether the script ran.
//
// A script replies with an array of integers, or with one string in which each integer takes 7 bytes. For large
// replies the string takes a third of the time. A Script is safe for concurrent use.
type Script struct {
	store   *Store
	name    string
	source  string
	sha     string
	buffers sync.Pool // of *sendBuffers
}

// Call is one run of a script. All Keys must be in one hash slot.
type Call struct {
	Keys   []string
	Args   []any // strings and integers, or pointers to them
	Packed bool  // the reply is one string
	Watch  bool  // Redis announces changes of the keys; see Watch
}

// Reply is the answer to a Call: Ints or Err.
type Reply struct {
	Ints []int64
	Err  error
}

// NewScript creates a script. Errors and metrics contain the name. The error replies of the script must begin with a
// code and this name, for example "ERR limits: ...".
func (s *Store) NewScript(name, source string) *Script {
	script := &Script{store: s, name: name, source: source, sha: redis.NewScript(source).Hash()}
	script.buffers.New = newSendBuffers
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts = append(s.scripts[:len(s.scripts):len(s.scripts)], script)
	return script
}

func newSendBuffers() any { return new(sendBuffers) }

// load stores the script on the server, or on every master of a cluster, so that the first calls are not sent twice.
func (s *Script) load(ctx context.Context, client redis.UniversalClient) error {
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

// Run runs the script for every call in one pipeline, without a lane or a breaker. It takes one round trip, or two if
// the server does not have the script (NOSCRIPT). Calls for one slot run in order. Run returns a reply per call, in
// order. It has the same errors as Batch.Run. ctx bounds the time.
func (s *Script) Run(ctx context.Context, calls ...Call) []Reply {
	replies, _ := s.run(ctx, calls, nil, false)
	return replies
}

// run sends the calls, and the keys to read if plan is not nil. If watch is true, Redis remembers the keys to read
// and the keys of the calls with Watch. watched reports whether Redis remembers them.
func (s *Script) run(ctx context.Context, calls []Call, plan *readPlan, watch bool) (replies []Reply, watched bool) {
	replies = make([]Reply, len(calls))
	started := time.Now() // a measurement only; no decision depends on it
	missing, watched := s.send(ctx, "evalsha", s.sha, calls, replies, nil, plan, watch)
	if len(missing) > 0 {
		watched = false
		s.store.metrics.noScript.WithLabelValues(s.name).Add(float64(len(missing)))
		s.send(ctx, "eval", s.source, calls, replies, missing, nil, false)
	}
	s.store.metrics.scriptSeconds.WithLabelValues(s.name).Observe(time.Since(started).Seconds())
	return replies, watched
}

// send sends calls[i] for every index i in the list `only`, and sets replies[i]. If the list is nil, it sends all
// calls. It returns the indices of the calls that were answered NOSCRIPT.
func (s *Script) send(
	ctx context.Context, command, script any, calls []Call, replies []Reply, only []int, plan *readPlan, watch bool,
) (missing []int, watched bool) {
	b := s.buffers.Get().(*sendBuffers)
	if only == nil {
		for i := range calls {
			b.all = append(b.all, i)
		}
		only = b.all
	}
	pipe := s.store.client.Pipeline()
	tracking := s.store.startTracking(ctx, pipe, watch)
	for _, i := range only {
		if watch && calls[i].Watch {
			caching(ctx, pipe)
		}
		cmd := newCommand(ctx, calls[i].Packed, b.command(command, script, &calls[i]))
		b.cmds = append(b.cmds, cmd)
		_ = pipe.Process(ctx, cmd) // only queues: it cannot fail
	}
	if plan != nil {
		plan.queue(ctx, pipe, watch)
	}
	_, execErr := pipe.Exec(ctx) // go-redis no longer uses the commands after Exec
	if plan != nil {
		plan.collect(execErr)
	}
	for n, i := range only {
		ints, err := b.cmds[n].ints()
		if errors.Is(err, errNoReply) && execErr != nil {
			// If go-redis cannot set up the connection, for example because of a wrong password, the commands have no
			// error. A script always replies, so a missing reply means that the pipeline failed.
			err = execErr
		}
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			missing = append(missing, i)
		}
		replies[i] = Reply{Ints: ints, Err: s.classify(err)}
	}
	b.clear()
	s.buffers.Put(b)
	return missing, s.store.endTracking(tracking)
}

// classify returns an error that matches ErrScript if the script itself replied with err. Otherwise the error matches
// ErrAway.
func (s *Script) classify(err error) error {
	if err == nil || errors.Is(err, ErrScript) {
		return err
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		if code, rest, ok := strings.Cut(reply.Error(), " "); ok && strings.HasPrefix(rest, s.name+":") {
			return &ScriptError{Code: code, Text: reply.Error()}
		}
	}
	return fmt.Errorf("script %s: %w", s.name, classify(err))
}

// sendBuffers is reusable memory for a pipeline.
type sendBuffers struct {
	args []any // arguments of the commands, one command after the other
	cmds []scriptCommand
	all  []int
}

// command appends the arguments of a command to args, and returns the part of args that contains them.
func (b *sendBuffers) command(command, script any, call *Call) []any {
	from := len(b.args)
	b.args = append(b.args, command, script, len(call.Keys))
	for i := range call.Keys {
		b.args = append(b.args, &call.Keys[i]) // a string in an interface would be a copy on the heap
	}
	b.args = append(b.args, call.Args...)
	return b.args[from:len(b.args):len(b.args)]
}

func (b *sendBuffers) clear() {
	b.args, b.cmds, b.all = emptied(b.args), emptied(b.cmds), emptied(b.all)
}

// scriptCommand is a command that go-redis never sends a second time. This is true for a single command, for a command
// in a pipeline, and on a cluster.
type scriptCommand interface {
	redis.Cmder
	ints() ([]int64, error)
}

func newCommand(ctx context.Context, packed bool, args []any) scriptCommand {
	if packed {
		return packedCommand{redis.NewStringCmd(ctx, args...)}
	}
	return intsCommand{redis.NewIntSliceCmd(ctx, args...)}
}

type intsCommand struct{ *redis.IntSliceCmd }

// NoRetry implements redis.Cmder.
func (intsCommand) NoRetry() bool { return true }

func (c intsCommand) ints() ([]int64, error) {
	ints, err := c.Result()
	if err == nil && ints == nil {
		err = errNoReply
	}
	return ints, err
}

type packedCommand struct{ *redis.StringCmd }

// NoRetry implements redis.Cmder.
func (packedCommand) NoRetry() bool { return true }

func (c packedCommand) ints() ([]int64, error) {
	packed, err := c.Result()
	switch {
	case err != nil:
		return nil, err
	case packed == "":
		return nil, errNoReply
	}
	return unpackInts(packed)
}

// packedSize is the number of bytes of a packed integer; the highest byte comes first. 7 bytes are enough, because
// the numbers in Lua scripts are exact only up to 2^53.
const packedSize = 7

func unpackInts(packed string) ([]int64, error) {
	if len(packed)%packedSize != 0 {
		return nil, fmt.Errorf("%w: %d bytes of packed integers", ErrScript, len(packed))
	}
	ints := make([]int64, len(packed)/packedSize)
	for i := range ints {
		b := packed[i*packedSize:][:packedSize]
		ints[i] = int64(b[0])<<48 | int64(b[1])<<40 | int64(b[2])<<32 | int64(b[3])<<24 | int64(b[4])<<16 | int64(b[5])<<8 | int64(b[6])
	}
	return ints, nil
}
