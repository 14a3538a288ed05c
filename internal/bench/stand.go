package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/internal/localstack"
)

const (
	startTimeout = time.Minute      // of a server or tool
	stopTimeout  = 20 * time.Second // of all of them
)

// serverSettings apply to every variant alike: no checkpoint in the middle of a run, and room for its data in memory, so that
// rounds can be compared. Durability stays as PostgreSQL has it.
func serverSettings() map[string]string {
	return map[string]string{
		"shared_buffers": "512MB", "max_wal_size": "8GB", "checkpoint_timeout": "30min", "max_connections": "200",
	}
}

// stand is everything that is measured: servers, processes, where they answer.
type stand struct {
	cfg       Config
	postgres  *localstack.Postgres
	redis     *localstack.Redis
	children  []*child
	service   *child
	adminKey  string
	serviceAt string // host:port of the API
	baseAt    string // host:port of the baseline
	db        *pgx.Conn
}

// child is a process made from our own binary.
type child struct {
	cmd   *exec.Cmd
	lines chan string // of standard output; closed at its end
	done  chan error
}

// start launches exe with args.
func start(log io.Writer, env []string, exe string, args ...string) (*child, error) {
	cmd := exec.Command(exe, args...) //nolint:noctx // ended by stop, in order; a context would kill it
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	c := &child{cmd: cmd, lines: make(chan string, 16), done: make(chan error, 1)}
	go func() {
		in := bufio.NewScanner(out)
		for in.Scan() {
			select {
			case c.lines <- in.Text():
			default: // nobody reads that much
			}
		}
		close(c.lines)
		c.done <- cmd.Wait()
	}()
	return c, nil
}

// address waits for a line that begins with prefix and returns the rest.
func (c *child) address(ctx context.Context, prefix string) (string, error) {
	for {
		select {
		case line, ok := <-c.lines:
			if !ok {
				return "", errors.New("the process ended before it was ready; see its log")
			}
			if rest, found := strings.CutPrefix(line, prefix); found {
				return rest, nil
			}
		case <-ctx.Done():
			return "", fmt.Errorf("wait for the process to be ready: %w", ctx.Err())
		}
	}
}

func (c *child) stop(ctx context.Context) error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop: %w", err)
	}
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return errors.Join(ctx.Err(), c.cmd.Process.Kill(), <-c.done)
	}
}

// build starts everything on fresh data in dir.
func build(ctx context.Context, cfg Config, dir string, conns int) (_ *stand, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := &stand{cfg: cfg, adminKey: "bench-" + strings.Repeat("0123456789abcdef", 2)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop())
		}
	}()
	if s.redis, err = localstack.StartRedis(ctx, localstack.RedisConfig{Dir: filepath.Join(dir, "redis")}); err != nil {
		return nil, err
	}
	s.postgres, err = localstack.StartPostgres(ctx, localstack.PostgresConfig{
		Dir: filepath.Join(dir, "postgres"), Durable: true, Extra: serverSettings(),
	})
	if err != nil {
		return nil, err
	}
	if err := s.tool(ctx, "migrate", "up"); err != nil {
		return nil, err
	}
	if s.db, err = pgx.Connect(ctx, s.postgres.URL()); err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	seed := baselineSQL + strings.ReplaceAll(seedSQL, "$TENANTS", fmt.Sprint(cfg.Tenants))
	if _, err := s.db.Exec(ctx, seed, pgx.QueryExecModeSimpleProtocol); err != nil {
		return nil, fmt.Errorf("seed: %w", err)
	}
	base, err := s.launch("bench", "baseline", "--conns", fmt.Sprint(conns))
	if err != nil {
		return nil, err
	}
	if s.baseAt, err = base.address(ctx, "baseline "); err != nil {
		return nil, err
	}
	if s.service, err = s.launch("serve"); err != nil {
		return nil, err
	}
	if s.serviceAt, err = s.service.address(ctx, "API http://"); err != nil {
		return nil, err
	}
	return s, s.putLimits(ctx)
}

// env is the configuration of the children. Access lines are off: a line per request would measure the log's disk.
func (s *stand) env() []string {
	return []string{
		"QUOTASVC_DATABASE_URL=" + s.postgres.URL(), "QUOTASVC_REDIS_URL=" + s.redis.URL(), "QUOTASVC_ADMIN_KEY=" + s.adminKey,
		"QUOTASVC_LISTEN=127.0.0.1:0", "QUOTASVC_OPS_LISTEN=127.0.0.1:0", "QUOTASVC_LOG_LEVEL=warn", "QUOTASVC_LOG_FORMAT=text",
	}
}

func (s *stand) launch(args ...string) (*child, error) {
	c, err := start(s.cfg.Log, s.env(), s.cfg.Exe, args...)
	if err == nil {
		s.children = append(s.children, c)
	}
	return c, err
}

// tool runs a command of our own to its end.
func (s *stand) tool(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, s.cfg.Exe, args...)
	cmd.Env = append(os.Environ(), s.env()...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// limitRules are the limits of every check, generous enough never to deny: a denial is cheaper than an answer.
var limitRules = []struct{ name, per string }{
	{"per-tenant", `["tenant"]`}, {"per-route", `["tenant","route"]`}, {"per-user", `["tenant","subject"]`},
}

func (s *stand) putLimits(ctx context.Context) error {
	for _, r := range limitRules {
		body := `{"per":` + r.per + `,"kind":"token_bucket","rate":"1000000/s"}`
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+s.serviceAt+"/v1/limits/"+r.name, strings.NewReader(body))
		if err != nil {
			return fmt.Errorf("put limit: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+s.adminKey)
		req.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return fmt.Errorf("put limit: %w", err)
		}
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<12)) // for the message only
		answer.Body.Close()
		if answer.StatusCode >= http.StatusMultipleChoices {
			return fmt.Errorf("put limit %s: %s: %s", r.name, answer.Status, text)
		}
	}
	return nil
}

// stop ends everything and removes the data.
func (s *stand) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var errs error
	for _, c := range s.children {
		errs = errors.Join(errs, c.stop(ctx))
	}
	if s.db != nil {
		errs = errors.Join(errs, s.db.Close(ctx))
	}
	// The data is thrown away, so there is nothing to stop in order.
	if s.postgres != nil {
		errs = errors.Join(errs, s.postgres.Kill(), os.RemoveAll(s.postgres.Dir()))
	}
	if s.redis != nil {
		errs = errors.Join(errs, s.redis.Kill(), os.RemoveAll(s.redis.Dir()))
	}
	return errs
}

// redisVersion is what the server says it is, by its own command.
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
