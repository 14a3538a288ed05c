package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// Attack is the part of a flood in one slice of time. It is encoded as JSON, because a separate process sends the
// requests (see RunFlood).
type Attack struct {
	Address     string        `json:"address"` // host:port
	AdminKey    string        `json:"admin_key"`
	Kinds       []string      `json:"kinds"` // names of floodKinds, or floodEcho
	Rate        int           `json:"rate"`  // requests/s of all kinds, divided evenly
	Connections int           `json:"connections"`
	Slice       time.Duration `json:"slice"`
	First       uint64        `json:"first"` // number of the first request; the keys are derived from it
}

// floodEcho is the name of the control: a flood of the same requests to the bare echo handler, which answers 200. If
// that flood slows down the debits of other tenants, the cause is the machine, not the service.
const floodEcho = "bare echo"

// attackTick is the interval at which an attack sends requests. Measurements of latency use the shorter paceTick. An
// attack does not, because 10,000 wake-ups a second for each kind would take CPU from the measured processes.
const attackTick = time.Millisecond

// attackLate is the delay after which an attack drops a request. An attack gets only the CPU time that other
// processes leave. Without this bound it would send a burst on all its connections after each pause. A real attacker,
// who has separate computers, does not send such bursts.
const attackLate = 5 * time.Millisecond

// Run sends the requests. For each kind, it returns the number of answers by status. Requests that were not sent in
// time are counted under status 0.
func (a *Attack) Run(ctx context.Context) ([]map[int]int64, error) {
	var seq atomic.Uint64
	seq.Store(a.First)
	answers := make([]map[int]int64, len(a.Kinds))
	errs := make([]error, len(a.Kinds))
	var wg sync.WaitGroup
	for i, name := range a.Kinds {
		t, err := a.template(name)
		if err != nil {
			return nil, err
		}
		load := steady{t: t, tenants: floodTenants, rate: a.Rate / len(a.Kinds), d: a.Slice, drain: floodDrain, tick: attackTick, late: attackLate}
		wg.Go(func() {
			s, err := openLoopOn(ctx, a.Address, a.Connections/len(a.Kinds), &seq, load)
			answers[i], errs[i] = s.answers, err
		})
	}
	wg.Wait()
	return answers, errors.Join(errs...)
}

func (a *Attack) template(name string) (*template, error) {
	auth := bearer(a.AdminKey) + keyHeader()
	if name == floodEcho {
		return newTemplate("/echo/check", auth, checkBody(tenantMark, plainRoute), 1), nil
	}
	for _, k := range floodKinds {
		if k.name == name {
			t := newTemplate("/v1/consume", auth, checkBody(tenantMark, k.route), 1)
			t.first = k.first
			return t, nil
		}
	}
	return nil, fmt.Errorf("no flood is named %q", name)
}

// openLoopOn runs openLoop on n new connections.
func openLoopOn(ctx context.Context, address string, n int, seq *atomic.Uint64, load steady) (sample, error) {
	clients, err := dial(ctx, address, n)
	if err != nil {
		return sample{}, err
	}
	defer closeAll(clients)
	return openLoop(ctx, clients, seq, load)
}

// attackApart runs an attack in a separate process ("self attack") with the scheduling class SCHED_IDLE. A real
// attacker has separate computers. Here the attack gets only the CPU time that the service, its servers and the other
// tenants' load leave. The lowest priority would not be enough: such a process keeps a core until the end of its time
// slice of some milliseconds.
func attackApart(ctx context.Context, self string, a Attack) (answers []map[int]int64, err error) {
	in, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("attack: %w", err)
	}
	cmd := exec.CommandContext(ctx, "chrt", "--idle", "0", self, "attack")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("attack: %w", err)
	}
	if err := json.Unmarshal(out, &answers); err != nil {
		return nil, fmt.Errorf("attack: %w", err)
	}
	return answers, nil
}
