package transport

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// BenchmarkAnswer measures an answer with the same headers as the answer to a check. One run includes the work that
// this package adds to all answers. The other run does not.
func BenchmarkAnswer(b *testing.B) {
	var names []string
	for i := range 7 {
		names = append(names, "X-Quota-"+strconv.Itoa(i))
	}
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range names {
			w.Header()[name] = []string{"1"}
		}
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = io.WriteString(w, "{}")
	})
	s := New(Config{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	for name, h := range map[string]http.Handler{"bare": h, "guarded": s.guarded(h)} {
		b.Run(name, func(b *testing.B) {
			server := httptest.NewServer(h)
			defer server.Close()
			conn, err := (&net.Dialer{}).DialContext(b.Context(), "tcp", server.Listener.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			from := bufio.NewReader(conn)
			request := []byte("GET / HTTP/1.1\r\nHost: h\r\n\r\n")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := conn.Write(request); err != nil {
					b.Fatal(err)
				}
				for {
					line, err := from.ReadSlice('\n')
					if err != nil {
						b.Fatal(err)
					}
					if len(line) == 2 {
						break
					}
				}
				if _, err := from.Discard(2); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
