package drill

import (
	"math/rand/v2"
	"time"
)

// Action is the name of a fault, or of a backup or a restore.
type Action string

// These are the actions. Each kill is a SIGKILL. A pause of a server sends SIGSTOP to all its processes, and then
// SIGCONT.
const (
	KillInstance  Action = "kill instance"
	KillPrimary   Action = "kill primary"
	KillStandby   Action = "kill standby"
	KillRedis     Action = "kill redis"
	PauseInstance Action = "pause instance"
	PausePrimary  Action = "pause primary"
	PauseStandby  Action = "pause standby"
	PauseRedis    Action = "pause redis"

	Failover          Action = "failover"
	FailoverPaused    Action = "failover, standby paused before" // commits wait for the standby and are cancelled
	FailoverDead      Action = "failover, standby killed before" // the same; the standby restarts before its promotion
	FailoverPrimaryUp Action = "failover, primary killed twice"  // the primary recovers and is killed again
	FailoverRedis     Action = "redis fails over"                // the master is killed, and its replica promoted
	RefuseWrites      Action = "redis refuses writes"            // as it does without memory or on a replica
	KillWithoutRedis  Action = "kill instance, redis paused"     // the instance decides limits itself until then
	Strangers         Action = "flood of strangers"              // invented links, cookies and keys, from many addresses
	StallLog          Action = "log stalls"                      // nobody reads the pipe that an instance writes its log to
	KillLogStalled    Action = "log stalls, instance killed"
	StopLogStalled    Action = "log stalls, instance stopped"     // by SIGTERM
	Rolling           Action = "rolling restart of all instances" // one after another: SIGTERM, then a start
	Backup            Action = "base backup"
	Restore           Action = "restore to an instant"
)

// step is one action of a schedule.
type step struct {
	after  time.Duration // pause before the fault
	do     Action
	target int           // index of the instance, for faults of an instance
	length time.Duration // time for which the server is down or paused
}

// weighted lists actions with their probability in percent.
type weighted []struct {
	do      Action
	percent int
}

var (
	killActions  = weighted{{KillInstance, 50}, {KillPrimary, 20}, {KillStandby, 10}, {KillRedis, 20}}
	pauseActions = weighted{{PauseInstance, 40}, {PausePrimary, 25}, {PauseStandby, 15}, {PauseRedis, 20}}

	// failoverActions lists the failovers, which are used in this order. In half of them, commits wait for a standby
	// that does not confirm.
	failoverActions = []Action{Failover, FailoverPaused, FailoverPrimaryUp, FailoverDead}

	// otherActions lists the other faults, which are used in this order.
	otherActions = []Action{
		Strangers, StallLog, RefuseWrites, KillLogStalled, FailoverRedis, StopLogStalled, KillWithoutRedis,
	}
)

const (
	killsPerPause   = 4
	killsPerRolling = 20

	// awayMax is the maximum time until a killed server restarts, and the maximum duration of an ordinary pause.
	awayMax = 1500 * time.Millisecond

	// hangMax is the maximum duration of every fourth pause. It is also the maximum time in which commits wait for a
	// standby before a failover. It is longer than two limits of the service, which gives up a transaction after 4 s
	// and refuses after 4.5 s.
	hangMax = 7 * time.Second
)

func (w weighted) pick(rng *rand.Rand) Action {
	n := rng.IntN(100)
	for _, each := range w {
		if n -= each.percent; n < 0 {
			return each.do
		}
	}
	return w[0].do
}

// plan returns the steps of a run. They are the same for the same configuration and seed. A restore follows its
// backup, with other faults between the two.
func plan(cfg *Config) []step {
	rng := rand.New(rand.NewPCG(cfg.Seed, 1))
	var steps []step
	add := func(do Action, most time.Duration) {
		steps = append(steps, step{do: do, target: rng.IntN(cfg.Instances), length: most/5 + time.Duration(rng.Int64N(int64(most)*4/5+1))})
	}
	for i := range cfg.Kills {
		add(killActions.pick(rng), awayMax)
		if i%killsPerPause == 0 {
			most := awayMax
			if i%(4*killsPerPause) == 0 {
				most = hangMax
			}
			add(pauseActions.pick(rng), most)
		}
		if i%killsPerRolling == killsPerRolling/2 {
			add(Rolling, 0)
		}
	}
	for i := range cfg.Failovers {
		add(failoverActions[i%len(failoverActions)], hangMax)
	}
	for i := range cfg.Others {
		add(otherActions[i%len(otherActions)], 2*cfg.Calm)
	}
	rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	steps = withRestores(steps, cfg.Restores)
	for i := range steps {
		steps[i].after = cfg.Calm/5 + time.Duration(rng.Int64N(int64(cfg.Calm)*4/5+1))
	}
	return steps
}

// withRestores divides the steps into n sections. It inserts a backup after the first quarter of each section, and a
// restore before the last quarter.
func withRestores(steps []step, n int) []step {
	if n == 0 {
		return steps
	}
	var out []step
	for i := range n {
		part := steps[i*len(steps)/n : (i+1)*len(steps)/n]
		quarter := len(part) / 4
		out = append(out, part[:quarter]...)
		out = append(out, step{do: Backup})
		out = append(out, part[quarter:len(part)-quarter]...)
		out = append(out, step{do: Restore})
		out = append(out, part[len(part)-quarter:]...)
	}
	return out
}
