package localstack

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// setDeathSignal makes the kernel send sig to the child when the thread that
// forked it ends. Go sets it after the change of user, which would clear it.
func setDeathSignal(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// childrenOf lists the pids whose parent is pid. /proc/PID/task/TID/children would
// take one read but needs a kernel option; the parent field always exists.
func childrenOf(pid int) []int {
	// Glob's only error is a malformed pattern.
	procs, _ := filepath.Glob("/proc/[0-9]*")
	var children []int
	for _, proc := range procs {
		child, err := strconv.Atoi(filepath.Base(proc))
		if err != nil {
			continue
		}
		if _, parent := stat(child); parent == pid {
			children = append(children, child)
		}
	}
	return children
}

// zombie reports whether pid has exited and waits for its parent to notice.
func zombie(pid int) bool {
	state, _ := stat(pid)
	return state == "Z"
}

// stat returns the state and the parent of pid, or zero values if it does not exist.
func stat(pid int) (state string, parent int) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0
	}
	// "pid (name) state ppid ...": the name may hold spaces and parentheses.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return "", 0
	}
	parent, err = strconv.Atoi(string(fields[1]))
	if err != nil {
		return "", 0
	}
	return string(fields[0]), parent
}

// workingDir returns the working directory of pid, or an empty string if it is
// unknown. PostgreSQL works in its data directory, Redis in its dir.
func workingDir(pid int) string {
	dir, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	if err != nil {
		return ""
	}
	return dir
}
