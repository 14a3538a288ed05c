package main

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/alecthomas/kong"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/gate/provision"
	"github.com/quotasvc/quotasvc/internal/lab/demo"
	"github.com/quotasvc/quotasvc/internal/lab/localstack"
	"github.com/quotasvc/quotasvc/internal/report/testclock"
)

// devCmd is the command that runs the service with a private PostgreSQL and Redis on this machine, for a trial and
// for development.
type devCmd struct {
	clockConfig

	Dir          string `env:"QUOTASVC_DEV_DIR" default:".quotasvc" type:"path" help:"Directory of data, logs and the key. It is kept between runs; delete it to start from scratch."`
	Listen       string `env:"QUOTASVC_LISTEN" default:"${listen}" placeholder:"ADDR" help:"Address of the API. Port 0 picks a free port."`
	OpsListen    string `env:"QUOTASVC_OPS_LISTEN" default:"${ops_listen}" placeholder:"ADDR" help:"Address of /livez, /readyz, /metrics and pprof."`
	PostgresPort int    `env:"QUOTASVC_DEV_POSTGRES_PORT" placeholder:"PORT" help:"Port of the private PostgreSQL. Default: a free port."`
	RedisPort    int    `env:"QUOTASVC_DEV_REDIS_PORT" placeholder:"PORT" help:"Port of the private Redis. Default: a free port."`
	Demo         bool   `env:"QUOTASVC_DEV_DEMO" default:"true" negatable:"" help:"Begin with demo tenants and 45 days of usage. This takes some seconds, once."`
}

const (
	// stackStop is the maximum time for stopping the private PostgreSQL and Redis. PostgreSQL's last checkpoint takes
	// seconds on a slow disk.
	stackStop = 30 * time.Second

	// devStop is the maximum time for stopping the service in dev.
	devStop = 8 * time.Second

	keyFile = "admin.key"
)

//go:embed demo.yaml
var demoCatalog []byte

//go:embed dev.txt
var devText string

// Run serves until ctx ends, or until the private PostgreSQL or Redis ends.
func (c *devCmd) Run(ctx context.Context, program *kong.Kong, log *slog.Logger, level *slog.LevelVar, lines *flood) (err error) {
	warnUnknown(program.Model, log)
	cfg := serviceConfig{
		Listen: c.Listen, OpsListen: c.OpsListen, StopTimeout: devStop, Replicas: 1, DefaultPlanRate: provision.DefaultPerSecond, LedgerLanes: 2, CheckReads: 8, Readers: 8, TenantsInMemory: 50_000, CacheFresh: 30 * time.Second, RejectionsHigh: 100,
		clockConfig: c.clockConfig, StartTimeout: stackStop, Pprof: true, testClock: true,
		WebhookAllowPrivate: true, // the receivers of a developer are on this machine
		level:               level, lines: lines,
	}
	lst, err := listen(ctx, &cfg)
	if err != nil {
		return err
	}
	defer lst.close()
	// PostgreSQL may run as another user, which must be able to enter this directory.
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	lines.queue.print(fmt.Sprintf("starting PostgreSQL and Redis in %s\n", c.Dir))
	stack, err := localstack.Start(ctx, localstack.Config{
		Dir:          c.Dir,
		PostgresPort: c.PostgresPort, PostgresPortSetting: "--postgres-port (QUOTASVC_DEV_POSTGRES_PORT)",
		RedisPort: c.RedisPort, RedisPortSetting: "--redis-port (QUOTASVC_DEV_REDIS_PORT)",
		Log: log,
	})
	if err != nil {
		return explainStack(err)
	}
	defer func() {
		stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stackStop)
		defer cancel()
		err = errors.Join(err, stack.Stop(stopCtx))
		if err == nil {
			lines.queue.print(fmt.Sprintf("stopped; the data is kept in %s\n", c.Dir))
		}
	}()
	key, err := devKey(filepath.Join(c.Dir, keyFile))
	if err != nil {
		return err
	}
	cfg.DatabaseURL, cfg.RedisURL, cfg.AdminKey = secret(stack.Postgres.URL()), secret(stack.Redis.URL()), secret(key)
	if err := cfg.validate(); err != nil {
		return err
	}
	if err := migrateUp(ctx, string(cfg.DatabaseURL), log); err != nil {
		return err
	}
	behind := time.Duration(0)
	if c.Demo {
		behind = demo.Behind
	}
	if err := testclock.Install(ctx, string(cfg.DatabaseURL), behind); err != nil {
		return err
	}
	agreed, err := cfg.clockOf(ctx, string(cfg.DatabaseURL), log)
	if err != nil {
		return err
	}
	if _, err := applyText(ctx, string(cfg.DatabaseURL), agreed, demoCatalog, false, false); err != nil {
		return fmt.Errorf("store the demo catalogue: %w", err)
	}
	return runOnStack(ctx, stack, &cfg, lst, log)
}

// runOnStack serves until ctx ends, or until the private PostgreSQL or Redis ends by itself.
func runOnStack(ctx context.Context, stack *localstack.Stack, cfg *serviceConfig, lst *listeners, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- stack.Wait(ctx)
		cancel()
	}()
	err := run(ctx, cfg, lst, log, func(context.Context) error { return nil }, func(a addresses) {
		there, err := fillDemo(ctx, a.api, string(cfg.AdminKey))
		if err != nil && ctx.Err() == nil {
			log.Warn("the demo is incomplete; `make clean-dev` starts from scratch", "error", err)
		}
		if err := printDevText(os.Stdout, a, string(cfg.AdminKey), string(cfg.DatabaseURL), there); err != nil {
			log.Warn("printing the introduction failed", "error", err)
		}
	})
	cancel()
	return errors.Join(<-ended, err)
}

// fillDemo creates demo data through the API if the ledger has no data. It reports whether the demo data exists, from
// this run or from an earlier run.
func fillDemo(ctx context.Context, api, key string) (there bool, err error) {
	c, err := client.New(client.Options{URL: api, Key: key})
	if err != nil {
		return false, err
	}
	err = demo.Play(ctx, c.API)
	return demo.There(ctx, c.API), errors.Join(err, c.Close(ctx))
}

// explainStack adds to an error about missing programs how to install them.
func explainStack(err error) error {
	if localstack.IsMissing(err) {
		return fmt.Errorf("%w\n`make run` installs missing servers with the system's package manager; `docker compose up` needs only Docker", err)
	}
	return err
}

// devKey reads the admin key from the file path. In the first run it creates the key. The key stays the same in later
// runs, so that commands that were copied still work.
func devKey(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err == nil {
		return string(bytes.TrimSpace(raw)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the admin key: %w", err)
	}
	random := make([]byte, 24) // 192 bits, 48 characters
	_, _ = rand.Read(random)   // Read never returns an error: it ends the process instead
	key := hex.EncodeToString(random)
	if err := os.WriteFile(path, []byte(key+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep the admin key: %w", err)
	}
	return key, nil
}

// printDevText prints commands to try. Each command is one line that can be copied alone. The idempotency keys in the
// commands are new in each run, because the ledger would answer an old key with the stored answer.
func printDevText(out io.Writer, a addresses, key, database string, there bool) error {
	text, err := template.New("dev").Parse(devText)
	if err != nil {
		return err
	}
	run := make([]byte, 3)
	_, _ = rand.Read(run) // as above
	return text.Execute(out, map[string]any{
		"API": a.api, "Console": a.console, "Ops": a.ops, "Key": key, "Database": database, "Run": hex.EncodeToString(run), "Demo": there,
		"Proxy": curlProxy(os.Getenv),
	})
}

// curlProxy returns the name of the variable by which curl would send calls of 127.0.0.1 to a proxy, or nothing. Unlike
// Go, curl makes no exception for this host.
func curlProxy(getenv func(string) string) string {
	for _, exempt := range []string{getenv("no_proxy"), getenv("NO_PROXY")} {
		if strings.Contains(exempt, "127.0.0.1") || strings.TrimSpace(exempt) == "*" {
			return ""
		}
	}
	for _, name := range []string{"http_proxy", "all_proxy", "ALL_PROXY"} {
		if getenv(name) != "" {
			return name
		}
	}
	return ""
}
