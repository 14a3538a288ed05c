package scale

import (
	"fmt"
	"math"
)

// BatchMax is the maximum number of debits in a transaction, as in internal/ledger/pg.
const BatchMax = 1024

// Costs contains the costs of one debit. Times are in µs of CPU time.
type Costs struct {
	Service     float64 // time in the service, HTTP included
	Row         float64 // time in PostgreSQL for the debit itself
	Transaction float64 // time in PostgreSQL for a transaction, independent of its content
	Redis       float64 // time in Redis for the copies of balances that checks read
	WAL         float64 // bytes of WAL
	Journal     float64 // bytes of the journal with its indexes
	Trips       float64 // round trips of a transaction
	Debits      float64 // debits per operation: above 1 if a process spends the units of a hold locally
}

// Machine is a kind of computer with its prices. Prices may be in any currency.
type Machine struct {
	Cores     float64 // cores of a node, and of an instance of the service
	Busy      float64 // planned share of the CPU time in use
	WAL       float64 // bytes/s of WAL that the disk sustains
	Disk      float64 // bytes for the journal
	Flush     float64 // µs of a flush of the WAL
	RoundTrip float64 // µs between an instance and a node, with network and switches
	Redis     float64 // planned CPU time of a Redis node, in µs per second
	CoreHour  float64 // price of a core for an hour
	GBMonth   float64 // price of a GB of disk for a month
}

// Choice contains the operator's decisions.
type Choice struct {
	Mean     float64 // average rate of a month, as a share of the rate in the busiest time
	Months   float64 // months of the journal that stay in the database
	Replicas float64 // additional copies of a node, each with its own disk and WAL
	Affinity bool    // requests of a tenant go to one instance, so each instance uses few shards
	Citus    bool    // several nodes; a transaction contains debits of only one shard group
	Lanes    float64 // minimum of lanes per instance, more if they would be too busy; on Citus one per shard group
}

// Plan contains the resources that a rate needs.
type Plan struct {
	Rate        float64 // debits/s
	Batch       float64 // debits in a transaction
	Micros      float64 // µs of PostgreSQL's CPU per debit
	Instances   float64
	Nodes       float64
	First       string  // the resource that decided Nodes
	Fits        bool    // false: without Citus the rate needs several nodes, or on Citus more nodes than shard groups
	Lanes       float64 // lanes of all instances
	Connections float64 // connections of lanes to a node
	WAL         float64 // bytes/s of all nodes, without replicas
	Journal     float64 // bytes of the journal of Months on all nodes, without replicas
	RedisNodes  float64
	Cost        float64 // price of a million debits
}

// resource is something of which a node has a limited amount, for example CPU time.
type resource struct {
	name      string
	use, each float64
}

// NewPlan computes the resources for `rate` debits/s.
func NewPlan(rate float64, c Costs, m Machine, choice Choice) (Plan, error) {
	if err := check(rate, &c, &m, &choice); err != nil {
		return Plan{}, err
	}
	operations := rate / c.Debits
	p := Plan{Rate: rate, WAL: operations * c.WAL, Journal: operations * choice.Mean * c.Journal * secondsOfMonth * choice.Months}
	p.Instances = nodesFor(operations*c.Service, m.Cores*m.Busy*second)
	p.Lanes = p.Instances * choice.Lanes
	if choice.Citus && choice.Affinity { // a shard group has one lane in total
		p.Lanes = choice.Lanes
	}
	full := c.Row + (c.Transaction+m.trip(&c))/fullBatch // µs of a lane per debit
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

// trip returns the time, in µs, in which a transaction uses no CPU.
func (m *Machine) trip(c *Costs) float64 { return c.Trips*m.RoundTrip + m.Flush }

const (
	laneBusy  = 0.7 // maximum share of its time in which a lane works; above it, debits wait too long
	fullBatch = 256 // debits in a transaction of a busy lane

	second         = 1e6        // µs
	secondsOfMonth = 30 * 86400 // a month has 30 days here
)

// batch returns the number of debits in a transaction of a lane that receives `rate` debits/s.
func batch(rate float64, c *Costs, m *Machine) float64 {
	b := 1.0
	for range 200 { // b converges from below
		took := m.trip(c) + c.Transaction + b*c.Row
		next := min(BatchMax, 1+rate*took/second)
		if math.Abs(next-b) < 1e-6*b {
			return next
		}
		b = next
	}
	return b
}

// nodesFor returns the number of nodes for a use, if each node has the given amount. It is at least one.
func nodesFor(use, each float64) float64 { return max(1, math.Ceil(use/each)) }

// check returns an error that names the first input that is out of its bounds.
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
