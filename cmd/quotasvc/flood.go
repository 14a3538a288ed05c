package main

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// floodWindow is the time in which equal lines are counted together. While a fault persists, the log has at least
	// one line about it in each window.
	floodWindow = 10 * time.Second

	// floodFirst is the number of equal lines that are all written at the start of a window. Each line has its own
	// error and tenant, and ten lines show the pattern.
	floodFirst = 10

	// floodOneIn is the sampling rate after floodFirst lines of a window: one in floodOneIn equal lines is written.
	floodOneIn = 100

	// floodMessages is the maximum number of messages that are counted separately. The program has far fewer
	// messages. Other messages, which come from libraries, are counted together.
	floodMessages = 1000

	// accessLine is the message of the access log's lines. A flood of them is never dropped: each line is the only
	// record of its request, and a fault does not increase their number.
	accessLine = "request"
)

// flood is a slog.Handler that drops most of the lines if there are very many equal lines. Lines are equal if they
// have the same level (WARN or above) and the same message. In each window, flood writes the first floodFirst lines,
// and then one in floodOneIn. At the end of the window, one line reports the number of dropped lines.
type flood struct {
	slog.Handler
	*floodCounts
}

// floodCounts has the counts of equal lines. A logger and all loggers derived from it share these counts.
type floodCounts struct {
	queue *logQueue // writes the lines, and the reports about dropped lines

	mu      sync.Mutex
	windows map[equalLines]*window
}

// equalLines identifies a set of equal lines.
type equalLines struct {
	level   slog.Level
	message string
}

// window counts equal lines for floodWindow, from the first line on.
type window struct {
	timer          *time.Timer // ends the window
	lines, dropped int
}

// newFlood returns a flood that passes lines to a queue.
func newFlood(queue *logQueue) *flood {
	return &flood{Handler: queue.lines, floodCounts: &floodCounts{queue: queue, windows: map[equalLines]*window{}}}
}

// Handle implements slog.Handler.
func (f *flood) Handle(ctx context.Context, line slog.Record) error {
	if line.Level < slog.LevelWarn || line.Message == accessLine || f.pass(equalLines{line.Level, line.Message}) {
		return f.Handler.Handle(ctx, line)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (f *flood) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &flood{f.Handler.WithAttrs(attrs), f.floodCounts}
}

// WithGroup implements slog.Handler.
func (f *flood) WithGroup(name string) slog.Handler {
	return &flood{f.Handler.WithGroup(name), f.floodCounts}
}

// pass counts a line and reports whether the line must be written.
func (c *floodCounts) pass(line equalLines) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.windows[line]
	if w == nil && len(c.windows) >= floodMessages {
		line.message = "" // "" stands for all other messages
		w = c.windows[line]
	}
	if w == nil {
		w = &window{}
		w.timer = time.AfterFunc(floodWindow, func() { c.end(line) })
		c.windows[line] = w
	}
	w.lines++
	if beyond := w.lines - floodFirst; beyond <= 0 || beyond%floodOneIn == 0 {
		return true
	}
	w.dropped++
	c.queue.dropped.WithLabelValues(logLevels[levelIndex(line.level)], "flood").Inc()
	return false
}

// end ends a window, and logs the number of lines that were dropped in it.
func (c *floodCounts) end(line equalLines) {
	c.mu.Lock()
	w := c.windows[line]
	delete(c.windows, line)
	c.mu.Unlock()
	if w == nil || w.dropped == 0 {
		return
	}
	w.timer.Stop()
	said := slog.New(c.queue.lines)
	said.Log(context.Background(), line.level, "log lines dropped", "message", line.message, "dropped", w.dropped, "window", floodWindow.String())
}

// endAll ends all windows. It must be called before the process ends, so that no report about dropped lines is lost.
func (c *floodCounts) endAll() {
	c.mu.Lock()
	lines := slices.Collect(maps.Keys(c.windows))
	c.mu.Unlock()
	for _, line := range lines {
		c.end(line)
	}
}
