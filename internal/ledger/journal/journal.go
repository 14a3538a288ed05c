package journal

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/quotasvc/quotasvc/internal/kit/backoff"
	"github.com/quotasvc/quotasvc/internal/store/namedsql"
)

//go:embed sql/*.sql
var sqlFiles embed.FS

const (
	// MonthsAhead is the number of months after the current one that have their partition in advance. So the process
	// that may create partitions can be absent for almost a year.
	MonthsAhead = 12

	// MonthsKept is the number of months before the current one whose missing partitions are created. Entries may get
	// an instant in these months if a clock that was ahead is set back.
	MonthsKept = 1

	// EventsKept is how long events and their deliveries can be read. Then their partitions are dropped.
	EventsKept = 90 * 24 * time.Hour

	// lockWait bounds each wait for a lock. While a statement waits for a lock on entries, other statements on
	// entries wait behind that statement.
	lockWait = 100 * time.Millisecond
	// lockTries and lockPause bound the repeated attempts: about five seconds in all. A pause is random, up to twice
	// lockPause.
	lockTries = 20
	lockPause = 150 * time.Millisecond
)

// The tables with a partition for each month. Old partitions are dropped, except those of entries.
const entries = "entries"

var tables = []string{entries, "events", "webhook_deliveries"}

// Journal works on the partitions of entries, and on those of events and deliveries. It is safe for concurrent use;
// each connection serves one call at a time.
type Journal struct {
	log *slog.Logger
	sql map[string]string
}

// New returns a Journal. It writes to log which partitions it creates and drops.
func New(log *slog.Logger) *Journal {
	return &Journal{log: log, sql: namedsql.Must(namedsql.Plain, sqlFiles)}
}

// Partition is a partition of entries.
type Partition struct {
	Name     string
	From, To Month // [From, To): one month, unless an operator has created another range
	Pending  bool  // a detachment was begun and not finished: readers do not see its entries
	Rows     int64 // the planner's estimate of the rows
	Bytes    int64 // with indexes
}

// Partitions returns the partitions of entries, oldest first.
func (j *Journal) Partitions(ctx context.Context, conn *pgx.Conn) ([]Partition, error) {
	return j.partitionsOf(ctx, conn, entries)
}

func (j *Journal) partitionsOf(ctx context.Context, conn *pgx.Conn, table string) ([]Partition, error) {
	rows, _ := conn.Query(ctx, j.sql["Partitions"], table)
	var out []Partition
	var p Partition
	var from, to time.Time
	_, err := pgx.ForEachRow(rows, []any{&p.Name, &from, &to, &p.Pending, &p.Rows, &p.Bytes}, func() error {
		p.From, p.To = MonthOf(from), MonthOf(to)
		out = append(out, p)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the journal's partitions: %w", err)
	}
	return out, nil
}

// Ahead returns how many consecutive months after now have a partition. It returns -1 if the current month has no
// partition.
func Ahead(partitions []Partition, now Month) int {
	ahead := -1
	for covered(partitions, now+Month(ahead)+1) {
		ahead++
	}
	return ahead
}

func covered(partitions []Partition, m Month) bool {
	return slices.ContainsFunc(partitions, func(p Partition) bool { return p.From <= m && m < p.To && !p.Pending })
}

// MakeAhead creates the missing partitions from MonthsKept months before now to MonthsAhead after it, the oldest
// first. Then it drops old partitions of events and deliveries. If it cannot create a partition, it goes on with the
// next table.
func (j *Journal) MakeAhead(ctx context.Context, conn *pgx.Conn, now Month) error {
	var failed error
	for _, table := range tables {
		failed = errors.Join(failed, j.makeAheadOf(ctx, conn, table, now))
	}
	return errors.Join(failed, j.DropOld(ctx, conn, now))
}

func (j *Journal) makeAheadOf(ctx context.Context, conn *pgx.Conn, table string, now Month) error {
	partitions, err := j.partitionsOf(ctx, conn, table)
	if err != nil {
		return err
	}
	for m := now - MonthsKept; m <= now+MonthsAhead; m++ {
		if covered(partitions, m) {
			continue
		}
		if err := j.makeOf(ctx, conn, table, m); err != nil {
			return err
		}
	}
	return nil
}

// Make creates the partitions of a month, unless they exist. It fails for an archived month, because no entry may be
// added there.
func (j *Journal) Make(ctx context.Context, conn *pgx.Conn, m Month) error {
	for _, table := range tables {
		if err := j.makeOf(ctx, conn, table, m); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) makeOf(ctx context.Context, conn *pgx.Conn, of string, m Month) error {
	made := false
	err := patiently(ctx, func() error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, setLockWait); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, j.sql["PartitionLock"]); err != nil {
				return err
			}
			var table, partition bool
			if err := tx.QueryRow(ctx, j.sql["TableExists"], m.partitionOf(of)).Scan(&table, &partition); err != nil {
				return err
			}
			switch {
			case partition:
				return nil
			case table:
				return fmt.Errorf("a table %s exists, and it is not a partition of %s", m.partitionOf(of), of)
			}
			var archived bool
			if err := tx.QueryRow(ctx, j.sql["MonthArchived"], m.Start()).Scan(&archived); err != nil {
				return err
			}
			if archived && of == entries {
				return errors.New("that month was archived: the clock by which entries are stamped is wrong")
			}
			made = true
			for _, statement := range makeStatements(of, m) {
				if _, err := tx.Exec(ctx, statement); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("make the partition %s: %w", m.partitionOf(of), err)
	}
	if made {
		j.log.Info("journal partition made", "partition", m.partitionOf(of))
	}
	return nil
}

// DropOld drops the partitions of events and deliveries that ended at least EventsKept before the beginning of the
// current month.
func (j *Journal) DropOld(ctx context.Context, conn *pgx.Conn, now Month) error {
	for _, table := range tables {
		if table == entries { // only archives drop partitions of entries
			continue
		}
		partitions, err := j.partitionsOf(ctx, conn, table)
		if err != nil {
			return err
		}
		for _, p := range partitions {
			if p.To.Start().Add(EventsKept).After(now.Start()) {
				continue
			}
			if err := j.drop(ctx, conn, p.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// makeStatements returns the statements that create a table and attach it. CREATE TABLE ... PARTITION OF would lock
// out all readers and writers of entries; ATTACH locks out only other statements that attach or detach. The table is
// empty, so it is not scanned. Each statement is sent separately, because Citus forwards its text to the nodes.
func makeStatements(of string, m Month) []string {
	return []string{
		fmt.Sprintf("CREATE TABLE %s (LIKE %s INCLUDING ALL)", m.partitionOf(of), of),
		fmt.Sprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM ('%s') TO ('%s')",
			of, m.partitionOf(of), m.Start().Format(time.DateOnly), m.End().Format(time.DateOnly)),
	}
}

// Detach detaches a partition: its entries are then in a separate table, which nobody reads. It waits for the
// transactions that have used entries, as long as ctx and the connection's timeouts allow. It can be interrupted and
// called again. The connection must not be in a transaction. It returns nil if the partition is detached already.
func (j *Journal) Detach(ctx context.Context, conn *pgx.Conn, m Month) error {
	detached := false
	err := patiently(ctx, func() error {
		partitions, err := j.Partitions(ctx, conn)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(partitions, func(p Partition) bool { return p.From <= m && m < p.To })
		if i < 0 {
			return nil
		}
		p := partitions[i]
		if p.From != m || p.To != m+1 || p.Name != m.Partition() {
			return fmt.Errorf("its entries are in %s, which holds %s to %s: detach that one by hand", p.Name, p.From, p.To-1)
		}
		how := "CONCURRENTLY"
		if p.Pending { // an earlier attempt was interrupted
			how = "FINALIZE"
		}
		detached = true
		return j.detach(ctx, conn, p.Name, how)
	})
	if err != nil {
		return fmt.Errorf("detach the journal's partition of %s: %w", m, err)
	}
	if detached {
		j.log.Info("journal partition detached", "partition", m.Partition())
	}
	return nil
}

// detach detaches a partition without delaying other statements. Citus cannot detach CONCURRENTLY: there each attempt
// waits up to lockWait for the lock.
func (j *Journal) detach(ctx context.Context, conn *pgx.Conn, partition, how string) error {
	var distributed bool
	if err := conn.QueryRow(ctx, j.sql["OnCitus"]).Scan(&distributed); err != nil {
		return err
	}
	if !distributed {
		_, err := conn.Exec(ctx, "ALTER TABLE entries DETACH PARTITION "+partition+" "+how)
		return err
	}
	return execBriefly(ctx, conn, "ALTER TABLE entries DETACH PARTITION "+partition)
}

// Drop drops the table of a detached month. It refuses to drop a partition that is attached. It returns nil if there is
// no such table.
func (j *Journal) Drop(ctx context.Context, conn *pgx.Conn, m Month) error {
	var table, partition bool
	if err := conn.QueryRow(ctx, j.sql["TableExists"], m.Partition()).Scan(&table, &partition); err != nil {
		return fmt.Errorf("drop the journal's partition of %s: %w", m, err)
	}
	switch {
	case !table:
		return nil
	case partition:
		return fmt.Errorf("drop the journal's partition of %s: it is not detached", m)
	}
	return j.drop(ctx, conn, m.Partition())
}

func (j *Journal) drop(ctx context.Context, conn *pgx.Conn, name string) error {
	err := patiently(ctx, func() error { return execBriefly(ctx, conn, "DROP TABLE IF EXISTS "+name) })
	if err != nil {
		return fmt.Errorf("drop the partition %s: %w", name, err)
	}
	j.log.Info("journal partition dropped", "partition", name)
	return nil
}

var setLockWait = fmt.Sprintf("SET LOCAL lock_timeout = %d", lockWait.Milliseconds())

// execBriefly executes a statement in a transaction of its own, which waits for each lock up to lockWait.
func execBriefly(ctx context.Context, conn *pgx.Conn, statement string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, setLockWait); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statement)
		return err
	})
}

// patiently calls the function `do` until it gets its locks, up to lockTries times.
func patiently(ctx context.Context, do func() error) error {
	for try := 1; ; try++ {
		err := do()
		if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != "55P03" || try == lockTries {
			return err
		}
		if !backoff.Sleep(ctx, rand.N(2*lockPause)) {
			return err
		}
	}
}

var (
	shardOfTable = regexp.MustCompile(`^(entries|events|webhook_deliveries)(_\d+)?$`)
	ofTable      = regexp.MustCompile(`^no partition of relation "(entries|events|webhook_deliveries)`)
)

var partitionKey = regexp.MustCompile(`\(month\) = \((\d{4}-\d{2})-\d{2}\)`)

// MissingMonth returns the month whose partition is missing, if err says that a row of entries, events or deliveries
// could not be written for this reason.
func MissingMonth(err error) (Month, bool) {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	// On Citus the table is a shard such as entries_102062. The coordinator forwards only the message, without the
	// table.
	ofOurs := pgErr != nil && (shardOfTable.MatchString(pgErr.TableName) || pgErr.TableName == "" && ofTable.MatchString(pgErr.Message))
	if !ok || pgErr.Code != "23514" || !ofOurs || pgErr.ConstraintName != "" {
		return 0, false
	}
	key := partitionKey.FindStringSubmatch(pgErr.Detail)
	if key == nil {
		return 0, false
	}
	m, err := ParseMonth(key[1])
	return m, err == nil
}
