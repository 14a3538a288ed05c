package history

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/kit/metric"
)

const (
	// lagEvery is the pause between two checks of the replica, and lagTimeout bounds one check.
	lagEvery   = time.Second
	lagTimeout = time.Second

	// lagMarks bounds the recorded positions of the primary that the replica has not reached. If there are more, every
	// second position is dropped. Then the lag of a replica that is three hours behind is still known with an error of
	// at most half a minute.
	lagMarks = 4096
)

// errNoStandby is the error for a report database that replays nothing: it was promoted, or was never a standby.
var errNoStandby = errors.New("the report database is not a standby, so that its lag is not known")

// mark says that all WAL of the journal until an instant lies before a position.
type mark struct {
	at       time.Time
	position int64
}

// lag measures how far the replica is behind. Each second it records the primary's position, and reads which of the
// recorded positions the replica has reached.
type lag struct {
	primary, replica *pgxpool.Pool
	sql              map[string]string
	cancel           context.CancelFunc
	ended            chan struct{}

	mu       sync.Mutex
	waiting  []mark    // positions that the replica has not reached, oldest first
	complete time.Time // instant until which the replica has all commits; zero: not known
	bytes    int64     // bytes that the replica lacked at the last check; -1: not known
	err      error     // error of the last check
}

// startLag starts the checks. The pools belong to the caller.
func startLag(primary, replica *pgxpool.Pool, sql map[string]string, metrics prometheus.Registerer) *lag {
	ctx, cancel := context.WithCancel(context.Background())
	l := &lag{primary: primary, replica: replica, sql: sql, cancel: cancel, ended: make(chan struct{}), bytes: -1, err: errors.New("not asked yet")}
	metric.GaugeFunc(metrics, "quotasvc_report_replica_lag_seconds",
		"Age of the instant until which the replica for reports has everything that was committed. About a second if it keeps up; NaN: not known.",
		func() float64 {
			if complete := l.completeUntil(); !complete.IsZero() {
				return time.Since(complete).Seconds()
			}
			return math.NaN()
		})
	metric.GaugeFunc(metrics, "quotasvc_report_replica_lag_bytes",
		"WAL that the replica for reports had not replayed at the last look, in bytes. NaN: not known.", func() float64 {
			if _, bytes, _ := l.state(); bytes >= 0 {
				return float64(bytes)
			}
			return math.NaN()
		})
	go l.run(ctx)
	return l
}

func (l *lag) stop() {
	l.cancel()
	<-l.ended
}

func (l *lag) run(ctx context.Context) {
	defer close(l.ended)
	l.look(ctx)
	backoff.Every(ctx, lagEvery, func(time.Time) { l.look(ctx) })
}

// look queries the primary and the replica, and updates the lag. If the primary does not answer, look uses the
// positions that were recorded before. If the replica does not answer, completeUntil returns the same instant as
// before.
func (l *lag) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lagTimeout)
	defer cancel()
	began := time.Now()
	var written int64
	err := l.primary.QueryRow(ctx, l.sql["Written"]).Scan(&written)
	if err == nil {
		l.note(mark{began, written})
	}
	var replayed *int64
	var newest *time.Time
	if asked := l.replica.QueryRow(ctx, l.sql["Replayed"]).Scan(&replayed, &newest); asked != nil {
		l.failed(asked)
		return
	}
	if replayed == nil {
		l.failed(errNoStandby)
		return
	}
	l.reached(*replayed, written, newest, err)
}

func (l *lag) note(m mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last := len(l.waiting) - 1; last >= 0 && l.waiting[last].position == m.position {
		l.waiting[last].at = m.at // nothing was written since
		return
	}
	if len(l.waiting) == lagMarks {
		for i := range lagMarks / 2 {
			l.waiting[i] = l.waiting[2*i]
		}
		l.waiting = l.waiting[:lagMarks/2]
	}
	l.waiting = append(l.waiting, m)
}

// reached records the replica's position. newest is the commit time, by the primary's clock, of the last transaction
// that the replica has replayed. newest is used until the replica has reached the first mark. err is the error of the
// query to the primary.
func (l *lag) reached(replayed, written int64, newest *time.Time, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	if l.bytes = -1; err == nil {
		l.bytes = max(0, written-replayed)
	}
	n := 0
	for n < len(l.waiting) && l.waiting[n].position <= replayed {
		l.complete = l.waiting[n].at
		n++
	}
	l.waiting = append(l.waiting[:0], l.waiting[n:]...)
	if l.complete.IsZero() && newest != nil {
		l.complete = *newest
	}
}

func (l *lag) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bytes, l.err = -1, err
	if errors.Is(err, errNoStandby) {
		l.complete = time.Time{}
	}
}

func (l *lag) state() (complete time.Time, bytes int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.complete, l.bytes, l.err
}

// completeUntil returns the instant until which the replica has all commits. It returns the zero time if that is not
// known.
func (l *lag) completeUntil() time.Time {
	if l == nil {
		return time.Time{}
	}
	complete, _, _ := l.state()
	return complete
}

// Lag says how far the replica for reports is behind.
type Lag struct {
	Seconds float64 // age of the instant until which the replica has all commits; about 1 if it keeps up
	Bytes   int64   // bytes of WAL that the replica had not replayed; -1: not known
}

// ReplicaLag returns how far the replica is behind, and nil if there is no replica or its lag is not known.
func (r *Reader) ReplicaLag() *Lag {
	complete := r.lag.completeUntil()
	if complete.IsZero() {
		return nil
	}
	_, bytes, _ := r.lag.state()
	return &Lag{Seconds: time.Since(complete).Seconds(), Bytes: bytes}
}

// HasReplica reports whether reports read a replica.
func (r *Reader) HasReplica() bool { return r.replica != nil }

// ReplicaState returns the error of the last check of the replica. It does not wait.
func (r *Reader) ReplicaState(context.Context) error {
	_, _, err := r.lag.state()
	return err
}

// Source says where the answer of a report came from.
type Source struct {
	// Complete is the instant until which the replica had all commits when the report began. Zero: the answer comes
	// from the primary, or the instant is not known.
	Complete time.Time
}

// Behind returns the age of the data in the answer, in seconds, for a header. It is empty if the answer comes from
// the primary, or if the age is not known.
func (s *Source) Behind() string {
	if s.Complete.IsZero() {
		return ""
	}
	return strconv.FormatFloat(max(0, time.Since(s.Complete).Seconds()), 'f', 1, 64)
}

type sourceKey struct{}

// Observe returns a context. A report that runs with this context fills in s.
func Observe(ctx context.Context, s *Source) context.Context {
	*s = Source{}
	return context.WithValue(ctx, sourceKey{}, s)
}
