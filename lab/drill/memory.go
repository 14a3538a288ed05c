package drill

import (
	"sync"
	"time"
)

// Kind is a kind of operation. It is also the kind of the journal entries that contain the operation's amount.
type Kind string

// These are the kinds of operations that clients make.
const (
	Debit   Kind = "debit"
	Refund  Kind = "refund"
	Hold    Kind = "hold"
	Capture Kind = "capture"
	Topup   Kind = "grant"
)

// Outcome is a client's knowledge of an operation's result.
type Outcome string

// These are the outcomes. Open means that no answer was final, so the operation may have been executed or not.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused"
	Open    Outcome = "open"
)

// Operation is a client's record of one operation.
type Operation struct {
	Tenant string
	Key    string
	Kind   Kind
	Amount int64
	First  time.Time // time of the first attempt
	Ended  time.Time // time of the final answer; zero while the operation is open

	Outcome  Outcome
	Attempts int
	Unsure   int // attempts after which the result was unknown, for example attempts without an answer
	Status   int // status of the final answer

	send request // the request, to send it again
}

// memory contains the records of all clients.
type memory struct {
	mu    sync.Mutex
	all   []*Operation
	wrong map[string]int // number of answers that no fault explains, by their error

	answers  map[int]int // number of answers by status; 0: no answer
	negative int
	reads    int
	replays  int
	waits    waits

	strangers map[int]int // number of answers to strangers by status; 0: no answer
}

// waits contains the durations of refusals by instances without a fault.
type waits struct {
	longest time.Duration
	over    []string // refusals that took longer than refusalMax
}

// refusalMax is the time within which an instance must refuse, by the contract.
const refusalMax = 5 * time.Second

func newMemory() *memory {
	return &memory{wrong: map[string]int{}, answers: map[int]int{}, strangers: map[int]int{}}
}

// begin records an operation before it is sent. After that, only the client that sends the operation changes the
// record, and holds m.mu while it does.
func (m *memory) begin(op *Operation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, op)
}

func (m *memory) change(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

// operations returns a copy of the recorded operations.
func (m *memory) operations() []Operation {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]Operation, len(m.all))
	for i, op := range m.all {
		out[i] = *op
	}
	return out
}

// tally returns the number of operations for each outcome.
func (m *memory) tally() map[Outcome]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[Outcome]int{}
	for _, op := range m.all {
		out[op.Outcome]++
	}
	return out
}

// wrongs returns the number of answers that no fault explains, and of balances below zero.
func (m *memory) wrongs() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.negative
	for _, count := range m.wrong {
		n += count
	}
	return n
}
