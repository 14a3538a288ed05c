package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

// instant is a time on the command line. It is a time in RFC 3339, a day, or a duration before now such as 90m, 24h or
// 7d. A day, `today` or `yesterday` means the start of that day in UTC.
type instant struct {
	at   time.Time                     // the time, if it does not depend on the current time
	from func(now time.Time) time.Time // returns the time, if it depends on the current time; otherwise nil
}

var daysAgo = regexp.MustCompile(`^([0-9]{1,5})d$`)

// UnmarshalText parses a time on the command line.
func (i *instant) UnmarshalText(raw []byte) error {
	text := string(raw)
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		*i = instant{at: at}
		return nil
	}
	if at, err := time.Parse(time.DateOnly, text); err == nil {
		*i = instant{at: at}
		return nil
	}
	days, ago := -1, time.Duration(0)
	switch text {
	case "today":
		days = 0
	case "yesterday":
		days = 1
	default:
		if m := daysAgo.FindStringSubmatch(text); m != nil {
			n, _ := strconv.Atoi(m[1]) // at most 5 digits
			ago = time.Duration(n) * 24 * time.Hour
		} else if d, err := time.ParseDuration(text); err == nil && d >= 0 {
			ago = d
		} else {
			return fmt.Errorf("must be a time such as 2026-11-25T10:00:00Z, a day such as 2026-11-25, today or yesterday (UTC), or how long ago, such as 90m, 24h or 7d; not %q", text)
		}
	}
	*i = instant{from: func(now time.Time) time.Time {
		if days < 0 {
			return now.Add(-ago)
		}
		return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, -days)
	}}
	return nil
}

func (i *instant) given() bool { return i.from != nil || !i.at.IsZero() }

// resolve returns the time. It returns the zero time if no time was given. Times before now are relative to the
// current time of the service.
func (i *instant) resolve(ctx context.Context, s *client.Client) (time.Time, error) {
	if i.from == nil {
		return i.at, nil
	}
	now, err := present(ctx, s)
	return i.from(now), err
}

// present returns the current time of the service's ledger. With `quotasvc dev`, a test clock can change this time. If
// the service has no test clock, present returns the time of this machine.
func present(ctx context.Context, s *client.Client) (time.Time, error) {
	clock, err := s.GetTestClock(ctx)
	switch {
	case err == nil:
		return clock.Now, nil
	case errors.Is(err, client.ErrNotFound), errors.Is(err, client.ErrForbidden):
		return time.Now(), nil
	default:
		return time.Time{}, err
	}
}
