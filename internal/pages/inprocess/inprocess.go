package inprocess

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/access"
)

const (
	// apiURL is the URL to which the client sends its calls. No host has this name: the transport passes the calls to
	// the handler.
	apiURL = "http://console.invalid"

	// timeout is the maximum time of a call. It is longer than the API's own time limit of a request.
	timeout = 6 * time.Second

	// noSecret is the text that the client sends instead of a secret if the key is made up. The transport removes it.
	noSecret = "none"
)

// forwardedHeaders lists the headers that are copied from the browser's request. From these headers, the API can
// determine the address of the browser.
var forwardedHeaders = []string{"X-Forwarded-For", "X-Real-Ip", "X-Forwarded-Proto"}

// Secure reports whether the browser's connection uses TLS, to this process or to a proxy. If a client forges the
// header X-Forwarded-Proto, this affects only the client's own cookie.
func Secure(r *http.Request) bool {
	return r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
}

// transport passes the client's requests to the API's handler, as if the browser had sent them.
type transport struct {
	api    http.Handler
	sender *http.Request
	key    *access.Key // a made-up key; nil: the request contains a secret
}

// WithSecret returns an API client for one page, which sends the secret of an API key.
func WithSecret(api http.Handler, sender *http.Request, secret string) (*client.API, error) {
	return newAPI(transport{api: api, sender: sender}, secret)
}

// As returns an API client for one page, which has the rights of a made-up key.
func As(api http.Handler, sender *http.Request, key *access.Key) (*client.API, error) {
	return newAPI(transport{api, sender, key}, noSecret)
}

func newAPI(t transport, secret string) (*client.API, error) {
	made, err := client.New(client.Options{
		URL: apiURL, Key: secret, HTTP: &http.Client{Transport: t}, Timeout: timeout, Deadline: timeout, Attempts: 1, KeepDenials: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return made.API, nil
}

// RoundTrip passes a request to the API's handler, and returns its answer. The error is always nil.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	if t.key != nil {
		ctx = access.As(ctx, t.key)
	}
	asked := r.Clone(ctx)
	if t.key != nil {
		asked.Header.Del("Authorization")
	}
	asked.RequestURI, asked.RemoteAddr, asked.Host = r.URL.RequestURI(), t.sender.RemoteAddr, t.sender.Host
	asked.TLS = t.sender.TLS
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	for _, name := range forwardedHeaders {
		if values := t.sender.Header.Values(name); len(values) > 0 {
			asked.Header[name] = values
		}
	}
	got := &recorder{header: http.Header{}}
	t.api.ServeHTTP(got, asked)
	got.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: strconv.Itoa(got.status) + " " + http.StatusText(got.status), StatusCode: got.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: got.sent, Body: io.NopCloser(&got.body), ContentLength: int64(got.body.Len()), Request: r,
	}, nil
}

// recorder is a response writer that stores the answer.
type recorder struct {
	header http.Header
	sent   http.Header // copy of header at the time of WriteHeader
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *recorder) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *recorder) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	a.status, a.sent = status, make(http.Header, len(a.header))
	for name, values := range a.header { // net/http spells the names of received headers in this form
		a.sent[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
}

// Write implements http.ResponseWriter.
func (a *recorder) Write(text []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(text)
}
