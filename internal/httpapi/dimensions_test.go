package httpapi

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
)

// grouped is the use of one value of a group, summed over all intervals.
type grouped struct{ used, overage, refunded, operations int64 }

// usageOf returns acme's use for each value of a group, and the sum over all values.
func (s *service) usageOf(query, group string) (by map[string]grouped, all grouped) {
	s.t.Helper()
	now := time.Now().UTC()
	var list client.UsageList
	s.call("GET", fmt.Sprintf("/v1/tenants/acme/usage?meter=calls&from=%s&to=%s%s", now.Add(-24*time.Hour).Format(time.RFC3339), now.Add(24*time.Hour).Format(time.RFC3339), query), "").
		want(200).into(&list)
	by = map[string]grouped{}
	for _, item := range list.Items {
		value, given := item.Group[group]
		assert.True(s.t, given == (group != "") && len(item.Group) <= 1, "group %v", item.Group)
		for _, g := range []*grouped{&all} {
			*g = grouped{g.used + item.Used, g.overage + item.Overage, g.refunded + item.Refunded, g.operations + item.Operations}
		}
		g := by[value]
		by[value] = grouped{g.used + item.Used, g.overage + item.Overage, g.refunded + item.Refunded, g.operations + item.Operations}
	}
	return by, all
}

// dimensioned creates meter calls with the dimensions model and feature. It also creates tenant acme, who has 1,000
// calls a year and may use 50 calls more as overage.
func (s *service) dimensioned() {
	s.t.Helper()
	s.call("PUT", "/v1/meters/calls", `{"unit":"call","dimensions":["model","feature"]}`).want(201)
	s.call("PUT", "/v1/plans/p", `{"allowances":[{"meter":"calls","amount":1000,"every":"year","anchor":"calendar","overage":{"policy":"allow","cap":50}}]}`).want(201)
	s.call("PUT", "/v1/tenants/acme", `{"plan":"p"}`).want(201)
	s.eventually("the snapshot has the meter", func() bool {
		m := s.server.catalog.Snapshot().Meters["calls"]
		return m != nil && len(m.Dimensions) == 2
	})
}

// The sum of the use over a dimension equals the use without it. This holds for debits, captures, overage and
// refunds. A capture has the dimension's value of its hold.
func TestUsage_ByDimension_FootsWithTheTotal(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.dimensioned()
	debit := func(key string, amount int, metadata, more string) {
		s.send("/v1/debits", key, fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"calls","amount":%d}],"metadata":%s%s}`, amount, metadata, more)).want(200)
	}
	debit("a", 10, `{"model":"small"}`, "")
	debit("b", 20, `{"model":"large","feature":"chat"}`, `,"subject":"ann"`)
	debit("c", 30, `{"feature":"chat"}`, "")
	debit("d", 40, `{"model":7}`, "")
	debit("e", 50, `{"model":{"a":1}}`, "")
	s.send("/v1/debits", "f", `{"tenant":"acme","items":[{"meter":"calls","amount":60}]}`).want(200)
	s.send("/v1/holds", "h", `{"tenant":"acme","hold_id":"h","subject":"ann","items":[{"meter":"calls","amount":100}],"metadata":{"model":"small"}}`).want(201)
	s.send("/v1/holds/h/capture", "h1", `{"tenant":"acme","items":[{"meter":"calls","amount":70}],"final":false}`).want(200)
	s.send("/v1/holds/h/capture", "h2", `{"tenant":"acme","items":[{"meter":"calls","amount":5}],"final":true}`).want(200)
	s.send("/v1/refunds", "r", `{"tenant":"acme","operation_id":"b","amount":8}`).want(200)
	debit("g", 750, `{"model":"large"}`, "") // more than the remaining units, so a part is overage
	by, all := s.usageOf("&group_by=metadata.model", "model")
	assert.Equal(t, map[string]grouped{
		"small": {85, 0, 0, 3}, "large": {743, 27, 0, 2}, "7": {40, 0, 0, 1}, "": {140, 0, 8, 4},
	}, by)
	for _, step := range []string{"", "&by=hour", "&by=month"} {
		_, total := s.usageOf(step, "")
		for query, group := range map[string]string{"&group_by=metadata.model": "model", "&group_by=metadata.feature": "feature", "&group_by=subject": "subject"} {
			_, sum := s.usageOf(step+query, group)
			assert.True(t, sum == total, "%s%s: %+v, want %+v", step, query, sum, total)
		}
		assert.True(t, all == total, "%s: %+v, want %+v", step, total, all)
	}
	_, anns := s.usageOf("&subject=ann", "")
	by, sum := s.usageOf("&subject=ann&group_by=metadata.model", "model")
	assert.True(t, sum == anns && by["small"].used == 75 && by["large"].used == 20, "%+v, want %+v in all", by, anns)
	s.verifyClean()
}

// If a dimension has many values, the answer has the most used values, and adds up the others as (other).
func TestUsage_ManyValues_TheRestIsOther(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.dimensioned()
	const values = history.UsageValuesMax + 20
	for i := range values {
		amount := 5
		if i >= history.UsageValuesMax {
			amount = 1
		}
		s.send("/v1/debits", fmt.Sprint("k", i), fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"calls","amount":%d}],"metadata":{"model":"m%d"}}`, amount, i)).want(200)
	}
	by, all := s.usageOf("&group_by=metadata.model", "model")
	if len(by) != history.UsageValuesMax+1 || by["(other)"] != (grouped{20, 0, 0, 20}) || by["m7"].used != 5 || all.used != 5*history.UsageValuesMax+20 {
		t.Errorf("%d values, others %+v, %+v in all", len(by), by["(other)"], all)
	}
}

func TestUsage_GroupThatIsNoDimension_Refused(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.dimensioned()
	for _, group := range []string{"metadata.user", "metadata.", "model", "metadata.model%27", "plan", ""} {
		s.call("GET", "/v1/tenants/acme/usage?meter=calls&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z&group_by="+group, "").refused("group_by")
	}
	for body, field := range map[string]string{
		`{"unit":"u","dimensions":["a","b","c","d","e","f"]}`: "dimensions", `{"unit":"u","dimensions":["a b"]}`: "dimensions[0]",
		`{"unit":"u","dimensions":["a","a"]}`: "dimensions[1]", `{"unit":"u","dimensions":"a"}`: "dimensions", `{"unit":"u","dimensions":[""]}`: "dimensions[0]",
	} {
		s.call("PUT", "/v1/meters/bad", body).refused(field)
	}
	s.call("PUT", "/v1/meters/calls", `{"unit":"call"}`).want(200) // the meter no longer has dimensions
	m := decoded[client.Meter](s.call("GET", "/v1/meters/calls", "").want(200))
	assert.Empty(t, m.Dimensions, m.Dimensions)
}
