package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
	"github.com/quotasvc/quotasvc/internal/testenv"
)

// TestADecisionBringsWhatWasRead: values of other keys of the tenant's come with the verdicts, to each request its own.
func TestADecisionBringsWhatWasRead(t *testing.T) {
	t.Parallel()
	client := patientClient(t, testenv.Redis(t))
	ctx := context.Background()
	for i := range 6 { // 6..9 are missing
		client.Set(ctx, fmt.Sprintf("x:{t%d}:a", i), fmt.Sprint("value ", i), 0)
		client.Set(ctx, fmt.Sprintf("x:{t%d}:b", i), "\x00\r\n$5", 0)
	}
	client.LPush(ctx, "x:{t0}:list", "1")
	l := patientLimiter(t, client, Config{Lanes: 1})
	r := compile(t, rule.Spec{Rate: "1/day", Burst: 1000})
	var all sync.WaitGroup
	for i := range 300 {
		all.Go(func() {
			n := i % 10
			tenant := fmt.Sprint("t", n)
			req := Request{Tenant: tenant, Charges: []Charge{{Rule: r}}}
			var want []string
			if i%3 > 0 {
				req.Reads = []string{"x:{" + tenant + "}:a", "x:{" + tenant + "}:b", "x:{" + tenant + "}:list"}
				want = []string{"", "", ""}
				if n < 6 {
					want = []string{fmt.Sprint("value ", n), "\x00\r\n$5", ""}
				}
			}
			do := l.Consume
			if i%2 == 0 {
				do = l.Peek
			}
			d, err := do(ctx, req)
			if err != nil || !d.Allowed || d.Degraded || !slices.Equal(d.Reads, want) {
				t.Errorf("%s: %+v, %v; want %q", tenant, d, err, want)
			}
			got, err := l.Read(ctx, tenant, req.Reads)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: read %q, %v; want %q", tenant, got, err, want)
			}
		})
	}
	all.Wait()
}

func TestReadsAreOfTheTenantAndBounded(t *testing.T) {
	t.Parallel()
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), Config{})
	r := compile(t, rule.Spec{Rate: "1/day", Burst: 10})
	many := slices.Repeat([]string{"{acme}"}, MaxReads+1)
	for _, reads := range [][]string{{"acme"}, {"{acm}"}, {"{acmee}"}, {"{acme"}, {"{other}{acme}"}, {""}, {"{}"}, many} {
		var field *rule.FieldError
		if _, err := l.Peek(t.Context(), Request{Tenant: "acme", Charges: []Charge{{Rule: r}}, Reads: reads}); !errors.As(err, &field) {
			t.Errorf("%q: %v", reads, err)
		}
		if _, err := l.Read(t.Context(), "acme", reads); !errors.As(err, &field) {
			t.Errorf("%q: %v", reads, err)
		}
	}
	d := mustPeek(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r}}, Reads: many[:MaxReads]})
	if len(d.Reads) != MaxReads {
		t.Errorf("%d values of %d keys", len(d.Reads), MaxReads)
	}
}

// TestVectorsBoundAndShareReads: a key that many requests want is read once.
func TestVectorsBoundAndShareReads(t *testing.T) {
	t.Parallel()
	r := compile(t, rule.Spec{Rate: "1/s"})
	var batch []query
	for i := range MaxVector {
		q := queryFor(t, "acme", Charge{Rule: r})
		q.reads = []string{"{acme}", "{acme}" + strconv.Itoa(i%3)}
		batch = append(batch, q)
	}
	if vs := vectors(batch, true, 0); len(vs) != 1 || len(vs[0].reads) != 4 {
		t.Errorf("%d calls, reads %v", len(vs), vs[0].reads)
	}
	for i := range batch {
		batch[i].reads = nil
		for j := range MaxReads {
			batch[i].reads = append(batch[i].reads, fmt.Sprintf("{acme}%d-%d", i, j))
		}
	}
	for _, v := range vectors(batch, true, 0) {
		if len(v.reads) > maxVectorReads {
			t.Errorf("%d reads in one call", len(v.reads))
		}
	}
}

func TestNothingIsReadWithoutRedis(t *testing.T) {
	t.Parallel()
	r := compile(t, rule.Spec{Rate: "1/day", Burst: 10})
	req := Request{Tenant: "acme", Charges: []Charge{{Rule: r}}, Reads: []string{"{acme}"}}
	for name, l := range map[string]*Limiter{
		"local": patientLimiter(t, nil, Config{}), "away": away(t, Config{}, func(*Limiter) {}),
	} {
		if d := mustPeek(t, l, req); d.Reads != nil {
			t.Errorf("%s: %+v", name, d)
		}
		if _, err := l.Read(t.Context(), "acme", req.Reads); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
