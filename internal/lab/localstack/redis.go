package localstack

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// RedisMode is the role of a Redis process.
type RedisMode int

const (
	// RedisStandalone is a single server, or a master or replica under Sentinel.
	RedisStandalone RedisMode = iota
	// RedisClusterNode is a node of a Redis Cluster. The caller of StartRedis joins the nodes to a cluster.
	RedisClusterNode
	// RedisSentinel watches standalone servers. It stores its state in its configuration file, so StartRedis writes
	// that file only before the first start.
	RedisSentinel
)

// RedisConfig configures a private Redis.
type RedisConfig struct {
	Dir         string       // contains data, configuration, log; required
	Port        int          // 0: any free port, which stays the same after a restart
	PortSetting string       // name of the setting that changes Port, for messages
	Persist     bool         // true: append-only file, synced every second. false: empty after each start
	Databases   int          // logical databases; 0: Redis's default, 16
	Mode        RedisMode    // role of the process
	Password    string       // empty: a random password. Servers that replicate need the same password
	Extra       []string     // further lines of configuration
	Search      *Search      // directories with binaries; nil: SystemSearch
	Log         *slog.Logger // progress messages; nil: none
}

// Redis is a private Redis (or Valkey) server. It can be stopped or killed and then started again any number of times.
// Its URL stays the same. Its data stays the same only if Persist is set.
type Redis struct {
	Server
	cfg      RedisConfig
	bin      string
	password string
	busPort  int  // cluster bus of a cluster node; chosen at the first start
	wasReady bool // the server was ready before: its ports are fixed, and a Sentinel keeps its configuration
}

// StartRedis starts a server in cfg.Dir and returns when it answers. Unlike PostgreSQL, Redis runs as the caller, even
// if the caller is root. This is safe, because Redis reads only its own directory, listens only on loopback and
// requires a password. The errors of StartRedis include *MissingError, *InUseError and *PortTakenError.
func StartRedis(ctx context.Context, cfg RedisConfig) (*Redis, error) {
	r := &Redis{cfg: cfg}
	r.Server = Server{name: "Redis", port: cfg.Port, stopSignal: syscall.SIGTERM, startProc: r.start, log: orDiscard(cfg.Log)}
	r.afterKill = func() {} // a killed Redis leaves nothing outside its directory
	search := *cmp.Or(cfg.Search, new(SystemSearch()))
	var err error
	if r.bin, err = search.Redis(); err != nil {
		return nil, err
	}
	if r.dir, err = filepath.Abs(cfg.Dir); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	if err := r.Start(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// URL returns the server's URL. It stays the same after a restart.
func (r *Redis) URL() string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", r.password), Host: r.Addr(), Path: "/0"}
	return u.String()
}

// Addr returns the server's host and port.
func (r *Redis) Addr() string { return net.JoinHostPort(loopback, strconv.Itoa(r.port)) }

// BusPort returns the port on which a cluster node listens for the other nodes.
func (r *Redis) BusPort() int { return r.busPort }

// Password returns the server's password.
func (r *Redis) Password() string { return r.password }

func (r *Redis) start(ctx context.Context) error {
	if err := stopOrphan(ctx, r.path("redis.pid"), r.dir, syscall.SIGTERM, r.log); err != nil {
		return err
	}
	if err := r.ensurePassword(); err != nil {
		return err
	}
	if err := r.onPort(r.cfg.PortSetting, func() error { return r.launch(ctx) }); err != nil {
		return err
	}
	r.log.Info("server is ready", "server", r.name, "binary", filepath.Base(r.bin), "port", r.port, "dir", r.dir)
	return nil
}

// ensurePassword reads the password of an earlier run, so that the URL of that run stays valid. If there is none, it
// creates a password.
func (r *Redis) ensurePassword() error {
	if r.cfg.Password != "" {
		setIfChanged(&r.password, r.cfg.Password)
		return nil
	}
	text, err := os.ReadFile(r.path("password"))
	switch {
	case err == nil:
		setIfChanged(&r.password, strings.TrimSpace(string(text)))
		return nil
	case errors.Is(err, os.ErrNotExist):
		r.password = rand.Text()
		return writeSecret(r.path("password"), r.password, runUser{})
	default:
		return fmt.Errorf("read password: %w", explainPermission(r.dir, err))
	}
}

// launch writes the configuration, starts the server and waits until it answers.
func (r *Redis) launch(ctx context.Context) error {
	// The password is in a file, because every user can read a command line.
	conf := r.path("redis.conf")
	args := []string{conf}
	if r.cfg.Mode == RedisSentinel {
		args = append(args, "--sentinel")
	}
	if err := r.writeConfig(conf); err != nil {
		return err
	}
	logPath := r.path("redis.log")
	logFile, offset, err := openLog(logPath)
	if err != nil {
		return err
	}
	defer logFile.Close() // the child has its own descriptor
	death := syscall.SIGKILL
	if r.cfg.Persist {
		death = syscall.SIGTERM
	}
	r.proc, err = startProcess(command{path: r.bin, args: args, dir: r.dir, log: logFile, deathSignal: death})
	if err != nil {
		return err
	}
	if err := r.awaitReady(ctx); err != nil {
		return fmt.Errorf("start Redis: %w%s", err, quote(logTail(logPath, offset)))
	}
	r.wasReady = true
	return nil
}

// writeConfig writes the configuration file. It does not overwrite the file of a Sentinel that was ready before,
// because the Sentinel stores its state in the file.
func (r *Redis) writeConfig(path string) error {
	if r.cfg.Mode == RedisSentinel && r.wasReady {
		return nil
	}
	if r.cfg.Mode == RedisClusterNode && !r.wasReady {
		var err error
		if r.busPort, err = choosePort(0, r.name+"'s cluster bus", ""); err != nil {
			return err
		}
	}
	if err := os.WriteFile(path, []byte(r.config()), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

func (r *Redis) config() string {
	lines := []string{
		"bind " + loopback,
		"port " + strconv.Itoa(r.port),
		"protected-mode yes",
		"requirepass " + r.password,
		"dir " + strconv.Quote(r.dir),
		"pidfile " + strconv.Quote(r.path("redis.pid")),
		"daemonize no",
		"save \"\"", // the append-only file is the only form of persistence
	}
	if r.cfg.Persist {
		lines = append(lines, "appendonly yes", "appendfsync everysec")
	}
	if r.cfg.Databases != 0 {
		lines = append(lines, "databases "+strconv.Itoa(r.cfg.Databases))
	}
	if r.cfg.Mode != RedisSentinel {
		lines = append(lines, "masterauth "+r.password, "maxmemory-policy noeviction") // the service needs noeviction
	}
	if r.cfg.Mode == RedisClusterNode {
		lines = append(lines, "cluster-enabled yes", "cluster-port "+strconv.Itoa(r.busPort))
	}
	lines = append(lines, r.cfg.Extra...)
	return strings.Join(lines, "\n") + "\n"
}

// awaitReady waits until the server answers. It compares the process id in the answer with the id of this server's
// process, because another server may have taken the port.
func (r *Redis) awaitReady(ctx context.Context) error {
	var last error
	err := poll(ctx, func() bool {
		if r.proc.exited() {
			return true
		}
		last = r.probe(ctx)
		return last == nil
	})
	switch {
	case r.proc.exited():
		return fmt.Errorf("it exited: %w", r.proc.err)
	case err != nil:
		return fmt.Errorf("it did not answer in time: %w (last: %w)", err, last)
	}
	return nil
}

func (r *Redis) path(name string) string { return filepath.Join(r.dir, name) }
