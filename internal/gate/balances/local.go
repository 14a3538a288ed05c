package balances

import (
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"time"
	"unique"

	"github.com/quotasvc/quotasvc/internal/kit/recent"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// The flags of an encoded copy.
const (
	flagRenews uint8 = 1 << iota
	flagInPlan
	flagBeyond
	flagDerived // an older version of the service does not read it
)

func flagsOf(c *ledger.BalanceCopy) (flags uint8) {
	if c.Renews {
		flags |= flagRenews
	}
	if c.InPlan {
		flags |= flagInPlan
	}
	if c.Beyond {
		flags |= flagBeyond
	}
	if c.Derived {
		flags |= flagDerived
	}
	return flags
}

// localCopies contains the newest copies that this process has seen, of the most recently used balances.
type localCopies struct {
	seed maphash.Seed // seed of the hashes of texts

	mu  sync.Mutex
	all *recent.Map[ledger.BalanceKey, localCopy]
}

func newLocalCopies(size int) *localCopies {
	return &localCopies{seed: maphash.MakeSeed(), all: recent.New[ledger.BalanceKey, localCopy](size)}
}

// put stores each copy that is newer than the stored copy of the same balance.
func (l *localCopies) put(copies []*ledger.BalanceCopy) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range copies {
		key, packed := keyOf(c), pack(c)
		if old, ok := l.all.Get(key); !ok || packed.newer(&old) {
			l.keep(key, packed)
		}
	}
}

// keep stores a copy. The caller holds the lock. The copies share the memory of the meters' names, because many
// copies belong to few meters.
func (l *localCopies) keep(key ledger.BalanceKey, c localCopy) {
	key.Meter = unique.Make(key.Meter).Value()
	l.all.Put(key, c)
}

// merge appends to out, for each key, the newer of the local copy and the copy in texts. It stores a newer copy from
// texts. texts are the values in Redis; nil means that they are unknown. A copy is confirmed if Redis has a copy of
// the same balance, or if this process is alone. If Redis has lost a copy, another instance may have changed the
// balance.
func (l *localCopies) merge(out []Cached, keys []ledger.BalanceKey, texts []string, alone bool) []Cached {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, key := range keys {
		text := uint64(0)
		if texts != nil && texts[i] != "" {
			text = max(1, maphash.String(l.seed, texts[i]))
		}
		newest, known := l.all.Get(key)
		if text != 0 && text != newest.text {
			if shared, ok := decodeLocal(texts[i]); ok {
				if !known || shared.newer(&newest) {
					newest, known = shared, true
				}
				newest.text = text
				l.keep(key, newest)
			}
		}
		out = append(out, Cached{Confirmed: alone || text != 0 && text == newest.text})
		if known {
			out[len(out)-1].Copy = newest.unpack(key)
		}
	}
	return out
}

// held appends to out the local copy of each key. A copy is confirmed if Redis had a text for the key at its last
// read.
func (l *localCopies) held(out []Cached, keys []ledger.BalanceKey) []Cached {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		var c Cached
		if newest, known := l.all.Get(key); known {
			c = Cached{Copy: newest.unpack(key), Confirmed: newest.text != 0}
		}
		out = append(out, c)
	}
	return out
}

func decodeLocal(stored string) (c localCopy, ok bool) {
	seqText, rest, _ := strings.Cut(stored, " ")
	format, rest, _ := strings.Cut(rest, " ")
	if format != copyFormat {
		return c, false
	}
	seq, err := strconv.ParseInt(seqText, 10, 64)
	if err != nil || seq < 0 {
		return c, false
	}
	var fields [7]int64
	for i := range fields {
		var text string
		var more bool
		text, rest, more = strings.Cut(rest, " ")
		if fields[i], err = strconv.ParseInt(text, 10, 64); err != nil || more != (i < len(fields)-1) {
			return c, false
		}
	}
	return localCopy{
		seq: seq, flags: uint8(fields[0] & 0xff), remaining: fields[1], limit: fields[2], allowance: fields[3],
		resetAt: fields[4], validUntil: fields[5], asOf: fields[6],
	}, true
}

// localCopy is a packed copy without its key. It has the hash of the text that Redis had at the last read, so that an
// unchanged text is not decoded again. It takes 72 bytes. An unpacked copy with its text takes 270.
type localCopy struct {
	seq, remaining, limit, allowance int64
	resetAt, validUntil, asOf        int64  // µs; 0: zero time
	text                             uint64 // hash of the text in Redis; 0: no text
	flags                            uint8
}

func pack(c *ledger.BalanceCopy) localCopy {
	return localCopy{
		seq: c.Seq, remaining: c.Remaining, limit: c.Limit, allowance: c.Allowance, flags: flagsOf(c),
		resetAt: micros(c.ResetAt), validUntil: micros(c.ValidUntil), asOf: micros(c.AsOf),
	}
}

func (l *localCopy) unpack(k ledger.BalanceKey) *ledger.BalanceCopy {
	return &ledger.BalanceCopy{
		Tenant: k.Tenant, Meter: k.Meter, Subject: k.Subject, Seq: l.seq, Remaining: l.remaining, Limit: l.limit, Allowance: l.allowance,
		Renews: l.flags&flagRenews != 0, InPlan: l.flags&flagInPlan != 0, Beyond: l.flags&flagBeyond != 0, Derived: l.flags&flagDerived != 0,
		ResetAt: fromMicros(l.resetAt), ValidUntil: fromMicros(l.validUntil), AsOf: fromMicros(l.asOf),
	}
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// newer reports whether the copy a replaces the copy b. This is so if a has the higher seq, or the same seq and was
// read later, or if b had ended when a was read. A read counts due entries that are not written yet. A later read may
// count fewer such entries, because idle periods have no entries.
func newer(a, b *ledger.BalanceCopy) bool {
	first, second := pack(a), pack(b)
	return first.newer(&second)
}

func (l *localCopy) newer(than *localCopy) bool {
	ended := than.validUntil != 0 && l.asOf >= than.validUntil
	return l.seq > than.seq || l.seq == than.seq && l.asOf > than.asOf || ended
}
