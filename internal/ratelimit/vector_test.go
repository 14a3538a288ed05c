package ratelimit

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/store/redisstore"
)

func queryFor(t tester, tenant string, charges ...Charge) query {
	t.Helper()
	q, err := Request{Tenant: tenant, Charges: charges}.check(rule.Consume)
	require.NoError(t, err)
	return q
}

func tags(v *vector) []string {
	all := slices.Clone(v.tags)
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

func TestWorkbench_RequestsOfATenant_ShareACall(t *testing.T) {
	t.Parallel()
	a, b := compile(t, rule.Spec{ID: "a", Rate: "1/s"}), compile(t, rule.Spec{ID: "b", Rate: "1/s"})
	newer := compile(t, rule.Spec{ID: "a", Rate: "2/s"})
	again := compile(t, rule.Spec{ID: "a", Rate: "1/s"}) // reloaded without a change
	batch := []query{
		queryFor(t, "x", Charge{Rule: a}), queryFor(t, "y", Charge{Rule: a}), queryFor(t, "x", Charge{Rule: b}),
		queryFor(t, "x", Charge{Rule: again}), queryFor(t, "x", Charge{Rule: newer}), queryFor(t, "x", Charge{Rule: b}),
		queryFor(t, "y", Charge{Rule: b}),
	}
	vs := vectors(batch, true, worldStart)
	// The old and the new version of a rule cannot be in the same call. Later requests of the slot are in the call of
	// the new version or a later call, so that the order is kept.
	assert.Equal(t, "[x][0 2 3] [y][1 6] [x][4 5] ", shape(vs), "calls")
	assert.Len(t, vs[0].keys, 2, "keys of the first call")
	// Without a cluster all keys are in one slot.
	assert.Equal(t, "[x y][0 1 2 3] [x y][4 5 6] ", shape(vectors(batch, false, worldStart)), "calls without a cluster")
}

func TestWorkbench_Calls_AreBounded(t *testing.T) {
	t.Parallel()
	a := compile(t, rule.Spec{ID: "a", Rate: "1/s"})
	var batch []query
	for range 2*MaxVector + 1 {
		batch = append(batch, queryFor(t, "x", Charge{Rule: a}))
	}
	vs := vectors(batch, true, worldStart)
	assert.True(t, len(vs) == 3 && len(vs[0].queries) == MaxVector && len(vs[2].queries) == 1, shape(vs))
	var wide []Charge
	for i := range MaxCharges {
		wide = append(wide, Charge{Rule: compile(t, rule.Spec{ID: fmt.Sprint("r", i), Rate: "1/s"})})
	}
	batch = nil
	for i := range maxVectorKeys/MaxCharges + 1 {
		for j := range wide {
			wide[j].Dimension = rule.Dimension(fmt.Sprint(i))
		}
		batch = append(batch, queryFor(t, "x", wide...))
	}
	vs = vectors(batch, true, worldStart)
	assert.True(t, len(vs) == 2 && len(vs[0].keys) == maxVectorKeys && len(vs[1].keys) == MaxCharges, shape(vs))
}

func TestVector_ReplyOfAnotherScript_IsErrScript(t *testing.T) {
	t.Parallel()
	batch := []query{queryFor(t, "x", Charge{Rule: compile(t, rule.Spec{Rate: "1/s"})})}
	v := vectors(batch, true, worldStart)[0]
	for _, ints := range [][]int64{
		nil, {1}, {1, 0, 0, 9}, {1, 0, 0, 9, 1, 0}, {1, 0, 0, 9, 1, 0, 5, 6}, {1, 0, 2, 9, 1, 0, 5, 1, 7, 1, 7}, {1, 0, 1, 9, 1, 0, 5, 2, 7}, {1, 0, 1, 9, 1, 0, 5, 0, 7},
	} {
		_, err := answersOf(v, batch, redisstore.Reply{Ints: ints})
		assert.True(t, errors.Is(err, redisstore.ErrScript) && !errors.Is(err, redisstore.ErrAway), "%v: %v", ints, err)
	}
	for _, ints := range [][]int64{{1, 0, 0, 9, 1, 0, 5}, {1, 0, 1, 9, 1, 0, 5, 1, 7}} {
		answers, err := answersOf(v, batch, redisstore.Reply{Ints: ints})
		assert.True(t, err == nil && answers[0].results[0].level.Ahead == 7*ints[2], "%v: %+v, %v", ints, answers, err)
	}
}

// TestVector_DifferentBuckets_ShareAForm: requests of many tenants that differ only in their buckets share one form.
func TestVector_DifferentBuckets_ShareAForm(t *testing.T) {
	t.Parallel()
	a, b := compile(t, rule.Spec{ID: "a", Rate: "1/s"}), compile(t, rule.Spec{ID: "b", Rate: "1/s"})
	global := compile(t, rule.Spec{ID: "g", Rate: "1/s", Shared: true})
	var batch []query
	for i := range 10 {
		tenant := fmt.Sprint("t", i)
		batch = append(batch, queryFor(t, tenant, Charge{Rule: a}, Charge{Rule: b}), queryFor(t, tenant, Charge{Rule: a}, Charge{Rule: global}),
			queryFor(t, tenant, Charge{Rule: a}, Charge{Rule: b, Cost: 1}))
	}
	v := vectors(batch, false, worldStart)[0]
	// Two of the three forms contain the global bucket. In the first tenant's form its number is relative to the
	// tenant's own bucket. In the form of all other tenants it is not relative.
	assert.True(t, len(v.rules) == 3 && len(v.forms) == 3 && len(v.keys) == 21 && len(v.requests) == 30,
		"%d rules, %d forms, %d keys, %d requests", len(v.rules), len(v.forms), len(v.keys), len(v.requests))
}
