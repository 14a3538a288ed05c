package envoyrls

import (
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"google.golang.org/grpc/metadata"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestWarned_Field_OnceAMinute(t *testing.T) {
	t.Parallel()
	w, now := warned{last: map[string]time.Time{}}, time.Now()
	for _, c := range []struct {
		field string
		after time.Duration
		want  bool
	}{
		{fieldSubject, 0, true},
		{fieldSubject, 1, false},
		{fieldRoute, 1, true},
		{fieldSubject, warnEvery - 1, false},
		{fieldSubject, warnEvery, true},
		{fieldRoute, warnEvery, false},
		{fieldRoute, warnEvery + 1, true},
		{fieldSubject, 2*warnEvery - 1, false},
	} {
		assert.Equal(t, c.want, w.due(c.field, now.Add(c.after)), "%+v", c)
	}
}

// A stranger without a key causes no lines and no counts: the descriptors of strangers are not read.
func TestBadDescriptor_OfStranger_NotRead(t *testing.T) {
	t.Parallel()
	r := start(t, testenv.Patience)
	client := rls.NewRateLimitServiceClient(r.dial())
	count := func() float64 { return testutil.ToFloat64(r.metrics.bad.WithLabelValues(fieldSubject)) }
	bad := ask(descriptor("user=a b"))
	_, err := client.ShouldRateLimit(t.Context(), bad)
	assert.True(t, err != nil && count() == 0, "%v; %g counted", err, count())
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+testKey)
	out, err := client.ShouldRateLimit(ctx, bad)
	over := out.GetOverallCode() == rls.RateLimitResponse_OVER_LIMIT
	assert.True(t, err == nil && over && count() == 1, "%v, %v; %g counted", out, err, count())
	testenv.Eventually(t, func() bool { return r.log.Count("cannot be read") == 1 })
}
