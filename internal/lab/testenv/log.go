package testenv

import (
	"strings"
	"sync"
)

// Log collects what a logger writes. The zero value is an empty log. Any number of goroutines may use it.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Lines returns the lines that were written.
func (l *Log) Lines() []string { return strings.Split(strings.TrimSpace(l.String()), "\n") }

// Count returns the number of lines that contain text.
func (l *Log) Count(text string) (n int) {
	for _, line := range l.Lines() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// With returns the first line that contains text, or the empty string.
func (l *Log) With(text string) string {
	for _, line := range l.Lines() {
		if strings.Contains(line, text) {
			return line
		}
	}
	return ""
}
