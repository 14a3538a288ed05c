package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// jsonLines returns a handler that writes JSON.
func jsonLines(to io.Writer) slog.Handler { return slog.NewJSONHandler(to, nil) }

// logInto returns a logger and its flood. The returned function returns the number of written and dropped lines,
// keyed by their level and message.
func logInto() (*slog.Logger, *flood, func() map[string]int) {
	var out testenv.Log
	f := newFlood(newLogQueue(&out, jsonLines))
	return slog.New(f), f, func() map[string]int {
		lines := map[string]int{}
		for line := range strings.Lines(out.String()) {
			var l struct {
				Level, Msg, Message, Part string
				Dropped                   int
			}
			_ = json.Unmarshal([]byte(line), &l) // text that is not JSON has no message
			lines[strings.TrimSpace(fmt.Sprint(l.Level, " ", l.Msg, " ", l.Message))] += max(l.Dropped, 1)
		}
		return lines
	}
}

func TestFlood_EqualLines_FirstTenThenOneInHundred(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, f, written := logInto()
		for range 1000 {
			log.Warn("down")
			log.With("part", "x").Error("down") // another level has another count; a derived logger shares it
			log.Info("well")
			log.Error(accessLine)
		}
		log.Warn("once")
		want := map[string]int{
			"WARN down": 19, "ERROR down": 19, "INFO well": 1000, "ERROR " + accessLine: 1000, "WARN once": 1,
		}
		for line, n := range written() {
			assert.True(t, n == want[line], "%s: %d, want %d", line, n, want[line])
		}
		time.Sleep(floodWindow + time.Second)
		got := written()
		assert.True(t, got["WARN log lines dropped down"] == 981 && got["ERROR log lines dropped down"] == 981 &&
			len(got) == 7, got)
		log.Warn("down") // written: the window of the flood has ended
		time.Sleep(floodWindow + time.Second)
		got = written()
		assert.True(t, got["WARN down"] == 20 && got["WARN log lines dropped down"] == 981, got)
		for range 12 {
			log.Warn("at the end")
		}
		f.endAll()
		got = written()
		assert.True(t, got["WARN log lines dropped at the end"] == 2 && len(f.windows) == 0, got)
	})
}

func TestFlood_ManyMessages_MemoryBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, f, written := logInto()
		for i := range 3 * floodMessages {
			log.Warn(fmt.Sprint("message ", i)) //nolint:sloglint // the test needs many messages
		}
		n := len(f.windows)
		assert.True(t, n <= floodMessages+1, "%d messages are counted", n)
		f.endAll()
		if n := len(written()); n < floodMessages || n > floodMessages+floodFirst+2*floodMessages/floodOneIn+1 {
			t.Errorf("%d messages are written", n)
		}
	})
}
