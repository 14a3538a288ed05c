package localstack

import (
	"cmp"
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

// Superuser is the name of the role and of the database in every private PostgreSQL.
const Superuser = "quotasvc"

// PostgresConfig configures a private PostgreSQL.
type PostgresConfig struct {
	Dir         string            // contains data, password, log; required. See the package comment for stand-ins
	Port        int               // 0: any free port, which stays the same after a restart
	PortSetting string            // name of the setting that changes Port, for messages
	Durable     bool              // true: survives a power cut. false: fsync off, for tests only
	Extra       map[string]string // server settings that override the defaults ("max_connections": "200")
	Env         []string          // further environment variables of the server's process
	Cache       string            // directory with a new cluster that is copied; empty: initdb creates a cluster
	From        *Origin           // the copied cluster with which the server begins; nil: a new cluster
	Search      *Search           // directories with binaries; nil: SystemSearch
	Log         *slog.Logger      // progress messages; nil: none

	standIns string // directory of stand-ins for Dir; empty: StandInRoot
}

// Postgres is a private PostgreSQL server. It can be stopped or killed and then started again any number of times.
// Its data and URL stay the same.
type Postgres struct {
	Server
	cfg      PostgresConfig
	bin      PostgresBinaries
	as       runUser
	password string
}

// StartPostgres starts a server in cfg.Dir and returns when it answers queries. It
// creates the data on the first use. Its errors include *MissingError, *InUseError
// and *PortTakenError.
func StartPostgres(ctx context.Context, cfg PostgresConfig) (*Postgres, error) {
	p := &Postgres{cfg: cfg}
	p.Server = Server{name: "PostgreSQL", port: cfg.Port, stopSignal: syscall.SIGINT, startProc: p.start, log: orDiscard(cfg.Log)}
	p.afterKill = func() { removeSharedMemory(p.dataDir()) }
	search := *cmp.Or(cfg.Search, new(SystemSearch()))
	var err error
	if p.bin, err = search.Postgres(ctx, 0); err != nil {
		return nil, err
	}
	if p.dir, p.as, err = p.place(ctx); err != nil {
		return nil, err
	}
	// awaitReady compares p.dir with the directory that the server reports, which contains no links.
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

// matchVersion chooses the binaries of the major version that has written the existing data. PostgreSQL of another
// major version cannot read the data.
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
		return fmt.Errorf("%s was written by PostgreSQL %d: move it away to start from scratch, or install that version: %w", p.dir, major, err)
	}
	p.bin = bin
	return nil
}

// URL returns the server's URL for its superuser. It stays the same after a restart.
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

// Version returns the server's version text.
func (p *Postgres) Version() string { return p.bin.Version }

// start creates missing data and starts the server.
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
	defer logFile.Close() // the child has its own descriptor
	// A dev server stops in order when its owner dies. A test server need not save data, but it must remove its
	// shared memory, so it gets SIGQUIT and not SIGKILL.
	death := syscall.SIGQUIT
	if p.cfg.Durable {
		death = syscall.SIGINT
	}
	p.proc, err = startProcess(command{
		path: filepath.Join(p.bin.Dir, "postgres"), args: p.args(), dir: p.dataDir(), env: p.cfg.Env,
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

// args returns the server's settings as arguments of the command line. So a changed setting needs no change of a file
// in the data directory.
func (p *Postgres) args() []string {
	settings := map[string]string{
		"listen_addresses":        loopback,
		"port":                    strconv.Itoa(p.port),
		"unix_socket_directories": "", // loopback is enough, and a socket's path may be too long
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"logging_collector":       "off", // the log goes to our file; some distributions turn this on
		"password_encryption":     "scram-sha-256",
	}
	if !p.cfg.Durable {
		settings["fsync"] = "off"
		settings["full_page_writes"] = "off"
		// With this setting, shared memory is in the data directory, so a killed test server leaves nothing in
		// /dev/shm.
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
