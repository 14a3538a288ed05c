package httpapi

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/httpapi/wire"
)

// priced is a call of docs/pricing.md, with the status that its comment names.
var priced = regexp.MustCompile(`^api ([A-Z]+) (\S+)(?: -H '([^:]+): ([^']+)')?(?: -d '([^']*)')? *# (\d+)$`)

// The files of the page are applied and its calls made, in its order.
func TestPricing_PageHolds(t *testing.T) {
	t.Parallel()
	s := newService(t)
	text, err := os.ReadFile("../../docs/pricing.md")
	if err != nil {
		t.Fatal(err)
	}
	files, calls := 0, 0
	for part, block := range strings.Split(string(text), "```") {
		if part%2 == 0 {
			continue
		}
		if file, ok := strings.CutPrefix(block, "yaml\n"); ok {
			files++
			s.applyTwice(file)
			continue
		}
		for line := range strings.Lines(strings.TrimPrefix(block, "sh\n")) {
			m := priced.FindStringSubmatch(strings.TrimSpace(line))
			if m == nil {
				t.Fatalf("not read: %s", line)
			}
			calls++
			var extra []string
			if m[3] != "" {
				extra = []string{m[3], m[4]}
			}
			if a := s.call(m[1], m[2], m[5], extra...); strconv.Itoa(a.status) != m[6] {
				t.Errorf("%s%d %s", line, a.status, a.body)
			}
		}
	}
	if files != 5 || calls < 20 {
		t.Errorf("%d files and %d calls", files, calls)
	}
	if got := s.remaining("ada", "credits"); got != 1 {
		t.Errorf("%d credits remain", got)
	}
	var again wire.DebitAnswer // what the second debit answered, from the journal
	s.call("POST", "/v1/debits", `{"tenant":"ada","items":[{"meter":"tokens","amount":1500}]}`, "Idempotency-Key", "chat-2").want(200).into(&again)
	rounded := wire.OverflowPayment{Meter: "credits", Units: 1499, Price: wire.OverflowRatio{Units: 1, Per: 1000}, Exact: "1.499", Rounding: "up", Cost: 2}
	if got := again.Items[0].Overflow; got != rounded {
		t.Errorf("%+v, not %+v", got, rounded)
	}
	var whole wire.DebitAnswer
	s.call("POST", "/v1/debits", `{"tenant":"ada","items":[{"meter":"tokens","amount":1000}],"dry_run":true}`).want(200).into(&whole)
	if got := whole.Items[0].Overflow; got.Exact != "1" || got.Cost != 1 {
		t.Errorf("%+v", got)
	}
	var desks wire.Gauge
	s.call("GET", "/v1/tenants/bea/gauges/seats", "").want(200).into(&desks)
	if desks.Value != 5 || desks.Over != 0 {
		t.Errorf("%+v", desks)
	}
}

// applyTwice applies a catalogue file; the second time it changes nothing.
func (s *service) applyTwice(text string) {
	s.t.Helper()
	file, err := catalog.ParseFile([]byte(text))
	if err != nil {
		s.t.Fatalf("%v\n%s", err, text)
	}
	for i := range 2 {
		report, err := s.server.store.Apply(s.t.Context(), file, false)
		if err != nil {
			s.t.Fatalf("%v\n%s", err, text)
		}
		if changed := report.Count("created") + report.Count("changed"); changed > 0 != (i == 0) || len(report.Warnings) > 0 {
			s.t.Errorf("%s\n%s", report, text)
		}
	}
	for i := range file.Tenants {
		tenant := &file.Tenants[i]
		s.eventually("the plan of "+tenant.ID+" is known", func() bool { return s.server.catalog.Snapshot().Plans[tenant.Plan] != nil })
	}
}
