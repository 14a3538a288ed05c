package client

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
)

// defaultHoldTTL is the TTL of a hold in seconds. If the process crashes, the held units return to the balance after
// this time. A hold in use is extended after half of the TTL.
const defaultHoldTTL = 300

// HeldUnits are units that are reserved for one piece of work of unknown cost. Use counts the used units. Finish
// captures the used units and returns the rest to the balance. The hold is extended in the background until Finish or
// Release is called. HeldUnits is safe for concurrent use.
type HeldUnits struct {
	// Answer is the service's answer. It is nil if the hold failed open: nothing is reserved then, and Finish debits
	// the used units.
	Answer *HoldAnswer

	client *Client
	body   HoldRequest
	every  time.Duration // half of the TTL

	ending sync.Mutex // locked by Finish and Release
	result *HoldResult

	mu     sync.Mutex
	used   []int64 // used units by item
	ended  bool
	extend *time.Timer
}

// HoldResult is the result of a finished hold, in units, summed over all its items.
type HoldResult struct {
	Used      int64
	Charged   int64
	Shortfall int64 // used units that the balance did not cover
}

// Hold reserves units. The id of the hold is also the key of the operation. If HoldID is empty, Hold creates an id.
// If TTLSeconds is 0, the TTL is 5 minutes. The caller must call Finish or Release.
func (c *Client) Hold(ctx context.Context, body HoldRequest, options ...Option) (*HeldUnits, error) {
	o, err := c.optionsOf(options)
	switch {
	case err != nil:
		return nil, err
	case len(body.Items) == 0:
		return nil, errors.New("quotasvc: hold: items is required")
	case body.DryRun:
		return nil, errors.New("quotasvc: hold: a dry run holds nothing; use API.Hold")
	case body.HoldID == "" && o.key != "":
		body.HoldID = o.key
	case body.HoldID == "":
		body.HoldID = "hold-" + NewKey()
	}
	if o.key == "" {
		options = append(slices.Clone(options), WithKey(body.HoldID))
	}
	body.TTLSeconds = cmp.Or(body.TTLSeconds, defaultHoldTTL)
	h := &HeldUnits{client: c, body: body, used: make([]int64, len(body.Items)), every: time.Duration(body.TTLSeconds) * time.Second / 2}
	got, err := decide(c, decision{"hold", body.Tenant, body.Items, options}, func() (*HoldAnswer, error) {
		h.Answer, err = c.API.Hold(ctx, body, options...)
		return h.Answer, err
	}, func() *HoldAnswer { return &HoldAnswer{} })
	if err != nil {
		return nil, err
	}
	if h.Answer = nil; got.HoldID != "" {
		h.Answer = got
		background := context.WithoutCancel(ctx)
		h.mu.Lock()
		h.extend = time.AfterFunc(h.every, func() { h.extendNow(background) })
		h.mu.Unlock()
	}
	return h, nil
}

// HoldFor holds units and does the work. Then it captures the units that the work has used, even if the work fails or
// panics, and returns the other units to the balance.
func (c *Client) HoldFor(ctx context.Context, body HoldRequest, work func(context.Context, *HeldUnits) error, options ...Option) (result *HoldResult, err error) {
	h, err := c.Hold(ctx, body, options...)
	if err != nil {
		return nil, err
	}
	done := false
	defer func() {
		if !done { // the work panicked, and the panic continues
			_, failed := h.Finish(context.WithoutCancel(ctx))
			c.report(failed)
		}
	}()
	err = work(ctx, h)
	done = true
	// The used units are charged even if the caller's context has ended.
	result, failed := h.Finish(context.WithoutCancel(ctx))
	if err != nil {
		c.report(failed)
		return result, err
	}
	return result, failed
}

// Stream returns the elements of source, and counts the cost of each element as used units. It finishes the hold at
// the end of source, after an error of source, and if the reader stops early. If Finish fails, its error is the last
// element. If the reader has stopped or source has failed, OnBackgroundError gets this error instead.
func Stream[T any](ctx context.Context, h *HeldUnits, source iter.Seq2[T, error], cost func(T) int64) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		finished := false
		finish := func() error {
			finished = true
			_, err := h.Finish(context.WithoutCancel(ctx))
			return err
		}
		defer func() {
			if !finished {
				h.client.report(finish())
			}
		}()
		for element, err := range source {
			if err == nil {
				err = h.Use(cost(element))
			}
			if !yield(element, err) || err != nil {
				return
			}
		}
		if err := finish(); err != nil {
			var none T
			yield(none, err)
		}
	}
}

// ID returns the id of the hold.
func (h *HeldUnits) ID() string { return h.body.HoldID }

// FailedOpen reports whether the hold failed open: nothing is reserved, because the service did not decide.
func (h *HeldUnits) FailedOpen() bool { return h.Answer == nil }

// Used returns the number of used units so far.
func (h *HeldUnits) Used() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return sum(h.used)
}

// Left returns the number of held units that are not used yet.
func (h *HeldUnits) Left() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	var left int64
	for i, item := range h.body.Items {
		left += max(item.Amount-h.used[i], 0)
	}
	return left
}

// Use counts n used units of the hold's first meter. n is at least 0. Use sends no request. The used units may exceed
// the held units: Finish charges the excess as far as the balance covers it.
func (h *HeldUnits) Use(n int64) error { return h.UseOf(h.body.Items[0].Meter, n) }

// UseOf does the same as Use for the given meter of the hold.
func (h *HeldUnits) UseOf(meter string, n int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.IndexFunc(h.body.Items, func(item Item) bool { return item.Meter == meter })
	switch {
	case h.ended:
		return fmt.Errorf("quotasvc: hold %s has ended", h.body.HoldID)
	case at < 0:
		return fmt.Errorf("quotasvc: hold %s has no units of meter %q", h.body.HoldID, meter)
	case n < 0 || n > maxAmount-h.used[at]:
		return fmt.Errorf("quotasvc: used units must be from 0 to 2^53 - 1 in sum, got %d", n)
	}
	h.used[at] += n
	return nil
}

// Finish captures the used units and returns the rest to the balance. If more units are used than held, it charges
// the excess as far as the balance covers it. If the hold has expired, it debits the used units. After an error,
// Finish may be called again: it takes effect once. After a success, it returns the first result again.
func (h *HeldUnits) Finish(ctx context.Context) (*HoldResult, error) { return h.end(ctx, h.finish) }

// Release returns all held units to the balance and charges nothing.
func (h *HeldUnits) Release(ctx context.Context) (*HoldResult, error) {
	return h.end(ctx, func(ctx context.Context) (*HoldResult, error) {
		h.mu.Lock()
		clear(h.used)
		h.mu.Unlock()
		return h.release(ctx)
	})
}

func (h *HeldUnits) end(ctx context.Context, how func(context.Context) (*HoldResult, error)) (*HoldResult, error) {
	h.ending.Lock()
	defer h.ending.Unlock()
	if h.result != nil {
		return h.result, nil
	}
	h.mu.Lock()
	h.ended = true
	if h.extend != nil {
		h.extend.Stop()
	}
	h.mu.Unlock()
	result, err := how(ctx)
	if err == nil {
		h.result = result
	}
	return result, err
}

func (h *HeldUnits) finish(ctx context.Context) (*HoldResult, error) {
	all := h.items(func(_ Item, used int64) int64 { return used })
	switch {
	case h.FailedOpen():
		return h.debit(ctx, all, "late", 0)
	case len(all) == 0:
		return h.release(ctx)
	}
	err := h.capture(ctx, all, "capture")
	beyond := h.items(func(item Item, used int64) int64 { return used - item.Amount })
	switch {
	case err == nil:
		return &HoldResult{Used: total(all), Charged: total(all)}, nil
	case holdEnded(err):
		return h.debit(ctx, all, "late", 0)
	case len(beyond) == 0 || !refused(err):
		return nil, err
	}
	// The used units that are held are captured, and the used units beyond them are debited.
	held := h.items(func(item Item, used int64) int64 { return min(used, item.Amount) })
	if err := h.capture(ctx, held, "capture-held"); holdEnded(err) {
		return h.debit(ctx, all, "late", 0)
	} else if err != nil {
		return nil, err
	}
	return h.debit(ctx, beyond, "beyond", total(held))
}

// items returns an item for each meter of the hold for which amount returns more than 0.
func (h *HeldUnits) items(amount func(item Item, used int64) int64) []Item {
	h.mu.Lock()
	defer h.mu.Unlock()
	var items []Item
	for i, item := range h.body.Items {
		if n := amount(item, h.used[i]); n > 0 {
			items = append(items, Item{Meter: item.Meter, Amount: n})
		}
	}
	return items
}

func (h *HeldUnits) capture(ctx context.Context, items []Item, suffix string) error {
	_, err := h.client.CaptureHold(ctx, h.body.HoldID, CaptureRequest{Tenant: h.body.Tenant, Items: items, Final: true}, h.key(suffix))
	return err
}

func (h *HeldUnits) release(ctx context.Context) (*HoldResult, error) {
	if !h.FailedOpen() {
		_, err := h.client.ReleaseHold(ctx, h.body.HoldID, ReleaseRequest{Tenant: h.body.Tenant}, h.key("release"))
		if err != nil && !holdEnded(err) {
			return nil, err
		}
	}
	return &HoldResult{}, nil
}

// debit charges used units without a hold, as far as the balance covers them. charged is the number of units that
// were captured before.
func (h *HeldUnits) debit(ctx context.Context, items []Item, suffix string, charged int64) (*HoldResult, error) {
	result := &HoldResult{Used: h.Used(), Charged: charged}
	if len(items) == 0 {
		return result, nil
	}
	answer, err := h.client.API.Debit(ctx, DebitRequest{
		Tenant: h.body.Tenant, Items: items, Subject: h.body.Subject, Metadata: h.body.Metadata, Mode: ModeBestEffort,
	}, h.key(suffix))
	if refused(err) {
		result.Shortfall = total(items)
		return result, nil
	}
	if err != nil {
		return nil, err
	}
	for _, item := range answer.Items {
		result.Charged += item.Charged
		result.Shortfall += item.Shortfall
	}
	return result, nil
}

// extendNow extends the hold by its TTL, and schedules the next extension after half of the TTL.
func (h *HeldUnits) extendNow(ctx context.Context) {
	h.mu.Lock()
	if h.ended {
		h.mu.Unlock()
		return
	}
	defer h.client.background.start()()
	h.mu.Unlock()
	_, err := h.client.ExtendHold(ctx, h.body.HoldID, ExtendRequest{Tenant: h.body.Tenant, TTLSeconds: h.body.TTLSeconds}, WithDeadline(h.every))
	if err != nil && !holdEnded(err) {
		h.client.report(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended && !holdEnded(err) {
		h.extend.Reset(h.every)
	}
}

// maxKey is the largest length of an idempotency key.
const maxKey = 255

// key returns the idempotency key of an operation on the hold. If the operation is repeated, it has the same key. If
// the id of the hold is too long for a key, the key contains the hash of the id instead.
func (h *HeldUnits) key(suffix string) Option {
	id := h.body.HoldID
	if len(id)+len("."+suffix) > maxKey {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return WithKey(id + "." + suffix)
}

// holdEnded reports whether err says that the hold does not exist or is not active any more.
func holdEnded(err error) bool {
	return errors.Is(err, ErrHoldNotActive) || errors.Is(err, ErrHoldNotFound)
}

// refused reports whether a balance, a limit, the plan or a block refused the request.
func refused(err error) bool { return errors.Is(err, ErrDenied) || errors.Is(err, ErrForbidden) }

func total(items []Item) int64 {
	var n int64
	for _, item := range items {
		n += item.Amount
	}
	return n
}

func sum(list []int64) int64 {
	var n int64
	for _, v := range list {
		n += v
	}
	return n
}
