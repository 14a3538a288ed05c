package httpapi

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/access/link"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/gate/balances"
	"github.com/quotasvc/quotasvc/internal/gate/provision"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/ledger/verifier"
	"github.com/quotasvc/quotasvc/internal/notify/webhooks"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
	"github.com/quotasvc/quotasvc/internal/report/denial"
	"github.com/quotasvc/quotasvc/internal/report/status"
	"github.com/quotasvc/quotasvc/internal/report/testclock"
	"github.com/quotasvc/quotasvc/internal/serve/transport"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
	"github.com/quotasvc/quotasvc/internal/store/pgstore"
)

const testKey = "0123456789abcdef0123456789abcdef"

// service is a complete instance with its own database and without Redis. Clients reach it through real listeners.
type service struct {
	t           testing.TB
	server      *Server
	pool        *pgxpool.Pool // for tests that read the tables
	verifier    *verifier.Verifier
	keys        *access.Directory
	overrides   *override.Cache
	denials     *denial.Recorder // not started: the test calls its Flush
	url, ops    string
	client      *http.Client
	log         *testenv.Log
	measured    *prometheus.Registry // the limiter's metrics
	testClock   *testclock.Clock
	provisioner *provision.Provisioner
	webhooks    *webhooks.Service
	links       *link.Store
	owner       bool // the role of the service owns the tables, as in dev
}

func newService(t testing.TB, change ...func(*Config)) *service {
	t.Helper()
	return newServiceOn(t, testenv.Postgres(t), change...)
}

func newServiceOn(t testing.TB, databaseURL string, change ...func(*Config)) *service {
	t.Helper()
	s := &service{t: t}
	g, l, c := s.below(databaseURL)
	s.serve(g, l, c, change)
	return s
}

// newHandlerService returns a server without backends. Its tests send requests that are answered before a backend is
// used.
func newHandlerService(t testing.TB, change ...func(*Config)) *service {
	t.Helper()
	s := &service{t: t}
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@127.0.0.1:1/none") // connects at the first use
	s.check(err)
	s.onStop("pool", func(context.Context) error { pool.Close(); return nil })
	db := pgstore.New(pool, pgstore.Config{})
	store := catalog.NewStore(db, catalog.StoreConfig{})
	s.serve(nil, nil, catalog.New(store, catalog.Config{}), change)
	return s
}

func (s *service) serve(g *gate.Gate, l *pg.Ledger, c *catalog.Catalog, change []func(*Config)) {
	s.t.Helper()
	s.log, s.client = &testenv.Log{}, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: testenv.Patience}
	if s.keys == nil {
		s.keys = bootstrapOnly(s.t)
	}
	cfg := Config{Keys: s.keys, Log: slog.New(slog.NewJSONHandler(s.log, nil)), Registry: prometheus.NewRegistry(), Verifier: s.verifier, Webhooks: s.webhooks, Links: s.links, TestClock: s.testClock}
	cfg.RequestTimeout = testenv.Patience // slow machines need more time than the default, which other tests cover
	if l == nil {
		cfg.TestClock = testclock.New(nil, nil, pg.NewClock(0, cfg.Log))
	}
	for _, f := range change {
		f(&cfg)
	}
	var h *history.Reader
	var err error
	if l != nil {
		h, err = history.Open(s.t.Context(), l, history.Config{DatabaseURL: l.Readers().Config().ConnString(), Metrics: prometheus.NewRegistry()})
		s.check(err)
		s.onStop("history", h.Stop)
	}
	if s.overrides != nil {
		cfg.Overrides = s.overrides.Store
	}
	if cfg.Status == nil && l != nil {
		cfg.Status = status.New(status.Config{Reports: h, Clock: l, Counted: cfg.Registry, Faults: func() []status.Fault { return nil }, Log: cfg.Log})
	}
	s.server, err = New(g, l, h, c, cfg)
	s.check(err)
	connections := transport.New(transport.Config{
		Ops: promhttp.HandlerFor(cfg.Registry, promhttp.HandlerOpts{}), RequestTimeout: s.server.cfg.RequestTimeout, ConnectionsMax: 1000, Log: cfg.Log,
		Metrics: prometheus.NewRegistry(),
	})
	api, ops := s.listen(), s.listen()
	s.url, s.ops = "http://"+api.Addr().String(), "http://"+ops.Addr().String()
	connections.ServeOps(ops)
	connections.ServeAPI(s.server.Handler(), api)
	s.onStop("http", connections.Shutdown)
	s.t.Cleanup(s.client.CloseIdleConnections)
}

// bootstrapOnly returns a directory that knows only the key of the tests.
func bootstrapOnly(t testing.TB) *access.Directory {
	t.Helper()
	d, err := access.NewDirectory(nil, testKey, access.Config{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	return d
}

// bare sends a request to a route that a test has added, which is not in the contract.
func (s *service) bare(path string) *answer {
	s.t.Helper()
	return s.exchange(s.request("POST", path, nil))
}

// below starts the parts that the API calls.
func (s *service) below(databaseURL string) (*gate.Gate, *pg.Ledger, *catalog.Catalog) {
	s.t.Helper()
	s.measured = prometheus.NewRegistry()
	s.pool = s.connect(databaseURL) // the tests' role has more rights than the service's role
	s.check(testclock.Install(s.t.Context(), databaseURL, 0))
	_, err := s.pool.Exec(s.t.Context(), "GRANT SELECT, UPDATE ON test_clock TO PUBLIC") // dev has only one role
	s.check(err)
	if !s.owner {
		databaseURL = testenv.AsService(databaseURL)
	}
	agreed := pg.NewClock(0, slog.New(slog.DiscardHandler))
	limiter := ratelimit.New(nil, ratelimit.Config{Metrics: ratelimit.NewMetrics(s.measured)})
	s.onStop("limiter", limiter.Stop)
	cache := balances.New(nil, balances.Config{Clock: agreed})
	cache.Start()
	s.onStop("cache", cache.Stop)
	pool := s.connect(databaseURL)
	db := pgstore.New(pool, pgstore.Config{
		Target: namedsql.Target(testenv.OnCitus()), Clock: agreed, Timeout: testenv.Patience,
	})
	store := catalog.NewStore(db, catalog.StoreConfig{CheckLimit: gate.CheckLimit, CheckRules: gate.CheckRules})
	keyStore := access.NewStore(db)
	s.keys, err = access.NewDirectory(keyStore, testKey, access.Config{Log: slog.New(slog.DiscardHandler), RereadEvery: time.Hour, UnknownWait: testenv.Patience})
	s.check(err)
	c := catalog.New(store, catalog.Config{OnReset: limiter.ForgetBucket, OnKeys: s.keys.Changed, ReloadEvery: time.Hour, Heartbeat: testenv.Patience, LoadTimeout: testenv.Patience})
	s.check(c.Start(s.t.Context()))
	s.onStop("catalogue", c.Stop)
	s.check(s.keys.Start(s.t.Context()))
	s.onStop("keys", s.keys.Stop)
	l, err := pg.Open(s.t.Context(), pg.Config{
		DatabaseURL: databaseURL, Readers: 2, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), AnswerBudget: testenv.Patience, OnCommit: cache.Publish, Clock: agreed,
	})
	s.check(err)
	s.testClock = testclock.New(db, l, agreed)
	s.check(l.Start(s.t.Context()))
	s.onStop("ledger", l.Stop)
	s.verifier = s.openVerifier(databaseURL)
	overrides := override.NewStore(store, gate.CheckLimit)
	s.overrides = override.NewCache(overrides, override.Config{LoadTimeout: testenv.Patience})
	s.onStop("overrides", s.overrides.Stop)
	s.denials, err = denial.Open(s.t.Context(), denial.Config{
		DatabaseURL: databaseURL, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Clock: l,
	})
	s.check(err)
	s.onStop("denials", s.denials.Stop)
	s.provisioner = provision.New(c, provision.Config{Plan: "signup", PerSecond: newcomersPerSecond, Clock: l}) // creates no tenants if the plan does not exist
	s.links = link.NewStore(db, access.NewStrangers([]byte("key of tests")), func(ctx context.Context, tenant string) error {
		_, err := store.Tenant(ctx, tenant)
		return err
	})
	s.webhooks, err = webhooks.New(webhooks.Config{Pool: pool, DB: db, AllowPrivate: true, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	s.check(err)
	return gate.New(l, c, limiter, cache, gate.Config{Overrides: s.overrides, Provisioner: s.provisioner, Denials: s.denials, IDKey: []byte("key of tests"), LoadBudget: testenv.Patience}), l, c
}

func (s *service) openVerifier(databaseURL string) *verifier.Verifier {
	s.t.Helper()
	v, err := verifier.Open(s.t.Context(), verifier.Config{Target: namedsql.Target(testenv.OnCitus()), DatabaseURL: databaseURL, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry()})
	s.check(err)
	s.onStop("verifier", v.Stop)
	return v
}

// connect returns connections that are closed when the test ends.
func (s *service) connect(databaseURL string) *pgxpool.Pool {
	s.t.Helper()
	pool, err := pgxpool.New(s.t.Context(), databaseURL)
	s.check(err)
	s.onStop("pool", func(context.Context) error { pool.Close(); return nil })
	return pool
}

func (s *service) listen() net.Listener {
	s.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(s.t.Context(), "tcp", "127.0.0.1:0")
	s.check(err)
	return l
}

func (s *service) check(err error) {
	s.t.Helper()
	require.NoError(s.t, err)
}

func (s *service) onStop(what string, stop func(context.Context) error) {
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
		defer cancel()
		assert.NoError(s.t, stop(ctx), "stop %s", what)
	})
}

// answer is the answer to a request.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte
	closed bool // the server closes the connection after the answer
}

// call sends a request and checks the answer against the contract. extra alternates the names and values of headers.
// A name without a value removes the header.
func (s *service) call(method, path, body string, extra ...string) *answer {
	s.t.Helper()
	return s.do(s.request(method, path, strings.NewReader(body), extra...))
}

func (s *service) request(method, path string, body io.Reader, extra ...string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, body)
	s.check(err)
	r.Header.Set("Authorization", "Bearer "+testKey)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(extra); i += 2 {
		r.Header.Del(extra[i])
		if i+1 < len(extra) {
			r.Header[extra[i]] = []string{extra[i+1]}
		}
	}
	return r
}

// exchange sends a request and returns the answer unchecked.
func (s *service) exchange(r *http.Request) *answer {
	s.t.Helper()
	response, err := s.client.Do(r)
	s.check(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s.check(err)
	return &answer{t: s.t, status: response.StatusCode, header: response.Header, body: body, closed: response.Close}
}

func (s *service) do(r *http.Request) *answer {
	s.t.Helper()
	a := s.exchange(r)
	if a.status >= http.StatusInternalServerError {
		id := a.header.Get(headerRequestID)
		s.eventually("the access line", func() bool { return s.log.With(id) != "" })
		s.t.Log(s.log.With(id))
	}
	err := conforms(r, a)
	assert.NoError(s.t, err, "%s %s: the answer is not in the contract: %v\n%s", r.Method, r.URL, err, a.body)
	return a
}

// limit returns the name, r and t of the limit in the RateLimit header. It fails the test unless the header has
// exactly one limit, and this has r and t.
func (a *answer) limit() (rule string, left, wait int64) {
	a.t.Helper()
	field := a.header.Get("RateLimit")
	n, err := fmt.Sscanf(field, "%q;r=%d;t=%d", &rule, &left, &wait)
	require.True(a.t, n == 3 && !strings.Contains(field, ","), "RateLimit: %s: %v", field, err)
	return rule, left, wait
}

// want fails the test unless the status is one of statuses. It returns the answer.
func (a *answer) want(statuses ...int) *answer {
	a.t.Helper()
	for _, status := range statuses {
		if a.status == status {
			return a
		}
	}
	a.t.Fatalf("status %d, want %d: %s", a.status, statuses, a.body)
	return nil
}

// problem fails the test unless the answer is a problem with this status and code.
func (a *answer) problem(status int, code string) client.Problem {
	a.t.Helper()
	p := decoded[client.Problem](a)
	require.True(a.t, a.status == status && string(p.Code) == code && p.Status == status &&
		a.header.Get("Content-Type") == typeProblem, "%d %s, want %d %s: %s", a.status, p.Code, status, code, a.body)
	require.True(a.t, p.RequestID == a.header.Get(headerRequestID) && p.Title != "" && p.Detail != "",
		"request id %q, body %s", a.header.Get(headerRequestID), a.body)
	retry := a.header.Get(headerRetryAfter)
	require.True(a.t, (retry != "") == (status == 429 || status == 503), "Retry-After %q with %d", retry, status)
	return p
}

// refused fails the test unless the answer is a 400 that names field.
func (a *answer) refused(field string) {
	a.t.Helper()
	p := a.problem(http.StatusBadRequest, "invalid_argument")
	for i, f := range p.Errors {
		assert.False(a.t, i == 0 && !strings.HasPrefix(p.Detail, f.Field+" "),
			"who reads the detail alone does not learn which field it is about: %s", a.body)
		if f.Field == field {
			return
		}
	}
	a.t.Errorf("no fault names %q: %s", field, a.body)
}

func (a *answer) into(v any) {
	a.t.Helper()
	require.NoError(a.t, json.Unmarshal(a.body, v, json.RejectUnknownMembers(true)), "%d %s", a.status, a.body)
}

// decoded returns the body of an answer.
func decoded[T any](a *answer) (v T) {
	a.t.Helper()
	a.into(&v)
	return v
}

// pages returns the items on all pages of a list. A page has at most `limit` items, or the default number if `limit`
// is 0. `path` ends with "?" or "&".
func pages[T any](s *service, path string, limit int) (all []T) {
	s.t.Helper()
	if limit > 0 {
		path += fmt.Sprintf("limit=%d", limit)
	}
	cursor := ""
	for range 1000 {
		page := decoded[pageOf[T]](s.call("GET", path+cursor, "").want(200))
		assert.True(s.t, limit == 0 || len(page.Items) <= limit, "%s: %d items", path, len(page.Items))
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all
		}
		cursor = "&cursor=" + url.QueryEscape(*page.NextCursor)
	}
	s.t.Fatal("the list does not end")
	return nil
}

// number returns the integer in a header.
func (a *answer) number(header string) int64 {
	a.t.Helper()
	n, ok := body.ParseInteger(a.header.Get(header))
	require.True(a.t, ok, "%s is %q: %d %s", header, a.header.Get(header), a.status, a.body)
	return n
}

// catalogue creates the meters calls and credits, plan basic with 10 calls a year, and tenant acme on this plan.
func (s *service) catalogue() *service {
	s.t.Helper()
	for _, meter := range []string{"calls", "credits", "other"} {
		s.call("PUT", "/v1/meters/"+meter, `{"unit":"unit"}`).want(201)
	}
	s.call("PUT", "/v1/plans/basic", `{"allowances":[{"meter":"calls","amount":10,"every":"year","anchor":"calendar"},
		{"meter":"credits","amount":0,"every":"once","anchor":"calendar"}]}`).want(201)
	s.tenant("acme")
	return s
}

func (s *service) tenant(id string) {
	s.t.Helper()
	s.call("PUT", "/v1/tenants/"+id, `{"plan":"basic"}`).want(201)
}

// debit sends a debit of one item.
func (s *service) debit(key, tenant, meter string, amount int64) *answer {
	s.t.Helper()
	return s.call("POST", "/v1/debits", demandOf(tenant, meter, amount), headerIdempotencyKey, key)
}

func demandOf(tenant, meter string, amount int64) string {
	return fmt.Sprintf(`{"tenant":%q,"items":[{"meter":%q,"amount":%d}]}`, tenant, meter, amount)
}

// remaining returns the remaining units of a balance, as GET of the balance shows them.
func (s *service) remaining(tenant, meter string) int64 {
	s.t.Helper()
	b := decoded[client.Balance](s.call("GET", "/v1/tenants/"+tenant+"/balances/"+meter, "").want(200))
	return b.Remaining
}

// state returns counts and checksums of the stored data. Tests compare two states to notice a change.
func (s *service) state() string {
	s.t.Helper()
	var out string
	s.check(s.pool.QueryRow(s.t.Context(), `
		SELECT concat_ws(' ', (SELECT count(*) FROM entries), (SELECT coalesce(sum(used), 0) FROM balances), (SELECT count(*) FROM grants),
			(SELECT count(*) FROM meters), (SELECT count(*) FROM plans), (SELECT count(*) FROM limits), (SELECT count(*) FROM rolls),
			(SELECT count(*) FROM verifications), (SELECT count(*) FROM blocks),
			(SELECT count(*) FROM keys), (SELECT count(*) FROM key_secrets), (SELECT count(revoked_at) FROM keys),
			(SELECT md5(string_agg(w::text, ',' ORDER BY webhook_id)) FROM webhooks w), (SELECT count(*) FROM webhook_secrets),
			(SELECT md5(string_agg(t::text, ',' ORDER BY tenant_id)) FROM tenants t), (SELECT count(*) FROM tenant_terms))`).Scan(&out))
	return out
}

// eventually waits until ok returns true. It is for changes that happen without a request.
func (s *service) eventually(what string, ok func() bool) {
	s.t.Helper()
	testenv.Eventually(s.t, ok, what)
}

// restOfPath is the path parameter that may contain slashes, which OpenAPI cannot express.
const restOfPath = "{path}"

// anyMethod reports whether an operation accepts all methods. The contract lists such an operation as GET.
func anyMethod(op *openapi3.Operation) bool { return op.Extensions["x-any-method"] == true }

// operationOf finds the operation of the contract for a request, by the escaped path.
func operationOf(method string, u *url.URL) (template string, item *openapi3.PathItem, op *openapi3.Operation) {
	segments := strings.Split(u.EscapedPath(), "/")
	for _, exact := range []bool{true, false} { // an exact path precedes a template of the same length
		for template, item := range contract().Paths.Map() {
			parts := strings.Split(template, "/")
			whole := parts[len(parts)-1] == restOfPath && len(segments) >= len(parts)
			match := (whole || len(parts) == len(segments)) && exact == !strings.Contains(template, "{")
			for i := 0; match && i < len(parts); i++ {
				match = parts[i] == segments[i] || strings.HasPrefix(parts[i], "{") && segments[i] != "" || parts[i] == restOfPath
			}
			op := item.GetOperation(method)
			if item.Get != nil && anyMethod(item.Get) {
				op = item.Get
			}
			if match && op != nil {
				return template, item, op
			}
		}
	}
	return "", nil, nil
}

// conforms checks an answer against the contract. A request that matches no operation must get a problem.
func conforms(r *http.Request, a *answer) error {
	method := r.Method
	if method == http.MethodHead { // HEAD is answered on every path that has GET
		method = http.MethodGet
	}
	template, _, op := operationOf(method, r.URL)
	if op == nil && strings.HasPrefix(r.URL.Path, "/docs") {
		return nil // HTML pages are not in the contract
	}
	if op == nil {
		if a.status != 404 && a.status != 405 || a.header.Get("Content-Type") != typeProblem {
			return fmt.Errorf("%d %s for what is not in it", a.status, a.header.Get("Content-Type"))
		}
		return nil
	}
	if anyMethod(op) {
		method = http.MethodGet
	}
	where, err := conformsHead(template, method, op, a)
	if err != nil || r.Method == http.MethodHead || op.OperationID == "getSpec" {
		return err
	}
	return conformsBody(where, a)
}
