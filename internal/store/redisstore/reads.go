package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	// MaxReads bounds the keys of one Reads.
	MaxReads = 16

	// maxReadBatch bounds the keys that one pipeline reads for requests that only read. maxCommandKeys bounds the
	// keys of one command: Redis takes 0.25 ms for 256 values of a hundred bytes.
	maxReadBatch   = 256
	maxCommandKeys = 256
)

// Reads is a list of keys to read. It can be sent alone with Read, or in the pipeline of another request of the same
// slot.
type Reads struct {
	// Keys are at most MaxReads keys with one hash tag. On a cluster this must be the tag of the request whose
	// pipeline reads them.
	Keys []string
	// Values are the strings that are stored under Keys. If a key does not exist or has another type, its string is
	// empty. Values is nil if the keys were not read.
	Values []string

	stamp int64 // stamp of the watch; 0: the keys are not watched
}

// NewReads returns the reads of keys. It returns nil if there are no keys. It fails if there are more than MaxReads
// keys, or if the hash tag of a key is not {tag}.
func NewReads(tag string, keys []string) (*Reads, error) {
	switch {
	case len(keys) == 0:
		return nil, nil
	case len(keys) > MaxReads:
		return nil, fmt.Errorf("%d keys to read; at most %d", len(keys), MaxReads)
	}
	for _, key := range keys {
		open := strings.IndexByte(key, '{')
		if open < 0 || !strings.HasPrefix(key[open+1:], tag) || !strings.HasPrefix(key[open+1+len(tag):], "}") {
			return nil, fmt.Errorf("key %q does not have {%s} as its hash tag", key, tag)
		}
	}
	return &Reads{Keys: keys}, nil
}

// newReadLanes creates the lanes for requests that only read.
func newReadLanes(s *Store) *Lanes[struct{}, struct{}] {
	return NewLanes(s, Work[struct{}, struct{}]{
		Name: "reads", Lanes: 1, MaxBatch: maxReadBatch, Weight: func(struct{}) int { return 0 },
		NewSender: func() func(*Batch, []struct{}) []Result[struct{}] {
			return func(b *Batch, requests []struct{}) []Result[struct{}] {
				b.Run(nil, nil)
				results := make([]Result[struct{}], len(requests))
				for i := range results {
					results[i].Err = b.reads.errOf(i)
				}
				return results
			}
		},
	})
}

// Read reads keys without another request. It waits at most for the budget, and fails at once if the breaker is open.
// It returns the same errors as Lanes.Do.
func (s *Store) Read(ctx context.Context, reads *Reads) error {
	if reads == nil || len(reads.Keys) == 0 {
		return nil
	}
	_, err := s.reads.Do(ctx, s.QueueDeadline(ctx), reads.Keys[0], struct{}{}, reads)
	return err
}

// ReadAll returns the strings under keys, which may be in any slots. If a key does not exist or has another type, its
// string is empty. ReadAll uses no lane and no breaker: it is for tools and tests that examine the stored values.
func (s *Store) ReadAll(ctx context.Context, keys []string) ([]string, error) {
	plan := readPlan{cluster: s.IsCluster()}
	plan.add(keys)
	s.sendReads(ctx, &plan, false)
	if err := plan.errOf(0); err != nil {
		return nil, err
	}
	return plan.of(0), nil
}

// sendReads sends the keys of a batch that contains only reads. It stores the error of each command in plan. If watch
// is true, it makes Redis remember the keys; watched reports whether Redis remembers them.
func (s *Store) sendReads(ctx context.Context, plan *readPlan, watch bool) (watched bool) {
	pipe := s.client.Pipeline()
	tracking := s.startTracking(ctx, pipe, watch)
	plan.queue(ctx, pipe, watch)
	_, err := pipe.Exec(ctx)
	plan.collect(err)
	return s.endTracking(tracking)
}

// Kept records that this process now keeps the values of reads.
func (s *Store) Kept(reads *Reads) {
	if reads == nil || reads.Values == nil || reads.stamp == 0 {
		return
	}
	for _, key := range reads.Keys {
		s.watch.kept(reads.stamp, key)
	}
}

// readPlan holds the keys that a batch reads, and their values. Each key is read only once. A plan reuses its memory,
// and only one goroutine may use it.
type readPlan struct {
	cluster  bool
	commands []readCommand
	open     map[string]int   // by slot: the index of the command that gets the slot's next key
	places   map[string]place // by key: where its value is
	wanted   []place          // where the values of the requests' keys are, request after request
	ends     []int            // by request: the end of its part of wanted
	values   []string         // the values, in the order of wanted
	sent     bool
	stamp    int64 // stamp of the watch; 0: the keys are not watched
}

// readCommand is one MGET.
type readCommand struct {
	args []any
	cmd  *redis.StringSliceCmd
	err  error // matches ErrAway
}

// place says where the value of a key is: the index of its command, and the index in the reply to this command.
type place struct{ command, position int }

// add adds the keys of one request.
func (p *readPlan) add(keys []string) {
	for i := range keys {
		at, known := p.places[keys[i]]
		if !known {
			at = p.place(&keys[i])
		}
		p.wanted = append(p.wanted, at)
	}
	p.ends = append(p.ends, len(p.wanted))
}

// place adds a key that is not in the plan yet. On a cluster, keys of different slots need different commands.
func (p *readPlan) place(key *string) place {
	if p.places == nil {
		p.open, p.places = make(map[string]int), make(map[string]place)
	}
	slot := ""
	if p.cluster {
		slot = HashTag(*key)
	}
	c, known := p.open[slot]
	if !known || len(p.commands[c].args) > maxCommandKeys {
		c = len(p.commands)
		p.open[slot] = c
		p.commands = slices.Grow(p.commands, 1)[:c+1]
		p.commands[c].args = append(p.commands[c].args[:0], "mget")
	}
	args := append(p.commands[c].args, key) // a string in an interface would be a copy on the heap
	p.commands[c].args = args
	at := place{command: c, position: len(args) - 2}
	p.places[*key] = at
	return at
}

// queue adds the commands to a pipeline. It does nothing if the commands were sent already.
func (p *readPlan) queue(ctx context.Context, pipe redis.Pipeliner, watch bool) {
	if p.sent {
		return
	}
	for i := range p.commands {
		c := &p.commands[i]
		if watch {
			caching(ctx, pipe)
		}
		c.cmd = redis.NewStringSliceCmd(ctx, c.args...)
		_ = pipe.Process(ctx, c.cmd) // queues; it cannot fail
	}
}

// collect reads the replies to the commands. execErr is the error of the pipeline.
func (p *readPlan) collect(execErr error) {
	if p.sent {
		return
	}
	p.sent = true
	if len(p.wanted) == 0 {
		return
	}
	for i := range p.commands {
		c := &p.commands[i]
		c.err = c.cmd.Err()
		if c.err == nil && len(c.cmd.Val()) != len(c.args)-1 {
			c.err = errors.Join(errNoReply, execErr)
		}
		if c.err != nil {
			c.err = classify(c.err)
		}
	}
	p.values = make([]string, len(p.wanted)) // new memory: the values are returned to the requests
	for i, at := range p.wanted {
		if c := &p.commands[at.command]; c.err == nil {
			p.values[i] = c.cmd.Val()[at.position]
		}
	}
}

// of returns the values of a request's keys. It returns nil if the request has no keys, or if its keys were not read.
func (p *readPlan) of(request int) []string {
	from, to := p.part(request)
	if from == to || len(p.values) == 0 || p.errOf(request) != nil {
		return nil
	}
	return p.values[from:to:to]
}

// errOf returns why the keys of a request were not read.
func (p *readPlan) errOf(request int) error {
	from, to := p.part(request)
	for _, at := range p.wanted[from:to] {
		if err := p.commands[at.command].err; err != nil {
			return err
		}
	}
	return nil
}

// away returns the first error that means that the whole shard does not answer.
func (p *readPlan) away() error {
	for i := range p.commands {
		if err := p.commands[i].err; blamesShard(err) {
			return err
		}
	}
	return nil
}

// part returns the bounds of a request's part of wanted.
func (p *readPlan) part(request int) (from, to int) {
	if request > 0 {
		from = p.ends[request-1]
	}
	return from, p.ends[request]
}

// clear empties the plan and keeps its memory.
func (p *readPlan) clear() {
	for i := range p.commands {
		c := &p.commands[i]
		*c = readCommand{args: emptied(c.args)}
	}
	clear(p.open)
	clear(p.places)
	p.commands, p.wanted, p.ends = p.commands[:0], p.wanted[:0], p.ends[:0]
	p.values, p.sent, p.stamp = nil, false, 0
}
