package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/deploy/postgres"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// families maps the metrics of a scrape to their labels and label values.
type families map[string]map[string]map[string]bool

var (
	typeLine   = regexp.MustCompile(`^# TYPE (\S+) (\S+)$`)
	seriesLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? \S+$`)
	labelPair  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"`)
)

// metrics returns the text of /metrics.
func (in *instance) metrics(t testing.TB) string {
	t.Helper()
	got := in.ask(t, "/metrics")
	require.Equal(t, http.StatusOK, got.status)
	return string(got.body)
}

// scrape reads /metrics. It returns _bucket, _sum and _count of a histogram as separate metrics, as queries use them.
func (in *instance) scrape(t testing.TB) families {
	t.Helper()
	all := families{}
	for line := range strings.Lines(in.metrics(t)) {
		line = strings.TrimSuffix(line, "\n")
		if typeLine.MatchString(line) || strings.HasPrefix(line, "# HELP ") {
			continue
		}
		m := seriesLine.FindStringSubmatch(line)
		require.NotNil(t, m, "not a series: %q", line)
		if all[m[1]] == nil {
			all[m[1]] = map[string]map[string]bool{}
		}
		for _, pair := range labelPair.FindAllStringSubmatch(m[2], -1) {
			if all[m[1]][pair[1]] == nil {
				all[m[1]][pair[1]] = map[string]bool{}
			}
			all[m[1]][pair[1]][pair[2]] = true
		}
	}
	return all
}

// limit stores a limit and waits until a check reports it.
func (in *instance) limit(t testing.TB, rule string, body object) {
	t.Helper()
	in.do(t, http.StatusCreated, "PUT", "/v1/limits/"+rule, "", body)
	testenv.Eventually(t, func() bool {
		got := in.do(t, http.StatusOK, "POST", "/v1/check", "", debitOf("acme", "api_calls", 1))
		type limit struct{ Rule string }
		return slices.Contains(decoded[struct{ Limits []limit }](t, got).Limits, limit{rule})
	}, "limit ", rule, " in a check")
}

// exercised returns an instance with TLS in which every event that its metrics count has occurred, for example
// denials, leases and an outage of Redis.
func exercised(t *testing.T) *instance {
	t.Helper()
	redis, authority, dir := testenv.RedisPrivate(t), testenv.NewAuthority(t), t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	authority.Issue(t, cert, key)
	database := testenv.PostgresService(t)
	in := serve(t, using(database, redis.URL, "QUOTASVC_LOG_LEVEL=warn",
		"QUOTASVC_REPORT_DATABASE_URL="+database, // not a standby, but this creates the metrics of a standby
		"QUOTASVC_TLS_CERT_FILE="+cert, "QUOTASVC_TLS_KEY_FILE="+key, "QUOTASVC_ENVOY_RLS_LISTEN=127.0.0.1:0"))
	in.http = &http.Client{Timeout: testenv.Patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority.Pool, MinVersion: tls.VersionTLS12}}}
	t.Cleanup(in.http.CloseIdleConnections)
	in.setUp(t, 1000)
	in.do(t, http.StatusCreated, "PUT", "/v1/limits/builds", "", object{"per": []string{"tenant"}, "kind": "concurrency", "burst": 2})
	in.limit(t, "scarce", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "2/h"})
	for i := range 4 { // two pass and two are denied
		_, err := in.send(t.Context(), "POST", "/v1/consume", fmt.Sprint("c", i), debitOf("acme", "api_calls", 1))
		require.NoError(t, err)
	}
	in.do(t, http.StatusOK, "POST", "/v1/debits", "d1", debitOf("acme", "api_calls", 1))
	in.do(t, http.StatusCreated, "POST", "/v1/leases", "l1", object{"rule": "builds", "tenant": "acme"})
	redis.Kill()
	in.do(t, http.StatusCreated, "POST", "/v1/leases", "l2", object{"rule": "builds", "tenant": "acme"})
	return in
}

var (
	metricUse = regexp.MustCompile(`\b([a-z_:][a-z0-9_:]*)\{([^}]*)\}`)
	selector  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
	grouping  = regexp.MustCompile(`\bby \(([^)]*)\)`)

	// notNames matches the parts of a query that contain no names of metrics: strings, ranges and lists of labels.
	notNames = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\[[^\]]*\]|\b(?:by|on|without|ignoring|group_left|group_right)\s*\([^)]*\)`)
	inBraces = regexp.MustCompile(`\{[^}]*\}`)
	word     = regexp.MustCompile(`[a-zA-Z0-9_:.$]+(\s*\()?`)

	// ofVariable matches the query of a dashboard's variable.
	ofVariable = regexp.MustCompile(`^label_values\((.*), ([a-z_]+)\)$`)
)

var (
	// ofPrometheus lists labels that Prometheus adds or uses itself.
	ofPrometheus = []string{"instance", "job", "le"}

	// operators lists the words of a query that are neither functions nor metrics.
	operators = []string{"and", "or", "unless", "offset", "bool"}

	// elsewhere maps metrics that the service does not have to the reason why a query may use them.
	elsewhere = map[string]string{"up": "Prometheus writes it for each target"}
)

// namesIn returns the names of the metrics in a query.
func namesIn(query string) []string {
	var names []string
	for _, m := range word.FindAllStringSubmatch(inBraces.ReplaceAllString(notNames.ReplaceAllString(query, " "), " "), -1) {
		isNumber := m[0][0] >= '0' && m[0][0] <= '9' // also true for a duration
		if m[1] == "" && !isNumber && !slices.Contains(operators, m[0]) {
			names = append(names, m[0])
		}
	}
	return names
}

// checkQuery checks that the metrics of a query exist, and that they have the labels by which the query selects and
// groups. It returns the number of metrics.
func checkQuery(t *testing.T, where, query string, all families) int {
	t.Helper()
	names, labels := namesIn(query), map[string]bool{}
	assert.NotEmpty(t, names, "%s: no metric in %s", where, query)
	for _, name := range names {
		assert.False(t, all[name] == nil && elsewhere[name] == "", "%s: there is no metric %s", where, name)
		for label := range all[name] {
			labels[label] = true
		}
	}
	for _, use := range metricUse.FindAllStringSubmatch(query, -1) {
		for _, s := range selector.FindAllStringSubmatch(use[2], -1) {
			assert.False(t, all[use[1]][s[1]] == nil && !slices.Contains(ofPrometheus, s[1]),
				"%s: %s has no label %s; it has %v", where, use[1], s[1], slices.Sorted(maps.Keys(all[use[1]])))
		}
	}
	for _, by := range grouping.FindAllStringSubmatch(query, -1) {
		for _, label := range strings.Split(by[1], ",") {
			label = strings.TrimSpace(label)
			assert.True(t, labels[label] || slices.Contains(ofPrometheus, label),
				"%s: %s is grouped by, and is no label of it", where, label)
		}
	}
	return len(names)
}

func TestQueries_NamesInThem_Found(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`sum by (rule) (rate(a_total{outcome=~"deny|never"}[5m])) / 2 > 0.05 and sum(b) > 1e3`: "a_total b",
		`time() - (max(a{x="b{c}"}) > 0) > 4 * 3600`:                                           "a",
		`a * 1000 and on (instance, job) b unless c offset 5m`:                                 "a b c",
		`histogram_quantile(0.99, sum by (le) (rate(a_bucket[$__rate_interval])))`:             "a_bucket",
		`vector(1)`: "",
	} {
		assert.Equal(t, want, strings.Join(namesIn(query), " "), query)
	}
}

// Each metric that an alert, the dashboard or the guide names must exist: an alert on a missing metric never fires.
func TestMetrics_AlertsDashboardGuide_NameExistingMetrics(t *testing.T) {
	t.Parallel()
	all := exercised(t).scrape(t)

	rules := testenv.Must(t).Get(os.ReadFile("../../deploy/prometheus/alerts.yml"))
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	require.NoError(t, yaml.Unmarshal(rules, &file))
	uses := 0
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			uses += checkQuery(t, rule.Alert, rule.Expr, all)
		}
	}
	assert.True(t, uses >= 20, "only %d metrics in the alert rules", uses)
	checkDashboard(t, all)
	pages := testenv.Must(t).Get(filepath.Glob("../../docs/operations/*.md"))
	assert.NotEmpty(t, pages)
	for _, page := range pages {
		guide := testenv.Must(t).Get(os.ReadFile(page))
		for _, name := range regexp.MustCompile("`(quotasvc_[a-z0-9_]+)(?:\\{[^}]*\\})?`").FindAllStringSubmatch(string(guide), -1) {
			if slices.Contains([]string{postgres.OwnerRole, postgres.ServiceRole, postgres.ReaderRole}, name[1]) {
				continue
			}
			assert.False(t, all[name[1]] == nil && all[name[1]+"_bucket"] == nil, "%s: there is no metric %s", page, name[1])
		}
	}
}

// checkDashboard checks all queries of the dashboard: those of panels, variables and annotations.
func checkDashboard(t *testing.T, all families) {
	t.Helper()
	text := testenv.Must(t).Get(os.ReadFile("../../deploy/grafana/quotasvc.json"))
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Annotations struct{ List []struct{ Name, Expr string } }
		Templating  struct {
			List []struct {
				Name, Type string
				Query      json.RawMessage
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	queries := 0
	for _, p := range dashboard.Panels {
		for _, target := range p.Targets {
			queries++
			checkQuery(t, "panel "+p.Title, target.Expr, all)
		}
	}
	for _, a := range dashboard.Annotations.List {
		queries++
		checkQuery(t, "annotation "+a.Name, a.Expr, all)
	}
	for _, v := range dashboard.Templating.List {
		var query struct{ Query string }
		if v.Type != "query" {
			continue
		}
		require.NoError(t, json.Unmarshal(v.Query, &query), v.Name)
		m := ofVariable.FindStringSubmatch(query.Query)
		require.NotNil(t, m, "variable %s: %s", v.Name, query.Query)
		queries++
		checkQuery(t, "variable "+v.Name, m[1]+`{`+m[2]+`=""}`, all)
	}
	assert.True(t, queries >= 45, "only %d queries in the dashboard", queries)
}

// The dashboard finds tenants by a query of the database's tables, because tenants are not labels of metrics.
func TestDashboard_SQL_TenantsNearExhaustion(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/grafana/quotasvc.json")
	require.NoError(t, err)
	var dashboard struct {
		Panels []struct{ Options struct{ Content string } }
	}
	require.NoError(t, json.Unmarshal(text, &dashboard))
	var query string
	for _, p := range dashboard.Panels {
		if _, rest, ok := strings.Cut(p.Options.Content, "```sql\n"); ok {
			query, _, _ = strings.Cut(rest, ";")
		}
	}
	database := testenv.Postgres(t)
	in := serve(t, using(testenv.AsService(database), testenv.RedisURL(t))).setUp(t, 1000)
	db := testenv.Connect(t, database)
	testenv.Exec(t, db, "SET ROLE "+postgres.ReaderRole)
	for i, want := range []int64{-1, 200} { // no row after 700 units; after 800 of 1000 units, 200 remain
		in.do(t, http.StatusOK, "POST", "/v1/debits", fmt.Sprint("d", i), debitOf("acme", "api_calls", []int64{700, 100}[i]))
		got := int64(-1)
		rows, err := db.Query(t.Context(), query)
		require.NoError(t, err)
		for rows.Next() {
			var tenant, meter string
			var used int64
			var end any
			err = rows.Scan(&tenant, &meter, &used, &got, &end)
			assert.True(t, err == nil && tenant == "acme" && meter == "api_calls", "%s, %s, %v", tenant, meter, err)
		}
		assert.True(t, rows.Err() == nil && got == want, "%d remain, want %d: %v", got, want, rows.Err())
	}
}

// mark is part of every hostile value that the test below sends.
const mark = "zq7"

// A series for each tenant, subject or path would let a client use up the memory of the service.
func TestMetrics_ClientText_NeverALabel(t *testing.T) {
	in, _ := parallelService(t, 1000)
	in.limit(t, "per-tenant", object{"per": []string{"tenant"}, "kind": "token_bucket", "rate": "1000/s"})
	for rule, body := range map[string]object{
		"per-subject": {"per": []string{"subject", "route", "ip"}, "kind": "sliding_window", "rate": "1/h"},
		"builds":      {"per": []string{"subject"}, "kind": "concurrency", "burst": 1},
	} {
		in.do(t, http.StatusCreated, "PUT", "/v1/limits/"+rule, "", body)
	}
	series := func() (n int) {
		for name, labels := range in.scrape(t) {
			for label, values := range labels {
				n += len(values)
				for value := range values {
					assert.NotContains(t, strings.ToLower(value), mark, "%s{%s=%q}", name, label, value)
				}
			}
		}
		return n
	}
	hostile := func(i int) {
		strange := []string{
			mark, mark + "{a}", mark + "\n", mark + "\"} 1\nevil 1", "é" + mark, mark + strings.Repeat("x", 1<<16), "\x00" + mark, "..%2f" + mark,
			mark + strings.Repeat("é", 100), `"` + mark, mark + "\\", "a-" + mark + fmt.Sprint(i), fmt.Sprint("sub.", mark, ":", i),
		}
		for _, s := range strange {
			body := object{"tenant": s, "items": []object{{"meter": s, "amount": 1}}, "subject": s, "route": s, "ip": s, "rule": s}
			known := object{"tenant": "acme", "items": []object{{"meter": "api_calls", "amount": 1}}, "subject": s, "route": "/" + s, "ip": "2001:db8::1"}
			for _, send := range []struct {
				method, path, key string
				body              object
			}{
				{"POST", "/v1/check", "", body},
				{"POST", "/v1/consume", s, body},
				{"POST", "/v1/check", "", known},
				{"POST", "/v1/consume", fmt.Sprint("k", len(s), i), known},
				{"POST", "/v1/" + mark + fmt.Sprint(i), "", body},
				{"POST", "/v1/leases", "", object{"rule": mark, "tenant": "acme"}},
				{"POST", "/v1/leases", "", object{"rule": "builds", "tenant": "acme", "subject": s}},
				{"DELETE", "/v1/leases/" + mark + fmt.Sprint(i), "", nil},
				{"GET", "/v1/tenants/" + mark + fmt.Sprint(i) + "/balances", "", nil},
				{strings.ToUpper(mark), "/v1/check", "", nil},
			} {
				_, _ = in.send(t.Context(), send.method, send.path, send.key, send.body) // a request that cannot be sent creates no label
			}
		}
	}
	hostile(0)
	before := series()
	for i := range 5 {
		hostile(i + 1)
	}
	assert.LessOrEqual(t, series(), before+before/5,
		"label values after five more rounds of hostile requests, %d after the first", before)
}
