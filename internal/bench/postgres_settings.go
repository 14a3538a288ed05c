package bench

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
)

// setting is a way to run PostgreSQL.
type setting struct {
	group      string
	name       string
	values     map[string]string // that differ from baseSettings
	socket     bool              // the service connects through a Unix socket
	checkpoint bool              // a checkpoint begins with each slice
	gives      string            // what is given up, or what it costs, in words
}

// base is the setting that the others of its group are compared with, in the same round. It comes first.
const base = "as the base"

// withStandby is the group that has a standby on the same machine. Its servers are not started again for each setting.
const withStandby = "with a standby"

// baseSettings are those of `make bench`: the data fits into memory, and no checkpoint begins during a slice. The rest are PostgreSQL's defaults.
func baseSettings() map[string]string {
	return map[string]string{"shared_buffers": "512MB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"}
}

// hugeRoom is what shared memory of baseSettings needs, in bytes.
const hugeRoom = 600 << 20

// settingsToCompare returns all settings, and those that this machine cannot run, with the reason.
func settingsToCompare() (all []setting, left []string) {
	set := func(pairs ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	all = []setting{
		{group: "memory", name: base},
		{group: "memory", name: "shared_buffers = 128MB", values: set("shared_buffers", "128MB")},
		{group: "memory", name: "shared_buffers = 2GB", values: set("shared_buffers", "2GB"), gives: "memory"},
		{group: "memory", name: "huge_pages = on", values: set("huge_pages", "on"), gives: "memory that nothing else can use"},
		{group: "WAL", name: base},
		{group: "WAL", name: "wal_buffers = 64MB", values: set("wal_buffers", "64MB"), gives: "memory"},
		{group: "WAL", name: "wal_compression = on", values: set("wal_compression", "on"), gives: "CPU, for less WAL after checkpoints"},
		{group: "WAL", name: "a checkpoint in each slice", checkpoint: true, gives: "whole pages in WAL after it"},
		{group: "WAL", name: "the same, wal_compression = on", checkpoint: true, values: set("wal_compression", "on"), gives: "CPU"},
		{group: "WAL", name: "max_wal_size = 64MB", values: set("max_wal_size", "64MB", "min_wal_size", "32MB"), gives: "a checkpoint every few seconds"},
		{group: "commit", name: base},
		{group: "commit", name: "commit_delay = 200 µs", values: set("commit_delay", "200", "commit_siblings", "1"), gives: "time of each batch"},
		{group: "commit", name: "commit_delay = 1000 µs", values: set("commit_delay", "1000", "commit_siblings", "1"), gives: "time of each batch"},
		{group: "commit", name: "synchronous_commit = off", values: set("synchronous_commit", "off"), gives: "DEBITS: a crash of the server loses up to 0.6 s"},
		{group: "transport", name: base},
		{group: "transport", name: "Unix socket", socket: true, gives: "a server of its own"},
	}
	standby := func(level, gives string) setting {
		return setting{group: withStandby, name: "synchronous_commit = " + level, values: set("synchronous_standby_names", "*", "synchronous_commit", level), gives: gives}
	}
	all = append(all, setting{group: withStandby, name: base, values: set("synchronous_commit", "local"), gives: "DEBITS at a failover: what the standby lacks"},
		standby("remote_write", "debits if both machines lose power at once"),
		standby("on", "time: the standby's disk"), standby("remote_apply", "time: the standby's replay"))
	if free := hugeBytesFree(); free < hugeRoom {
		all = slices.DeleteFunc(all, func(s setting) bool { return s.values["huge_pages"] != "" })
		left = append(left, fmt.Sprintf("huge_pages = on: this machine has %d MB of free huge pages, %d are needed (vm.nr_hugepages)", free>>20, hugeRoom>>20))
	}
	return all, left
}

// hugeBytesFree returns the huge pages that nobody uses, in bytes. 0 if the system has none.
func hugeBytesFree() int64 {
	n, err := strconv.ParseInt(field("/proc/meminfo", "HugePages_Free"), 10, 64)
	size, sized := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "Hugepagesize"), " kB"), 10, 64)
	if err != nil || sized != nil {
		return 0
	}
	return n * size << 10
}

// wanted returns the settings with one of these texts in group or name, each with the base of its group.
func wanted(all []setting, only []string) []setting {
	match := func(s setting) bool {
		return len(only) == 0 || slices.ContainsFunc(only, func(part string) bool { return strings.Contains(s.group+": "+s.name, part) })
	}
	groups := map[string]bool{}
	for _, s := range all {
		groups[s.group] = groups[s.group] || match(s)
	}
	return slices.DeleteFunc(slices.Clone(all), func(s setting) bool { return !match(s) && (s.name != base || !groups[s.group]) })
}

// complete returns all values of the setting.
func (s *setting) complete() map[string]string {
	out := baseSettings()
	maps.Copy(out, s.values)
	return out
}

// makeSocketDir makes a directory with a short name, as a socket needs it, that the server's user may write to.
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
