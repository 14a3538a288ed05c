package pgstore

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Room is a purpose of work in PostgreSQL. Each room can have its own pool, so that work of one room never waits for
// work of another.
type Room int

const (
	// Reading is for what callers read: the catalogue, keys, links, events, the audit log. View and Send use it.
	Reading Room = iota

	// Administration is for changes, and for the sessions of the console. Write uses it.
	Administration

	// Memory is for reads that fill the memory of the process: keys, meters, plans, limits, blocks, tenants,
	// overrides. Each of these is read by one goroutine at a time. So with MemoryConns connections none waits.
	Memory

	// Strangers is for look-ups of what may be invented. If more than strangersWaiting wait, further ones fail at
	// once.
	Strangers

	rooms = iota
)

const (
	// MemoryConns is the number of connections with which no reader of the room Memory waits for another: one each for
	// keys, the snapshot of the catalogue, blocks, tenants and overrides.
	MemoryConns = 5

	// strangersWaiting is the largest number of waiting look-ups in the room Strangers. Two connections answer this
	// many in less than a second if a look-up takes 20 ms.
	strangersWaiting = 64
)

// errRoomFull is the cause of errors of a room in which too many wait.
var errRoomFull = errors.New("too many look-ups wait")

// room bounds the work of one purpose: in all, and for each caller. A caller gets at most half of the room, so that
// one caller cannot hold up the others. A caller within a caller gets at most half of that half, and so on. Work
// without a caller, which is the service's own, has only the first bound.
type room struct {
	pool    *pgxpool.Pool
	all     chan struct{}
	waiting chan struct{} // nil: any number may wait

	mu      sync.Mutex
	callers map[string]*caller
}

// caller has the slots of a caller, and the number of its calls that have or want a slot.
type caller struct {
	slots chan struct{}
	calls int
}

// newRoom returns a room for `most` transactions at a time.
func newRoom(pool *pgxpool.Pool, most int32) *room {
	return &room{pool: pool, all: make(chan struct{}, max(1, most)), callers: map[string]*caller{}}
}

// enter waits for slots: one of each caller, the innermost first, the slot `alone` unless it is nil, and one of the
// room. Each of the callers is within the one before it. The function `leave` releases the slots, and must be called
// once the work has ended. If too many calls wait, enter fails with errRoomFull. If ctx ends first, it fails with the
// error of ctx.
func (r *room) enter(ctx context.Context, callers []string, alone chan struct{}) (leave func(), err error) {
	if r.waiting != nil {
		select {
		case r.waiting <- struct{}{}:
			defer func() { <-r.waiting }()
		default:
			return nil, errRoomFull
		}
	}
	var held []chan struct{}
	leave = func() {
		for _, slots := range held {
			<-slots
		}
		r.forget(callers)
	}
	for _, slots := range append(r.slotsOf(callers), alone, r.all) {
		if slots == nil {
			continue
		}
		select {
		case slots <- struct{}{}:
			held = append(held, slots)
		case <-ctx.Done():
			leave()
			return nil, ctx.Err()
		}
	}
	return leave, nil
}

// nameOf returns the name of the innermost caller in room.callers.
func nameOf(callers []string) string { return strings.Join(callers, "\x00") }

// slotsOf returns the slots of each caller, the innermost first. Each call needs a later call of forget.
func (r *room) slotsOf(callers []string) []chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	slots, most := make([]chan struct{}, len(callers), len(callers)+2), cap(r.all)
	for i := range callers {
		most = (most + 1) / 2
		name := nameOf(callers[:i+1])
		c := r.callers[name]
		if c == nil {
			c = &caller{slots: make(chan struct{}, most)}
			r.callers[name] = c
		}
		c.calls++
		slots[len(callers)-1-i] = c.slots
	}
	return slots
}

// forget counts the end of a call, and removes the slots of callers that have no calls any more.
func (r *room) forget(callers []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range callers {
		name := nameOf(callers[:i+1])
		if c := r.callers[name]; c.calls > 1 {
			c.calls--
		} else {
			delete(r.callers, name)
		}
	}
}
