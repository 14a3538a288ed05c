package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// protected returns a location of nginx that asks quotasvc. more are its own directives.
func protected(path, mode, more string) string {
	return fmt.Sprintf(`location %s {
        set $quota_tenant acme;
        set $quota_meter  api_calls;
        set $quota_mode   %q;
        auth_request /quotasvc/closed;
        include quotasvc-protect.conf;
        %s
    }
    `, path, mode, more)
}

// nginx runs auth_request again after an internal redirect, with the same request id. A request is charged once by each
// limit, whatever the limit counts.
func TestNginx_InternalRedirects_ChargedOnce(t *testing.T) {
	t.Parallel()
	m := newMetered(t)
	root := t.TempDir()
	require.NoError(t, os.Chmod(filepath.Dir(root), 0o755))
	for _, name := range []string{"static/index.html", "limited/index.html", "static/404.html"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(name), 0o600))
	}
	files := fmt.Sprintf("root %s; index index.html;", root)
	locations := protected("/static/", "", files) + protected("/limited/", "limit", files) +
		protected("/try/", "", files+" try_files $uri /static/index.html;") +
		protected("/pages/", "", files+" error_page 404 /static/404.html;") +
		protected("/again/", "limit", files+" error_page 404 = /search;") +
		protected("/rewritten/", "", "rewrite ^ /search last;")
	g := m.nginx(t, m.key, "    # These paths are not metered.", locations+"# These paths are not metered.",
		"set $quota_route  /search;", "set $quota_route  /search;\n        set $quota_mode limit;")

	for _, counts := range []string{"successes", "attempts"} {
		m.limit(t, counts, object{
			"per": []string{"tenant"}, "kind": "token_bucket", "rate": "1000/day", "counts": counts,
		})
	}
	tokens := func() [2]string {
		state := func(rule string) string {
			return string(m.do(t, 200, "GET", "/v1/limits/"+rule+"/state?tenant=acme", "", nil).body)
		}
		return [2]string{state("successes"), state("attempts")}
	}
	units := int64(1000)
	for n, c := range []struct {
		path   string
		status int
		units  int64
	}{
		{"/static/", 200, 1},
		{"/static/index.html", 200, 1},
		{"/limited/", 200, 0},
		{"/try/none", 200, 1},
		{"/pages/missing", 404, 1},
		{"/rewritten/x", 200, 0},
		{"/again/missing", 200, 0},
	} {
		for i := range 3 {
			got := g.get("127.0.0.1", c.path)
			require.Equal(t, c.status, got.status, "%s: %s", c.path, got)
			units -= c.units
			for _, state := range tokens() {
				assert.Contains(t, state, fmt.Sprintf(`"remaining":%d,`, 1000-(3*n+i+1)), "%s, %d", c.path, i)
			}
		}
		m.acme().wantLeft(t, units)
	}

	// The application behind the second location can refund what the first one charged.
	seen, _ := m.app.last()
	charge := object{"charge_id": seen.Header.Get("X-Quota-Charge")}
	back := m.do(t, 200, "POST", "/v1/limits/charge/refund", "", charge)
	assert.Contains(t, string(back.body), `"refunded":true`)
}
