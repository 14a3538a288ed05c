package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// describe returns the machine and the settings of the run. It returns an error if a commit of PostgreSQL does not
// wait for the disk.
func (s *stand) describe(ctx context.Context) (m report.Machine, err error) {
	cfg := &s.cfg
	m = report.Machine{
		Date: time.Now().UTC().Truncate(time.Second), CPU: report.ProcField("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(),
		OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), PostgreSQL: "PostgreSQL " + s.postgres.Version(),
		Redis: "Redis " + s.redisVersion(ctx), Connections: cfg.Connections, Tenants: cfg.Tenants, Batch: cfg.Batch, Rounds: cfg.Rounds,
		Slice: cfg.Slice.String(), LoadBefore: loadAverage(),
	}
	var fsync, commit, pages string
	err = s.db.QueryRow(ctx, "SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')").
		Scan(&fsync, &commit, &pages)
	if err != nil {
		return m, fmt.Errorf("ask for durability: %w", err)
	}
	m.Durability = fmt.Sprintf("fsync=%s synchronous_commit=%s full_page_writes=%s", fsync, commit, pages)
	if fsync != "on" || commit != "on" || pages != "on" {
		return m, fmt.Errorf("PostgreSQL does not wait for its disk: %s", m.Durability)
	}
	m.SyncMicros, err = diskSync(s.postgres.Dir())
	return m, err
}

// diskSync returns the median time of an 8 KiB write and fsync, in µs. This measures only the disk, so that the disks
// of machines can be compared.
func diskSync(dir string) (int64, error) {
	f, err := os.CreateTemp(dir, "sync-")
	if err != nil {
		return 0, fmt.Errorf("measure the disk: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // an empty file in a temporary directory
	defer f.Close()
	h, block := newHistogram(), make([]byte, 8<<10)
	for range 200 {
		at := time.Now()
		if _, err := f.WriteAt(block, 0); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("measure the disk: %w", err)
		}
		_ = h.RecordValue(max(time.Since(at).Microseconds(), 1))
	}
	return h.ValueAtQuantile(50), nil
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// peakMemory returns the peak resident memory of a process in bytes, or 0 if it is unknown.
func peakMemory(pid int) int64 {
	kb, err := strconv.ParseInt(strings.TrimSuffix(report.ProcField(fmt.Sprintf("/proc/%d/status", pid), "VmHWM"), " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return kb << 10
}
