package cli

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/kit/backoff"
)

const (
	// listenEvery is the pause between two queries for new events.
	listenEvery = time.Second

	// forwardTimeout bounds a call of the receiver. Calls of webhooks have the same timeout.
	forwardTimeout = 8 * time.Second
)

type listenCmd struct {
	Connection
	Forward string `required:"" placeholder:"URL" help:"Where events are forwarded, as in http://localhost:3000/hooks."`
	Secret  string `env:"QUOTASVC_WEBHOOK_SECRET" placeholder:"whsec_..." help:"Secret that signs the calls. Default: a new one, which is printed."`
	Tenant  string `placeholder:"TENANT" help:"Only events of this tenant."`
	Type    string `placeholder:"TYPE" help:"Only events of this type, as in balance.threshold_reached."`
	After   string `placeholder:"ID" help:"Start after this event. Default: only events from now on."`
}

// Run forwards events until it is interrupted. It is for development: an event is forwarded only once, even if the
// call fails.
func (c *listenCmd) Run(ctx context.Context, out *IO) error {
	to, err := url.Parse(c.Forward)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
		return usage("--forward: %q is no URL as in http://localhost:3000/hooks", c.Forward)
	}
	if c.Secret == "" {
		var key [32]byte
		_, _ = rand.Read(key[:]) // Read never returns an error: it ends the process instead
		c.Secret = "whsec_" + base64.StdEncoding.EncodeToString(key[:])
	}
	signer, err := standardwebhooks.NewWebhook(c.Secret)
	if err != nil || !strings.HasPrefix(c.Secret, "whsec_") {
		return usage("--secret: must be whsec_ and base64")
	}
	s, err := c.Dial(out)
	if err != nil {
		return err
	}
	if c.After == "" {
		if c.After, err = c.newest(ctx, s); err != nil {
			return missing(err, "events")
		}
	}
	if !c.JSON {
		fmt.Fprintf(out.Err, "forwarding events to %s\nsecret %s\n", c.Forward, c.Secret)
	}
	f := &forwarder{to: c.Forward, signer: signer, out: out, json: c.JSON, client: &http.Client{
		Timeout: forwardTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	for {
		err := c.each(ctx, s, func(e *event) { f.forward(ctx, e) })
		if err != nil && !errors.Is(err, client.ErrUndecided) {
			return missing(err, "events")
		}
		if err != nil {
			fmt.Fprintf(out.Err, "quotasvc: %v; asking again\n", err)
		}
		if !backoff.Sleep(ctx, listenEvery) {
			return ctx.Err()
		}
	}
}

// each calls the function `do` with each event after c.After, and then sets c.After to the id of this event.
func (c *listenCmd) each(ctx context.Context, s *client.Client, do func(*event)) error {
	q := given(map[string]string{"tenant": c.Tenant, "type": c.Type, "after": c.After})
	return eachItem(ctx, s, "/v1/events", q, 0, func(raw rawItem) error {
		var e event
		if err := raw.into(&e); err != nil {
			return err
		}
		c.After = e.EventID
		do(&e)
		return ctx.Err()
	})
}

// newest returns an id after which there are no events yet. Ids contain times in microseconds. So newest begins with
// the id that has the time one second ago, and skips the events after that id.
func (c *listenCmd) newest(ctx context.Context, s *client.Client) (string, error) {
	after := fmt.Sprintf("evt_%016d", time.Now().Add(-time.Second).UnixMicro())
	at := c.After
	c.After = after
	err := c.each(ctx, s, func(*event) {}) // this also checks that the service answers
	after, c.After = c.After, at
	return after, err
}

// forwarder calls the receiver with events.
type forwarder struct {
	to     string
	signer *standardwebhooks.Webhook
	client *http.Client
	out    *IO
	json   bool
}

// forwarded is a forwarded event as --json prints it.
type forwarded struct {
	EventID    string `json:"event_id"`
	Type       string `json:"type"`
	StatusCode int    `json:"status_code"` // 0: there was no answer
	LatencyMs  int64  `json:"latency_ms"`
	Error      string `json:"error,omitempty"`
}

// forward calls the receiver with an event, and prints the outcome.
func (f *forwarder) forward(ctx context.Context, e *event) {
	began := time.Now()
	done := forwarded{EventID: e.EventID, Type: e.Type}
	var err error
	if done.StatusCode, err = f.call(ctx, e); err != nil {
		done.Error = err.Error()
	}
	done.LatencyMs = time.Since(began).Milliseconds()
	if f.json {
		_ = f.out.line(done) // if the output is a closed pipe, the process ends anyway
		return
	}
	colour, how := green, strconv.Itoa(done.StatusCode)
	if done.StatusCode < 200 || done.StatusCode > 299 {
		colour = red
	}
	if done.StatusCode == 0 {
		how = done.Error
	}
	f.out.printf("%s  %s  %s  %s  %d ms\n", at(e.At), e.EventID, e.Type, f.out.paint(colour, how), done.LatencyMs)
}

func (f *forwarder) call(ctx context.Context, e *event) (status int, err error) {
	body, err := message(e)
	if err != nil {
		return 0, err
	}
	now := time.Now()
	signature, err := f.signer.Sign(e.EventID, now, body)
	if err != nil {
		return 0, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.to, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(standardwebhooks.HeaderWebhookID, e.EventID)
	r.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	r.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	answer, err := f.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, 4<<10) // the content does not matter
	return answer.StatusCode, nil
}

// message returns the request body that a webhook of the service would send for this event.
func message(e *event) ([]byte, error) {
	data := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(e.Data), &data); err != nil {
		return nil, fmt.Errorf("data of event %s: %w", e.EventID, err)
	}
	for name, value := range map[string]string{"tenant": e.Tenant, "meter": e.Meter, "subject": e.Subject} {
		if value != "" {
			text, err := json.Marshal(value)
			if err != nil {
				return nil, err
			}
			data[name] = text
		}
	}
	return json.Marshal(map[string]any{"type": e.Type, "timestamp": e.At.UTC(), "data": data})
}
