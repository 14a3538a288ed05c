package localstack

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// shmemLine is the line of postmaster.pid, from 0, that holds the key and the id of
// the server's System V segment (PostgreSQL's miscadmin.h, LOCK_FILE_LINE_SHMEM_KEY).
const shmemLine = 6

// removeSharedMemory removes the small System V segment of a killed server. The
// next start in the same directory would do it, but a test that kills a server may
// be done with it, and the kernel allows 4,096 segments in all. Best effort: no
// harm is done by a segment that stays, and the kernel keeps one that is in use
// until its users are gone.
func removeSharedMemory(dataDir string) {
	text, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		return // it died before it had one
	}
	lines := strings.Split(string(text), "\n")
	if len(lines) <= shmemLine {
		return
	}
	fields := strings.Fields(lines[shmemLine])
	if len(fields) != 2 {
		return
	}
	if id, err := strconv.Atoi(fields[1]); err == nil {
		_, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	}
}
