package webhooks

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/quotasvc/quotasvc/internal/outbox/events"
)

const (
	// callTimeout bounds a call, from the DNS query to the answer. In this time a receiver can store the event and
	// answer.
	callTimeout = 8 * time.Second

	// dialTimeout bounds the opening of a connection, and also its TLS handshake.
	dialTimeout = 4 * time.Second

	// readMax bounds the bytes of an answer's body that are read. If the body ends within them, its connection can be
	// used again. headersMax bounds the bytes of the answer's headers.
	readMax    = 4 << 10
	headersMax = 16 << 10

	userAgent = "quotasvc-webhooks/1"
)

// Sender calls receivers.
type Sender struct {
	client  *http.Client
	timeout time.Duration // time limit of a call
}

// NewSender returns a sender. Close closes its idle connections.
func NewSender(guard *Guard) *Sender { return newSender(guard, callTimeout) }

func newSender(guard *Guard, timeout time.Duration) *Sender {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: guard.control}
	return &Sender{timeout: timeout, client: &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: timeout, MaxResponseHeaderBytes: headersMax,
			MaxIdleConns: 100, MaxIdleConnsPerHost: workersPerWebhook, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
		}, // no proxy, because a proxy would call an address that was not checked
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       timeout,
	}}
}

// Close closes idle connections.
func (s *Sender) Close() { s.client.CloseIdleConnections() }

// Message is the body of a call and its id.
type Message struct {
	ID   string // webhook-id
	Body []byte
}

// NewMessage returns the message of an event.
func NewMessage(e *events.Listed) (Message, error) {
	data := map[string]jsontext.Value{}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return Message{}, fmt.Errorf("data of event %s: %w", e.ID(), err)
	}
	for name, value := range map[string]string{"tenant": e.Tenant, "meter": e.Meter, "subject": e.Subject} {
		if value != "" {
			text, err := jsontext.AppendQuote(nil, value)
			if err != nil {
				return Message{}, fmt.Errorf("%s of event %s: %w", name, e.ID(), err)
			}
			data[name] = text
		}
	}
	return newMessage(e.ID(), string(e.Type), e.At, data)
}

func newMessage(id, eventType string, at time.Time, data any) (Message, error) {
	text, err := json.Marshal(struct {
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      any       `json:"data"`
	}{eventType, at.UTC(), data}, json.Deterministic(true))
	if err != nil {
		return Message{}, fmt.Errorf("encode event %s: %w", id, err)
	}
	return Message{ID: id, Body: text}, nil
}

// Outcome is the result of an attempt.
type Outcome struct {
	Status  int // status of the answer; 0: there was no answer
	Latency time.Duration
	Error   string // empty: the receiver accepted the call
}

// Send calls a receiver once. The call has one signature for each secret; there must be at least one secret.
func (s *Sender) Send(ctx context.Context, url string, secrets [][]byte, m Message) Outcome {
	began := time.Now()
	out := Outcome{}
	out.Status, out.Error = s.send(ctx, url, secrets, m)
	out.Latency = time.Since(began)
	return out
}

func (s *Sender) send(ctx context.Context, url string, secrets [][]byte, m Message) (status int, problem string) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(m.Body))
	if err != nil {
		return 0, "the URL cannot be called"
	}
	if err := Sign(r.Header, secrets, m, time.Now()); err != nil {
		return 0, "the message cannot be signed"
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", userAgent)
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, s.reason(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		_, _ = io.CopyN(io.Discard, answer.Body, readMax) // then the connection can be used again
		return answer.StatusCode, ""
	}
	if answer.StatusCode >= 300 && answer.StatusCode < 400 {
		return answer.StatusCode, fmt.Sprintf("status %d: redirects are not followed", answer.StatusCode)
	}
	return answer.StatusCode, fmt.Sprintf("status %d", answer.StatusCode)
}

// Sign sets the headers that Standard Webhooks defines. at is the time in the signature.
func Sign(h http.Header, secrets [][]byte, m Message, at time.Time) error {
	var signatures []string
	for _, secret := range secrets {
		signer, err := standardwebhooks.NewWebhookRaw(secret)
		if err != nil {
			return err
		}
		signature, err := signer.Sign(m.ID, at, m.Body)
		if err != nil {
			return err
		}
		signatures = append(signatures, signature)
	}
	h.Set(standardwebhooks.HeaderWebhookID, m.ID)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, fmt.Sprint(at.Unix()))
	h.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return nil
}

// errorMax bounds the stored reason of a failure in bytes.
const errorMax = 200

// reason returns a short reason for a failed call. The text contains no address, because clients must not learn to
// which internal address a name resolves.
func (s *Sender) reason(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, errPrivate):
		return "the name resolves to an address that is not permitted"
	case errors.Is(err, context.Canceled):
		return "interrupted: this instance was stopped"
	case errors.As(err, &dns):
		return "the name cannot be resolved"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("no answer within %s", s.timeout)
	}
	text := err.Error()
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		text = inner.Error()
	}
	// A part of the text comes from the receiver, and the cut may split a character. PostgreSQL and JSON accept
	// neither incomplete characters nor zero bytes.
	text = strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), errorMax)], ""), "\x00", "")
	return "the call failed: " + text
}
