package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

const (
	// logQueueMax is the maximum number of bytes that wait to be written. 5,000 requests write about this much in a
	// second, so a short pause of the reader loses nothing.
	logQueueMax = 2 << 20

	// logQueueLow is the part of logQueueMax that lines below WARN may fill. The rest is for lines of WARN and above,
	// so that they are dropped last.
	logQueueLow = logQueueMax / 4 * 3

	// logWriteMax is the number of bytes that are written at once. It is small, so that a write of a reader that is
	// only slow does not last for logStalled.
	logWriteMax = 16 << 10

	// logStalled is the time after which a write counts as stalled. A write to a pipe that is read takes microseconds.
	logStalled = time.Second

	// logFlush is the maximum time for which the end of the process waits until all lines are written.
	logFlush = 2 * time.Second
)

// logLevels has the label values of the levels that the queue distinguishes.
var logLevels = [...]string{"debug", "info", "warn", "error"}

// lineCounts has a number of lines by level.
type lineCounts [len(logLevels)]int

// levelIndex returns the index of a level in logLevels.
func levelIndex(level slog.Level) int {
	return int(max(min(level, slog.LevelError), slog.LevelDebug)+4) / 4
}

// logQueue writes the lines of the log. Before start, each line is written at once. From start on, lines wait in
// memory, and one goroutine writes them, so that no request waits for the reader of the log. If the reader is too
// slow, the newest lines are dropped. They are counted, and a line in the log reports them where they are missing.
type logQueue struct {
	out     io.Writer
	lines   byLevel                 // formats lines and adds them to the queue
	report  func(lineCounts) []byte // returns the line about dropped lines
	dropped *prometheus.CounterVec
	wake    chan struct{} // receives a value after a change of waiting or ended
	written chan struct{} // closed after end, when no line waits

	mu      sync.Mutex
	started bool
	ended   bool
	waiting []*logChunk   // oldest first
	bytes   int           // bytes of all lines that wait
	since   time.Time     // when the write in progress began; zero: there is none
	failed  bool          // whether the newest write failed
	flush   time.Duration // maximum time of end
}

// logChunk has consecutive lines.
type logChunk struct {
	text  []byte
	lines lineCounts // lines in text
	lost  lineCounts // lines that were dropped after those in text
}

// newLogQueue returns a queue that writes to out. format returns a handler that writes each line by one call of Write.
func newLogQueue(out io.Writer, format func(io.Writer) slog.Handler) *logQueue {
	q := &logQueue{out: out, wake: make(chan struct{}, 1), written: make(chan struct{}), flush: logFlush}
	q.dropped = metric.CounterVec(nil, "quotasvc_log_lines_dropped_total",
		"Lines that were not written to the log, by level (debug, info, warn, error) and reason: "+
			"flood (of equal lines), or queue (the reader of the log is too slow, or it is gone).", "level", "reason")
	for i, name := range logLevels {
		level := slog.LevelDebug + 4*slog.Level(i)
		q.lines[i] = format(levelWriter{q, level})
		q.dropped.WithLabelValues(name, "queue")
		if level >= slog.LevelWarn {
			q.dropped.WithLabelValues(name, "flood")
		}
	}
	var line bytes.Buffer
	about := slog.New(format(&line))
	q.report = func(lost lineCounts) []byte {
		line.Reset()
		attrs := []slog.Attr{slog.String("reason", "queue")}
		for i, n := range lost {
			attrs = append(attrs, slog.Int(logLevels[i], n))
		}
		about.LogAttrs(context.Background(), slog.LevelWarn, "log lines dropped", attrs...)
		return line.Bytes()
	}
	return q
}

// start makes lines wait in memory. The caller must call end later.
func (q *logQueue) start() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.started {
		q.started = true
		go q.run()
	}
}

// end writes all lines, but stops waiting for the reader after the time flush. Later lines are dropped.
func (q *logQueue) end() {
	q.mu.Lock()
	started, flush := q.started, q.flush
	q.ended = true
	q.mu.Unlock()
	if !started {
		return
	}
	q.notify()
	select {
	case <-q.written:
	case <-time.After(flush):
	}
}

// flushWithin sets the maximum time of end.
func (q *logQueue) flushWithin(flush time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.flush = flush
}

// stalled reports whether lines are not written: the write in progress takes longer than logStalled, or the newest
// write failed.
func (q *logQueue) stalled() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.failed || !q.since.IsZero() && time.Since(q.since) > logStalled
}

// print adds a line that is not formatted by a handler.
func (q *logQueue) print(line string) { _, _ = levelWriter{q, slog.LevelError}.Write([]byte(line)) }

// levelWriter adds lines of a level to a queue.
type levelWriter struct {
	*logQueue

	level slog.Level
}

// Write adds one line. After start it does not wait and does not fail.
func (w levelWriter) Write(line []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.started {
		return w.out.Write(line)
	}
	w.add(levelIndex(w.level), line)
	return len(line), nil
}

// add adds a line to the newest chunk, or drops it. The caller holds mu.
func (q *logQueue) add(level int, line []byte) {
	most := logQueueLow
	if level >= levelIndex(slog.LevelWarn) {
		most = logQueueMax
	}
	fits := q.bytes+len(line) <= most && !q.ended
	last := len(q.waiting) - 1
	if last < 0 || fits && (len(q.waiting[last].text)+len(line) > logWriteMax || q.waiting[last].lost != lineCounts{}) {
		q.waiting = append(q.waiting, &logChunk{})
		last++
	}
	if chunk := q.waiting[last]; fits {
		chunk.text = append(chunk.text, line...)
		chunk.lines[level]++
		q.bytes += len(line)
	} else {
		q.drop(&chunk.lost, level, 1)
	}
	q.notify()
}

// drop counts n dropped lines.
func (q *logQueue) drop(lost *lineCounts, level, n int) {
	lost[level] += n
	q.dropped.WithLabelValues(logLevels[level], "queue").Add(float64(n))
}

func (q *logQueue) notify() {
	select {
	case q.wake <- struct{}{}:
	default: // run has not yet received the value of an earlier change
	}
}

// run writes chunks until end is called and no line waits.
func (q *logQueue) run() {
	defer close(q.written)
	var lost lineCounts // lines that no line in the log has reported
	for range q.wake {
		for {
			chunk, ended := q.next()
			if chunk == nil && ended {
				return
			}
			if chunk == nil {
				break
			}
			failed := q.write(chunk.text) != nil
			for level, n := range chunk.lost {
				lost[level] += n
				if failed {
					q.drop(&lost, level, chunk.lines[level])
				}
			}
			if lost != (lineCounts{}) && !failed && q.write(q.report(lost)) == nil {
				lost = lineCounts{}
			}
		}
	}
}

// next takes the oldest chunk, or returns nil if no line waits. It reports whether end was called.
func (q *logQueue) next() (chunk *logChunk, ended bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) > 0 {
		chunk, q.waiting = q.waiting[0], q.waiting[1:]
		q.bytes -= len(chunk.text)
	}
	return chunk, q.ended
}

// write writes text, however long that takes.
func (q *logQueue) write(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	q.mu.Lock()
	q.since = time.Now()
	q.mu.Unlock()
	_, err := q.out.Write(text)
	q.mu.Lock()
	q.since, q.failed = time.Time{}, err != nil
	q.mu.Unlock()
	return err
}
