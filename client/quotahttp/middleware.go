package quotahttp

import (
	"cmp"
	"maps"
	"net"
	"net/http"

	"github.com/quotasvc/quotasvc/client"
)

// Options are the options of a Middleware. If IP is nil, no client address is sent to the service, because behind a
// proxy RemoteAddr is the address of the proxy. Use PeerIP if clients connect directly to the server.
type Options struct {
	Rules[*http.Request]

	// OnError answers a request that could not be decided because of a mistake in this backend. Examples are a wrong
	// key and an unknown tenant. It should log the error. nil: the answer is 500 without details.
	OnError func(w http.ResponseWriter, r *http.Request, err error)
}

// Middleware charges the requests of an HTTP server.
type Middleware struct {
	client  *client.Client
	options Options
}

// New returns a Middleware. If an option is wrong, the error names it.
func New(c *client.Client, o Options) (*Middleware, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.OnError == nil {
		o.OnError = func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		}
	}
	return &Middleware{c, o}, nil
}

// PeerIP returns the address of the connection's peer.
func PeerIP(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}

// Wrap returns a handler that charges each request before the handler `next` serves it. It refunds the units if `next`
// panics before it answers. It also refunds them if Rules.Refund returns true for the status of the answer (by default
// 500 or more).
func (m *Middleware) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d, err := Decide(r.Context(), m.client, &m.options.Rules, r, Seen{Method: r.Method, Path: r.URL.Path})
		if r.Context().Err() != nil && err != nil {
			return // the client has left and waits for no answer
		}
		if err != nil {
			m.options.OnError(w, r, err)
			return
		}
		maps.Copy(w.Header(), d.Header)
		if !d.Passed {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(d.Status)
			_, _ = w.Write(d.Body) // the client may have left
			return
		}
		seen := &response{ResponseWriter: w}
		finished := false
		defer func() {
			switch {
			case finished || seen.status != 0:
				d.Settle(max(seen.status, http.StatusOK))
			default:
				d.Settle(http.StatusInternalServerError) // next panicked before it answered
			}
		}()
		next.ServeHTTP(seen.forms(), r)
		finished = true
	})
}

// response is a response writer that records the status of the answer.
type response struct {
	http.ResponseWriter

	status int
}

// WriteHeader records the status of the answer. It ignores 1xx, because another status follows.
func (r *response) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write records the status 200 if WriteHeader was not called.
func (r *response) Write(p []byte) (int, error) {
	r.status = cmp.Or(r.status, http.StatusOK)
	return r.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController use the other methods of the server's writer.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// forms returns a writer that implements http.Flusher and http.Hijacker if the server's writer does. It is for
// handlers that do not use http.ResponseController.
func (r *response) forms() http.ResponseWriter {
	flusher, flushes := r.ResponseWriter.(http.Flusher)
	hijacker, hijacks := r.ResponseWriter.(http.Hijacker)
	switch {
	case flushes && hijacks:
		return struct {
			*response
			http.Flusher
			http.Hijacker
		}{r, flusher, hijacker}
	case flushes:
		return struct {
			*response
			http.Flusher
		}{r, flusher}
	default:
		return r
	}
}
