package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/quotasvc/quotasvc/client"
)

const (
	// Days is the length of the story, in days. Up to the 14th day of a month, the story contains the whole previous
	// calendar month.
	Days = 45

	// Behind is the time by which the clock of a new database is behind the present. It is the length of the story.
	Behind = Days * 24 * time.Hour

	// rushed is the time limit for the story. The story takes about two seconds on an idle machine.
	rushed = 90 * time.Second

	// closing is the time limit for the last step, which sets the clock to the present.
	closing = 5 * time.Second

	lastHours = Days*24 - 12 // from this hour of the story on, the clock advances hour by hour
)

// Play plays the story of the demo through api, if the service's clock is behind the present. If the story stays
// incomplete, Play returns the reason as an error. Even after an error, Play sets the clock to the present, unless ctx
// has ended or the service does not answer.
func Play(ctx context.Context, api *client.API) error {
	clock, err := api.GetTestClock(ctx)
	if err != nil || clock.OffsetSeconds >= 0 {
		return err
	}
	now := time.Now()
	s := &story{api: api, today: now.UTC().Truncate(24 * time.Hour), behind: time.Duration(-clock.OffsetSeconds) * time.Second, tooMuch: lastFivePastTwo(now)}
	playing, stop := context.WithTimeout(ctx, rushed)
	defer stop()
	err = s.play(playing)
	if err == nil || ctx.Err() != nil {
		return err
	}
	arriving, stop := context.WithTimeout(ctx, closing)
	defer stop()
	return errors.Join(err, s.pass(arriving, s.behind))
}

// There reports whether the story was played before, that is, whether its first tenant exists.
func There(ctx context.Context, api *client.API) bool {
	_, err := api.GetTenant(ctx, customers()[0].id)
	return err == nil
}

// story is the state of a story that is being played.
type story struct {
	api    *client.API
	today  time.Time // the day on which the story ends, in UTC
	behind time.Duration

	tooMuch time.Time // the instant on the last day at which acme asks for far too much
}

// play creates the catalogue and the tenants, and plays the story up to the present.
func (s *story) play(ctx context.Context) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	for s.behind > 0 {
		hour := int((Behind - s.behind) / time.Hour)
		if err := s.happen(ctx, hour); err != nil {
			return fmt.Errorf("hour %d: %w", hour, err)
		}
		step := min(24, lastHours-hour)
		if hour >= lastHours {
			step = 1
		}
		if err := s.passMeeting(ctx, time.Duration(step)*time.Hour); err != nil {
			return err
		}
	}
	return s.end(ctx)
}

// passMeeting advances the clock, but not beyond the present. If acme asks for too much within that time, passMeeting
// first advances the clock to that instant. It then sends acme's request, and advances the clock by the rest.
func (s *story) passMeeting(ctx context.Context, by time.Duration) error {
	by = min(by, s.behind) // after an interruption, the story may continue between two hours
	until := (time.Until(s.tooMuch) + s.behind).Round(time.Second)
	if until < time.Second || until >= by {
		return s.pass(ctx, by)
	}
	before := s.behind
	if err := s.pass(ctx, until); err != nil {
		return err
	}
	if err := s.askTooMuch(ctx); err != nil {
		return err
	}
	return s.pass(ctx, by-(before-s.behind))
}

// lastFivePastTwo returns the last instant before the present at which it was 14:05:20 in acme's zone. The example in
// docs/console.md asks why acme was refused at 14:05. With the 20 seconds, the request is in that minute even on a slow
// machine.
func lastFivePastTwo(now time.Time) time.Time {
	zone, err := time.LoadLocation(customers()[0].zone)
	if err != nil {
		zone = time.UTC // this machine has no zone data, and then the console shows UTC
	}
	year, month, day := now.In(zone).Date()
	at := time.Date(year, month, day, 14, 5, 20, 0, zone)
	if at.After(now) {
		at = time.Date(year, month, day-1, 14, 5, 20, 0, zone)
	}
	return at
}

// pass advances the clock. If the request is sent again because its answer was lost, the clock advances only once.
func (s *story) pass(ctx context.Context, by time.Duration) error {
	got, err := s.api.AdvanceTestClock(ctx, client.TestClockRequest{Advance: by.String()}, client.WithKey(fmt.Sprintf("demo-%d", int64(s.behind/time.Second))))
	if err != nil {
		return fmt.Errorf("move the clock: %w", err)
	}
	s.behind = time.Duration(-got.OffsetSeconds) * time.Second
	return nil
}

// unknown reports whether an error is the API's answer 404.
func unknown(err error) bool {
	e := client.AsError(err)
	return e != nil && e.Status == http.StatusNotFound
}

// refused returns nil if err is a refusal, because some refusals are part of the story. It returns other errors
// unchanged.
func refused(err error) error {
	switch e := client.AsError(err); {
	case e == nil:
		return err
	case e.Status == http.StatusPaymentRequired, e.Status == http.StatusTooManyRequests:
		return nil
	default:
		return err
	}
}
