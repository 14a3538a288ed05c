//go:build unix && !linux

package localstack

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// setDeathSignal does nothing: only Linux has a parent-death signal. The next start finds the server of a dead owner
// by its pid file.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}

// childrenOf lists the pids whose parent is pid; pgrep is part of the BSDs and macOS.
func childrenOf(pid int) []int {
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil
	}
	var children []int
	for _, field := range strings.Fields(string(out)) {
		if child, err := strconv.Atoi(field); err == nil {
			children = append(children, child)
		}
	}
	return children
}

// zombie reports whether pid has exited and was not reaped. Only Linux containers
// are known to run without a process that reaps orphans.
func zombie(int) bool { return false }

// workingDir returns the working directory of pid, or an empty string if it is unknown.
func workingDir(pid int) string {
	out, err := exec.Command("lsof", "-a", "-d", "cwd", "-Fn", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		if dir, ok := strings.CutPrefix(strings.TrimSpace(line), "n"); ok {
			return dir
		}
	}
	return ""
}

// memoryRoot finds no directory in memory: only Linux always has one.
func memoryRoot() (string, bool) { return "", false }

// removeSharedMemory does nothing: the next start removes a killed server's segment.
// Only on Linux do test suites kill so many servers that segments run out.
func removeSharedMemory(string) {}
