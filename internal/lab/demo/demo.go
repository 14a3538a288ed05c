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
	// Days is how long the story is: the calendar month before this one is in it as far as possible, and one on the first day of a month has a whole one.
	Days = 45

	// Behind is how far the clock of a new database is behind.
	Behind = Days * 24 * time.Hour

	// rushed bounds the story. It takes about two seconds on an idle machine.
	rushed = 90 * time.Second

	// closing bounds the last step, which brings the clock to the present.
	closing = 5 * time.Second

	lastHours = Days*24 - 12 // from this hour on the clock goes hour by hour
)

// Play enters the story of the demo into the service of api, if its clock is behind. The error says why the story is incomplete; the clock is at the present all the
// same, unless ctx has ended or the service does not answer.
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

// There reports whether the story's tenants are there.
func There(ctx context.Context, api *client.API) bool {
	_, err := api.GetTenant(ctx, customers()[0].id)
	return err == nil
}

// story is a story that is being told.
type story struct {
	api    *client.API
	today  time.Time // the day in which it ends, in UTC
	behind time.Duration

	tooMuch time.Time // when acme asks for far too much, in the last day
}

// play creates the catalogue and the tenants, and lets time pass.
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

// passMeeting lets some time pass, but not beyond the present. If acme asks for too much in it, the clock stands still there for that.
func (s *story) passMeeting(ctx context.Context, by time.Duration) error {
	by = min(by, s.behind) // a story that was interrupted goes on between two hours
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

// lastFivePastTwo returns the last time before the present at which it was five past two in the afternoon where acme is: a time at which somebody may ask
// why it was refused. The seconds leave room for a slow machine on both sides.
func lastFivePastTwo(now time.Time) time.Time {
	zone, err := time.LoadLocation(customers()[0].zone)
	if err != nil {
		zone = time.UTC // this machine knows no zones, and the console shows UTC then
	}
	year, month, day := now.In(zone).Date()
	at := time.Date(year, month, day, 14, 5, 20, 0, zone)
	if at.After(now) {
		at = time.Date(year, month, day-1, 14, 5, 20, 0, zone)
	}
	return at
}

// pass lets some time pass. Sent again after a lost answer, it passes once.
func (s *story) pass(ctx context.Context, by time.Duration) error {
	got, err := s.api.AdvanceTestClock(ctx, client.TestClockRequest{Advance: by.String()}, client.WithKey(fmt.Sprintf("demo-%d", int64(s.behind/time.Second))))
	if err != nil {
		return fmt.Errorf("move the clock: %w", err)
	}
	s.behind = time.Duration(-got.OffsetSeconds) * time.Second
	return nil
}

// unknown reports whether an error says that something does not exist.
func unknown(err error) bool {
	e := client.AsError(err)
	return e != nil && e.Status == http.StatusNotFound
}

// refused returns nil for a refusal: some are part of the story.
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
