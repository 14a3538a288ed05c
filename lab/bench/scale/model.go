package scale

import (
	"fmt"
	"math"
)

// BatchMax is the most debits in a transaction, as in internal/ledger/pg.
const BatchMax = 1024

// Costs are what one debit takes. Times are µs of CPU.
type Costs struct {
	Service     float64 // in the service, HTTP included
	Row         float64 // in PostgreSQL, for the debit itself
	Transaction float64 // in PostgreSQL, for a transaction whatever it contains
	Redis       float64 // copies of balances that checks ask about
	WAL         float64 // bytes of WAL
	Journal     float64 // bytes of the journal with its indexes
	Trips       float64 // round trips of a transaction
	Debits      float64 // debits that an operation stands for: above 1 if a process spends units of a hold by itself
}

// Machine is a kind of computer. Prices are of any currency.
type Machine struct {
	Cores     float64 // of a node, and of an instance of the service
	Busy      float64 // share of the CPU that is planned with
	WAL       float64 // bytes/s that the disk takes of WAL, sustained
	Disk      float64 // bytes for the journal
	Flush     float64 // µs of a flush
	RoundTrip float64 // µs between an instance and a node, network and switches
	Redis     float64 // µs of CPU that a Redis node has in a second, planned
	CoreHour  float64 // price
	GBMonth   float64 // price of disk
}

// Choice is what an operator decides.
type Choice struct {
	Mean     float64 // share of the rate that a month has on average: a rate is that of the busiest time
	Months   float64 // of the journal that stay in the database
	Replicas float64 // copies of a node beside it, each with disk and WAL of its own
	Affinity bool    // requests of a tenant go to one instance, so that an instance meets few shards
	Citus    bool    // several nodes; a transaction contains debits of one shard group only
	Lanes    float64 // of an instance, or more where they would be busy; on Citus one for each shard group
}

// Plan is what a rate needs.
type Plan struct {
	Rate        float64 // debits/s
	Batch       float64 // debits in a transaction
	Micros      float64 // µs of CPU of PostgreSQL for a debit
	Instances   float64
	Nodes       float64
	First       string  // the resource that decided Nodes
	Fits        bool    // false: more nodes than one without Citus, or than shard groups
	Lanes       float64 // of all instances
	Connections float64 // of lanes, on a node
	WAL         float64 // bytes/s of all nodes, replicas not counted
	Journal     float64 // bytes for Months of all nodes, replicas not counted
	RedisNodes  float64
	Cost        float64 // for a million debits
}

// resource is what a node has a limited amount of.
type resource struct {
	name      string
	use, each float64
}

// NewPlan computes what rate debits/s need.
func NewPlan(rate float64, c Costs, m Machine, choice Choice) (Plan, error) {
	if err := check(rate, &c, &m, &choice); err != nil {
		return Plan{}, err
	}
	operations := rate / c.Debits
	p := Plan{Rate: rate, WAL: operations * c.WAL, Journal: operations * choice.Mean * c.Journal * secondsOfMonth * choice.Months}
	p.Instances = nodesFor(operations*c.Service, m.Cores*m.Busy*second)
	p.Lanes = p.Instances * choice.Lanes
	if choice.Citus && choice.Affinity { // a shard group has one lane in all
		p.Lanes = choice.Lanes
	}
	full := c.Row + (c.Transaction+m.trip(&c))/fullBatch // µs that a lane needs for a debit
	p.Lanes = max(p.Lanes, math.Ceil(operations*full/(laneBusy*second)))
	p.Batch = batch(operations/p.Lanes, &c, &m)
	p.Micros = (c.Row + c.Transaction/p.Batch) / c.Debits
	for _, r := range []resource{
		{"CPU", operations * (c.Row + c.Transaction/p.Batch), m.Cores * m.Busy * second},
		{"WAL", p.WAL, m.WAL},
		{"disk", p.Journal, m.Disk},
	} {
		if n := nodesFor(r.use, r.each); n > p.Nodes {
			p.Nodes, p.First = n, r.name
		}
	}
	p.Fits = p.Nodes <= 1 || choice.Citus && p.Nodes <= choice.Lanes
	p.Connections = math.Ceil(p.Lanes / p.Nodes)
	p.RedisNodes = nodesFor(operations*c.Redis, m.Redis)
	hour := m.CoreHour * (m.Cores*(p.Instances+p.Nodes*(1+choice.Replicas)) + p.RedisNodes)
	disk := m.GBMonth * p.Journal / 1e9 * (1 + choice.Replicas)
	p.Cost = 1e6 * (hour/3600 + disk/secondsOfMonth) / (rate * choice.Mean)
	return p, nil
}

// trip returns the µs of a transaction that cost no CPU.
func (m *Machine) trip(c *Costs) float64 { return c.Trips*m.RoundTrip + m.Flush }

const (
	laneBusy  = 0.7 // share of the time in which a lane works, at most: above it, debits wait
	fullBatch = 256 // debits in a transaction of a busy lane

	second         = 1e6        // µs
	secondsOfMonth = 30 * 86400 // a month has 30 days here
)

// batch returns how many debits a transaction of a lane has that gets rate debits/s.
func batch(rate float64, c *Costs, m *Machine) float64 {
	b := 1.0
	for range 200 { // it rises towards its limit
		took := m.trip(c) + c.Transaction + b*c.Row
		next := min(BatchMax, 1+rate*took/second)
		if math.Abs(next-b) < 1e-6*b {
			return next
		}
		b = next
	}
	return b
}

// nodesFor returns how many nodes have so much, at least one.
func nodesFor(use, each float64) float64 { return max(1, math.Ceil(use/each)) }

// check refuses inputs that are not positive, by name.
func check(rate float64, c *Costs, m *Machine, choice *Choice) error {
	for _, in := range []struct {
		name  string
		value float64
		least float64
	}{
		{"rate", rate, 1},
		{"service", c.Service, 0},
		{"row", c.Row, 0},
		{"transaction", c.Transaction, 0},
		{"redis", c.Redis, 0},
		{"wal", c.WAL, 0},
		{"journal", c.Journal, 0},
		{"trips", c.Trips, 1},
		{"debits", c.Debits, 1},
		{"cores", m.Cores, 1},
		{"busy", m.Busy, 0.01},
		{"wal of a disk", m.WAL, 1},
		{"disk", m.Disk, 1},
		{"flush", m.Flush, 0},
		{"round trip", m.RoundTrip, 0},
		{"redis of a node", m.Redis, 1},
		{"core hour", m.CoreHour, 0},
		{"GB month", m.GBMonth, 0},
		{"months", choice.Months, 0},
		{"replicas", choice.Replicas, 0},
		{"mean", choice.Mean, 0.001},
		{"lanes", choice.Lanes, 1},
	} {
		if math.IsNaN(in.value) || in.value < in.least || in.value > 1e18 {
			return fmt.Errorf("%s is %g; must be between %g and 1e18", in.name, in.value, in.least)
		}
	}
	if m.Busy > 1 {
		return fmt.Errorf("busy is %g; must be at most 1", m.Busy)
	}
	if choice.Mean > 1 {
		return fmt.Errorf("mean is %g; must be at most 1", choice.Mean)
	}
	return nil
}
