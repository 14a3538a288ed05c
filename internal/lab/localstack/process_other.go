//go:build unix && !linux

package localstack

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// setDeathSignal does nothing, because only Linux has a parent-death signal. If the owner of a server has died, the
// next start finds the server by its pid file.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}

// childrenOf returns the pids of the processes whose parent is pid. pgrep is part of the BSDs and macOS.
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

// zombie always returns false. Only Linux containers are known to run without a process that reaps orphans.
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

// memoryRoot returns no directory, because only Linux always has a file system in memory.
func memoryRoot() (string, bool) { return "", false }

// removeSharedMemory does nothing: the next start removes the shared memory of a killed server. Test suites that kill
// so many servers that the kernel has no more segments run only on Linux.
func removeSharedMemory(string) {}
