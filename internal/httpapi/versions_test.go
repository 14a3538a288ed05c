package httpapi

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// row is a row of movesWithTerms and movesWithVersions.
type row = struct {
	name, before, after string
	see                 func(*service) string
}

// movesWithVersions has what moves with another version of the tenant's plan: rows of movesWithTerms, and further ones.
// before is the text under version 1, after the one under version 2.
var movesWithVersions = []row{
	{name: "features of the plan", before: "true", after: "false"},
	{name: "allowance", before: "1000", after: "7"},
	{name: "list of balances", before: "calls hits jobs", after: "calls extras hits"},
	{name: "grants of a new meter", before: "0", after: "1"},
	{name: "allowance in a check", before: "1000", after: "7"},
	{name: "debit", before: "200", after: "402"},
	{name: "gauge", before: "10", after: "2"},
	{name: "gauge of a new subject", before: "4", after: "1"},
	{name: "list of gauges", before: "10", after: "2"},
	{name: "rate limit of the plan", before: "1000", after: "1"},
	{name: "only in one version", before: "50", after: "", see: func(s *service) string { return capacity(s, "bulk") }},
	{"version in GET", "1", "2", func(s *service) string { return fmt.Sprint(s.readTenant("dora").PlanVersion) }},
	{"version in the list", "1", "2", func(s *service) string {
		a := s.call("GET", "/v1/tenants?plan=pro", "").want(200)
		return fmt.Sprint(decoded[client.TenantList](a).Items[0].PlanVersion)
	}},
	{"a shorter period", "100", "20", func(s *service) string {
		return fmt.Sprint(decoded[client.Balance](s.call("GET", "/v1/tenants/dora/balances/hits", "").want(200)).Limit)
	}},
	{"a shorter period in a check", "100", "20", func(s *service) string {
		a := s.call("POST", "/v1/check", `{"tenant":"dora","items":[{"meter":"hits","amount":1}]}`).want(200)
		return fmt.Sprint(decoded[client.CheckAnswer](a).Items[0].Remaining)
	}},
	{"limit of the tenant", "1000", "1", func(s *service) string {
		a := s.call("GET", "/v1/limits/rps?tenant=dora&explain=1", "").want(200)
		return fmt.Sprint(decoded[client.Limit](a).Burst)
	}},
}

// versioned is a tenant on a plan with two versions, seen by several instances.
type versioned struct {
	*testing.T

	url string
	all []*service
}

func newVersioned(t *testing.T) *versioned {
	url := testenv.Postgres(t)
	v := &versioned{t, url, []*service{newOwnerOn(t, url), newOwnerOn(t, url)}}
	here := v.all[0]
	for _, meter := range []string{"calls", "hits", "jobs", "extras"} {
		here.call("PUT", "/v1/meters/"+meter, `{"unit":"unit"}`).want(201)
	}
	here.call("PUT", "/v1/meters/seats", `{"unit":"seat","kind":"gauge"}`).want(201)
	here.call("PUT", "/v1/plans/pro", `{"allowances":[{"meter":"calls","amount":1000,"every":"month","anchor":"tenant"},
		{"meter":"hits","amount":100,"every":"week","anchor":"calendar"},
		{"meter":"jobs","amount":5,"every":"month","anchor":"tenant"},{"meter":"seats","amount":10,"per_subject":4}],
		"features":{"sso":true},
		"limits":[{"rule":"rps","per":["tenant"],"kind":"token_bucket","rate":"1000/s","burst":1000},
		{"rule":"bulk","per":["tenant"],"kind":"token_bucket","rate":"50/s","burst":50}]}`).want(201)
	here.call("PUT", "/v1/tenants/dora", `{"plan":"pro"}`).want(201)
	here.send("/v1/debits", "d", `{"tenant":"dora","items":[{"meter":"jobs","amount":1}]}`).want(200)
	v.wait(1)
	v.walk("before", 1)
	return v
}

// put makes version 2, with more members of the request.
func (v *versioned) put(more string) client.Plan {
	return decoded[client.Plan](v.all[0].call("PUT", "/v1/plans/pro", `{
		"allowances":[{"meter":"calls","amount":7,"every":"month","anchor":"tenant"},
		{"meter":"hits","amount":20,"every":"week","anchor":"calendar"},
		{"meter":"extras","amount":3,"every":"month","anchor":"tenant"},{"meter":"seats","amount":2,"per_subject":1}],
		"limits":[{"rule":"rps","per":["tenant"],"kind":"token_bucket","rate":"1/min","burst":1}]`+more+`}`).want(200))
}

// wait waits until all instances have a version of the plan in memory.
func (v *versioned) wait(version int32) {
	for _, s := range v.all {
		testenv.Eventually(v.T, func() bool {
			p := s.server.catalog.Snapshot().Plans["pro"]
			return p != nil && p.Version == version
		})
	}
}

// walk compares what all instances see with what a version has.
func (v *versioned) walk(when string, version int) {
	v.Helper()
	for n, s := range v.all {
		for _, r := range movesWithVersions {
			see := r.see
			if see == nil {
				see = movesWithTerms[slices.IndexFunc(movesWithTerms, func(o row) bool { return o.name == r.name })].see
			}
			want := r.before
			if version == 2 {
				want = r.after
			}
			assert.Equal(v, want, see(s), "%s, instance %d: %s", when, n, r.name)
		}
	}
}

func (v *versioned) move(by time.Duration, key string) {
	for _, s := range v.all {
		s.call("POST", "/v1/test/clock", fmt.Sprintf(`{"advance":%q}`, by), headerIdempotencyKey, key).want(200)
	}
}

// end returns the end of the open period of calls, which is the billing period.
func (v *versioned) end() time.Time {
	a := v.all[0].call("GET", "/v1/tenants/dora/balances/calls", "").want(200)
	return *decoded[client.Balance](a).Period.End
}

func TestVersions_WaitForBillingPeriod_MoveTogether_OnTwoInstances(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	stored := v.put("")
	assert.True(t, stored.Version == 2 && stored.Apply == client.PlanApplyNextPeriod, stored)
	v.wait(2)
	v.all = append(v.all, newOwnerOn(t, v.url)) // an instance that starts meanwhile
	v.walk("after the request", 1)
	until := v.end()
	v.move(time.Until(until)-time.Hour, "an-hour-before")
	v.walk("an hour before", 1)
	v.move(2*time.Hour, "an-hour-after")
	v.walk("an hour after", 2)
	v.all[0].verifyClean()
}

func TestVersions_ApplyNow_MoveTogether_OnTwoInstances(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	stored := v.put(`,"apply":"now"`)
	assert.True(t, stored.Version == 2 && stored.Apply == client.PlanApplyNow, stored)
	v.wait(2)
	v.walk("after the request", 2)
	assert.Equal(t, int32(2), v.put(`,"apply":"now"`).Version, "a repetition changes nothing")
	assert.Equal(t, int32(2), v.put("").Version, "nor does one that does not say when")
	v.all[0].verifyClean()
}

// A version that waits is in force at once if the same content is put with apply now.
func TestVersions_ApplyNowOfSameContent_EndsWait(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.put("")
	assert.Equal(t, int32(1), v.all[1].readTenant("dora").PlanVersion)
	stored := v.put(`,"apply":"now"`)
	assert.True(t, stored.Version == 3 && stored.Apply == client.PlanApplyNow, stored)
	assert.Equal(t, int32(3), v.all[1].readTenant("dora").PlanVersion)
}

// A change of a tenant's terms brings the newest version, and its answer says so.
func TestVersions_ChangeOfTerms_BringsNewest(t *testing.T) {
	t.Parallel()
	v := newVersioned(t)
	v.put("")
	change := func(body string) client.TenantChange {
		return decoded[client.TenantChange](v.all[0].call("PATCH", "/v1/tenants/dora", body).want(200))
	}
	got := change(`{"metadata":{"a":1}}`)
	assert.True(t, got.PlanVersion == 1 && got.Before.PlanVersion == 1, "no change of terms: %+v", got)
	got = change(`{"plan":"pro","apply":"now","dry_run":true}`)
	assert.True(t, got.PlanVersion == 2 && got.Before.PlanVersion == 1, "a dry run: %+v", got)
	got = change(`{"plan":"pro","apply":"now"}`)
	assert.True(t, got.PlanVersion == 2 && got.Before.PlanVersion == 1, "the change: %+v", got)
	v.wait(2)
	v.walk("after the change", 2)
	v.all[0].verifyClean()
}

// The answer to a change of the plan names the version of the earlier plan that was in force. A retry gets the same
// answer.
func TestVersions_ChangeOfPlan_NamesVersionBefore(t *testing.T) {
	t.Parallel()
	s := newService(t).rhythmic()
	plan := func(id string, amount int) {
		s.call("PUT", "/v1/plans/"+id, fmt.Sprintf(
			`{"allowances":[{"meter":"calls","amount":%d,"every":"month","anchor":"tenant"}]}`, amount)).want(200, 201)
	}
	plan("old", 10)
	plan("new", 20)
	s.call("PUT", "/v1/tenants/dora", `{"plan":"old"}`).want(201)
	plan("old", 11)
	change := func(body string, headers ...string) *answer {
		return s.call("PATCH", "/v1/tenants/dora", body, headers...).want(200)
	}
	for _, more := range []string{`,"dry_run":true`, ""} {
		got := decoded[client.TenantChange](change(`{"plan":"new"` + more + `}`))
		assert.Equal(t, int32(1), got.PlanVersion, "until the billing period ends")
		assert.Equal(t, int32(1), got.Pending.PlanVersion)
	}
	key := []string{headerIdempotencyKey, "move"}
	dry := decoded[client.TenantChange](change(`{"plan":"new","apply":"now","dry_run":true}`))
	first := change(`{"plan":"new","apply":"now"}`, key...)
	plan("new", 21)
	change(`{"plan":"old","apply":"now"}`)
	assert.Equal(t, string(first.body), string(change(`{"plan":"new","apply":"now"}`, key...).body))
	got := decoded[client.TenantChange](first)
	for _, c := range []client.TenantChange{dry, got} {
		assert.Equal(t, []int32{1, 1}, []int32{c.Before.PlanVersion, c.PlanVersion}, "%+v", c)
	}
}

// The buckets and counts of a limit are those of the version that the tenant has, also while a version without it
// waits.
func TestVersions_ThatWait_LeaveReportsOfLimits(t *testing.T) {
	t.Parallel()
	s := newService(t)
	put := func(limits string, version int32) {
		s.call("PUT", "/v1/meters/calls", `{"unit":"call"}`).want(200, 201)
		s.call("PUT", "/v1/plans/pro", `{"allowances":[{"meter":"calls","amount":1,"every":"month","anchor":"tenant"}],
			"limits":[`+limits+`]}`).want(200, 201)
		s.eventually("the version is known", func() bool {
			p := s.server.catalog.Snapshot().Plans["pro"]
			return p != nil && p.Version == version
		})
	}
	limit := func(rule string, rate int) string {
		return fmt.Sprintf(`{"rule":%q,"per":["tenant"],"kind":"token_bucket","rate":"%d/day"}`, rule, rate)
	}
	put(limit("rps", 100)+","+limit("bulk", 50), 1)
	s.call("PUT", "/v1/tenants/dora", `{"plan":"pro"}`).want(201)
	s.call("POST", "/v1/limits/charge", `{"tenant":"dora","rules":["rps","bulk"]}`).want(200)
	put(limit("rps", 10), 2)
	for rule, burst := range map[string]int64{"rps": 100, "bulk": 50} {
		got := s.top(rule, "").Items
		assert.True(t, len(got) == 1 && got[0].Limit == burst && got[0].Used == 1, "%s: %+v", rule, got)
		s.call("GET", "/v1/limits/"+rule+"/shadow", "").want(200)
	}
}
