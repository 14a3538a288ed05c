package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	secretOne = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secretTwo = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

var event = []byte(`{"type":"balance.exhausted","timestamp":"2026-11-25T01:02:03Z","data":{"meter":"api_calls"}}`)

func webhook(t *testing.T, at time.Time, secrets ...string) *Webhook {
	t.Helper()
	w, err := NewWebhook(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	w.Now = func() time.Time { return at }
	return w
}

func delivery(id string, at time.Time, signatures string) http.Header {
	h := http.Header{}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	h.Set("webhook-signature", signatures)
	return h
}

// The test uses the example in the specification and in the libraries of Standard Webhooks.
func TestWebhook_VectorOfTheStandard_Verified(t *testing.T) {
	t.Parallel()
	at := time.Unix(1614265330, 0)
	w := webhook(t, at, secretOne)
	body := []byte(`{"test": 2432232314}`)
	if got := w.Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", at, body); got != "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=" {
		t.Errorf("signature %s", got)
	}
	h := delivery("msg_p5jXN8AQM9LWM0D4loKWxJek", at, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	if _, err := w.Verify(body, h); err == nil || !strings.Contains(err.Error(), "not an event") {
		t.Errorf("a genuine body that is no event: %v", err)
	}
}

func TestWebhook_Rotation_EitherSideHasTwoSecrets(t *testing.T) {
	t.Parallel()
	at := time.Now()
	before, after, both := webhook(t, at, secretOne), webhook(t, at, secretTwo), webhook(t, at, secretTwo, secretOne)
	one, two := before.Sign("evt_1", at, event), after.Sign("evt_1", at, event)
	for what, c := range map[string]struct {
		w          *Webhook
		signatures string
		genuine    bool
	}{
		"one secret":             {before, one, true},
		"another secret":         {after, one, false},
		"receiver has both":      {both, one, true},
		"sender has both":        {before, two + " " + one, true},
		"no signature in time":   {before, strings.Repeat(two+" ", maxSignatures) + one, false},
		"a version to come":      {before, "v2," + one[3:], false},
		"a version to come too":  {before, "v1a,AAAA " + one, true},
		"no base64":              {before, "v1,?", false},
		"no signature but blank": {before, " ", false},
	} {
		got, err := c.w.Verify(event, delivery("evt_1", at, c.signatures))
		if (err == nil) != c.genuine {
			t.Errorf("%s: %v", what, err)
		}
		if err == nil && (got.ID != "evt_1" || got.Type != "balance.exhausted" || string(got.Data) != `{"meter":"api_calls"}` || got.Timestamp.Year() != 2026) {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

func TestWebhook_Forged_Refused(t *testing.T) {
	t.Parallel()
	at := time.Now()
	w := webhook(t, at, secretOne)
	good := w.Sign("evt_1", at, event)
	for what, c := range map[string]struct {
		body   string
		header http.Header
	}{
		"another body":  {strings.Replace(string(event), "exhausted", "restored!", 1), delivery("evt_1", at, good)},
		"another id":    {string(event), delivery("evt_2", at, good)},
		"another time":  {string(event), delivery("evt_1", at.Add(time.Second), good)},
		"too old":       {string(event), delivery("evt_1", at.Add(-6*time.Minute), w.Sign("evt_1", at.Add(-6*time.Minute), event))},
		"from to come":  {string(event), delivery("evt_1", at.Add(6*time.Minute), w.Sign("evt_1", at.Add(6*time.Minute), event))},
		"no time":       {string(event), http.Header{"Webhook-Id": {"evt_1"}, "Webhook-Timestamp": {"now"}, "Webhook-Signature": {good}}},
		"nothing":       {string(event), http.Header{}},
		"no type in it": {`{"data":1}`, delivery("evt_1", at, w.Sign("evt_1", at, []byte(`{"data":1}`)))},
	} {
		_, err := w.Verify([]byte(c.body), c.header)
		var forged *WebhookError
		if !errors.As(err, &forged) {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.Tolerance = time.Hour
	if _, err := w.Verify(event, delivery("evt_1", at.Add(-6*time.Minute), w.Sign("evt_1", at.Add(-6*time.Minute), event))); err != nil {
		t.Errorf("within the tolerance: %v", err)
	}
}

func TestWebhook_Request_ReadableAfterwards(t *testing.T) {
	t.Parallel()
	at := time.Now()
	w := webhook(t, at, secretOne)
	r := httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(string(event)))
	r.Header = delivery("evt_1", at, w.Sign("evt_1", at, event))
	if got, err := w.VerifyRequest(r); err != nil || got.ID != "evt_1" {
		t.Errorf("%+v %v", got, err)
	}
	if body, err := io.ReadAll(r.Body); err != nil || string(body) != string(event) {
		t.Errorf("%s %v", body, err)
	}
	r = httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(strings.Repeat(" ", maxDelivery+1)))
	if _, err := w.VerifyRequest(r); err == nil {
		t.Error("a body without end is read")
	}
}

func TestWebhook_Secrets_Checked(t *testing.T) {
	t.Parallel()
	for _, secrets := range [][]string{nil, {""}, {"whsec_"}, {secretOne, "whsec_?"}} {
		if _, err := NewWebhook(secrets...); err == nil {
			t.Errorf("%q is accepted", secrets)
		}
	}
}
