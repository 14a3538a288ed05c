package catalog

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog/diff"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func parsed(t *testing.T, text string) *File {
	t.Helper()
	f, err := ParseFile([]byte(text))
	require.NoError(t, err)
	return f
}

func TestApply_StoresFile_ReturnsDiff(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	put(t, s.PutMeter, Meter{ID: "old", Unit: "u"})
	f := parsed(t, fileAsMappings)

	dry, err := s.Apply(ctx, f, true)
	require.NoError(t, err)
	require.Equal(t, 5, dry.Count(diff.Created))
	_, err = s.Meter(ctx, "api_calls")
	require.Equal(t, errcode.NotFound, errcode.Of(err), "a dry run writes nothing")
	again, err := s.Apply(ctx, f, true)
	require.NoError(t, err)
	require.Equal(t, dry, again)

	done, err := s.Apply(ctx, f, false)
	require.NoError(t, err)
	require.Equal(t, dry.Changes, done.Changes, "a dry run shows what the run does")
	require.Equal(t, strings.ReplaceAll(dry.String(), "dry run: nothing was written\n", ""), done.String())
	acme := get(t, s.Tenant, "acme")
	require.Equal(t, "Europe/Berlin", acme.Timezone)
	require.Len(t, termsOf(t, s, "acme"), 1)

	for _, same := range []string{fileAsMappings, fileAsLists} {
		report := apply(t, s, same, false)
		require.Equal(t, "? meter old is not in the file\n0 created, 0 changed, 5 unchanged, 1 not in the file (left as they are)\n", report.String())
	}
	require.EqualValues(t, 1, planOf(t, s, "starter", 0).Version)
}

func TestDiff_String(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	apply(t, s, fileAsMappings, false)
	text := strings.NewReplacer(
		`description: "Calls", denial_replay: true`, "denial_replay: false",
		"amount: 9007199254740991", "amount: 500",
		"rollover: {max: 10}", "rollover: {min: 1, max: 10}",
		"        per_subject: 5\n", "", "amount: 0, every: once", "amount: 7, every: once",
		"rate: 60/s", "rate: 70/s",
		"timezone: Europe/Berlin", "timezone: Asia/Kathmandu",
		"tags: [a, 1, null, true]", "tags: []",
	).Replace(fileAsMappings)
	text = text[:strings.Index(text, "limits:\n  global")] + "limits:\n  other: {per: [tenant], kind: token_bucket, rate: 1/s}\n" +
		text[strings.Index(text, "tenants:"):]
	report := apply(t, s, text, true)
	require.Equal(t, `~ meter api_calls
    ~ denial_replay: true -> false
    - description: "Calls"
~ plan starter
    ~ allowances[007].amount: 0 -> 7
    ~ allowances[api_calls].amount: 9007199254740991 -> 500
    - allowances[api_calls].per_subject: 5
    + allowances[api_calls].rollover.min: 1
    ~ limits[search].burst: 60 -> 70
    ~ limits[search].rate: "60/s" -> "70/s"
    ~ version: 1 -> 2
+ limit other
    + burst: 1
    + cost: 1
    + cost_by: "request"
    + counts: "successes"
    + kind: "token_bucket"
    + mode: "enforce"
    + on_backend_error: "local_share"
    + per: ["tenant"]
    + rate: "1/s"
    + region_share: 100
? limit global is not in the file
~ tenant acme
    ~ metadata.tags: ["a",1,null,true] -> []
    ~ timezone: "Europe/Berlin" -> "Asia/Kathmandu"
! plan starter: api_calls falls from 9007199254740991 a month to 500 a month for 1 tenant
1 created, 3 changed, 1 unchanged, 1 not in the file (left as they are)
dry run: nothing was written
`, report.String())
}

func TestApply_AllOrNothing_NamesMissingReferences(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	_, err := s.Apply(ctx, parsed(t, `meters:
  fine: {unit: u}
plans:
  p:
    allowances:
      - {meter: fine, amount: 1, every: day, anchor: tenant}
      - {meter: none, amount: 1, every: day, anchor: tenant}
  q: {allowances: []}
limits:
  l: {per: [tenant], kind: token_bucket, rate: 1/s, match: {plan: nope}}
tenants:
  t1: {plan: q}
  t2:
    plan: gone
`), false)
	require.Equal(t, errcode.NotFound, errcode.Of(err))
	require.Equal(t, []string{"plans.p.allowances[1].meter", "limits.l.match.plan", "tenants.t2.plan"}, fieldsIn(t, err))
	require.ErrorContains(t, err, `names the meter "none", which does not exist (line 7)`)
	require.ErrorContains(t, err, `(line 14)`)
	_, err = s.Meter(ctx, "fine")
	require.Equal(t, errcode.NotFound, errcode.Of(err))
}

func TestApply_TrialsAndOverrides(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	const text = `meters: {calls: {unit: call}, seats: {unit: seat}}
plans:
  trial: {allowances: [{meter: calls, amount: 100, every: once, anchor: tenant, expires_in_days: 14}]}
tenants:
  acme: {plan: trial, overrides: {calls: 250}}
`
	apply(t, s, text, false)
	plan := planOf(t, s, "trial", 0)
	require.EqualValues(t, 14, *plan.Allowances[0].ExpiresInDays)
	acme := get(t, s.Tenant, "acme")
	require.Equal(t, map[string]int64{"calls": 250}, acme.Overrides)

	report := apply(t, s, strings.NewReplacer("calls: 250", "calls: 300", "days: 14", "days: 30").Replace(text), true)
	require.Equal(t, `~ plan trial
    ~ allowances[calls].expires_in_days: 14 -> 30
    ~ version: 1 -> 2
~ tenant acme
    ~ overrides.calls: 250 -> 300
0 created, 2 changed, 2 unchanged, 0 not in the file (left as they are)
dry run: nothing was written
`, report.String())

	// The file defines the meters of the plan.
	_, err := s.Apply(ctx, parsed(t, strings.ReplaceAll(text, "calls: 250}", "seats: 5, calls: 1}")+"  other:\n    plan: trial\n    overrides: {none: 1}\n"), false)
	require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
	require.Equal(t, []string{"tenants.acme.overrides.seats", "tenants.other.overrides.none"}, fieldsIn(t, err))
	require.ErrorContains(t, err, "names a meter that the plan trial does not have (line 5)")
	grown := strings.ReplaceAll(text, "expires_in_days: 14}]", "expires_in_days: 14}, {meter: seats, amount: 1, every: day, anchor: tenant}]")
	apply(t, s, strings.ReplaceAll(grown, "calls: 250", "seats: 5"), false)
	require.Len(t, historyOf(t, s, "acme"), 2)
}

func TestApply_UnlistedTenantsOnlyWithSection(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	seed(t, s)
	testenv.Exec(t, s.db.Pool(), `INSERT INTO tenants (tenant_id, plan, anchor) SELECT 'x' || n, 'starter', now() FROM generate_series(1, 150) n`)
	require.Equal(t, 2, apply(t, s, "meters:\n  m: {unit: u}\n", true).Count(diff.Unlisted), "the meter and the plan")
	report := apply(t, s, "tenants:\n  acme: {plan: starter}\n", true)
	require.Equal(t, 2+maxUnlisted, report.Count(diff.Unlisted))
	require.Contains(t, report.String(), "? more tenants are not in the file\n")
}
