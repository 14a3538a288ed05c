package access

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// reading is a read of the keys that runs.
type reading struct {
	began   time.Time
	changes int           // Directory.changes when it began
	waiting chan struct{} // closed at its end; nil: nobody waits for it
}

// begin begins a read. The callers that wait now wait for this read, and later callers for the next.
func (d *Directory) begin() reading {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := reading{time.Now(), d.changes, d.reading}
	d.reading, d.ended = nil, nil
	return r
}

// read reads all valid keys into memory.
func (d *Directory) read(ctx context.Context) error {
	r := d.begin()
	if r.waiting != nil {
		defer close(r.waiting)
	}
	list, err := d.store.secrets(ctx)
	if err == nil {
		d.publish(list, r)
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.failed && ctx.Err() == nil {
		d.log.Warn("keys cannot be read; those in memory stay valid", "error", err)
	}
	d.failed = true
	return err
}

// publish puts the keys of a read into memory.
func (d *Directory) publish(list []*known, r reading) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed {
		d.log.Info("keys are read again")
	}
	d.failed = false
	all := make(map[hash]*known, len(list))
	uses := make(map[string]*atomic.Int64, len(list))
	for _, k := range list {
		if uses[k.ID] == nil {
			if uses[k.ID] = d.uses[k.ID]; uses[k.ID] == nil {
				uses[k.ID] = new(atomic.Int64)
			}
		}
		k.used = uses[k.ID]
		all[k.hash] = shorten(k, d.ended[k.ID])
	}
	d.uses, d.seen = uses, r.changes
	if r.began.After(d.right) {
		d.right = r.began
	}
	d.stored.Store(&all)
}

// ending says when the secrets of a key end, except for the new one.
type ending struct {
	at     time.Time
	except hash
}

// shorten returns k, or a copy that ends earlier because of endings of its key, the oldest first. An ending does not
// apply to the secret that came with it, nor to later secrets.
func shorten(k *known, endings []ending) *known {
	ends := k.ends
	for _, e := range slices.Backward(endings) {
		if k.hash == e.except {
			break
		}
		ends = earlier(ends, e.at)
	}
	if ends.Equal(k.ends) {
		return k
	}
	shorter := *k
	shorter.ends = ends
	return &shorter
}

// end ends the secrets of a key in memory. A read that runs may have begun before the change, so it must not bring
// them back.
func (d *Directory) end(id string, e ending) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended == nil {
		d.ended = map[string][]ending{}
	}
	d.ended[id] = append(d.ended[id], e)
	all := maps.Clone(*d.stored.Load())
	for sum, k := range all {
		if k.ID == id {
			all[sum] = shorten(k, []ending{e})
		}
	}
	d.stored.Store(&all)
}

// known is a valid secret and its key. It is shared. Only the value of used changes.
type known struct {
	Key

	hash hash
	ends time.Time     // the end of the key or of the secret's overlap, whichever is earlier; zero: there is no end
	used *atomic.Int64 // Unix second of the latest use of the key; nil: uses are not recorded
}

// worksAt reports whether the secret is valid at now.
func (k *known) worksAt(now time.Time) bool { return k.ends.IsZero() || now.Before(k.ends) }

// note records a use of the key at now.
func (k *known) note(now time.Time) {
	if k.used == nil {
		return
	}
	if second := now.Unix(); k.used.Load() < second {
		k.used.Store(second)
	}
}
