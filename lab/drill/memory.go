package drill

import (
	"sync"
	"time"
)

// Kind is a kind of operation: the name of the journal entries that carry its amount.
type Kind string

// The kinds of operations that clients make.
const (
	Debit   Kind = "debit"
	Refund  Kind = "refund"
	Hold    Kind = "hold"
	Capture Kind = "capture"
	Topup   Kind = "grant"
)

// Outcome is a client's knowledge of an operation's result.
type Outcome string

// The outcomes. Open means that no answer was final: the operation may have happened or not.
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
	Unsure   int // attempts without an answer, or with the answer outcome_unknown
	Status   int // of the final answer

	send request // to send it again
}

// memory contains the records of all clients.
type memory struct {
	mu    sync.Mutex
	all   []*Operation
	wrong map[string]int // answers that no fault explains, by their error

	answers  map[int]int // by status; 0: no answer
	negative int
	reads    int
	replays  int
	waits    waits
}

// waits contains the durations of refusals by instances that no fault disturbed.
type waits struct {
	longest time.Duration
	over    []string // refusals over refusalMax
}

// refusalMax is the longest time until a refusal that the contract allows.
const refusalMax = 5 * time.Second

func newMemory() *memory {
	return &memory{wrong: map[string]int{}, answers: map[int]int{}}
}

// begin records an operation before it is sent. Later the client that sends the operation changes the record under
// m.mu.
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

// tally counts operations by outcome.
func (m *memory) tally() map[Outcome]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[Outcome]int{}
	for _, op := range m.all {
		out[op.Outcome]++
	}
	return out
}

// wrongs returns the number of answers that no fault explains.
func (m *memory) wrongs() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.negative
	for _, count := range m.wrong {
		n += count
	}
	return n
}
