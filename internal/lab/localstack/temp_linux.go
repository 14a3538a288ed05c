package localstack

import "syscall"

const (
	// sharedMemory is the directory of a file system in memory. Copying a small database there took 25 ms, and 300 ms
	// on ext4, because a copy creates some 700 files.
	sharedMemory = "/dev/shm"

	// minSharedMemory is the free space, in bytes, that a test run needs. It is enough for a dozen clusters of 40 MB
	// at the same time, with the copies of their databases and their WAL. /dev/shm of a Docker container has 64 MB by
	// default.
	minSharedMemory = 2 << 30
)

// memoryRoot returns a directory in memory if there is one with enough space.
func memoryRoot() (string, bool) {
	var fs syscall.Statfs_t
	err := syscall.Statfs(sharedMemory, &fs)
	return sharedMemory, err == nil && fs.Bavail*uint64(fs.Bsize) >= minSharedMemory
}
