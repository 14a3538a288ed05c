package client

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	// defaultTolerance is the tolerance of Standard Webhooks. With a longer tolerance, an attacker could send older
	// deliveries again.
	defaultTolerance = 5 * time.Minute

	// maxSignatures is the maximum number of signatures that are checked. It is more than a rotation needs, and
	// bounds the work that an attacker can cause.
	maxSignatures = 12

	// maxDelivery is the maximum size of a delivery's body in bytes. The service's deliveries have a few kilobytes.
	maxDelivery = 1 << 20
)

// WebhookEvent is the event of a delivery. Type is the kind of event, for example balance.threshold_reached.
type WebhookEvent struct {
	ID        string          `json:"-"` // header webhook-id: the same at each delivery, so store it to handle the event once
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
}

// WebhookError says why a delivery is not genuine. The receiver should answer with 400.
type WebhookError struct{ Reason string }

func (e *WebhookError) Error() string { return "quotasvc: the delivery is not genuine: " + e.Reason }

// Webhook verifies deliveries by the rules of Standard Webhooks (https://www.standardwebhooks.com). The headers are
// webhook-id, webhook-timestamp and webhook-signature. The signature is the HMAC-SHA256 of id.timestamp.body. A
// Webhook is safe for concurrent use.
type Webhook struct {
	// Tolerance is the maximum difference between the delivery's time and this machine's clock. 0 means 5 minutes.
	Tolerance time.Duration

	// Now returns the present time. nil means time.Now.
	Now func() time.Time

	secrets [][]byte
}

// NewWebhook returns a Webhook that accepts deliveries signed with one of the secrets. A secret is whsec_ followed by
// base64. Pass several secrets during a rotation.
func NewWebhook(secrets ...string) (*Webhook, error) {
	if len(secrets) == 0 {
		return nil, errors.New("quotasvc: a webhook needs a secret")
	}
	w := &Webhook{}
	for i, secret := range secrets {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil || len(raw) == 0 {
			return nil, fmt.Errorf("quotasvc: secret %d of the webhook must be whsec_ and base64", i+1)
		}
		w.secrets = append(w.secrets, raw)
	}
	return w, nil
}

var wholeSeconds = regexp.MustCompile(`^[0-9]{1,12}$`)

// Verify returns the event of a genuine delivery. Otherwise it returns a *WebhookError. body must be the bytes of the
// request as they were received, not decoded and encoded again.
func (w *Webhook) Verify(body []byte, header http.Header) (*WebhookEvent, error) {
	id, at, signatures := header.Get("Webhook-Id"), header.Get("Webhook-Timestamp"), header.Get("Webhook-Signature")
	if id == "" || at == "" || signatures == "" {
		return nil, &WebhookError{"a header is missing: webhook-id, webhook-timestamp or webhook-signature"}
	}
	if !wholeSeconds.MatchString(at) {
		return nil, &WebhookError{"webhook-timestamp is not a number of seconds"}
	}
	now, tolerance := time.Now, w.Tolerance
	if w.Now != nil {
		now = w.Now
	}
	tolerance = cmp.Or(tolerance, defaultTolerance)
	seconds, _ := strconv.ParseInt(at, 10, 64) // at has at most 12 digits
	if age := now().Sub(time.Unix(seconds, 0)); age.Abs() > tolerance {
		return nil, &WebhookError{fmt.Sprintf("webhook-timestamp is %s old: more than the tolerance", age.Round(time.Second))}
	}
	if !w.signed(id, at, body, signatures) {
		return nil, &WebhookError{"no signature is from this secret"}
	}
	event := &WebhookEvent{ID: id}
	if err := json.Unmarshal(body, event); err != nil || event.Type == "" {
		return nil, &WebhookError{"the body is not an event"}
	}
	return event, nil
}

// VerifyRequest does the same as Verify for a request. It reads at most 1 MiB of the body, and then makes the body
// readable again.
func (w *Webhook) VerifyRequest(r *http.Request) (*WebhookEvent, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxDelivery+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("quotasvc: read the delivery: %w", err)
	case len(body) > maxDelivery:
		return nil, &WebhookError{fmt.Sprintf("the body has more than %d bytes", maxDelivery)}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return w.Verify(body, r.Header)
}

// Sign returns the value of the header webhook-signature for a body, with the first secret. It is for tests of
// receivers.
func (w *Webhook) Sign(id string, at time.Time, body []byte) string {
	return "v1," + base64.StdEncoding.EncodeToString(mac(w.secrets[0], id, strconv.FormatInt(at.Unix(), 10), body))
}

// signed reports whether one of the signatures was made with one of the secrets. It compares in constant time.
func (w *Webhook) signed(id, at string, body []byte, signatures string) bool {
	genuine := false
	for i, text := range strings.Fields(signatures) {
		version, encoded, _ := strings.Cut(text, ",")
		given, err := base64.StdEncoding.DecodeString(encoded)
		if i >= maxSignatures || version != "v1" || err != nil {
			continue
		}
		for _, secret := range w.secrets {
			genuine = hmac.Equal(given, mac(secret, id, at, body)) || genuine
		}
	}
	return genuine
}

func mac(secret []byte, id, at string, body []byte) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(id + "." + at + "."))
	m.Write(body)
	return m.Sum(nil)
}
