package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotasvc/quotasvc/lab/bench/report"
)

// tick is the unit of the CPU times in /proc. On Linux it is always a hundredth of a second.
const tick = 10 * time.Millisecond

// process is a process as /proc describes it.
type process struct {
	parent int
	name   string
	used   time.Duration
	reaped time.Duration // CPU time of its ended children
}

// processes reads /proc. It returns an empty map on systems without it.
func processes() map[int]process {
	out := map[int]process{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		if pid, p, ok := parseStat(text); ok {
			out[pid] = p
		}
	}
	return out
}

// parseStat parses /proc/<pid>/stat. The name is in parentheses and may contain blanks and parentheses.
func parseStat(text []byte) (pid int, p process, ok bool) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || end < open {
		return 0, p, false
	}
	fields := strings.Fields(string(text[end+1:]))
	if len(fields) < 15 {
		return 0, p, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:open])))
	if err != nil {
		return 0, p, false
	}
	p.name = string(text[open+1 : end])
	p.parent, _ = strconv.Atoi(fields[1])
	ticks := func(user, system string) time.Duration {
		u, _ := strconv.ParseInt(user, 10, 64)
		s, _ := strconv.ParseInt(system, 10, 64)
		return time.Duration(u+s) * tick
	}
	p.used, p.reaped = ticks(fields[11], fields[12]), ticks(fields[13], fields[14])
	return pid, p, true
}

// cpuOf returns the CPU time used so far by this process, its child servers, and the web servers with the pids `webs`.
func cpuOf(self int, webs ...int) report.CPU {
	all := processes()
	var c report.CPU
	for pid, p := range all {
		switch {
		case pid == self:
			c.Generator += p.used
		case slices.Contains(webs, pid):
			c.Service += p.used
		case !descends(all, pid, self):
		case p.name == "postgres":
			c.PostgreSQL += p.used + p.reaped // without reaped, the sum would decrease when a connection ends
		case p.name == "redis-server":
			c.Redis += p.used
		}
	}
	return c
}

// descends reports whether ancestor is a direct or indirect parent of pid.
func descends(all map[int]process, pid, ancestor int) bool {
	for range len(all) { // bounded, because the processes were not read at one instant, and parents could form a circle
		p, ok := all[pid]
		if !ok {
			return false
		}
		if pid = p.parent; pid == ancestor {
			return true
		}
	}
	return false
}
