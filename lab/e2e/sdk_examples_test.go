package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// builtExamples is a directory with the built programs of client/examples.
var builtExamples = together[string]{start: func(h *host) string {
	dir := h.TempDir()
	if out, err := exec.CommandContext(h.Context(), "go", "build", "-o", dir+"/", "../../client/examples/...", "../../client/quotaecho/examples/...").CombinedOutput(); err != nil {
		h.Fatalf("%v\n%s", err, out)
	}
	return dir
}}

// examples contains the built programs of client/examples and their environment.
type examples struct {
	t   *testing.T
	dir string
	env []string
}

func examplesOf(t *testing.T, in *instance) *examples {
	t.Helper()
	return &examples{t, builtExamples.get(t), append(withoutSettings(os.Environ()), asks(in)...)}
}

// run runs an example to its end and returns what it prints.
func (e *examples) run(name string, args ...string) string {
	e.t.Helper()
	cmd := exec.CommandContext(e.t.Context(), filepath.Join(e.dir, name), args...)
	cmd.Env = e.env
	out, err := cmd.CombinedOutput()
	assert.NoError(e.t, err, "%s: %v\n%s", name, err, out)
	return string(out)
}

// serve starts an example that is a server, and returns the server's address and log.
func (e *examples) serve(name string, env ...string) (string, *logBuffer) {
	e.t.Helper()
	address, log := freeAddress(e.t), &logBuffer{}
	cmd := exec.CommandContext(e.t.Context(), filepath.Join(e.dir, name))
	cmd.Env = append(append(e.env, env...), "LISTEN="+address)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(e.t, cmd.Start())
	e.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	testenv.Eventually(e.t, func() bool {
		resp, err := http.Get("http://" + address + "/healthz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return true
	}, name+" answers")
	return "http://" + address, log
}

func TestSDKExamples_OnTheService_DoWhatTheySay(t *testing.T) {
	builtExamples.join(t)
	in, _ := parallelService(t, 1000)
	e := examplesOf(t, in)
	assert.EqualValues(t, "charged 3, 997 left\n", e.run("errors", "acme", "3"), "errors")
	got := e.run("errors", "acme", "998")
	assert.True(t, strings.HasPrefix(got, "997 are left until "), "errors: %q", got)
	got = e.run("errors", "nobody", "1")
	assert.True(t, strings.HasPrefix(got, "the request is wrong: quotasvc: consume: tenant_not_found"), "errors: %q", got)
	got = e.run("stream", "acme")
	assert.True(t, strings.HasSuffix(got, "words \nused 6, the rest is back\n"), "stream: %q", got)
	in.acme().wantLeft(t, 991)
	got = e.run("hotpath", "acme")
	assert.True(t, strings.HasPrefix(got, "40 decisions with "), "hotpath: %q", got)
	in.acme().wantLeft(t, 951)

	server, _ := e.serve("nethttp")
	hello := visit(t, server+"/hello", "acme")
	assert.True(t, hello.status == 200 && hello.header.Get("X-Quota-Remaining") == "950",
		"nethttp: %s %v", hello, hello.header)
	assert.Equal(t, 500, visit(t, server+"/broken", "acme").status, "nethttp")
	testenv.Eventually(t, func() bool { return in.balance(t, "acme", "api_calls").Remaining == 950 }, "the broken request is refunded")
}

func TestSDKEcho_Requests_ChargedRefundedAndDenied(t *testing.T) {
	builtExamples.join(t)
	in, _ := parallelService(t, 30)
	server, _ := examplesOf(t, in).serve("echo")
	got := visit(t, server+"/hello", "acme")
	assert.True(t, got.status == 200 && string(got.body) == "hello\n" && got.header.Get("X-Quota-Remaining") == "29",
		"%s %v", got, got.header)
	got = visit(t, server+"/export/july", "acme")
	assert.True(t, got.status == 200 && got.header.Get("X-Quota-Remaining") == "19", "%s %v", got, got.header)
	assert.Equal(t, 502, visit(t, server+"/broken", "acme").status)
	testenv.Eventually(t, func() bool { return in.balance(t, "acme", "api_calls").Remaining == 19 }, "the broken request is refunded")
	assert.Equal(t, 404, visit(t, server+"/missing", "acme").status)
	in.acme().wantLeft(t, 18)
	visit(t, server+"/export/august", "acme")
	got = visit(t, server+"/export/september", "acme")
	assert.True(t, got.status == 429 && got.header.Get("Retry-After") != "" && strings.Contains(string(got.body), "quota_exceeded") && got.header.Get("Content-Type") == "application/problem+json", "%s %v", got, got.header)
	in.acme().wantLeft(t, 8)
	assert.Equal(t, http.StatusInternalServerError, visit(t, server+"/hello", "nobody").status, "an unknown tenant")
}

func TestSDKExamples_Webhook_HandlesOnceRefusesForged(t *testing.T) {
	builtExamples.join(t)
	t.Parallel()
	in := serve(t, backends(t))
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	server, log := examplesOf(t, in).serve("webhook", "QUOTASVC_WEBHOOK_SECRET="+secret)
	w := testenv.Must(t).Get(client.NewWebhook(secret))
	body := []byte(`{"type":"balance.exhausted","timestamp":"2026-11-25T01:02:03Z","data":{"meter":"api_calls"}}`)
	send := func(signature string) int {
		return fetch(t, http.DefaultClient, http.MethodPost, server+"/hooks", string(body), "webhook-id", "evt_1",
			"webhook-timestamp", strconv.FormatInt(time.Now().Unix(), 10), "webhook-signature", signature).status
	}
	for range 2 {
		assert.Equal(t, 200, send(w.Sign("evt_1", time.Now(), body)), "a delivery")
	}
	assert.Equal(t, 400, send("v1,AAAA"), "a forged delivery")
	testenv.Eventually(t, func() bool { return strings.Count(log.String(), "balance.exhausted") == 1 }, "the event is handled")
}

// visit requests a URL as a tenant.
func visit(t *testing.T, url, tenant string) answer {
	t.Helper()
	return fetch(t, http.DefaultClient, http.MethodGet, url, "", "X-Org", tenant)
}

// The page docs/integrate/go.md contains the files of its two programs unchanged, and has links to the other examples.
// The tests run all of them.
func TestSDKExamples_OnThePage_AreTheFiles(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/integrate/go.md")
	require.NoError(t, err)
	examples, blocks := 0, markedBlocks(t, "docs/integrate/go.md")
	for i := range blocks {
		name, isExample := blocks[i].marks["example"]
		if !isExample {
			continue
		}
		examples++
		text, err := os.ReadFile(filepath.Join("../../client/examples", name, "main.go"))
		assert.True(t, err == nil && string(text) == blocks[i].text,
			"the block %s differs from the example: %v", name, err)
	}
	assert.True(t, examples == 2 && strings.Contains(string(page), "examples/errors/main.go") && strings.Contains(string(page), "examples/stream/main.go"),
		"%d blocks are examples", examples)
}
