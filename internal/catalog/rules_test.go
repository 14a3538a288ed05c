package catalog

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog/diff"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func limitOf(rule, replaces string) Limit {
	return Limit{Rule: rule, Replaces: replaces, Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/s"}
}

func TestPutLimit_ReplacesExistingLimitOnly(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	_, _, err := s.PutLimit(ctx, limitOf("b", "a"))
	require.Equal(t, errcode.NotFound, errcode.Of(err))
	require.Equal(t, []string{"replaces"}, fieldsIn(t, err))
	require.ErrorContains(t, err, `names the limit "a", which does not exist`)

	put(t, s.PutLimit, limitOf("a", ""))
	put(t, s.PutLimit, limitOf("b", "a"))
	put(t, s.PutLimit, limitOf("c", "b"))
	_, _, err = s.PutLimit(ctx, limitOf("a", "c"))
	require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
	require.Equal(t, []string{"replaces", "replaces", "replaces"}, fieldsIn(t, err))
	require.ErrorContains(t, err, "makes a cycle: a replaces c replaces b replaces a")
	require.Empty(t, get(t, s.Limit, "a").Replaces, "a refused change is not stored")

	for _, used := range []string{"a", "b"} {
		require.Equal(t, errcode.Conflict, errcode.Of(s.DeleteLimit(ctx, used)))
		require.ErrorContains(t, s.DeleteLimit(ctx, used), "replaces")
	}
	require.NoError(t, s.DeleteLimit(ctx, "c"))
	require.NoError(t, s.DeleteLimit(ctx, "b"))
	require.NoError(t, s.DeleteLimit(ctx, "a"))
}

func TestPutPlan_LimitsReplaceOthers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	_, _, err := s.PutPlan(ctx, Plan{ID: "p", Limits: []Limit{limitOf("own", ""), limitOf("mine", "general")}})
	require.Equal(t, errcode.NotFound, errcode.Of(err))
	require.Equal(t, []string{"limits[1].replaces"}, fieldsIn(t, err))

	put(t, s.PutLimit, limitOf("general", ""))
	put(t, s.PutPlan, Plan{ID: "p", Limits: []Limit{limitOf("own", ""), limitOf("mine", "general"), limitOf("third", "own")}})
	err = s.DeleteLimit(ctx, "general")
	require.Equal(t, errcode.Conflict, errcode.Of(err))
	require.ErrorContains(t, err, `the limit "mine" of the plan "p" replaces "general"`)

	// This cycle exists only because the plan's limit replaces the general limit of the same name.
	put(t, s.PutLimit, limitOf("other", "general"))
	_, _, err = s.PutPlan(ctx, Plan{ID: "q", Limits: []Limit{limitOf("general", "other")}})
	require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
	require.Equal(t, []string{"limits[0].replaces"}, fieldsIn(t, err))
	put(t, s.PutPlan, Plan{ID: "q", Limits: []Limit{limitOf("general", ""), limitOf("x", "general")}})
	put(t, s.PutLimit, limitOf("other", ""))
	put(t, s.PutPlan, Plan{ID: "q", Limits: []Limit{limitOf("general", "other")}})
	_, _, err = s.PutLimit(ctx, limitOf("other", "general"))
	require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
	require.ErrorContains(t, err, `(for tenants of the plan "q")`)

	put(t, s.PutPlan, Plan{ID: "p"})
	put(t, s.PutPlan, Plan{ID: "q"})
	require.NoError(t, s.DeleteLimit(ctx, "general"), "only the newest versions of plans count")
	_, _, err = s.PutPlan(ctx, Plan{ID: "p", Limits: []Limit{{Rule: "r", Per: []string{"ip"}, Kind: "token_bucket", Rate: "5/s"}}})
	require.Equal(t, []string{"limits[0].per"}, fieldsIn(t, err), "a plan's limits are its tenants' own")
}

func TestPutLimit_MatchTenantMustExist(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	seed(t, s)
	l := limitOf("r", "")
	l.Match.Tenant = "nobody"
	_, _, err := s.PutLimit(ctx, l)
	require.Equal(t, errcode.NotFound, errcode.Of(err))
	require.Equal(t, []string{"match.tenant"}, fieldsIn(t, err))
	l.Match.Tenant = "acme"
	put(t, s.PutLimit, l)
	l.Match.Tenant = "none"
	_, _, err = s.PutPlan(ctx, Plan{ID: "p", Limits: []Limit{limitOf("a", ""), l}})
	require.Equal(t, []string{"limits[1].match.tenant"}, fieldsIn(t, err))
}

func TestApply_LimitsInAnyOrder(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	const text = `plans:
  p:
    allowances: []
    limits:
      - {rule: own, per: [tenant], kind: token_bucket, rate: 1/s, replaces: base}
limits:
  acme: {per: [tenant], kind: token_bucket, rate: 9/s, match: {tenant: acme}, replaces: pro}
  pro: {per: [tenant], kind: token_bucket, rate: 5/s, match: {plan: p}, replaces: base}
  base: {per: [tenant], kind: token_bucket, rate: 1/s}
tenants:
  acme: {plan: p}
`
	apply(t, s, text, false)
	require.Equal(t, 5, apply(t, s, text, false).Count(diff.Unchanged))

	_, err := s.Apply(ctx, parsed(t, `plans:
  q:
    allowances: []
    limits:
      - {rule: fine, per: [tenant], kind: token_bucket, rate: 1/s}
      - {rule: own, per: [tenant], kind: token_bucket, rate: 1/s, replaces: gone}
limits:
  a: {per: [tenant], kind: token_bucket, rate: 1/s, replaces: b}
  b: {per: [tenant], kind: token_bucket, rate: 1/s, replaces: a}
  c: {per: [tenant], kind: token_bucket, rate: 1/s, match: {tenant: nobody}}
`), false)
	require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
	require.Equal(t, []string{"limits.a.replaces", "limits.b.replaces", "plans.q.limits[1].replaces", "limits.c.match.tenant"}, fieldsIn(t, err))
	require.ErrorContains(t, err, "(line 6)")
}

func TestPutLimit_CheckRulesRefuses_NotStored(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openStore(t, testenv.Postgres(t), StoreConfig{CheckRules: func(s, _ *Snapshot) []RuleFault {
		if len(s.Limits) < 2 {
			return nil
		}
		return []RuleFault{{Rule: s.Limits[1].Rule, Fault: body.Fault{Field: "match", Message: "is one too many"}}}
	}})
	put(t, s.PutLimit, limitOf("a", ""))
	_, _, err := s.PutLimit(ctx, limitOf("b", ""))
	require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
	require.Equal(t, []string{"match"}, fieldsIn(t, err))
	_, err = s.Apply(ctx, parsed(t, "limits:\n  b: {per: [tenant], kind: token_bucket, rate: 1/s}\n"), false)
	require.Equal(t, []string{"limits.b.match"}, fieldsIn(t, err))
	_, err = s.Limit(ctx, "b")
	require.Equal(t, errcode.NotFound, errcode.Of(err))
}

// A chain of replacements may be long. Each limit is visited a few times, not once for each limit before it in the
// chain.
func TestSnapshot_LongChainAndCycle_FaultsAreFew(t *testing.T) {
	t.Parallel()
	const n = 20_000
	s := &Snapshot{}
	for i := range n {
		s.Limits = append(s.Limits, &Limit{Rule: fmt.Sprintf("r%05d", i), Replaces: fmt.Sprintf("r%05d", i+1)})
	}
	s.Limits[n-1].Replaces = ""
	require.Empty(t, s.ruleFaults(&Snapshot{}))
	s.Limits[n-1].Replaces = "r00000"
	faults := s.ruleFaults(&Snapshot{})
	require.Len(t, faults, cycleMax)
	require.Less(t, len(faults[0].Message), 2000)
	require.Equal(t, faults, s.ruleFaults(&Snapshot{}))
}
