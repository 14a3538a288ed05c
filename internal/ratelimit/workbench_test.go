package ratelimit

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

// vectors returns the vectors of a batch, from a new workbench.
func vectors(batch []query, cluster bool, now int64) []*vector {
	return newWorkbench(cluster).vectors(batch, now)
}

// answersOf decodes a reply to the call of v. It returns the answers to v's queries, in order.
func answersOf(v *vector, batch []query, reply redisstore.Reply) ([]answer, error) {
	all := make([]redisstore.Result[answer], len(batch))
	if _, err := v.read(batch, reply, all); err != nil {
		return nil, err
	}
	answers := make([]answer, len(v.queries))
	for n, i := range v.queries {
		answers[n] = all[i].Answer
	}
	return answers, nil
}

// TestWorkbench_KeepsNothingOfABatch: a used workbench encodes and decodes every batch as a new workbench does. Later
// batches do not change the answers of earlier ones. Between batches the workbench keeps no values of a request.
func TestWorkbench_KeepsNothingOfABatch(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cluster := rapid.Bool().Draw(t, "cluster")
		used := newWorkbench(cluster)
		w := drawWorld(t)
		var got, want [][]answer
		for n := range int64(rapid.IntRange(2, 5).Draw(t, "batches")) {
			batch := w.drawBatchWithRefunds(t, []string{"x", "y", "z"}[:rapid.IntRange(1, 3).Draw(t, "tenants")])
			fresh := newWorkbench(cluster)
			answers, calls, last := work(t, used, batch, w.now, n)
			wantAnswers, wantCalls, wantLast := work(t, fresh, batch, w.now, n)
			require.Equal(t, wantCalls, calls, "batch %d is sent as %v, on a new workbench as %v", n, calls, wantCalls)
			require.Equal(t, wantLast, last, "batch %d leaves %v, on a new workbench %v", n, last, wantLast)
			got, want = append(got, answers), append(want, wantAnswers)
			used.clear()
			require.True(t, len(used.open) == 0 && len(used.used) == 0 && len(used.idle) != 0 && !holds(used.used) &&
				!holds(used.pending), "after batch %d the workbench has %+v", n, used)
			for _, v := range used.idle {
				isBlank(t, v)
			}
			w.now += rapid.Int64Range(-6_000_000, 60_000_000).Draw(t, "us")
		}
		require.Equal(t, want, got, "answers %+v, on new workbenches %+v", got, want)
	})
}

// TestWorkbench_KeepsFewVectors: after a batch of very many tenants on a cluster, only a few vectors are kept.
func TestWorkbench_KeepsFewVectors(t *testing.T) {
	t.Parallel()
	r := compile(t, rule.Spec{Rate: "1/s"})
	var batch []query
	for i := range maxIdleVectors + 1 {
		batch = append(batch, queryFor(t, string(rune('A'+i%26))+string(rune('a'+i/26)), Charge{Rule: r}))
	}
	b := newWorkbench(true)
	for range 2 {
		vs := b.vectors(batch, worldStart)
		require.Len(t, vs, len(batch), "%d vectors for %d tenants", len(vs), len(batch))
		b.clear()
		assert.Len(t, b.idle, maxIdleVectors, "vectors are kept")
	}
}

// drawBatchWithRefunds calls drawBatch, and adds refunds of charges that were made at other times.
func (w *world) drawBatchWithRefunds(t *rapid.T, tenants []string) []query {
	batch := w.drawBatch(t, tenants)
	if len(batch) == 0 {
		batch = append(batch, query{op: rule.Peek, tenant: "x", charges: []charge{{rule: w.rules[0], key: "rl:{x}", tag: "x", cost: 1}}})
	}
	for i := range batch {
		if q := &batch[i]; q.op == rule.Refund {
			q.charges = slices.Clone(q.charges)
			q.charges[0].taken = rapid.SampledFrom([]int64{rule.UnknownTime, w.now - 1000}).Draw(t, "taken")
		}
	}
	return batch
}

// work encodes a batch and decodes generated replies, as a lane does. It returns the answers, the words of the calls,
// and the last result for each bucket.
func work(t *rapid.T, b *workbench, batch []query, now, seed int64) (answers []answer, calls [][]any, last [][]bucketResult) {
	results := make([]redisstore.Result[answer], len(batch))
	vs := b.vectors(batch, now)
	for i, call := range b.calls(b.used, 0) {
		calls = append(calls, written(call))
		d, err := vs[i].read(batch, replyTo(vs[i], batch, now+seed), results)
		require.True(t, err == nil && d.now == now+seed, "%+v, %v", d, err)
		var rows []bucketResult
		for _, r := range vs[i].last(results) {
			rows = append(rows, *r)
		}
		last = append(last, rows)
	}
	for _, r := range results {
		answers = append(answers, r.Answer)
	}
	return answers, calls, last
}

// written returns the keys and arguments of a call, as they are sent.
func written(c redisstore.Call) (words []any) {
	for _, key := range c.Keys {
		words = append(words, key)
	}
	for _, arg := range c.Args {
		if p, ok := arg.(*int64); ok {
			arg = *p
		}
		words = append(words, arg)
	}
	return words
}

// replyTo returns a reply to v in which all numbers differ. Every third bucket is ahead of Redis's clock.
func replyTo(v *vector, batch []query, now int64) redisstore.Reply {
	n := now % 1000
	next := func() int64 { n++; return n }
	var ahead []int64
	for at := range v.keys {
		if at%3 == 0 {
			ahead = append(ahead, int64(at+1), next())
		}
	}
	r := redisstore.Reply{Ints: []int64{now, next(), int64(len(ahead) / 2), next()}}
	for _, i := range v.queries {
		r.Ints = append(r.Ints, next()%2)
		for j := range batch[i].charges {
			r.Ints = append(r.Ints, next()%int64(rule.Stale+1))
			for range batch[i].charges[j].rule.Limit().Width() - 1 {
				r.Ints = append(r.Ints, next())
			}
		}
	}
	r.Ints = append(r.Ints, ahead...)
	return r
}

// isBlank fails the test if a field of v keeps a value of a request. It examines slices up to their capacity.
func isBlank(t *rapid.T, v *vector) {
	all := reflect.ValueOf(v).Elem()
	for i := range all.NumField() {
		f, name := all.Field(i), all.Type().Field(i).Name
		switch f.Kind() {
		case reflect.Slice:
			require.Zero(t, f.Len(), "an idle vector has %d of %s", f.Len(), name)
			require.False(t, pointsAt(f.Type().Elem()) && anyOf(f.Slice(0, f.Cap())),
				"an idle vector holds something in %s", name)
		case reflect.Map:
			require.True(t, !f.IsNil() && f.Len() == 0, "an idle vector's %s is %v", name, f)
		default:
			require.True(t, f.IsZero(), "an idle vector's %s is %v", name, f)
		}
	}
}

// pointsAt reports whether a value of type t can point at other values and so keep them in memory.
func pointsAt(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			if pointsAt(t.Field(i).Type) {
				return true
			}
		}
		return false
	case reflect.Array:
		return pointsAt(t.Elem())
	default:
		return t.Kind() == reflect.String || t.Kind() >= reflect.Chan && t.Kind() != reflect.Struct
	}
}

// anyOf reports whether s has an element that is not zero.
func anyOf(s reflect.Value) bool {
	for i := range s.Len() {
		if !s.Index(i).IsZero() {
			return true
		}
	}
	return false
}

// holds reports whether s has an element that is not zero, also beyond its length.
func holds[T any](s []T) bool { return anyOf(reflect.ValueOf(s[:cap(s)])) }
