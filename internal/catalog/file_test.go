package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/period"
	"github.com/quotasvc/quotasvc/internal/kit/price"
	"github.com/quotasvc/quotasvc/internal/kit/yamldoc"
)

const fileAsMappings = `
meters:
  api_calls: {unit: call, description: "Calls", denial_replay: true}
  "007": {unit: shot}
plans:
  starter:
    allowances:
      - meter: api_calls
        amount: 9007199254740991
        every: month
        anchor: tenant
        rollover: {max: 10}
        overage: {policy: allow, cap: 0}
        overflow: {meter: "007", price: 2}
        per_subject: 5
      - {meter: "007", amount: 0, every: once, anchor: calendar}
    limits:
      - {rule: search, per: [tenant, route], match: {route: /search}, kind: token_bucket, rate: 60/s}
limits:
  global: {per: [tenant], kind: token_bucket, rate: 5/30s, burst: 10, cost: 2, mode: shadow, on_backend_error: closed}
tenants:
  acme:
    plan: starter
    anchor: 2026-01-31T00:00:00+01:00
    timezone: Europe/Berlin
    status: suspended
    metadata: {tier: gold, ratio: 1.5, tags: [a, 1, null, true]}
`

const fileAsLists = `
meters:
  - {meter: api_calls, unit: call, description: "Calls", denial_replay: true}
  - {unit: shot, meter: "007"}
plans:
  - plan: starter
    allowances:
      - {meter: api_calls, amount: 9007199254740991, every: month, anchor: tenant, rollover: {max: 10},
         overage: {policy: allow, cap: 0}, overflow: {meter: "007", price: 2}, per_subject: 5}
      - {meter: "007", amount: 0, every: once, anchor: calendar}
    limits:
      - {rule: search, per: [tenant, route], match: {route: /search}, kind: token_bucket, rate: 60/s}
limits:
  - {rule: global, per: [tenant], kind: token_bucket, rate: 5/30s, burst: 10, cost: 2, mode: shadow, on_backend_error: closed}
tenants:
  - tenant: acme
    plan: starter
    anchor: 2026-01-31T00:00:00+01:00
    timezone: Europe/Berlin
    status: suspended
    metadata:
      tier: gold
      ratio: 1.5
      tags: [a, 1, null, true]
`

func TestParseFile_MappingsOrLists(t *testing.T) {
	t.Parallel()
	zero, five := int64(0), int64(5)
	for _, text := range []string{fileAsMappings, fileAsLists} {
		f, err := ParseFile([]byte(text))
		require.NoError(t, err)
		require.Equal(t, []Meter{{ID: "api_calls", Unit: "call", Description: "Calls", DenialReplay: true}, {ID: "007", Unit: "shot"}}, f.Meters)
		require.Equal(t, []Plan{{ID: "starter", Allowances: []Allowance{{
			Meter: "api_calls", Amount: bound.MaxAmount, Every: period.Month, Anchor: period.Tenant, Rollover: &Rollover{Max: 10},
			Overage: &Overage{Policy: "allow", Cap: &zero}, Overflow: &Overflow{Meter: "007", Price: price.Whole(2)}, PerSubject: &five,
		}, {Meter: "007", Every: period.Once, Anchor: period.Calendar}}, Limits: []Limit{{
			Rule: "search", Per: []string{"tenant", "route"}, Match: Match{Route: "/search"}, Kind: "token_bucket", Rate: "60/s",
		}}}}, f.Plans)
		require.Equal(t, []Limit{{
			Rule: "global", Per: []string{"tenant"}, Kind: "token_bucket", Rate: "5/30s", Burst: 10, Cost: 2, Mode: "shadow",
			OnBackendError: "closed",
		}}, f.Limits)
		require.Len(t, f.Tenants, 1)
		acme := f.Tenants[0]
		require.True(t, acme.Anchor.Equal(time.Date(2026, 1, 30, 23, 0, 0, 0, time.UTC)))
		require.JSONEq(t, `{"tier":"gold","ratio":1.5,"tags":["a",1,null,true]}`, string(acme.Metadata))
		require.Equal(t, "Europe/Berlin", acme.Timezone)
		require.True(t, acme.Suspended())
	}
	f, err := ParseFile([]byte("meters:\n"))
	require.NoError(t, err)
	require.Empty(t, f.Meters)
	require.Nil(t, f.Tenants, "a file without the section says nothing about tenants")
}

func TestParseFile_ProblemsWithLineAndPath(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []string // each string has a line, a path and the start of a message
	}{
		"empty":           {"", []string{"1||must have at least one"}},
		"only comments":   {"# nothing\n", []string{"1||must have at least one"}},
		"not YAML":        {"meters:\n  a: b: c\n", []string{"2||mapping value is not allowed"}},
		"a list":          {"- a\n", []string{"1||must be a mapping"}},
		"two documents":   {"meters:\n---\nplans:\n", []string{"3||must not be a second document"}},
		"unknown section": {"meters:\nmetres:\n  a: {unit: m}\n", []string{"2|metres|is an unknown section"}},
		"unknown field":   {"meters:\n  a:\n    unit: m\n    units: m\n", []string{"4|meters.a.units|is an unknown field"}},
		"what the service sets": {
			"meters:\n  a:\n    unit: m\n    created_at: 2026-01-01T00:00:00Z\n", []string{"4|meters.a.created_at|is an unknown field"},
		},
		"key there twice":    {"meters:\n  a: {unit: m}\n  a: {unit: n}\n", []string{"3||mapping key"}},
		"field there twice":  {"meters:\n  a:\n    unit: m\n    unit: n\n", []string{"4||mapping key"}},
		"id there twice":     {"meters:\n  - {meter: a, unit: m}\n  - {meter: a, unit: m}\n", []string{"3|meters.a|is a duplicate meter"}},
		"other id than key":  {"meters:\n  a: {meter: b, unit: m}\n", []string{"2|meters.a.meter|must be absent, or"}},
		"no id in a list":    {"meters:\n  - {unit: m}\n", []string{"2|meters[0].meter|is required"}},
		"text for a mapping": {"meters:\n  a: hello\n", []string{"2|meters.a|must be a mapping"}},
		"text for a section": {"meters: hello\n", []string{"1|meters|must be a mapping"}},
		"number for a text":  {"meters:\n  a:\n    unit: 5\n", []string{"3|meters.a.unit|must be text"}},
		"wrong amounts": {
			`plans:
  a: {allowances: [{meter: m, amount: 1.5, every: day, anchor: tenant}]}
  b: {allowances: [{meter: m, amount: "5", every: day, anchor: tenant}]}
  c: {allowances: [{meter: m, amount: 1000000000000000000000000000000, every: day, anchor: tenant}]}
  d: {allowances: [{meter: m, amount: 9007199254740992, every: day, anchor: tenant}]}
  e: {allowances: [{meter: m, amount: -1, every: day, anchor: tenant}]}
  f: {allowances: [{meter: m, amount: 010, every: day, anchor: tenant}]}
  g: {allowances: [{meter: m, amount: 0x10, every: day, anchor: tenant}]}
  h: {allowances: [{meter: m, amount: 1_000, every: day, anchor: tenant}]}
  i: {allowances: [{meter: m, amount: .inf, every: day, anchor: tenant}]}
  j: {allowances: [{meter: m, every: day, anchor: tenant}]}
  k: {allowances: [{meter: m, amount: 1e3, every: day, anchor: tenant}]}
`,
			[]string{
				"2|plans.a.allowances[0].amount|must be an integer", "3|plans.b.allowances[0].amount|must be an integer",
				"4|plans.c.allowances[0].amount|must be an integer", "5|plans.d.allowances[0].amount|must be an integer from 0",
				"6|plans.e.allowances[0].amount|must be an integer from 0", "7|plans.f.allowances[0].amount|must be written in plain",
				"8|plans.g.allowances[0].amount|must be written in plain", "9|plans.h.allowances[0].amount|must be written in plain",
				"10|plans.i.allowances[0].amount|must be a plain value", "11|plans.j.allowances[0].amount|is required",
				"12|plans.k.allowances[0].amount|must be an integer",
			},
		},
		"numbers beyond float64": {
			"tenants:\n  a: {plan: p, metadata: {n: 1e309}}\n  b: {plan: p, metadata: {list: [{n: -2e+999}]}}\n  c: {plan: p, metadata: {n: '1e309'}}\n",
			[]string{"2|tenants.a.metadata|must be a JSON object", "3|tenants.b.metadata|must be a JSON object"},
		},
		"nothing where a value belongs": {
			`plans:
  a:
    allowances:
      - {meter: m, amount: ~, every: day, anchor: tenant}
      - {meter: n, amount: 1, every: once, anchor: tenant, expires_in_days: }
      - {meter: o, amount: 1, every: day, anchor: tenant, overage: {policy: allow, cap: null}, per_subject: null}
tenants:
  t: {plan: a, metadata: {a: ~}, overrides: {m: ~, "007": ~}}
`,
			[]string{
				"4|plans.a.allowances[0].amount|must have a value", "5|plans.a.allowances[1].expires_in_days|must have a value",
				"6|plans.a.allowances[2].overage.cap|must have a value", "6|plans.a.allowances[2].per_subject|must have a value",
				"8|tenants.t.overrides.007|must have a value", "8|tenants.t.overrides.m|must have a value",
			},
		},
		"wrong overrides and trials": {
			`plans:
  a:
    allowances:
      - {meter: m, amount: 1, every: once, anchor: tenant, expires_in_days: 0}
      - {meter: n, amount: 1, every: day, anchor: tenant, expires_in_days: 14}
      - {meter: o, amount: 1, every: once, anchor: tenant, expires_in_days: 1, rollover: {max: 1}}
  b: {allowances: [{meter: m, amount: 1, every: once, anchor: tenant, expires_in_days: 1.5}]}
tenants:
  t: {plan: a, overrides: {m: -1}}
  u: {plan: a, overrides: {m: 9007199254740992}}
  v: {plan: a, overrides: {m: "5"}}
  w: {plan: a, overrides: 5}
  x: {plan: a, overrides: {"a b": 5}}
`,
			[]string{
				"4|plans.a.allowances[0].expires_in_days|must be an integer from 1 to 3660",
				"5|plans.a.allowances[1].expires_in_days|must be absent unless every is once",
				"6|plans.a.allowances[2].rollover|must be absent if every is once",
				"7|plans.b.allowances[0].expires_in_days|must be an integer",
				"9|tenants.t.overrides.m|must be an integer from 0", "10|tenants.u.overrides.m|must be an integer from 0",
				"11|tenants.v.overrides.m|must be an integer", "12|tenants.w.overrides|must be an object",
				"13|tenants.x.overrides.a b|is not the name of a meter",
			},
		},
		"several at once, on their lines": {
			"plans:\n  - plan: p\n    allowances:\n      - meter: a b\n        amount: 1\n        every: never\n        anchor: tenant\n" +
				"tenants:\n  t:\n    timezone: Mars/Olympus\n    anchor: 9999-01-01T00:00:00Z\n    plan: p\n",
			[]string{
				"4|plans.p.allowances[0].meter|must match", "6|plans.p.allowances[0].every|must be one of",
				"10|tenants.t.timezone|must be an IANA", "11|tenants.t.anchor|must be an RFC 3339 time from",
			},
		},
		"not a time": {"tenants:\n  t:\n    plan: p\n    anchor: yesterday\n", []string{"4|tenants.t.anchor|must be an RFC 3339 time from"}},
		"an alias":   {"meters:\n  a: &x {unit: m}\n  b: *x\n", []string{"2|meters.a|must be a mapping", "3|meters.b|must be a mapping"}},
		"a merge key": {
			"tenants:\n  t:\n    plan: p\n    metadata:\n      <<: {a: 1}\n", []string{"5|tenants.t.metadata|has a key that is not"},
		},
		"a tag":        {"meters:\n  a:\n    unit: !!str 5\n", []string{"3|meters.a.unit|must be a plain value"}},
		"nested abyss": {"tenants: {t: {plan: p, metadata: " + strings.Repeat("{a: ", 40) + "1" + strings.Repeat("}", 42), []string{"1|tenants.t.metadata" + strings.Repeat(".a", 32) + "|must be at most 32 levels"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseFile([]byte(tc.text))
			var fileErr *yamldoc.Error
			require.ErrorAs(t, err, &fileErr)
			require.Len(t, fileErr.Problems, len(tc.want), "%v", err)
			for i, p := range fileErr.Problems {
				require.Contains(t, fmt.Sprintf("%d|%s|%s", p.Line, p.Path, p.Message), tc.want[i])
			}
			require.Equal(t, len(tc.want), strings.Count(err.Error(), "line "))
		})
	}
}

func TestParseFile_Bounds(t *testing.T) {
	t.Parallel()
	section := func(n int) string {
		var b strings.Builder
		b.WriteString("meters:\n")
		for i := range n {
			fmt.Fprintf(&b, "  m%d: {unit: u}\n", i)
		}
		return b.String()
	}
	_, err := ParseFile([]byte(section(maxFileObjects)))
	require.NoError(t, err)
	_, err = ParseFile([]byte(section(maxFileObjects + 1)))
	require.ErrorContains(t, err, "must have at most 10000 objects")
	_, err = ParseFile(append(make([]byte, MaxFile), '\n'))
	require.ErrorContains(t, err, "must have at most 8388608 bytes")
	_, err = ParseFile([]byte("meters:\n" + strings.Repeat("  - {}\n", 1000)))
	var fileErr *yamldoc.Error
	require.ErrorAs(t, err, &fileErr)
	require.Len(t, fileErr.Problems, 50)
}

func TestParseFile_AnyText_NoPanic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(fileAsMappings)
		for range rapid.IntRange(1, 5).Draw(t, "edits") {
			at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
			piece := rapid.SampledFrom([]string{"", ":", "-", "{", "}", "[", "]", "&a", "*a", "!!x", "|", ">", "\n", "\n\n  ", "'", "\"", "#", "\t", "\x00", "? ", "<<", "%", "---\n", "~", "9"}).Draw(t, "piece")
			until := min(len(text), at+rapid.IntRange(0, 3).Draw(t, "cut"))
			text = append(append(append([]byte{}, text[:at]...), piece...), text[until:]...)
			if len(text) == 0 {
				return
			}
		}
		_, err := ParseFile(text)
		var fileErr *yamldoc.Error
		require.False(t, err != nil && !errors.As(err, &fileErr), err)
	})
}
