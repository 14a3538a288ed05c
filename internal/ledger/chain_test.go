package ledger

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// plainDebit returns the entry of a typical debit.
func plainDebit() *Entry {
	at := time.Date(2026, 11, 22, 12, 0, 0, 123456000, time.UTC)
	return &Entry{
		BalanceKey: BalanceKey{Tenant: "tenant-0001", Meter: "api_calls"}, OperationID: "01J0000000000000000000000", Line: 1, Seq: 17, Kind: EntryDebit,
		PeriodStart: at, Grant: "allowance:2026-11-01T00:00:00Z", Source: SourceAllowance, Amount: 3, RemainingAfter: 97, Requested: 3,
		Fingerprint: make([]byte, 16), CreatedAt: at,
	}
}

func TestChain_EntryChanged_HeadDiffers(t *testing.T) {
	t.Parallel()
	head := func(e *Entry) Chain {
		c := Chain{From: 1, Last: e.Seq - 1}
		c.extend(e, nil)
		return c
	}
	want := head(plainDebit())
	require.True(t, head(plainDebit()) == want && want.From == 1 && want.Last == 17,
		"the same entry gives %+v and %+v", want, head(plainDebit()))
	for name, change := range map[string]func(*Entry){
		"tenant": func(e *Entry) { e.Tenant = "tenant-0002" }, "meter": func(e *Entry) { e.Meter = "x" }, "subject": func(e *Entry) { e.Subject = "x" },
		"operation": func(e *Entry) { e.OperationID += "x" }, "line": func(e *Entry) { e.Line++ }, "seq": func(e *Entry) { e.Seq++ },
		"kind": func(e *Entry) { e.Kind = EntryVoid }, "period": func(e *Entry) { e.PeriodStart = e.PeriodStart.Add(time.Microsecond) },
		"grant": func(e *Entry) { e.Grant = "x" }, "source": func(e *Entry) { e.Source = SourcePromo }, "amount": func(e *Entry) { e.Amount++ },
		"remaining": func(e *Entry) { e.RemainingAfter++ }, "item": func(e *Entry) { e.Item++ }, "requested": func(e *Entry) { e.Requested++ },
		"fingerprint": func(e *Entry) { e.Fingerprint = []byte("another") }, "time": func(e *Entry) { e.CreatedAt = e.CreatedAt.Add(time.Microsecond) },
		"effective": func(e *Entry) { e.EffectiveAt = e.CreatedAt }, "op subject": func(e *Entry) { e.OpSubject = "x" },
		"actor": func(e *Entry) { e.Actor = "key_1" }, "detail": func(e *Entry) { e.Detail = []byte(`{}`) }, "metadata": func(e *Entry) { e.Metadata = []byte(`{}`) },
		"text moved to the next field": func(e *Entry) { e.Tenant, e.Meter = "tenant-000", "1api_calls" },
	} {
		e := plainDebit()
		change(e)
		assert.True(t, head(e).Head != want.Head, "%s: the head is the same", name)
	}
}

// The hash chain of entries without an actor is the same as in versions of the service that had no actors.
func TestChain_Actor_InTheChainWhereSet(t *testing.T) {
	t.Parallel()
	var c, one, two Chain
	e := plainDebit()
	c.Extend(e)
	const before = "6633e39858f5239e94b2e135789a9ae3063a587c28fc7bd361740528c9c30e6e"
	assert.Equal(t, before, hex.EncodeToString(c.Head[:]), "the head without an actor")
	e.Actor = "key_1"
	one.Extend(e)
	e.Actor = "key_2"
	two.Extend(e)
	assert.True(t, one.Head != c.Head && two.Head != c.Head && one.Head != two.Head,
		"two of the heads are the same: %x, %x and %x", c.Head, one.Head, two.Head)
}

func TestChain_EntryWithoutChainBetween_BeginsAnew(t *testing.T) {
	t.Parallel()
	var c Chain
	e := plainDebit()
	c.extend(e, nil)
	assert.True(t, c.From == 17 && c.Last == 17, "the first chained entry gives %+v", c)
	first := c.Head
	e.Seq = 18
	c.extend(e, nil)
	assert.True(t, c.From == 17 && c.Last == 18 && c.Head != first, "the next one gives %+v", c)
	e.Seq = 20 // entry 19 was written by a version without chains
	c.extend(e, nil)
	assert.True(t, c.From == 20 && c.Last == 20, "after a gap: %+v", c)
}

func TestCanonicalJSON_SameValue_SameForm(t *testing.T) {
	t.Parallel()
	canonical := func(text string) string { return string(appendJSON(nil, []byte(text))) }
	for _, same := range [][]string{
		{`{"a":1,"b":[true,null]}`, `{ "b": [ true , null ], "a": 1.0 }`, `{"a":7,"b":[true,null],"a":10e-1}`},
		{`{"n":1.50}`, `{"n":15e-1}`, `{"n":0.15E1}`, `{"n":1.5}`},
		{`{"n":0}`, `{"n":-0}`, `{"n":0.000}`, `{"n":0e7}`},
		{`{"n":1200}`, `{"n":12e2}`, `{"n":1.2e+3}`},
		{`{"t":"\u00e9\/\n"}`, "{\"t\":\"é/\\u000a\"}"},
	} {
		for _, text := range same {
			assert.Equal(t, canonical(same[0]), canonical(text), "%s and %s differ", text, same[0])
		}
	}
	for _, different := range [][2]string{
		{`{"a":1}`, `{"a":"1"}`},
		{`{"a":[]}`, `{"a":{}}`},
		{`{"a":null}`, `{}`},
		{`{"a":false}`, `{"a":true}`},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`},
		{`{"a":-1}`, `{"a":1}`},
		{`{"a":[1,2]}`, `{"a":[2,1]}`},
		{`{"ab":"c"}`, `{"a":"bc"}`},
		{`{"a":10}`, `{"a":1}`},
		{`{"a":0.1}`, `{"a":0.01}`},
	} {
		assert.NotEqual(t, canonical(different[0]), canonical(different[1]), "%q are the same", different)
	}
}

// A plain debit is hashed in about 200 ns without an allocation.
func BenchmarkChain_PlainDebit(b *testing.B) {
	e := plainDebit()
	var c Chain
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		e.Seq++
		buf = c.extend(e, buf)
	}
}
