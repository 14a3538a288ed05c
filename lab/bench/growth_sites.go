package bench

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quotasvc/quotasvc/lab/bench/growth"
	"github.com/quotasvc/quotasvc/lab/bench/past"
	"github.com/quotasvc/quotasvc/lab/bench/report"
)

//go:embed growth_seed.sql
var growthSeedSQL string

const (
	// entryBytes and tenantBytes are the disk space, in bytes, that a step plans for an entry and for a tenant. An
	// entry with its two indexes takes about 380 bytes. A tenant with its balance and two entries takes about 2,300
	// bytes.
	entryBytes  = 420
	tenantBytes = 2500
	walBytes    = 9e9 // max_wal_size, and the WAL that is written while a checkpoint is late

	prepareTimeout = 2 * time.Hour
	base           = "base" // the migrated database from which all others are copied
)

func replace(sql, mark string, n int) string { return strings.ReplaceAll(sql, mark, fmt.Sprint(n)) }

// grown is a size under load, with its database and one or more instances of the service.
type grown struct {
	growth.Size
	database string
	at       []*site
	tenants  int      // tenants in the load
	of       *grown   // another size whose database this size uses; nil: its own database
	env      []string // environment added for its instances; if `of` is set, only a size with env has own instances
	acked    int64    // debits answered with 200
}

// isGuest reports whether the size uses the database and the instances of another size.
func (s *grown) isGuest() bool { return s.of != nil && s.env == nil }

// build starts PostgreSQL and Redis and creates the database from which all others are copied.
func (g *grower) build(ctx context.Context) (err error) {
	g.say("starting PostgreSQL and Redis in %s", g.dir)
	ctx, cancel := context.WithTimeout(ctx, 3*startTimeout)
	defer cancel()
	g.stand = &stand{
		cfg: Config{
			Programs: g.cfg.Programs, Connections: g.cfg.Connections, Rounds: g.cfg.Rounds,
			Slice: g.cfg.Slice,
		},
		settings: map[string]string{"max_connections": "400"}, // several instances run at once
	}
	maps.Copy(g.stand.settings, g.cfg.PostgreSQL)
	defer func() {
		if err != nil {
			err = errors.Join(err, g.stand.stop())
		}
	}()
	if err := g.stand.startServers(ctx, g.dir); err != nil {
		return err
	}
	if _, err := g.stand.db.Exec(ctx, "CREATE DATABASE "+base); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	if err := g.stand.tool(ctx, g.siteOf(base, 0), "migrate", "up"); err != nil {
		return err
	}
	return g.execute(ctx, base, growthSeedSQL)
}

// siteOf returns a site whose process has not been started.
func (g *grower) siteOf(database string, number int) *site {
	at := func(text, path string) string {
		u, err := url.Parse(text)
		if err != nil {
			panic(fmt.Sprintf("bench: URL of a server that we have started: %v", err))
		}
		u.Path = path
		return u.String()
	}
	return &site{exe: g.cfg.Exe, databaseURL: at(g.stand.postgres.URL(), "/"+database), redisURL: at(g.stand.redis.URL(), fmt.Sprint("/", number))}
}

// execute runs statements in a database.
func (g *grower) execute(ctx context.Context, database string, statements ...string) error {
	return execute(ctx, g.siteOf(database, 0).databaseURL, statements...)
}

// execute runs statements on a separate connection.
func execute(ctx context.Context, url string, statements ...string) error {
	db, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close(ctx) }() // the statements are committed
	for _, sql := range statements {
		if _, err := db.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("%.60s: %w", sql, err)
		}
	}
	return nil
}

// add creates the database of the next size. It writes a history and executes the further statements.
func (g *grower) add(ctx context.Context, all []*grown, label string, value float64, h past.Journal, share float64, further ...string) (*grown, error) {
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	began, from := time.Now(), g.bar.within
	s := &grown{Size: growth.Size{Label: label, Value: value, Entries: h.Entries()}, database: fmt.Sprint("size_", len(all)), tenants: h.Tenants}
	g.say("%s: writing %d tenants and %d entries", label, h.Tenants, h.Entries())
	if _, err := g.stand.db.Exec(ctx, "CREATE DATABASE "+s.database+" TEMPLATE "+base); err != nil {
		return nil, fmt.Errorf("create database: %w", err)
	}
	s.at = []*site{g.siteOf(s.database, len(all))}
	said := time.Now()
	err := h.Write(ctx, s.at[0].databaseURL, func(part float64) {
		g.at(from + share*part)
		if time.Since(said) > 10*time.Second {
			said = time.Now()
			g.say("%s: %.0f %% of %d entries are written", label, 100*part, h.Entries())
		}
	})
	if err != nil {
		return nil, err
	}
	if err := g.execute(ctx, s.database, further...); err != nil {
		return nil, err
	}
	if err := g.stand.db.QueryRow(ctx, "SELECT pg_database_size($1)", s.database).Scan(&s.Disk); err != nil {
		return nil, fmt.Errorf("size of the database: %w", err)
	}
	s.Prepared = time.Since(began).Seconds()
	g.say("%s: written in %.0f s, %.0f MB", label, s.Prepared, float64(s.Disk)/1e6)
	return s, nil
}

// start starts n instances of a size.
func (g *grower) start(ctx context.Context, s *grown, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 5*startTimeout)
	defer cancel()
	for i := range n {
		if i > 0 {
			s.at = append(s.at, &site{exe: s.at[0].exe, databaseURL: s.at[0].databaseURL, redisURL: s.at[0].redisURL})
		}
		began := time.Now()
		if err := g.stand.serve(ctx, s.at[i], append([]string{fmt.Sprint("QUOTASVC_REPLICAS=", n)}, s.env...)...); err != nil {
			return fmt.Errorf("start the service: %w", err)
		}
		s.Start = max(s.Start, time.Since(began).Seconds())
	}
	return nil
}

// clear stops the instances of a step, drops its databases, and empties Redis.
func (g *grower) clear() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	var errs error
	for _, c := range g.stand.children {
		errs = errors.Join(errs, c.Stop(ctx))
	}
	g.stand.children = nil
	rows, err := g.stand.db.Query(ctx, "SELECT datname FROM pg_database WHERE datname LIKE 'size\\_%'")
	if err != nil {
		return errors.Join(errs, fmt.Errorf("databases: %w", err))
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	errs = errors.Join(errs, err)
	for _, name := range names {
		if _, err := g.stand.db.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			errs = errors.Join(errs, fmt.Errorf("drop database: %w", err))
		}
	}
	if err := g.stand.redis.Kill(); err != nil {
		return errors.Join(errs, err)
	}
	return errors.Join(errs, g.stand.redis.Start(ctx))
}

// fits returns the sizes that fit on the disk, and a line with the reason for each omitted size. The function `need`
// returns the bytes that a size takes. All sizes of a step are on the disk at the same time.
func (g *grower) fits(sizes []int, what string, need func(n int) float64) (fit []int, leftOut []string, err error) {
	free, err := freeBytes(g.stand.postgres.Dir())
	if err != nil {
		return nil, nil, err
	}
	return g.fitInto(free, sizes, what, need)
}

func (g *grower) fitInto(free float64, sizes []int, what string, need func(n int) float64) (fit []int, leftOut []string, err error) {
	total := 0.0
	for _, n := range sizes {
		total += need(n)
		if with := total + min(walBytes, 2*total); with > g.cfg.DiskShare*free {
			why := fmt.Sprintf("%s: it needs about %.1f GB with the smaller ones and the WAL, and %.0f %% of the free disk are %.1f GB (--disk-share)",
				growth.Label(int64(n), what), with/1e9, 100*g.cfg.DiskShare, g.cfg.DiskShare*free/1e9)
			g.say("LEFT OUT: %s", why)
			leftOut = append(leftOut, why)
			total -= need(n)
			continue
		}
		fit = append(fit, n)
	}
	if len(fit) == 0 {
		return nil, nil, fmt.Errorf("the disk has no room for any size: %s", strings.Join(leftOut, "; "))
	}
	return fit, leftOut, nil
}

// MemoryQuarter returns shared_buffers for a server with data of many sizes. As docs/postgres.md advises, the value
// is a quarter of the machine's memory, in whole gigabytes. If the machine has less than 4 GB, or its memory is
// unknown, MemoryQuarter returns nil.
func MemoryQuarter() map[string]string {
	kilobytes, err := strconv.ParseInt(strings.TrimSuffix(report.ProcField("/proc/meminfo", "MemTotal"), " kB"), 10, 64)
	if quarter := kilobytes >> 22; err == nil && quarter > 0 {
		return map[string]string{"shared_buffers": fmt.Sprint(quarter, "GB")}
	}
	return nil
}

func freeBytes(dir string) (float64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("free disk: %w", err)
	}
	return float64(fs.Bavail) * float64(fs.Bsize), nil
}
