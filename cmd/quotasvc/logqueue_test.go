package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// output is the output of a log. Each write waits until the test takes its text, and then fails with err.
type output struct {
	writes chan string
	err    error
}

func (o *output) Write(text []byte) (int, error) {
	o.writes <- string(text)
	return len(text), o.err
}

// startQueue returns a started queue with its output. It must be called within synctest.
func startQueue() (*logQueue, *output) {
	out := &output{writes: make(chan string)}
	q := newLogQueue(out, jsonLines)
	q.start()
	return q, out
}

// take reads writes until the queue is empty, and returns their text.
func (o *output) take() string {
	var text strings.Builder
	for {
		synctest.Wait()
		select {
		case written := <-o.writes:
			text.WriteString(written)
		default:
			return text.String()
		}
	}
}

// addLine adds a line of n bytes.
func (q *logQueue) addLine(level slog.Level, n int) {
	_, _ = levelWriter{q, level}.Write([]byte(strings.Repeat("x", n-1) + "\n"))
}

// droppedLines returns the numbers of dropped lines of all levels.
func droppedLines(q *logQueue) string {
	var out []string
	for _, level := range logLevels {
		out = append(out, fmt.Sprint(testutil.ToFloat64(q.dropped.WithLabelValues(level, "queue"))))
	}
	return strings.Join(out, " ")
}

func TestLogQueue_NotRead_DropsWarnLastAndReportsWhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, out := startQueue()
		log := slog.New(q.lines)
		log.Info("first")
		synctest.Wait() // the first line is being written
		q.addLine(slog.LevelInfo, logQueueLow)
		q.addLine(slog.LevelDebug, 1)
		q.addLine(slog.LevelInfo, 1)
		assert.Equal(t, "1 1 0 0", droppedLines(q), "beyond the part for lines below WARN")
		q.addLine(slog.LevelWarn, logQueueMax-logQueueLow)
		assert.Equal(t, "1 1 0 0", droppedLines(q), "the rest is for WARN and above")
		q.addLine(slog.LevelWarn, 1)
		q.addLine(slog.LevelError, 1)
		assert.Equal(t, "1 1 1 1", droppedLines(q), "beyond the whole")

		lines := strings.Split(out.take(), "\n")
		require.Len(t, lines, 6) // the last one is empty
		assert.Contains(t, lines[0], `"first"`)
		assert.Len(t, lines[1], logQueueLow-1)
		const report = `"level":"WARN","msg":"log lines dropped","reason":"queue",`
		assert.Contains(t, lines[2], report+`"debug":1,"info":1,"warn":0,"error":0}`)
		assert.Len(t, lines[3], logQueueMax-logQueueLow-1)
		assert.Contains(t, lines[4], report+`"debug":0,"info":0,"warn":1,"error":1}`)

		log.Info("again")
		assert.Contains(t, out.take(), `"again"`)
		assert.Equal(t, "1 1 1 1", droppedLines(q))
		q.end()
	})
}

func TestLogQueue_Stalled_WhileAWriteLasts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, out := startQueue()
		assert.False(t, q.stalled(), "idle")
		q.addLine(slog.LevelInfo, 10)
		time.Sleep(logStalled)
		assert.False(t, q.stalled(), "a write that lasts a second")
		time.Sleep(time.Millisecond)
		assert.True(t, q.stalled(), "a write that lasts longer")
		out.take()
		assert.False(t, q.stalled(), "read again")
		q.end()
	})
}

// Lines that cannot be written are counted as dropped, and reported as soon as writing succeeds.
func TestLogQueue_WriteFails_StalledCountedReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, out := startQueue()
		out.err = errors.New("broken pipe")
		for range 3 {
			q.addLine(slog.LevelError, 10)
			out.take()
		}
		assert.True(t, q.stalled())
		assert.Equal(t, "0 0 0 3", droppedLines(q))
		out.err = nil
		q.addLine(slog.LevelError, 10)
		assert.Contains(t, out.take(), `"error":3}`)
		assert.False(t, q.stalled())
		q.end()
	})
}

// The end writes all lines if somebody reads them, and gives up after a time if nobody does.
func TestLogQueue_End_FlushesWithinItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, out := startQueue()
		q.flushWithin(time.Minute)
		var read strings.Builder
		go func() {
			for text := range out.writes {
				read.WriteString(text)
				time.Sleep(time.Second)
			}
		}()
		for range 20 { // two lines in each write
			q.addLine(slog.LevelInfo, logWriteMax/2)
		}
		q.print("the last words\n")
		q.end()
		synctest.Wait()
		assert.True(t, strings.HasSuffix(read.String(), "the last words\n"), "%d bytes were written", read.Len())
		q.print("too late\n") // it does not wait
		q.end()
		close(out.writes)

		q, out = startQueue()
		q.print("nobody reads this\n")
		began := time.Now()
		q.end()
		assert.Equal(t, logFlush, time.Since(began))
		out.take()
	})
}

// Before start, as in commands, each line is written at once.
func TestLogQueue_NotStarted_WritesAtOnce(t *testing.T) {
	t.Parallel()
	var out testenv.Log
	q := newLogQueue(&out, jsonLines)
	slog.New(q.lines).Warn("now")
	assert.Contains(t, out.String(), `"now"`)
	q.end()
}

func TestLogQueue_Levels_CountedByName(t *testing.T) {
	t.Parallel()
	for level, want := range map[slog.Level]string{
		-8: "debug", slog.LevelDebug: "debug", -1: "debug", slog.LevelInfo: "info", 3: "info",
		slog.LevelWarn: "warn", 7: "warn", slog.LevelError: "error", 12: "error",
	} {
		assert.Equal(t, want, logLevels[levelIndex(level)], "%d", level)
	}
}
