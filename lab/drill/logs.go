package drill

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
)

const (
	// logLineBytes is the longest line of a log that is kept.
	logLineBytes = 1 << 20

	// idBytes is the length of a request's id, which makes the line in the access log long.
	idBytes = 128

	// fillers is the number of requests at a time that fill a pipe.
	fillers = 4
)

// accessLine is in each line of the access log. These lines are not kept: they would be most of the log.
var accessLine = []byte("level=INFO msg=request ")

// logPipe is the pipe that an instance writes its log to. It is read until its end, except while the log stalls.
type logPipe struct {
	reader  *os.File
	stalled sync.Mutex    // held while the log stalls
	done    chan struct{} // closed when all is read
}

// newLogPipe returns a pipe and its writing end, for a process. What is read is written to keep, but for the access
// log.
func newLogPipe(keep io.Writer) (_ *logPipe, output *os.File, err error) {
	p := &logPipe{done: make(chan struct{})}
	if p.reader, output, err = os.Pipe(); err != nil {
		return nil, nil, fmt.Errorf("log of an instance: %w", err)
	}
	go p.follow(keep)
	return p, output, nil
}

// Read reads from the pipe, unless the log stalls.
func (p *logPipe) Read(into []byte) (int, error) {
	p.stalled.Lock()
	p.stalled.Unlock() //nolint:staticcheck // it waits for the end of a stall
	return p.reader.Read(into)
}

// follow reads the pipe until the process has ended.
func (p *logPipe) follow(keep io.Writer) {
	defer close(p.done)
	defer p.reader.Close()
	lines := bufio.NewScanner(p)
	lines.Buffer(nil, logLineBytes)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), accessLine) {
			_, _ = keep.Write(append(lines.Bytes(), '\n')) // the log is for people; the drill does not need it
		}
	}
	_, _ = io.Copy(io.Discard, p) // after a line that is too long
}

// stallLog leaves the log of an instance unread until the instance reports it, and then for the length of the step. In
// two kinds of this fault the instance is killed or stopped meanwhile. Each request to the instance must be answered.
func (f *fleet) stallLog(ctx context.Context, m *memory, s step) error {
	slot := f.slots[s.target]
	in := slot.newest.Load()
	in.log.stalled.Lock()
	err := in.fillLog(ctx, m)
	if err == nil {
		err = sleep(ctx, s.length)
	}
	if err == nil {
		switch s.do {
		case KillLogStalled:
			err = f.kill(ctx, s.target, s.length)
		case StopLogStalled:
			err = f.replace(ctx, slot)
		default:
		}
	}
	in.log.stalled.Unlock()
	if err != nil || s.do != StallLog {
		return err
	}
	return in.awaitLog(ctx, "ok")
}

// fillLog makes requests until the instance reports that its log stalls.
func (in *instance) fillLog(ctx context.Context, m *memory) error {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	caller := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: fillers}, Timeout: attemptTimeout}
	defer caller.CloseIdleConnections()
	for range fillers {
		all.Go(func() {
			for ctx.Err() == nil {
				status, _ := ask(ctx, caller, in.api, "/v1/tenants/"+tenantName(0), http.Header{
					"Authorization": {"Bearer " + adminKey}, "X-Request-Id": {strings.Repeat("x", idBytes)},
				})
				if status == 0 && ctx.Err() == nil {
					m.change(func() { m.wrong["no answer while the log stalls"]++ })
				}
			}
		})
	}
	return in.awaitLog(ctx, "stalled")
}

// awaitLog waits until the instance reports this state of its log.
func (in *instance) awaitLog(ctx context.Context, state string) error {
	caller := &http.Client{Timeout: attemptTimeout}
	defer caller.CloseIdleConnections()
	return await(ctx, "the log of an instance is "+state, func(ctx context.Context) error {
		var ready struct{ Log string }
		_, text := ask(ctx, caller, in.ops, "/readyz", nil)
		err := json.Unmarshal(text, &ready)
		if err == nil && ready.Log != state {
			err = fmt.Errorf("it is %q", ready.Log)
		}
		return err
	})
}

// ask sends a GET request, and returns the status and the body of the answer. The status is 0 without an answer.
func ask(ctx context.Context, caller *http.Client, host, path string, header http.Header) (status int, text []byte) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+path, nil)
	if err != nil {
		return 0, nil
	}
	req.Header = header
	resp, err := caller.Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(io.LimitReader(resp.Body, answerBytes)); err != nil {
		return 0, nil
	}
	return resp.StatusCode, text
}
