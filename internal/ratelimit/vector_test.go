package ratelimit

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func queryFor(t *testing.T, tenant string, charges ...Charge) query {
	t.Helper()
	q, err := Request{Tenant: tenant, Charges: charges}.check(opConsume)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func tags(v *vector) []string {
	var all []string
	for _, c := range v.charges {
		all = append(all, c.tag)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func shape(vs []*vector) string {
	s := ""
	for _, v := range vs {
		s += fmt.Sprintf("%v%v ", tags(v), v.queries)
	}
	return s
}

func TestWaitingRequestsOfATenantShareACall(t *testing.T) {
	t.Parallel()
	a, b := compile(t, Spec{ID: "a", Rate: "1/s"}), compile(t, Spec{ID: "b", Rate: "1/s"})
	newer := compile(t, Spec{ID: "a", Rate: "2/s"})
	again := compile(t, Spec{ID: "a", Rate: "1/s"}) // reloaded, unchanged
	batch := []query{
		queryFor(t, "x", Charge{Rule: a}), queryFor(t, "y", Charge{Rule: a}), queryFor(t, "x", Charge{Rule: b}),
		queryFor(t, "x", Charge{Rule: again}), queryFor(t, "x", Charge{Rule: newer}), queryFor(t, "x", Charge{Rule: b}),
		queryFor(t, "y", Charge{Rule: b}),
	}
	vs := vectors(batch, true, worldStart)
	// A rule's new version cannot be in one call with the old one; what comes after it stays behind it.
	if got := shape(vs); got != "[x][0 2 3] [y][1 6] [x][4 5] " {
		t.Errorf("calls: %s", got)
	}
	if len(vs[0].keys) != 2 {
		t.Errorf("keys of the first call: %v", vs[0].keys)
	}
	// Without a cluster there is one slot for all.
	if got := shape(vectors(batch, false, worldStart)); got != "[x y][0 1 2 3] [x y][4 5 6] " {
		t.Errorf("calls without a cluster: %s", got)
	}
}

func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	a := compile(t, Spec{ID: "a", Rate: "1/s"})
	var batch []query
	for range 2*MaxVector + 1 {
		batch = append(batch, queryFor(t, "x", Charge{Rule: a}))
	}
	if vs := vectors(batch, true, worldStart); len(vs) != 3 || len(vs[0].queries) != MaxVector || len(vs[2].queries) != 1 {
		t.Errorf("%d requests: %s", len(batch), shape(vs))
	}
	var wide []Charge
	for i := range MaxCharges {
		wide = append(wide, Charge{Rule: compile(t, Spec{ID: fmt.Sprint("r", i), Rate: "1/s"})})
	}
	batch = nil
	for i := range maxVectorKeys/MaxCharges + 1 {
		for j := range wide {
			wide[j].Dimension = Dimension(fmt.Sprint(i))
		}
		batch = append(batch, queryFor(t, "x", wide...))
	}
	if vs := vectors(batch, true, worldStart); len(vs) != 2 || len(vs[0].keys) != maxVectorKeys || len(vs[1].keys) != MaxCharges {
		t.Errorf("%d buckets: %s", maxVectorKeys+MaxCharges, shape(vs))
	}
}

func TestRepliesOfAnotherScriptAreABugAndNotAnOutage(t *testing.T) {
	t.Parallel()
	batch := []query{queryFor(t, "x", Charge{Rule: compile(t, Spec{Rate: "1/s"})})}
	v := vectors(batch, true, worldStart)[0]
	for _, ints := range [][]int64{nil, {1}, {1, 0, 0, 1, 0}, {1, 0, 0, 1, 0, 5, 6}} {
		if _, err := v.read(batch, Reply{Ints: ints}); !errors.Is(err, errScript) || errors.Is(err, errBackend) {
			t.Errorf("%v: %v", ints, err)
		}
	}
	if _, err := v.read(batch, Reply{Ints: []int64{1, 0, 0, 1, 0, 5}}); err != nil {
		t.Error(err)
	}
}
