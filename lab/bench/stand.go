package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
	"github.com/quotasvc/quotasvc/lab/program"
)

const (
	startTimeout = time.Minute      // for the start of a server or the run of a tool
	stopTimeout  = 20 * time.Second // for stopping all servers and processes
)

// serverSettings returns PostgreSQL's settings, which are the same for every variant. The data fits into memory and no
// checkpoint occurs during a run, so that rounds can be compared. The settings of durability are PostgreSQL's defaults.
func serverSettings() map[string]string {
	return map[string]string{
		"shared_buffers": "512MB", "max_wal_size": "8GB", "checkpoint_timeout": "30min", "max_connections": "200",
	}
}

// adminKey is the bootstrap key of the services of a run.
const adminKey = "bench-0123456789abcdef0123456789abcdef"

// stand contains the servers and processes of a run, and their addresses.
type stand struct {
	cfg      Config
	postgres *localstack.Postgres
	redis    *localstack.Redis
	settings map[string]string // settings of PostgreSQL that replace those of serverSettings
	bare     bool              // true: only the field settings applies, and serverSettings does not
	children []*program.Process
	service  *site
	before   *site // the service of Config.Against; nil if Against is empty
	baseline *program.Process
	baseAt   string // host:port of the baseline
	db       *pgx.Conn
}

// site is a running process of the service with its database and Redis.
type site struct {
	exe         string
	databaseURL string
	redisURL    string
	child       *program.Process
	api, ops    string // host:port
}

// build starts all servers and processes on new data in dir.
func build(ctx context.Context, cfg Config, dir string, conns int) (_ *stand, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := &stand{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if err = s.startServers(ctx, dir); err != nil {
		return nil, err
	}
	if s.service, err = s.open(ctx, cfg.Exe, s.postgres.URL(), s.redis.URL()); err != nil {
		return nil, err
	}
	if cfg.Against != "" {
		if s.before, err = s.openBefore(ctx); err != nil {
			return nil, err
		}
	}
	return s, s.startBaseline(ctx, s.postgres.URL(), conns)
}

// startBaseline starts the baseline's process. The process opens `conns` connections to a database.
func (s *stand) startBaseline(ctx context.Context, databaseURL string, conns int) (err error) {
	if s.baseline, err = s.launch(s.cfg.Self, []string{"QUOTASVC_DATABASE_URL=" + databaseURL}, "baseline", "--conns", fmt.Sprint(conns)); err != nil {
		return err
	}
	s.baseAt, err = s.baseline.Address(ctx, "baseline ")
	return err
}

// startServers starts Redis and PostgreSQL on new data in dir and connects to PostgreSQL.
func (s *stand) startServers(ctx context.Context, dir string) (err error) {
	if s.redis, err = localstack.StartRedis(ctx, localstack.RedisConfig{Dir: filepath.Join(dir, "redis"), Extra: []string{"tracking-table-max-keys 0"}}); err != nil {
		return err
	}
	settings := map[string]string{}
	if !s.bare {
		settings = serverSettings()
	}
	maps.Copy(settings, s.settings)
	s.postgres, err = localstack.StartPostgres(ctx, localstack.PostgresConfig{
		Dir: filepath.Join(dir, "postgres"), Durable: true, Extra: settings,
	})
	if err != nil {
		return err
	}
	s.db, err = connect(ctx, s.postgres.URL())
	return err
}

// openBefore starts the binary of Config.Against with a separate database on the same servers.
func (s *stand) openBefore(ctx context.Context) (*site, error) {
	const name = "before"
	if _, err := s.db.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, fmt.Errorf("create database: %w", err)
	}
	database, err := url.Parse(s.postgres.URL())
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	store, err := url.Parse(s.redis.URL())
	if err != nil {
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	database.Path, store.Path = "/"+name, "/1"
	return s.open(ctx, s.cfg.Against, database.String(), store.String())
}

// open migrates and seeds a database and starts a service on it.
func (s *stand) open(ctx context.Context, exe, databaseURL, redisURL string) (*site, error) {
	at := &site{exe: exe, databaseURL: databaseURL, redisURL: redisURL}
	if err := s.tool(ctx, at, "migrate", "up"); err != nil {
		return nil, err
	}
	db, err := connect(ctx, databaseURL)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close(ctx) }() // the seed is committed
	seed := baselineSQL + strings.NewReplacer("$TENANTS", fmt.Sprint(s.cfg.Tenants), "$TOLD", fmt.Sprint(thresholdTenants)).Replace(seedSQL)
	if _, err := db.Exec(ctx, seed, pgx.QueryExecModeSimpleProtocol); err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	if err := s.serve(ctx, at); err != nil {
		return nil, err
	}
	return at, putLimits(func(path, body string) error { return putJSON(ctx, at.api, adminKey, path, body) })
}

// serve starts the service of a site and waits until it answers.
func (s *stand) serve(ctx context.Context, at *site, env ...string) (err error) {
	if at.child, err = s.launch(at.exe, append(s.env(at), env...), "serve"); err != nil {
		return err
	}
	if at.api, err = at.child.Address(ctx, "API http://"); err != nil {
		return err
	}
	at.ops, err = at.child.Address(ctx, "ops http://")
	return err
}

// restart replaces the process of a site.
func (s *stand) restart(ctx context.Context, at *site) error {
	if err := s.end(ctx, at); err != nil {
		return err
	}
	return s.serve(ctx, at)
}

// end stops the process of a site.
func (s *stand) end(ctx context.Context, at *site) error {
	s.children = slices.DeleteFunc(s.children, func(c *program.Process) bool { return c == at.child })
	if err := at.child.Stop(ctx); err != nil {
		return fmt.Errorf("stop the service: %w", err)
	}
	return nil
}

// env returns the environment of the site's processes. Access lines are off, because a line per request would measure
// the disk of the log.
func (s *stand) env(at *site) []string {
	return append([]string{
		"QUOTASVC_DATABASE_URL=" + at.databaseURL, "QUOTASVC_REDIS_URL=" + at.redisURL,
		"QUOTASVC_ADMIN_KEY=" + adminKey, "QUOTASVC_LISTEN=127.0.0.1:0", "QUOTASVC_OPS_LISTEN=127.0.0.1:0",
		"QUOTASVC_LOG_LEVEL=warn", "QUOTASVC_LOG_FORMAT=text", "QUOTASVC_PPROF=true", "QUOTASVC_DRAIN_DELAY=0s",
	}, s.cfg.Env...)
}

func (s *stand) launch(exe string, env []string, args ...string) (*program.Process, error) {
	c, err := program.Start(s.cfg.Log, env, exe, args...)
	if err == nil {
		s.children = append(s.children, c)
	}
	return c, err
}

// tool runs a command of a site's binary until it exits.
func (s *stand) tool(ctx context.Context, at *site, args ...string) error {
	cmd := exec.CommandContext(ctx, at.exe, args...)
	cmd.Env = append(os.Environ(), s.env(at)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// limitRules are the limits of every check. They never deny, because a denial costs less.
var limitRules = []struct{ name, per string }{
	{"per-tenant", `["tenant"]`}, {"per-route", `["tenant","route"]`}, {"per-user", `["tenant","subject"]`},
}

// putLimits creates limitRules with the function put, which sends one PUT.
func putLimits(put func(path, body string) error) (err error) {
	for _, r := range limitRules {
		err = errors.Join(err, put("/v1/limits/"+r.name, `{"per":`+r.per+`,"kind":"token_bucket","rate":"1000000/s"}`))
	}
	return err
}

// ask makes a request and returns the status of the answer and its text. If key is not empty, the request has this API key.
func ask(ctx context.Context, method, url, key, body string) (status int, text []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}

// putJSON sends a PUT with a JSON body to the service at an address.
func putJSON(ctx context.Context, address, key, path, body string) error {
	status, text, err := ask(ctx, http.MethodPut, "http://"+address+path, key, body)
	if err != nil {
		return fmt.Errorf("put %s: %w", path, err)
	}
	if status >= http.StatusMultipleChoices {
		return fmt.Errorf("put %s: %d: %.4096s", path, status, text)
	}
	return nil
}

// profile takes a CPU profile of a site's process for the duration d and stores it in file.
func (s *stand) profile(ctx context.Context, at *site, d time.Duration, file string) error {
	return s.store(ctx, at, fmt.Sprintf("profile?seconds=%d", max(1, int(d.Seconds()))), file)
}

// store stores a profile of a site's process in file.
func (s *stand) store(ctx context.Context, at *site, profile, file string) error {
	status, text, err := ask(ctx, http.MethodGet, fmt.Sprintf("http://%s/debug/pprof/%s", at.ops, profile), "", "")
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	if status != http.StatusOK {
		return fmt.Errorf("profile: status %d", status)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	return nil
}

// stop stops all processes and servers and removes the data.
func (s *stand) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var errs error
	for _, c := range s.children {
		errs = errors.Join(errs, c.Stop(ctx))
	}
	if s.db != nil {
		errs = errors.Join(errs, s.db.Close(ctx))
	}
	// The data is removed, so the servers need no orderly stop.
	if s.postgres != nil {
		errs = errors.Join(errs, s.postgres.Kill(), os.RemoveAll(s.postgres.Dir()))
	}
	if s.redis != nil {
		errs = errors.Join(errs, s.redis.Kill(), os.RemoveAll(s.redis.Dir()))
	}
	return errs
}

// redisVersion returns the version that redis-server prints.
func (s *stand) redisVersion(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err != nil {
		return "of unknown version"
	}
	for word := range strings.FieldsSeq(string(out)) {
		if v, found := strings.CutPrefix(word, "v="); found {
			return v
		}
	}
	return "of unknown version"
}
