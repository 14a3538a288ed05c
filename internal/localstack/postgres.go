package localstack

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Superuser is the role every private PostgreSQL has, and its database's name.
const Superuser = "quotasvc"

// PostgresConfig says how to run a private PostgreSQL.
type PostgresConfig struct {
	Dir         string            // holds data, password, log; required. See the package comment for stand-ins
	Port        int               // 0: any free one, the same for the life of this value
	PortSetting string            // how the user changes Port, for the message about a taken one
	Durable     bool              // true: survives a power cut. false: fsync off, for tests only
	Extra       map[string]string // server settings, stronger than ours ("max_connections": "200")
	Cache       string            // directory that keeps a fresh cluster to copy instead of initdb; "": always initdb
	Search      *Search           // where to find binaries; nil: SystemSearch
	Log         *slog.Logger      // progress for people; nil: none

	standIns string // where stand-ins for Dir go; "": StandInRoot
}

// Postgres is a private PostgreSQL server. Stop or Kill it and Start it again as
// often as needed; data and URL stay.
type Postgres struct {
	server
	cfg      PostgresConfig
	bin      PostgresBinaries
	as       runUser
	password string
}

// StartPostgres starts a server in cfg.Dir, creating the data on the first use,
// and returns once it answers queries. Errors worth telling apart: *MissingError,
// *InUseError, *PortTakenError.
func StartPostgres(ctx context.Context, cfg PostgresConfig) (*Postgres, error) {
	p := &Postgres{cfg: cfg}
	p.server = server{name: "PostgreSQL", port: cfg.Port, stopSignal: syscall.SIGINT, startProc: p.start, log: orDiscard(cfg.Log)}
	p.afterKill = func() { removeSharedMemory(p.dataDir()) }
	search := SystemSearch()
	if cfg.Search != nil {
		search = *cfg.Search
	}
	var err error
	if p.bin, err = search.Postgres(ctx, 0); err != nil {
		return nil, err
	}
	if p.dir, p.as, err = p.place(ctx); err != nil {
		return nil, err
	}
	// The server reports its directory without links; readiness compares the two.
	if p.dir, err = filepath.EvalSymlinks(p.dir); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := p.matchVersion(ctx, search); err != nil {
		return nil, err
	}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// matchVersion replaces the binaries by those of the major version that wrote the
// existing data, which no other version can read.
func (p *Postgres) matchVersion(ctx context.Context, search Search) error {
	text, err := os.ReadFile(filepath.Join(p.dataDir(), "PG_VERSION"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read data version: %w", explainPermission(p.dir, err))
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("read data version: %w", err)
	}
	if major == p.bin.Major {
		return nil
	}
	bin, err := search.Postgres(ctx, major)
	if err != nil {
		return fmt.Errorf("%s was written by PostgreSQL %d: move it away to start afresh, or install that version: %w", p.dir, major, err)
	}
	p.bin = bin
	return nil
}

// URL is where the server answers, as its superuser. It does not change by
// stopping and starting.
func (p *Postgres) URL() string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(Superuser, p.password),
		Host:     net.JoinHostPort(loopback, strconv.Itoa(p.port)),
		Path:     "/" + Superuser,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Version is the server's version text.
func (p *Postgres) Version() string { return p.bin.Version }

// start makes the data if there is none and starts the server.
func (p *Postgres) start(ctx context.Context) error {
	if err := stopOrphan(ctx, filepath.Join(p.dataDir(), "postmaster.pid"), p.dataDir(), syscall.SIGINT, p.log); err != nil {
		return err
	}
	if err := p.ensureData(ctx); err != nil {
		return err
	}
	if err := p.onPort(p.cfg.PortSetting, func() error { return p.launch(ctx) }); err != nil {
		return err
	}
	if err := p.ensureDatabase(ctx); err != nil {
		return err
	}
	p.log.Info("server is ready", "server", p.name, "version", p.bin.Version, "port", p.port, "dir", p.dir)
	return nil
}

// launch starts the server process and waits until it answers.
func (p *Postgres) launch(ctx context.Context) error {
	logPath := filepath.Join(p.dir, "postgres.log")
	logFile, offset, err := openLog(logPath)
	if err != nil {
		return err
	}
	defer logFile.Close() // the child has its own copy
	// A dev server stops in order when its owner dies; a test server need not save
	// anything, but must still remove its shared memory, so no SIGKILL.
	death := syscall.SIGQUIT
	if p.cfg.Durable {
		death = syscall.SIGINT
	}
	p.proc, err = startProcess(command{
		path: filepath.Join(p.bin.Dir, "postgres"), args: p.args(), dir: p.dataDir(),
		as: p.as, log: logFile, deathSignal: death,
	})
	if err != nil {
		return err
	}
	if err := p.awaitReady(ctx); err != nil {
		return fmt.Errorf("start PostgreSQL: %w%s", err, quote(logTail(logPath, offset)))
	}
	return nil
}

// args are the server's settings. They are given on the command line, so nothing
// in the data directory has to be rewritten when one changes.
func (p *Postgres) args() []string {
	settings := map[string]string{
		"listen_addresses":        loopback,
		"port":                    strconv.Itoa(p.port),
		"unix_socket_directories": "", // loopback is enough, and a socket path may be too long
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"logging_collector":       "off", // the log is our file, whatever the distribution's default
		"password_encryption":     "scram-sha-256",
	}
	if !p.cfg.Durable {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
		// In the data directory, not /dev/shm: a killed test server leaves nothing there.
		settings["dynamic_shared_memory_type"] = "mmap"
	}
	maps.Copy(settings, p.cfg.Extra)
	args := []string{"-D", p.dataDir()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

func (p *Postgres) dataDir() string { return filepath.Join(p.dir, "data") }
