package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// envScenes is the environment variable with the names of further pages of docs/integrate to test: node, python. The
// page for Go is always tested. `make test-sdk` sets the variable. The further pages need Node, npm and Debian's Python
// packages; `make test` does not.
const envScenes = "QUOTASVC_TEST_SCENES"

// scene is the environment of a newcomer who follows a page of docs/integrate. It has what a release consists of and no
// clone: a directory named quotasvc, in which the program serves, and a terminal beside it.
type scene struct {
	t    *testing.T
	dev  *instance
	tty  *terminal
	here *strings.Replacer
}

// enter returns a scene for a page.
func enter(t *testing.T, page string) *scene {
	t.Helper()
	if page != "go" && !hasScene(page) {
		t.Skipf("make test-sdk runs it: it sets %s=node,python", envScenes)
	}
	r, dir := theRelease(t), t.TempDir()
	data := filepath.Join(dir, "quotasvc", ".quotasvc")
	if err := os.MkdirAll(data, 0o755); err != nil { //nolint:gosec // PostgreSQL's user must enter it
		t.Fatal(err)
	}
	require.NoError(t, os.WriteFile(filepath.Join(data, keyFile), []byte(testKey), 0o600))
	bin := r.unpack(t, t.TempDir())
	dev := introduced(launchBy(t, filepath.Join(bin, "quotasvc"), nil, "dev", "--no-demo", "--dir", data, "--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--log-level", "warn"))
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	tty := openTerminal(t, dir, append(r.packages(t), "PYTHONUNBUFFERED=1", "PATH="+bin+":"+pathOf(page))) // a terminal shows lines when they are printed
	said := []string{venvOfPage, venvOfTest, "http://127.0.0.1:8080", dev.api, `"offset_seconds":86400`, fmt.Sprintf(`"offset_seconds":%d`, 86400+dev.roomInTheHour(t))}
	for _, port := range []string{"3000", "3001", "3002", "8001", "8002"} {
		said = append(said, port, portOf(t))
	}
	return &scene{t: t, dev: &instance{process: dev.process, api: dev.api, http: &http.Client{Transport: transport, Timeout: testenv.Patience}}, tty: tty, here: strings.NewReplacer(said...)}
}

// hasScene reports whether the tests follow a further page.
func hasScene(page string) bool {
	return slices.Contains(strings.Split(os.Getenv(envScenes), ","), page)
}

// pathOf returns PATH for a page. Debian's Python packages need Debian's Python, so it comes first for the page
// python.
func pathOf(page string) string {
	if page == "python" {
		return "/usr/bin:" + os.Getenv("PATH")
	}
	return os.Getenv("PATH")
}

// follow pastes the blocks of the page.
func (s *scene) follow(page string) {
	s.t.Helper()
	for _, block := range markedBlocks(s.t, page) {
		s.tty.use(block.said(s.here))
	}
}

// leave ends the scene. It fails the test if dev ends with an error.
func (s *scene) leave() {
	s.t.Helper()
	s.tty.leave()
	s.dev.signal(syscall.SIGINT)
	assert.Zero(s.t, s.dev.wait(), "dev ended with")
}

// delivery is a call of a webhook that the test has received.
type delivery struct {
	header http.Header
	body   []byte
}

// by reports whether a delivery is signed with this secret. It asks the Standard Webhooks library and the SDK's
// verifier, which must agree.
func (d delivery) by(t *testing.T, secret string) bool {
	t.Helper()
	standard := testenv.Must(t).Get(standardwebhooks.NewWebhook(secret))
	ours := testenv.Must(t).Get(client.NewWebhook(secret))
	event, oursErr := ours.Verify(d.body, d.header)
	standardErr := standard.Verify(d.body, d.header)
	assert.True(t, (oursErr == nil) == (standardErr == nil),
		"the SDK says %v, the library of the standard %v: %v %s", oursErr, standardErr, d.header, d.body)
	if oursErr == nil && (event.ID != d.header.Get("Webhook-Id") || !strings.HasPrefix(event.ID, "evt_") && !strings.HasPrefix(event.ID, "test_")) {
		t.Errorf("%+v", event)
	}
	return oursErr == nil
}

// webhook creates a webhook for the thresholds of the tenant's allowance, and returns its path and its secret.
func (s *scene) webhook(url string) (path, secret string) {
	s.t.Helper()
	id, secret := s.dev.newWebhook(s.t, object{"url": url, "types": []string{"balance.threshold_reached"}})
	return "/v1/webhooks/" + id, secret
}

// replay makes the service send the events of the last hour to a webhook again.
func (s *scene) replay(path string) {
	s.t.Helper()
	s.dev.do(s.t, http.StatusAccepted, "POST", path+"/replay", "", object{"from": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)})
}

// rotate gives a webhook a new secret.
func (s *scene) rotate(path string, overlap int) (secret string) {
	s.t.Helper()
	made := s.dev.do(s.t, http.StatusCreated, "POST", path+"/rotate", "", object{"overlap_seconds": overlap})
	return decoded[struct{ Secret string }](s.t, made).Secret
}

// rotateBetweenDeliveries checks deliveries of the page's events before, during and after a rotation of the secret.
// The Standard Webhooks library and the SDK must both accept them.
func (s *scene) rotateBetweenDeliveries() {
	t := s.t
	t.Helper()
	calls := make(chan delivery, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- delivery{r.Header, body}
	}))
	t.Cleanup(receiver.Close)
	path, first := s.webhook(receiver.URL)
	next := func() delivery { // the delivery at 80 percent
		t.Helper()
		s.replay(path)
		for {
			if d, _ := testenv.Receive(t, calls); strings.Contains(string(d.body), `"threshold":80`) {
				return d
			}
		}
	}
	assert.True(t, next().by(t, first), "before the rotation")
	second := s.rotate(path, 3600)
	testenv.Eventually(t, func() bool { d := next(); return d.by(t, first) && d.by(t, second) }, "a delivery has both signatures")
	third := s.rotate(path, 0)
	testenv.Eventually(t, func() bool {
		d := next()
		return d.by(t, third) && !d.by(t, first) && !d.by(t, second)
	}, "a delivery has the last signature alone")
}

func TestScene_Go_FromThePageAlone(t *testing.T) {
	t.Parallel()
	programOf(t, "curl")
	s := enter(t, "go")
	s.follow("docs/integrate/go.md")
	s.rotateBetweenDeliveries()
	s.leave()
}

func TestScene_Express_FromThePageAlone(t *testing.T) {
	t.Parallel()
	s := enter(t, "node")
	s.follow("docs/integrate/node.md")
	s.rotateBetweenDeliveries()
	// The receiver on the page docs/events.md verifies deliveries with the Standard Webhooks library.
	s.tty.paste("npm install standardwebhooks@1.1.1\n")
	for _, block := range markedBlocks(t, "docs/events.md") {
		s.tty.use(block.said(s.here))
	}
	path, secret := s.webhook(s.here.Replace("http://127.0.0.1:3002"))
	begin := s.tty.paste(fmt.Sprintf("QUOTASVC_WEBHOOK_SECRET='%s' node standard.mjs &\n", secret))
	s.replay(path)
	testenv.Eventually(t, func() bool {
		return len(s.tty.missing(begin, []string{" balance.threshold_reached ", `"threshold":80`, `"tenant":"wonka"`})) == 0
	}, "the receiver of docs/events.md verifies the event of 80 percent")
	s.leave()
}

func TestScene_FastAPI_FromThePageAlone(t *testing.T) {
	t.Parallel()
	s := enter(t, "python")
	s.follow("docs/integrate/python.md")
	s.rotateBetweenDeliveries()
	s.leave()
}
