package catalog

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestPutMeter_IDFollowsContract(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"a", "Z9", "0", "a.b_c:d-e", strings.Repeat("x", 128)} {
		require.NoError(t, validate(&Meter{ID: good, Unit: "u"}), good)
	}
	for _, bad := range []string{"", ".a", "-a", "_a", ":a", "a b", "a/b", "a{b", "a}b", "a\x00b", "ä", "a\n", strings.Repeat("x", 129)} {
		require.Equal(t, errcode.InvalidArgument, errcode.Of(validate(&Meter{ID: bad, Unit: "u"})), bad)
	}
}

func TestCheck_AllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	over := int64(bound.MaxAmount + 1)
	minus := int64(-1)
	for name, tc := range map[string]struct {
		object body.Checked
		want   []string
	}{
		"meter": {&Meter{Description: strings.Repeat("x", MaxDescription+1)}, []string{"meter", "unit", "description"}},
		"meter with what PostgreSQL cannot store": {
			&Meter{ID: "m", Unit: "a\x00", Description: "\xff"}, []string{"unit", "description"},
		},
		"plan": {
			&Plan{Allowances: []Allowance{
				{Meter: "a", Amount: -1, Every: "fortnight", Anchor: ""},
				{
					Meter: "a", Amount: over, Every: period.Day, Anchor: period.Calendar, Rollover: &Rollover{Min: 0, Max: 0},
					Overage: &Overage{Policy: "maybe", Cap: &minus}, Overflow: &Overflow{Meter: "a", Price: price.Whole(0)}, PerSubject: &over,
				},
				{
					Meter: "b", Every: period.Day, Anchor: period.Calendar, Rollover: &Rollover{Min: 3, Max: 2},
					Overage: &Overage{Policy: "deny", Cap: &over},
				},
				{Meter: "c", Every: period.Day, Anchor: period.Calendar, Overage: &Overage{Policy: "deny", AtPeriodEnd: "keep"}},
				{Meter: "d", Every: period.Once, Anchor: period.Calendar, Overage: &Overage{Policy: "allow", AtPeriodEnd: "preserve"}},
			}, Limits: []Limit{{Rule: "r"}, {Rule: "r", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "1/s"}}},
			[]string{
				"plan", "allowances[0].amount", "allowances[0].every", "allowances[0].anchor",
				"allowances[1].amount", "allowances[1].per_subject", "allowances[1].rollover.max", "allowances[1].overage.policy", "allowances[1].overage.cap",
				"allowances[1].overflow.meter", "allowances[1].overflow.price", "allowances[1].meter",
				"allowances[2].rollover.min", "allowances[2].overage.cap", "allowances[2].overage.cap",
				"allowances[3].overage.at_period_end", "allowances[4].overage.at_period_end",
				"limits[0].per", "limits[0].kind", "limits[0].rate", "limits[1].rule",
			},
		},
		"limit": {
			&Limit{
				Rule: "r", Per: []string{"tenant", "planet", "tenant"}, Match: Match{Route: strings.Repeat("x", bound.MaxRoute+1), Meter: "a b", Plan: "/"},
				Kind: "guess", Rate: "0/s", Burst: over, Cost: -1, Mode: "test", OnBackendError: "panic",
			},
			[]string{
				"per[1]", "per[2]", "match.route", "match.meter", "match.plan", "kind", "rate", "burst", "cost", "mode", "on_backend_error",
			},
		},
		"tenant": {
			&Tenant{
				Plan: "a b", Anchor: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), Timezone: "Local", Status: "gone",
				Metadata: json.RawMessage(`[]`),
			},
			[]string{"tenant", "plan", "anchor", "timezone", "status", "metadata"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := validate(tc.object)
			require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
			require.Equal(t, tc.want, fieldsIn(t, err))
		})
	}
}

func TestAllowance_AmountBounds(t *testing.T) {
	t.Parallel()
	for _, amount := range []int64{0, 1, bound.MaxAmount} {
		p := starter(amount)
		require.NoError(t, validate(&p))
	}
	for _, amount := range []int64{-1, bound.MaxAmount + 1, -1 << 63} {
		p := starter(amount)
		require.ErrorContains(t, validate(&p), "must be an integer from 0 to 9007199254740991")
	}
	p := Plan{ID: "p", Allowances: make([]Allowance, MaxAllowances)}
	for i := range p.Allowances {
		p.Allowances[i] = monthly("m"+strings.Repeat("x", i), 1)
	}
	require.NoError(t, validate(&p))
	p.Allowances = append(p.Allowances, monthly("last", 1))
	require.Equal(t, []string{"allowances"}, fieldsIn(t, validate(&p)))
}

func TestTenant_MetadataIsStorable(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	seed(t, s)
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, good := range []string{
		`{}`, ` { "a" : 1 } `, `{"a":"` + strings.Repeat("x", bound.MaxMetadata-8) + `"}`, nested(bound.MaxMetadataDepth),
		`{"n":` + strings.Repeat("9", 64) + `}`, `{"n":-1e308}`, `{"n":-1.5E-999}`, `{"n":1e001}`, `{"ü":"\u0001\ud83d\ude00"}`,
	} {
		require.NoError(t, validate(&Tenant{ID: "t", Plan: "p", Metadata: json.RawMessage(good)}), good)
		_, err := s.PatchTenant(t.Context(), "acme", TenantPatch{Metadata: json.RawMessage(good)})
		require.NoError(t, err, good)
	}
	for _, bad := range []string{
		``, `null`, `[]`, `1`, `"a"`, `{`, `{}x`, `{"a":1,"a":2}`, `{"a":"\u0000"}`, `{"\u0000":1}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}",
		`{"a":"` + strings.Repeat("x", bound.MaxMetadata-7) + `"}`, nested(bound.MaxMetadataDepth + 1),
		`{"n":` + strings.Repeat("9", 65) + `}`, `{"n":1e309}`, `{"a":[{"n":-1e309}]}`, `{"n":1e1000}`, `{"n":1e-1000}`, `{"n":1e0001}`,
	} {
		require.Equal(t, errcode.InvalidArgument, errcode.Of(validate(&Tenant{ID: "t", Plan: "p", Metadata: json.RawMessage(bad)})), bad)
		_, err := s.PatchTenant(t.Context(), "acme", TenantPatch{Metadata: json.RawMessage(bad)})
		require.Equal(t, errcode.InvalidArgument, errcode.Of(err), bad)
	}
}

// TestPatchTenant_StoredMetadata_NotRefused: PostgreSQL returns 1e308 with 309 digits, and earlier versions stored larger
// numbers. A patch that does not name metadata keeps both.
func TestPatchTenant_StoredMetadata_NotRefused(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	seed(t, s)
	for _, stored := range []string{`{"n": 1e308}`, `{"n": [1e400]}`} {
		testenv.Exec(t, s.db.Pool(), "UPDATE tenants SET status = 'active', metadata = $1 WHERE tenant_id = 'acme'", stored)
		change, err := s.PatchTenant(t.Context(), "acme", TenantPatch{Status: new(StatusSuspended)})
		require.NoError(t, err, stored)
		require.Equal(t, StatusSuspended, change.After.Status)
		require.True(t, len(change.After.Metadata) > 300, "%s", change.After.Metadata)
		require.Equal(t, change.Before.Metadata, change.After.Metadata)
	}
}
