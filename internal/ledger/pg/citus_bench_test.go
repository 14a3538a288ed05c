package pg

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// benchCitus is the name of an environment variable, which `make bench-citus` sets. Its value is the duration of one
// measured round, such as 5s.
const benchCitus = "QUOTASVC_BENCH_CITUS"

// The test runs the same debits on PostgreSQL and on a cluster of a coordinator and two workers. On the cluster the
// debits go to the nodes directly, or through the coordinator. The three variants alternate, without HTTP. The
// connections of the other variants stay open, but only the work of the measured variant is counted.
func TestBench_DebitsOnCitusBesidePostgres(t *testing.T) {
	round, err := time.ParseDuration(os.Getenv(benchCitus))
	if err != nil {
		t.Skipf("a measurement: make bench-citus (%s is a duration, such as 5s)", benchCitus)
	}
	plain, cluster := testenv.PostgresPrivate(t), testenv.CitusPrivate(t)
	stands := []*benchStand{
		newBenchStand(t, "PostgreSQL", plain.URL, false, plain.URL),
		newBenchStand(t, "Citus, to the nodes", cluster.URL, false, cluster.URL, cluster.Workers[0].URL, cluster.Workers[1].URL),
		newBenchStand(t, "Citus, through the coordinator", cluster.URL, true, cluster.URL, cluster.Workers[0].URL, cluster.Workers[1].URL),
	}
	for _, clients := range []int{16, 256} {
		for turn := range 3 {
			for _, s := range stands {
				s.measure(t, turn, clients, round)
			}
		}
	}
}

const citusBenchTenants = 1000

type benchStand struct {
	*bundle
	name  string
	of    string   // the prefix of the ids of its tenants
	roots []string // process ids of the servers
	next  atomic.Int64
}

func newBenchStand(t *testing.T, name, url string, throughCoordinator bool, nodes ...string) *benchStand {
	t.Helper()
	s := &benchStand{
		bundle: newBundleOn(t, url, func(c *Config) { c.ThroughCoordinator = throughCoordinator }), name: name, of: fmt.Sprintf("tenant-%t-", throughCoordinator),
	}
	for n := range citusBenchTenants {
		s.simple(fmt.Sprint(s.of, n), 1_000_000_000)
	}
	for _, node := range nodes {
		conn, err := pgx.Connect(t.Context(), node)
		require.NoError(t, err)
		var dir string
		require.NoError(t, conn.QueryRow(t.Context(), "SELECT current_setting('data_directory')").Scan(&dir))
		_ = conn.Close(t.Context()) // an error of Close does not matter: nothing was written
		text, err := os.ReadFile(filepath.Join(dir, "postmaster.pid"))
		if err != nil {
			t.Skip("the servers run as another user: measure as root or as that user: ", err)
		}
		pid, _, _ := strings.Cut(string(text), "\n")
		s.roots = append(s.roots, pid)
	}
	return s
}

func (s *benchStand) measure(t *testing.T, turn, clients int, round time.Duration) {
	t.Helper()
	s.debitFor(t, clients, round/4) // these debits warm connections and caches
	servers, self := s.serverCPU(t), selfCPU()
	began := time.Now()
	debits := s.debitFor(t, clients, round)
	took := time.Since(began)
	servers, self = s.serverCPU(t)-servers, selfCPU()-self
	per := func(cpu time.Duration) string {
		return fmt.Sprintf("%.0f us", float64(cpu.Microseconds())/float64(debits))
	}
	t.Logf("turn %d, %3d clients, %-32s %6.0f debits/s, CPU per debit: servers %s, this process %s", turn, clients, s.name,
		float64(debits)/took.Seconds(), per(servers), per(self))
}

// debitFor makes debits for the duration d and returns their number.
func (s *benchStand) debitFor(t *testing.T, clients int, d time.Duration) int64 {
	t.Helper()
	var made atomic.Int64
	var all sync.WaitGroup
	end := time.Now().Add(d)
	for range clients {
		all.Go(func() {
			for time.Now().Before(end) {
				n := s.next.Add(1)
				if _, err := Do(t.Context(), s.Ledger, debitOf(fmt.Sprint(s.of, n*7919%citusBenchTenants), fmt.Sprint("bench-", n), 1)); err != nil {
					t.Error(err)
					return
				}
				made.Add(1)
			}
		})
	}
	all.Wait()
	return made.Load()
}

// serverCPU returns the CPU time of the servers' processes that still run. A backend process runs as long as its
// connection is open.
func (s *benchStand) serverCPU(t *testing.T) time.Duration {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(paths) == 0 {
		t.Skip("there is no /proc to read the servers' CPU time from")
	}
	var ticks int64
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest) // 0 is the process state, 1 the parent, 11 utime, 12 stime
		pid := filepath.Base(filepath.Dir(path))
		for _, root := range s.roots {
			if len(fields) > 12 && (fields[1] == root || pid == root) {
				user, _ := strconv.ParseInt(fields[11], 10, 64)
				system, _ := strconv.ParseInt(fields[12], 10, 64)
				ticks += user + system
			}
		}
	}
	return time.Duration(ticks) * (time.Second / 100)
}

func selfCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
