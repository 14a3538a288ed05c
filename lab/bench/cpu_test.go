package bench

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestParseStat_OddProcessNames_Parsed(t *testing.T) {
	t.Parallel()
	pid, p, ok := parseStat([]byte("4711 (a) b (c) S 12 4711 4711 0 -1 4194560 1 2 3 4 250 50 7 8 20 0 1 0 100 200 300"))
	assert.True(t, ok && pid == 4711 && p == (process{parent: 12, name: "a) b (c", used: 3 * time.Second, reaped: 150 * time.Millisecond}),
		"%d %+v %v", pid, p, ok)
	for _, text := range []string{"", "1", "1 (x", "x (y) S 1 2", "1 (y) S"} {
		if _, _, ok := parseStat([]byte(text)); ok {
			t.Errorf("%q is parsed as a process", text)
		}
	}
}

func TestCPU_OwnProcess_GrowsWithWork(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Logf("no /proc on this system: CPU times are reported as 0")
		return
	}
	before := cpuOf(os.Getpid(), 0).Generator
	for cpuOf(os.Getpid(), 0).Generator < before+5*tick {
	}
	assert.True(t, descends(processes(), os.Getpid(), os.Getppid()) &&
		!descends(processes(), os.Getppid(), os.Getpid()), "this process is not its parent's child")
}
