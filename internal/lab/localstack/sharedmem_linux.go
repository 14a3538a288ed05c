package localstack

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// shmemLine is the index (from 0) of a line of postmaster.pid. The line contains the key and the id of the server's
// System V segment (LOCK_FILE_LINE_SHMEM_KEY in PostgreSQL's miscadmin.h).
const shmemLine = 6

// removeSharedMemory removes the small System V segment of a killed server. The next start in the same directory would
// remove it, but a test may not start the server again. The kernel allows only 4,096 segments. Errors are ignored: a
// segment that stays does no harm. The kernel keeps a removed segment until the last process that uses it ends.
func removeSharedMemory(dataDir string) {
	text, err := os.ReadFile(filepath.Join(dataDir, "postmaster.pid"))
	if err != nil {
		return // the server ended before it had a segment
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
