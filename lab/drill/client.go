package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

const (
	// attemptTimeout is the time limit of one attempt. It is longer than the slowest answer of an instance without a
	// fault.
	attemptTimeout = 8 * time.Second

	// patience is the time in which a client repeats an operation. It is longer than any fault.
	patience = 5 * time.Minute

	// impatient determines how often a client gives up. If the first attempt of an operation gets no final answer, the
	// client gives up with the probability 1/impatient.
	impatient = 20

	// hasty determines how often an operation is sent twice at the same time: with the probability 1/hasty. A client
	// repeats an acknowledged operation with the same probability.
	hasty = 25

	backoffMax  = 200 * time.Millisecond
	answerBytes = 1 << 16
)

// request is an operation as it is sent. It is the same for every attempt.
type request struct {
	path string
	body string
}

// answer is the result of an attempt.
type answer struct {
	status int // 0: no answer
	code   string
	amount int64 // charged amount of a debit
	replay bool
	local  bool // limits were decided without Redis
}

// client makes one operation after another. It belongs to one goroutine. If an operation is sent twice at the same
// time, a second goroutine uses the client during that time.
type client struct {
	name   string
	rng    *rand.Rand
	http   *http.Client
	fleet  *fleet
	memory *memory
	pace   time.Duration
	tenant func() string
	count  int
	debits []*Operation // acknowledged debits that are not refunded yet
}

func newClients(cfg *Config, f *fleet, m *memory) []*client {
	clients := make([]*client, cfg.Clients)
	for i := range clients {
		rng := rand.New(rand.NewPCG(cfg.Seed, uint64(i)+2))
		clients[i] = &client{
			name: fmt.Sprintf("c%d", i), rng: rng, fleet: f, memory: m, pace: cfg.Pace,
			http:   &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}, Timeout: attemptTimeout},
			tenant: func() string { return tenantName(rng.IntN(cfg.Tenants)) },
		}
	}
	return clients
}

func tenantName(i int) string { return fmt.Sprintf("t%d", i) }

// work calls next until stop is closed. It finishes the call in progress.
func (c *client) work(ctx context.Context, stop <-chan struct{}, next func(context.Context)) {
	defer c.http.CloseIdleConnections()
	for ctx.Err() == nil {
		select {
		case <-stop:
			return
		default:
		}
		next(ctx)
		if c.pace > 0 && sleep(ctx, c.pace/2+time.Duration(c.rng.Int64N(int64(c.pace)))) != nil {
			return
		}
	}
}

// next makes one operation, or reads a balance.
func (c *client) next(ctx context.Context) {
	tenant := c.tenant()
	switch n := c.rng.IntN(100); {
	case n < 50:
		c.debit(ctx, "/v1/debits", tenant, "calls", 1+c.rng.Int64N(5))
	case n < 62:
		c.debit(ctx, "/v1/debits", tenant, "credits", 1+c.rng.Int64N(20))
	case n < 72:
		c.debit(ctx, "/v1/consume", tenant, "calls", 1)
	case n < 79:
		c.refund(ctx)
	case n < 86:
		c.hold(ctx, tenant)
	case n < 90:
		body := fmt.Sprintf(`{"meter":"credits","amount":%d,"source":"topup","grant_id":"%s-%d"}`, 30, c.name, c.count)
		c.make(ctx, &Operation{Tenant: tenant, Kind: Topup, Amount: 30, send: request{"/v1/tenants/" + tenant + "/grants", body}})
	default:
		c.look(ctx, tenant)
	}
}

func items(tenant, meter string, amount int64) string {
	return fmt.Sprintf(`"tenant":"%s","items":[{"meter":"%s","amount":%d}]`, tenant, meter, amount)
}

func (c *client) debit(ctx context.Context, path, tenant, meter string, amount int64) {
	op := &Operation{Tenant: tenant, Kind: Debit, Amount: amount, send: request{path, "{" + items(tenant, meter, amount) + "}"}}
	if c.make(ctx, op) == Done {
		c.debits = append(c.debits, op)
	}
}

// refund refunds a part of an acknowledged debit. The service must find this debit.
func (c *client) refund(ctx context.Context) {
	if len(c.debits) == 0 {
		return
	}
	i := c.rng.IntN(len(c.debits))
	op := c.debits[i]
	c.debits = append(c.debits[:i], c.debits[i+1:]...)
	amount := 1 + c.rng.Int64N(op.Amount)
	body := fmt.Sprintf(`{"tenant":"%s","operation_id":"%s","amount":%d}`, op.Tenant, op.Key, amount)
	c.make(ctx, &Operation{Tenant: op.Tenant, Kind: Refund, Amount: amount, send: request{"/v1/refunds", body}})
}

// hold reserves units, and then captures some of them.
func (c *client) hold(ctx context.Context, tenant string) {
	id := fmt.Sprintf("%s-hold-%d", c.name, c.count)
	body := fmt.Sprintf(`{%s,"hold_id":"%s","ttl_seconds":3600}`, items(tenant, "calls", 10), id)
	if c.make(ctx, &Operation{Tenant: tenant, Kind: Hold, Amount: 10, send: request{"/v1/holds", body}}) != Done {
		return
	}
	amount := 1 + c.rng.Int64N(10)
	body = fmt.Sprintf(`{%s,"final":true}`, items(tenant, "calls", amount))
	c.make(ctx, &Operation{Tenant: tenant, Kind: Capture, Amount: amount, send: request{"/v1/holds/" + id + "/capture", body}})
}

// make sends an operation until it gets a final answer or the client gives up. It records every answer.
func (c *client) make(ctx context.Context, op *Operation) Outcome {
	c.count++
	op.Key, op.First, op.Outcome = fmt.Sprintf("%s-%d", c.name, c.count), time.Now(), Open
	c.memory.begin(op)
	attempts := 1
	if c.rng.IntN(hasty) == 0 {
		attempts = 2
	}
	got := make(chan answer, 2)
	for range attempts {
		at := c.rng.IntN(len(c.fleet.slots))
		go func() { got <- c.attempt(ctx, at, op) }()
	}
	for range attempts {
		c.learn(op, <-got)
	}
	if op.Outcome == Open && c.rng.IntN(impatient) == 0 {
		return Open
	}
	if c.insist(ctx, op, patience) == Done && c.rng.IntN(hasty) == 0 {
		c.repeat(ctx, op)
	}
	return op.Outcome
}

// repeat sends an acknowledged operation once more. If a final answer arrives, it must be a replay of the first
// answer.
func (c *client) repeat(ctx context.Context, op *Operation) {
	a := c.attempt(ctx, c.rng.IntN(len(c.fleet.slots)), op)
	if outcome := outcomeOf(a); outcome != Open && (outcome != Done || !a.replay) {
		c.memory.change(func() {
			c.memory.wrong[fmt.Sprintf("a retry of an acknowledged %s: %d %s", op.Kind, a.status, a.code)]++
		})
	}
	c.learn(op, a)
}

// insist sends an open operation again until it gets a final answer, or until the time atMost has passed.
func (c *client) insist(ctx context.Context, op *Operation, atMost time.Duration) Outcome {
	for end := time.Now().Add(atMost); op.Outcome == Open && ctx.Err() == nil && time.Now().Before(end); {
		_ = sleep(ctx, time.Duration(c.rng.Int64N(int64(backoffMax)))) // the loop checks ctx
		c.learn(op, c.attempt(ctx, c.rng.IntN(len(c.fleet.slots)), op))
	}
	return op.Outcome
}

// learn adds an answer to the client's record of the operation and to the counts of the memory.
func (c *client) learn(op *Operation, a answer) {
	c.memory.change(func() {
		op.Attempts++
		c.memory.answers[a.status]++
		if a.replay {
			c.memory.replays++
		}
		outcome := outcomeOf(a)
		switch {
		case a.status == 0, a.code == "outcome_unknown":
			op.Unsure++
		case outcome == "":
			c.memory.wrong[fmt.Sprintf("%s of %s: %d %s", "answer", op.Kind, a.status, a.code)]++
			op.Unsure++
		}
		if outcome == "" || outcome == Open {
			return
		}
		if outcome == Done && op.Kind == Debit && a.amount != op.Amount {
			c.memory.wrong["another amount than the one that was asked"]++
		}
		if op.Outcome != Done {
			op.Outcome, op.Status, op.Ended = outcome, a.status, time.Now()
		}
	})
}

// outcomeOf returns the outcome of an operation with this answer, or an empty outcome if the answer is an error that
// no fault explains.
func outcomeOf(a answer) Outcome {
	switch a.status {
	case http.StatusOK, http.StatusCreated:
		return Done
	case http.StatusPaymentRequired, http.StatusTooManyRequests:
		return Refused
	case 0, http.StatusServiceUnavailable:
		return Open
	default:
		return ""
	}
}

// attempt sends an operation once, to the instance of the given slot. It measures the refusals of instances without a
// fault.
func (c *client) attempt(ctx context.Context, at int, op *Operation) answer {
	s := c.fleet.slots[at]
	faults, began := s.faults.Load(), time.Now()
	a := c.do(ctx, s.api(), http.MethodPost, op.send.path, op.Key, op.send.body, nil)
	took := time.Since(began)
	if a.status == http.StatusServiceUnavailable && faults%2 == 0 && s.faults.Load() == faults {
		c.memory.change(func() {
			c.memory.waits.longest = max(c.memory.waits.longest, took)
			if took > refusalMax {
				c.memory.waits.over = append(c.memory.waits.over, fmt.Sprintf("%s: %s after %s, sent %s", op.send.path, a.code, took.Round(time.Millisecond),
					began.UTC().Format(time.RFC3339Nano)))
			}
		})
	}
	return a
}

// do sends one request. Unless v is nil, it decodes the body of an answer 200 into v.
func (c *client) do(ctx context.Context, host, method, path, key, body string, v any) answer {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+host+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return answer{}
	}
	req.Header.Set("Authorization", "Bearer "+adminKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
	if err != nil {
		return answer{}
	}
	var facts struct {
		Code  string
		Items []struct{ Charged int64 }
	}
	if json.Unmarshal(text, &facts) != nil {
		return answer{}
	}
	if v != nil && json.Unmarshal(text, v) != nil {
		return answer{}
	}
	a := answer{
		status: resp.StatusCode, code: facts.Code, replay: resp.Header.Get("Idempotent-Replayed") == "true",
		local: resp.Header.Get("X-RateLimit-Mode") == "local",
	}
	for _, item := range facts.Items {
		a.amount += item.Charged
	}
	return a
}

// look reads a balance. None of its amounts may ever be below zero.
func (c *client) look(ctx context.Context, tenant string) {
	var b struct{ Granted, Used, Held, Remaining int64 }
	meter := []string{"calls", "credits"}[c.rng.IntN(2)]
	host := c.fleet.slots[c.rng.IntN(len(c.fleet.slots))].api()
	a := c.do(ctx, host, http.MethodGet, "/v1/tenants/"+tenant+"/balances/"+meter, "", "", &b)
	c.memory.change(func() {
		c.memory.reads++
		if a.status == http.StatusOK && min(b.Granted, b.Used, b.Held, b.Remaining) < 0 {
			c.memory.negative++
		}
	})
}
