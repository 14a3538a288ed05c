package waitlist

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func take(l *List[string]) []string {
	out := []string{}
	for _, p := range l.Take() {
		out = append(out, p.Value)
	}
	return out
}

func add(t *testing.T, l *List[string], group int, values ...string) (last *Place[string]) {
	t.Helper()
	for _, v := range values {
		last, _ = l.Add(v, v[:1], group)
		require.NotNil(t, last, "no room for %s", v)
	}
	return last
}

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	assert.True(t, slices.Equal(got, want), "got %v, want %v", got, want)
}

func TestTake_WhatWaitsLongest_GoesFirst(t *testing.T) {
	t.Parallel()
	l := New[string](Config{Most: 10, MostOf: 10, Batch: 3, Share: 3})
	want(t, take(l))
	add(t, l, 0, "a1", "b1", "c1", "d1")
	want(t, take(l), "a1", "b1", "c1")
	want(t, take(l), "d1")
	want(t, take(l))
}

func TestTake_Batch_IsOfOneGroup(t *testing.T) {
	t.Parallel()
	l := New[string](Config{Most: 10, MostOf: 10, Batch: 3, Share: 3})
	add(t, l, 1, "a1")
	add(t, l, 2, "b1", "c1")
	add(t, l, 1, "d1", "e1", "f1")
	want(t, take(l), "a1", "d1", "e1")
	want(t, take(l), "b1", "c1")
	want(t, take(l), "f1")
}

// A tenant with many places delays another tenant by at most one batch.
func TestTake_TenantWithMany_LeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	l := New[string](Config{Most: 100, MostOf: 100, Batch: 4, Share: 2})
	add(t, l, 0, "a1", "a2", "a3", "a4", "a5", "a6", "b1", "c1")
	want(t, take(l), "a1", "a2", "b1", "c1")
	want(t, take(l), "a3", "a4", "a5", "a6") // no other tenant waits
	add(t, l, 0, "a1", "a2", "a3", "a4", "b1")
	want(t, take(l), "a1", "a2", "b1", "a3") // any waiting tenant gets the remaining room
	want(t, take(l), "a4")
	add(t, l, 0, "a1", "a2", "a3", "b1")
	want(t, take(l), "a1", "a2", "a3", "b1") // all places fit into one batch
}

func TestAdd_Bounds(t *testing.T) {
	t.Parallel()
	l := New[string](Config{Most: 3, MostOf: 2, Batch: 2, Share: 2})
	add(t, l, 0, "a1")
	_, crowded := l.Add("a2", "a", 0)
	assert.True(t, crowded, "a whole batch waits")
	p, _ := l.Add("a3", "a", 0)
	assert.True(t, p == nil, "a third place of a tenant that may have two")
	add(t, l, 0, "b1")
	p, _ = l.Add("c1", "c", 0)
	assert.True(t, p == nil, "a fourth place of three")
	want(t, take(l), "a1", "a2")
	add(t, l, 0, "a3", "a4") // there is room again
}

func TestRemove_OnlyWhatWaits(t *testing.T) {
	t.Parallel()
	l := New[string](Config{Most: 3, MostOf: 1, Batch: 2, Share: 2})
	a := add(t, l, 0, "a1")
	b := add(t, l, 0, "b1")
	assert.True(t, b.Waits() && b.Remove() && !b.Waits() && !b.Remove(), "a place that waits is removed once")
	add(t, l, 0, "b2") // there is room for its tenant again
	want(t, take(l), "a1", "b2")
	assert.True(t, !a.Waits() && !a.Remove() && l.Len() == 0, "a place in a batch was removed")
}

// No value is lost or returned twice, and each batch obeys the bounds.
func TestList_RandomPrograms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{Most: rapid.IntRange(1, 30).Draw(rt, "most"), MostOf: rapid.IntRange(1, 20).Draw(rt, "mostOf"), Batch: rapid.IntRange(1, 6).Draw(rt, "batch")}
		cfg.Share = rapid.IntRange(1, cfg.Batch).Draw(rt, "share")
		l := New[int](cfg)
		var model []*Place[int]
		for n := range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 4).Draw(rt, "step") {
			case 0:
				checkBatch(rt, cfg, l, &model)
			case 1:
				if len(model) > 0 {
					at := rapid.IntRange(0, len(model)-1).Draw(rt, "at")
					require.True(rt, model[at].Remove(), "a place that waits was not removed")
					model = slices.Delete(model, at, at+1)
				}
			default:
				tenant := rapid.IntRange(0, 4).Draw(rt, "tenant")
				of := 0
				for _, p := range model {
					if p.tenant == fmt.Sprint(tenant) {
						of++
					}
				}
				p, _ := l.Add(n, fmt.Sprint(tenant), tenant%2)
				room := len(model) < cfg.Most && of < cfg.MostOf
				require.True(rt, room == (p != nil), "%d wait, %d of the tenant: room %v", len(model), of, !room)
				if p != nil {
					model = append(model, p)
				}
			}
			require.Equal(rt, len(model), l.Len(), "wait")
		}
	})
}

func checkBatch(rt *rapid.T, cfg Config, l *List[int], model *[]*Place[int]) {
	batch := l.Take()
	if len(*model) == 0 {
		require.Empty(rt, batch, "a batch of nothing")
		return
	}
	first := (*model)[0]
	of, same := 0, 0
	for _, p := range *model {
		if p.group == first.group {
			same++
		}
	}
	require.True(rt, len(batch) != 0 && batch[0] == first && len(batch) == min(same, cfg.Batch),
		"%d of %d were taken", len(batch), same)
	for _, p := range batch {
		require.True(rt, p.group == first.group && !p.Waits() && slices.Contains(*model, p), "%+v was taken", p)
		if p.tenant == first.tenant {
			of++
		}
		*model = slices.DeleteFunc(*model, func(m *Place[int]) bool { return m == p })
	}
	others := slices.ContainsFunc(*model, func(p *Place[int]) bool { return p.group == first.group && p.tenant != first.tenant })
	if of > cfg.Share && others {
		// Values of other tenants still wait, so this batch must contain the full share of each waiting tenant.
		for _, m := range *model {
			n := 0
			for _, p := range batch {
				if p.tenant == m.tenant {
					n++
				}
			}
			require.False(rt, m.group == first.group && n < cfg.Share,
				"tenant %s has %d places of a batch, tenant %s waits with %d", first.tenant, of, m.tenant, n)
		}
	}
}
