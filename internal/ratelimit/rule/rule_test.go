package rule

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestCompile_SetsDefaults(t *testing.T) {
	t.Parallel()
	r := mustCompile(t, Spec{ID: "search", Rate: "60/min"})
	assert.True(t, r.Burst == 60 && r.Cost == 1 && !r.Shadow && r.OnBackendError == BackendLocalShare &&
		r.Kind == KindTokenBucket, "compiled to %+v", r)
}

func TestCompile_Units_AreExact(t *testing.T) {
	t.Parallel()
	for rate, want := range map[string]bucket{
		"7/s":       {tokens: 7, num: 7, s: 1_000_000},      // one token is 1,000,000 units, 7 come back per us
		"1000000/s": {tokens: 1_000_000, num: 1, s: 1},      // a token per us
		"3000000/s": {tokens: 3_000_000, num: 3, s: 1},      // three tokens per us
		"1/day":     {tokens: 1, num: 1, s: 86_400_000_000}, // a unit per us
		"1000/day":  {tokens: 1000, num: 1, s: 86_400_000},  // g = 1000
		"5/30s":     {tokens: 5, num: 1, s: 6_000_000},      // g = 5
		"7/day":     {tokens: 7, num: 7, s: 86_400_000_000}, // g = 1
	} {
		got := mustCompile(t, Spec{Rate: rate}).limit
		assert.True(t, got == want, "%s compiles to %+v, want %+v", rate, got, want)
	}
}

func TestCompile_LargestDebts(t *testing.T) {
	t.Parallel()
	for debt, spec := range map[int64]Spec{
		104_242:       {Rate: "7/day"},
		maxExact - 60: {Kind: "fixed_window", Rate: "60/s"},
		940:           {Kind: "sliding_log", Rate: "60/s"},
		104_249_931:   {Kind: "sliding_window", Rate: "60/day"},
	} {
		spec.Debt = debt
		r := mustCompile(t, spec)
		assert.True(t, r.Debt == debt && r.Limit().Debt() == debt, "%+v owes at most %d", spec, r.Debt)
	}
	r := mustCompile(t, Spec{Rate: "60/s", Debt: 25, RegionShare: 50})
	assert.True(t, r.Debt == 12, "half of a debt of 25 is %d", r.Debt)
}

func TestCompile_RefusesAndNamesFieldAndBound(t *testing.T) {
	t.Parallel()
	ok := Spec{ID: "search", Rate: "60/s"}
	with := func(change func(*Spec)) Spec {
		s := ok
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		spec         Spec
		field, bound string
	}{
		"no id":             {with(func(s *Spec) { s.ID = "" }), "id", "must match"},
		"long id":           {with(func(s *Spec) { s.ID = strings.Repeat("a", 129) }), "id", "must match"},
		"brace in id":       {with(func(s *Spec) { s.ID = "a}b" }), "id", "^[A-Za-z0-9]"},
		"NUL in id":         {with(func(s *Spec) { s.ID = "a\x00" }), "id", "^[A-Za-z0-9]"},
		"dash first":        {with(func(s *Spec) { s.ID = "-a" }), "id", "^[A-Za-z0-9]"},
		"no rate":           {with(func(s *Spec) { s.Rate = "" }), "rate", "<count>/<period>"},
		"other kind":        {with(func(s *Spec) { s.Kind = "gcra" }), "kind", "sliding_log"},
		"negative burst":    {with(func(s *Spec) { s.Burst = -1 }), "burst", "at least 1"},
		"burst too large":   {with(func(s *Spec) { s.Rate, s.Burst = "7/day", 104_250 }), "burst", "at most 104249"},
		"rate as burst":     {with(func(s *Spec) { s.Rate = "104251/day" }), "rate", "at most 104249"},
		"2^53 burst":        {with(func(s *Spec) { s.Burst = 1 << 53 }), "burst", "at most"},
		"negative cost":     {with(func(s *Spec) { s.Cost = -1 }), "cost", "1 to the capacity, 60"},
		"no ban":            {with(func(s *Spec) { s.Ban = BanSpec{0, "1m", "1m"} }), "ban.after", "1 to 1000"},
		"long ban count":    {with(func(s *Spec) { s.Ban = BanSpec{1001, "1m", "1m"} }), "ban.after", "1 to 1000"},
		"ban without time":  {with(func(s *Spec) { s.Ban = BanSpec{1, "", "1m"} }), "ban.within", "90s"},
		"ban within 1.5 ms": {with(func(s *Spec) { s.Ban = BanSpec{1, "1.5ms", "1m"} }), "ban.within", "1ms"},
		"ban for ever":      {with(func(s *Spec) { s.Ban = BanSpec{1, "1m", "8785h"} }), "ban.for", "8784h"},
		"ban for -1m":       {with(func(s *Spec) { s.Ban = BanSpec{1, "1m", "-1m"} }), "ban.for", "1ms"},
		"ban of leases":     {with(func(s *Spec) { s.Kind, s.Ban = "concurrency", BanSpec{1, "1m", "1m"} }), "ban", "leases are no requests"},
		"negative debt":     {with(func(s *Spec) { s.Debt = -1 }), "debt", "0 to 9007199254740991"},
		"2^53 debt":         {with(func(s *Spec) { s.Debt = 1 << 53 }), "debt", "0 to 9007199254740991"},
		"debt too large":    {with(func(s *Spec) { s.Rate, s.Debt = "7/day", 104_243 }), "debt", "at most 104242"},
		"debt of a window":  {with(func(s *Spec) { s.Kind, s.Debt = "fixed_window", maxExact-59 }), "debt", "at most 9007199254740931"},
		"debt of a log":     {with(func(s *Spec) { s.Kind, s.Debt = "sliding_log", 941 }), "debt", "at most 940"},
		"sliding debt":      {with(func(s *Spec) { s.Kind, s.Rate, s.Debt = "sliding_window", "60/day", 104_249_932 }), "debt", "at most 104249931"},
		"debt of leases":    {with(func(s *Spec) { s.Kind, s.Debt = "concurrency", 1 }), "debt", "a lease is held or not"},
		"cost beyond burst": {with(func(s *Spec) { s.Cost = 61 }), "cost", "1 to the capacity, 60"},
		"unknown policy":    {with(func(s *Spec) { s.OnBackendError = "panic" }), "on_backend_error", "local_share, open or closed"},
	} {
		_, err := Compile(tc.spec)
		var field *FieldError
		assert.True(t, errors.As(err, &field) && field.Field == tc.field && strings.Contains(field.Reason, tc.bound),
			"%s: %v; want an error on %s that names %q", name, err, tc.field, tc.bound)
	}
}

func TestCompile_AcceptsTheLargestExactValues(t *testing.T) {
	t.Parallel()
	for _, spec := range []Spec{
		{ID: strings.Repeat("a", 128), Rate: "7/day", Burst: 104_249, Cost: 104_249},
		{ID: "a", Rate: "1000000/day", Burst: 100_000_000_000},
		{ID: "a", Rate: "9007199254740991/s", Burst: 9_007_199_254},
		{ID: "a", Rate: "1/366d", Burst: 284},
		{ID: "a", Kind: "token_bucket", Rate: "60/s", OnBackendError: "closed", Shadow: true},
	} {
		_, err := Compile(spec)
		assert.NoError(t, err, spec)
	}
}

// TestShort_MeansItsNumber: the script's formula converts each short form back to its number. The short forms of
// usual rates take one byte.
func TestShort_MeansItsNumber(t *testing.T) {
	t.Parallel()
	long := func(s int64) int64 {
		n, e := (s-128)/8, s%8
		if s < 128 {
			n, e = int64(mantissas[s/8]), s%8+1
		}
		for range e {
			n *= 10
		}
		return n
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(
			rapid.Int64Range(1, 1000), rapid.Int64Range(1, maxPeriod.Microseconds()),
			rapid.Map(rapid.Int64Range(1, 100), func(m int64) int64 { return m * 1_000_000_000 }),
		).Draw(t, "n")
		if got := long(short(n)); got != n || short(n) < 0 || short(n) > maxExact {
			t.Fatalf("%d has the short form %d, which means %d", n, short(n), got)
		}
	})
	for _, rate := range []string{"10/s", "100/s", "60/min", "100/min", "250/min", "300/min", "1000/min", "100/h", "500/h", "1000/h", "5000/h"} {
		s := mustCompile(t, Spec{Rate: rate}).limit.Params(Moment{})[3]
		assert.True(t, s < 128, "the units of %s take more than a byte: %d", rate, s)
	}
}
