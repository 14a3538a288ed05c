package quotahttp

import (
	"math"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

func TestUndecided_RetryAfter_RoundedUp(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]string{
		0: "1", time.Second: "1", 1001 * time.Millisecond: "2", math.MaxInt64: "9223372037",
	} {
		if got := undecided(&client.Error{RetryAfter: after}).Header.Get("Retry-After"); got != want {
			t.Errorf("%s: %s, want %s", after, got, want)
		}
	}
}
