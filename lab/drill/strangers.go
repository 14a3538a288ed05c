package drill

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// strangers is the number of strangers of a flood. Each has an address of its own.
	strangers = 300

	// strangerPace is the pause of a stranger between two requests.
	strangerPace = 500 * time.Millisecond
)

// flood lets strangers with invented links, cookies and keys ask all instances for the time d. None of them may be let
// in.
func (f *fleet) flood(ctx context.Context, m *memory, d time.Duration) error {
	flood, stop := context.WithTimeout(ctx, d)
	defer stop()
	caller := &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: strangers}, Timeout: attemptTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer caller.CloseIdleConnections()
	var all sync.WaitGroup
	for n := range strangers {
		all.Go(func() {
			for i := n; flood.Err() == nil; i++ {
				path, header := invented(n)
				status, _ := ask(flood, caller, f.slots[i%len(f.slots)].api(), path, header)
				m.change(func() {
					m.strangers[status]++
					if status >= http.StatusOK && status < http.StatusMultipleChoices {
						m.wrong["a stranger was let in at "+strings.Split(path, "/")[1]]++
					}
				})
				_ = sleep(flood, strangerPace) // the loop checks the flood
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// invented returns a request of stranger n: a link to a tenant's page, a session of the console, or a key. It has the
// right form, and nobody made it.
func invented(n int) (path string, header http.Header) {
	var raw [32]byte
	_, _ = rand.Read(raw[:])
	secret := base64.RawURLEncoding.EncodeToString(raw[:])
	header = http.Header{"X-Forwarded-For": {fmt.Sprintf("198.51.%d.%d", 100+n/250, n%250)}}
	switch n % 3 {
	case 0:
		return "/portal/p" + strings.ToLower(rand.Text()) + "/open/" + secret, header
	case 1:
		header.Set("Cookie", "quotasvc_console="+secret)
		return "/console/", header
	default:
		header.Set("Authorization", "Bearer "+secret)
		return "/v1/meters", header
	}
}
