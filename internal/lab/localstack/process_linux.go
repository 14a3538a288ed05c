package localstack

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// setDeathSignal makes the kernel send sig to the child when the thread that forked the child ends. A change of the
// user clears this setting, so Go makes this setting after the change of the user.
func setDeathSignal(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// childrenOf returns the pids of the processes whose parent is pid. One read of /proc/PID/task/TID/children would be
// enough, but that file needs a kernel option. The field with the parent always exists.
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

// zombie reports whether the process pid has exited and was not reaped by its parent.
func zombie(pid int) bool {
	state, _ := stat(pid)
	return state == "Z"
}

// stat returns the state and the parent of the process pid. It returns zero values if the process does not exist.
func stat(pid int) (state string, parent int) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", 0
	}
	// "pid (name) state ppid ...": the name may contain spaces and parentheses.
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

// workingDir returns the working directory of the process pid, or an empty string if it is unknown. For PostgreSQL it
// is the data directory. For Redis it is the directory in the setting `dir`.
func workingDir(pid int) string {
	dir, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/cwd")
	if err != nil {
		return ""
	}
	return dir
}
