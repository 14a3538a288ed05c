package tuning

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// Setting is a way to run PostgreSQL, for example with other values of its parameters.
type Setting struct {
	Group      string
	Name       string
	Socket     bool // whether the service connects through a Unix socket
	Checkpoint bool // whether a checkpoint begins with each slice

	values map[string]string // values that differ from baseSettings
	gives  string            // text: what an operator gives up with this setting
}

// base is the name of the setting with which the other settings of its group are compared. It is the first of its
// group.
const base = "as the base"

// WithStandby is the name of the group with a standby on the same machine. Its servers are not restarted for each
// setting.
const WithStandby = "with a standby"

// baseSettings returns the settings of `make bench`: the data fits into memory, and no checkpoint begins during a
// slice. All other parameters have PostgreSQL's defaults.
func baseSettings() map[string]string {
	return map[string]string{"shared_buffers": "512MB", "max_wal_size": "8GB", "checkpoint_timeout": "30min"}
}

// hugeRoom is the shared memory that baseSettings needs, in bytes.
const hugeRoom = 600 << 20

// All returns the settings that this machine can run, and a line with the reason for each other setting.
func All() (all []Setting, left []string) {
	set := func(pairs ...string) map[string]string {
		out := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i]] = pairs[i+1]
		}
		return out
	}
	all = []Setting{
		{Group: "memory", Name: base},
		{Group: "memory", Name: "shared_buffers = 128MB", values: set("shared_buffers", "128MB")},
		{Group: "memory", Name: "shared_buffers = 2GB", values: set("shared_buffers", "2GB"), gives: "memory"},
		{Group: "memory", Name: "huge_pages = on", values: set("huge_pages", "on"), gives: "memory that nothing else can use"},
		{Group: "WAL", Name: base},
		{Group: "WAL", Name: "wal_buffers = 64MB", values: set("wal_buffers", "64MB"), gives: "memory"},
		{Group: "WAL", Name: "wal_compression = on", values: set("wal_compression", "on"), gives: "CPU, for less WAL after checkpoints"},
		{Group: "WAL", Name: "a checkpoint in each slice", Checkpoint: true, gives: "whole pages in WAL after it"},
		{Group: "WAL", Name: "the same, wal_compression = on", Checkpoint: true, values: set("wal_compression", "on"), gives: "CPU"},
		{Group: "WAL", Name: "max_wal_size = 64MB", values: set("max_wal_size", "64MB", "min_wal_size", "32MB"), gives: "a checkpoint every few seconds"},
		{Group: "commit", Name: base},
		{Group: "commit", Name: "commit_delay = 200 µs", values: set("commit_delay", "200", "commit_siblings", "1"), gives: "time of each batch"},
		{Group: "commit", Name: "commit_delay = 1000 µs", values: set("commit_delay", "1000", "commit_siblings", "1"), gives: "time of each batch"},
		{Group: "commit", Name: "synchronous_commit = off", values: set("synchronous_commit", "off"), gives: "DEBITS: a crash of the server loses up to 0.6 s"},
		{Group: "transport", Name: base},
		{Group: "transport", Name: "Unix socket", Socket: true, gives: "a server of its own"},
	}
	standby := func(level, gives string) Setting {
		return Setting{Group: WithStandby, Name: "synchronous_commit = " + level, values: set("synchronous_standby_names", "*", "synchronous_commit", level), gives: gives}
	}
	all = append(all, Setting{Group: WithStandby, Name: base, values: set("synchronous_commit", "local"), gives: "DEBITS at a failover: what the standby lacks"},
		standby("remote_write", "debits if both machines lose power at once"),
		standby("on", "time: the standby's disk"), standby("remote_apply", "time: the standby's replay"))
	if free := hugeBytesFree(); free < hugeRoom {
		all = slices.DeleteFunc(all, func(s Setting) bool { return s.values["huge_pages"] != "" })
		left = append(left, fmt.Sprintf("huge_pages = on: this machine has %d MB of free huge pages, %d are needed (vm.nr_hugepages)", free>>20, hugeRoom>>20))
	}
	return all, left
}

// hugeBytesFree returns the size of the free huge pages in bytes. It returns 0 if the system has none.
func hugeBytesFree() int64 {
	n, err := strconv.ParseInt(report.ProcField("/proc/meminfo", "HugePages_Free"), 10, 64)
	size, sized := strconv.ParseInt(strings.TrimSuffix(report.ProcField("/proc/meminfo", "Hugepagesize"), " kB"), 10, 64)
	if err != nil || sized != nil {
		return 0
	}
	return n * size << 10
}

// Wanted returns the settings whose group or name contains one of the given texts, each with the base of its group.
func Wanted(all []Setting, only []string) []Setting {
	match := func(s Setting) bool {
		return len(only) == 0 || slices.ContainsFunc(only, func(part string) bool { return strings.Contains(s.Group+": "+s.Name, part) })
	}
	groups := map[string]bool{}
	for _, s := range all {
		groups[s.Group] = groups[s.Group] || match(s)
	}
	return slices.DeleteFunc(slices.Clone(all), func(s Setting) bool { return !match(s) && (s.Name != base || !groups[s.Group]) })
}

// Values returns the values of all parameters of the setting, including baseSettings.
func (s *Setting) Values() map[string]string {
	out := baseSettings()
	maps.Copy(out, s.values)
	return out
}
