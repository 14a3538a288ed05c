package bench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/quotasvc/quotasvc/internal/lab/localstack"
	"github.com/quotasvc/quotasvc/lab/bench/report"
	"github.com/quotasvc/quotasvc/lab/bench/tuning"
)

// tuner is the state of a run of RunPostgres.
type tuner struct {
	runner

	rate    int    // debits/s, the only element of Config.Rates
	dir     string // directory of the servers' data
	socket  string // directory of the Unix socket
	standby *localstack.Postgres
	out     tuning.Result
}

// RunPostgres measures debits on PostgreSQL with one setting after the other. It compares each setting with the base of
// its group in the same round. It writes postgres.json and postgres.svg into Dir. A slice consists of single debits;
// batches and the debits before a measurement take half of it. cfg.Rates must have one rate. cfg.Only selects settings
// by a part of their group or name.
func RunPostgres(ctx context.Context, cfg Config) (_ *tuning.Result, err error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if len(cfg.Rates) != 1 {
		return nil, fmt.Errorf("there are %d rates; must be one", len(cfg.Rates))
	}
	cfg.Env = []string{"QUOTASVC_VERIFY_EVERY=0s"}
	all, left := tuning.All()
	chosen := tuning.Wanted(all, cfg.Only)
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no setting's name contains one of %q", cfg.Only)
	}
	began := time.Now()
	dir, remove, err := makeData(cfg.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	t := &tuner{rate: cfg.Rates[0], dir: dir, runner: runner{cfg: cfg}}
	t.out.Left, t.out.Rate = left, t.rate
	socket, removeSocket, err := makeSocketDir()
	if err != nil {
		return nil, err
	}
	t.socket = socket
	defer func() { err = errors.Join(err, removeSocket()) }()
	t.stand = &stand{
		cfg: cfg, bare: true, settings: map[string]string{
			"max_connections":         "200",
			"unix_socket_directories": t.socket,
		},
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	t.say("starting PostgreSQL and Redis in %s", dir)
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	if err := t.compare(ctx, chosen); err != nil {
		return nil, err
	}
	t.out.Took = time.Since(began).Round(time.Second).String()
	return &t.out, t.out.Save(cfg.Dir)
}

func (t *tuner) stop() error {
	err := t.stand.stop()
	if t.standby != nil {
		err = errors.Join(err, t.standby.Kill(), os.RemoveAll(t.standby.Dir()))
	}
	return err
}

// prepare starts the servers, creates the tenants and opens their balances.
func (t *tuner) prepare(ctx context.Context) (err error) {
	started, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	s := t.stand
	if err := s.startServers(started, t.dir); err != nil {
		return err
	}
	if t.out.Machine, err = s.describe(started); err != nil {
		return err
	}
	if err := s.db.Close(started); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	s.db = nil // its server is restarted again and again
	if s.service, err = s.open(started, t.cfg.Exe, s.postgres.URL(), s.redis.URL()); err != nil {
		return err
	}
	t.say("opening %d balances", t.cfg.Tenants)
	debit, _, _ := t.templates()
	first, err := t.each(ctx, s.service, debit, t.cfg.Connections, tenantRange{0, t.cfg.Tenants})
	if err == nil && first.errors > 0 {
		err = fmt.Errorf("%d of %d requests were refused", first.errors, first.sent)
	}
	return errors.Join(err, s.end(ctx, s.service))
}

// compare measures every setting once in each round. It begins with the settings without a standby.
func (t *tuner) compare(ctx context.Context, chosen []tuning.Setting) error {
	for _, s := range chosen {
		t.out.Settings = append(t.out.Settings, tuning.NewSettingResult(&s))
	}
	for _, standby := range []bool{false, true} {
		if !slices.ContainsFunc(chosen, func(s tuning.Setting) bool { return (s.Group == tuning.WithStandby) == standby }) {
			continue
		}
		if standby {
			t.say("making a standby")
			if err := t.addStandby(ctx); err != nil {
				return err
			}
		}
		for round := range t.cfg.Rounds {
			for i := range chosen {
				if s := &chosen[i]; (s.Group == tuning.WithStandby) == standby {
					if err := t.visit(ctx, round, s, &t.out.Settings[i]); err != nil {
						return fmt.Errorf("%s: %s: %w", s.Group, s.Name, err)
					}
				}
			}
		}
	}
	t.out.Summarize()
	var err error
	if t.stand.db, err = connect(ctx, t.stand.postgres.URL()); err != nil {
		return err
	}
	if err := t.prove(ctx); err != nil {
		return err
	}
	t.out.Answered, t.out.Journal = t.runner.out.Answered, t.runner.out.Journal
	return nil
}

// visit measures a setting once, in one round.
func (t *tuner) visit(ctx context.Context, round int, s *tuning.Setting, out *tuning.SettingResult) (err error) {
	if err := t.apply(ctx, s); err != nil {
		return err
	}
	at := t.stand.service
	if at.databaseURL = t.stand.postgres.URL(); s.Socket {
		if at.databaseURL, err = socketURL(at.databaseURL, t.socket); err != nil {
			return err
		}
	}
	if err := t.stand.serve(ctx, at); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.stand.end(ctx, at)) }()
	debit, _, _ := t.templates()
	batch := newTemplate("/v1/debits/batch", bearer(adminKey), batchBody(t.cfg.Batch), t.cfg.Batch)
	batch.recorded = true
	load := t.over(at.api, t.cfg.Connections, debit)
	if _, err := load(ctx, t.cfg.Slice/2); err != nil {
		return err
	}
	checkpointed := make(chan error, 1)
	if s.Checkpoint {
		go func() { checkpointed <- execute(ctx, t.stand.postgres.URL(), "CHECKPOINT") }()
	} else {
		checkpointed <- nil
	}
	before := cpuOf(os.Getpid(), at.child.Pid())
	single, err := load(ctx, t.cfg.Slice)
	used := cpuOf(os.Getpid(), at.child.Pid()).Minus(before)
	if err = errors.Join(err, <-checkpointed); err != nil {
		return err
	}
	batches, err := t.over(at.api, min(batchClients, t.cfg.Connections), batch)(ctx, t.cfg.Slice/2)
	if err != nil {
		return err
	}
	steadily, err := t.open(ctx, at.api, debit, t.rate)
	if err != nil {
		return err
	}
	out.Note(&tuning.Round{
		Rate: single.rate(), BatchRate: batches.rate(), CPU: used.Per(single.units), P99: float64(steadily.latency.ValueAtQuantile(99)),
		Errors: single.errors + batches.errors + steadily.errors,
	})
	t.say("round %d/%d  %-16s %-34s %7.0f/s  batches %7.0f/s  p99 %s", round+1, t.cfg.Rounds, s.Group, s.Name,
		single.rate(), batches.rate(),
		report.Micros(steadily.latency.ValueAtQuantile(99)))
	return nil
}

// apply resets PostgreSQL's settings to the values of the given setting. It restarts PostgreSQL unless there is a
// standby.
func (t *tuner) apply(ctx context.Context, s *tuning.Setting) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	statements := []string{"ALTER SYSTEM RESET ALL"}
	values := s.Values()
	for name, value := range values {
		statements = append(statements, "ALTER SYSTEM SET "+name+" = '"+value+"'")
	}
	if err := execute(ctx, t.stand.postgres.URL(), append(statements, "SELECT pg_reload_conf()")...); err != nil {
		return err
	}
	if s.Group != tuning.WithStandby {
		return t.stand.postgres.Restart(ctx)
	}
	return t.stand.postgres.Await(ctx, fmt.Sprintf(`SELECT current_setting('synchronous_commit') = '%s' AND current_setting('synchronous_standby_names') = '%s'
		AND (SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND (sync_state = 'sync') = ('%[2]s' <> '')) = 1`,
		values["synchronous_commit"], values["synchronous_standby_names"]))
}

// addStandby starts a standby of the server. At first both servers have the settings of the base.
func (t *tuner) addStandby(ctx context.Context) (err error) {
	if err := t.apply(ctx, &tuning.Setting{}); err != nil {
		return err
	}
	extra := map[string]string{"max_connections": "200", "unix_socket_directories": ""}
	t.standby, err = t.stand.postgres.AddStandby(ctx, "bench", localstack.PostgresConfig{Dir: filepath.Join(t.dir, "standby"), Durable: true, Extra: extra})
	return err
}

// socketURL returns the URL of the same database through a socket in dir.
func socketURL(databaseURL, dir string) (string, error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return "", fmt.Errorf("URL of the database: %w", err)
	}
	q := u.Query()
	q.Set("host", dir)
	q.Set("port", u.Port())
	u.Host, u.RawQuery = "", q.Encode()
	return u.String(), nil
}

// makeSocketDir creates a directory that the server's user may write to. Its name is short, because the path of a
// socket must be short.
func makeSocketDir() (dir string, remove func() error, err error) {
	if dir, err = os.MkdirTemp("", "quotasvc-socket-"); err != nil {
		return "", nil, fmt.Errorf("make a directory for the socket: %w", err)
	}
	remove = func() error { return os.RemoveAll(dir) }
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // the server runs as another user
		return "", nil, fmt.Errorf("open the socket's directory to the server: %w", err)
	}
	return dir, remove, nil
}
