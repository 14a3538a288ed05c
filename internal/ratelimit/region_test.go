package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// TestRule_RegionShareRaised_KeepsLevels: if a rule's RegionShare is raised, the number of taken tokens stays the
// same.
func TestRule_RegionShareRaised_KeepsLevels(t *testing.T) {
	t.Parallel()
	l := patientLimiter(t, patientClient(t, testenv.Redis(t)), settings{})
	ask := func(percent, cost int64) Verdict {
		r := compile(t, rule.Spec{ID: "rule", Rate: "100/day", RegionShare: percent})
		return mustConsume(t, l, Request{Tenant: "acme", Charges: []Charge{{Rule: r, Cost: cost}}}).Verdicts[0]
	}
	v := ask(50, 40)
	assert.True(t, v.Remaining == 10 && v.Limit == 50, v)
	v = ask(80, 10)
	assert.True(t, v.Remaining == 30 && v.Limit == 80, v)
	v = ask(33, 1)
	assert.True(t, !v.Allowed && v.Limit == 33, v)
}
