package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
)

// q is the capacity, and w is the time in which an empty bucket fills. If a client has r remaining requests and
// spreads them over w, it does not exceed the rate.
func TestPolicy_CapacityAndTimeToFull(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]catalog.Limit{
		`"r";q=50;w=300`:                     {Kind: "token_bucket", Rate: "10/min", Burst: 50},
		`"r";q=60;w=60`:                      {Kind: "leaky_bucket", Rate: "1/s", Burst: 60},
		`"r";q=5;w=1`:                        {Kind: "token_bucket", Rate: "5/100ms", Burst: 5},
		`"r";q=7;w=3`:                        {Kind: "token_bucket", Rate: "3/s", Burst: 7},
		`"r";q=10;w=86400`:                   {Kind: "fixed_window", Rate: "10/day", Burst: 10},
		`"r";q=10;w=3600`:                    {Kind: "sliding_window", Rate: "10/h", Burst: 10},
		`"r";q=10;w=2`:                       {Kind: "sliding_log", Rate: "10/1500ms", Burst: 10},
		`"r";q=3;qu="concurrent-requests"`:   {Kind: "concurrency", Burst: 3},
		`"r";q=200;w=6324480000`:             {Kind: "token_bucket", Rate: "1/8784h", Burst: 200},
		`"r";q=999999999999999;w=9007199255`: {Kind: "token_bucket", Rate: "1000000/s", Burst: 9007199254740991},
	} {
		l.Rule, l.Per = "r", []string{"tenant"}
		r, err := compileRule(&l)
		require.NoError(t, err, l.Kind)
		assert.True(t, r.policy == want, "%s %s: %s, want %s", l.Kind, l.Rate, r.policy, want)
	}
}
