package drill

import (
	"context"
	_ "embed" // the journal's query
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

//go:embed journal.sql
var journalSQL string

// key identifies an operation by its tenant and its idempotency key.
type key struct{ tenant, operation string }

// journal maps an operation to the sums of its entries, one sum for each kind of entry.
type journal map[key]map[Kind]int64

// readJournal reads the operations of the clients from the journal. It does not read the operations of the system.
func readJournal(ctx context.Context, url string) (journal, error) {
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	defer db.Close(ctx)
	rows, err := db.Query(ctx, journalSQL)
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	j := journal{}
	var k key
	var kind Kind
	var sum int64
	_, err = pgx.ForEachRow(rows, []any{&k.tenant, &k.operation, &kind, &sum}, func() error {
		if j[k] == nil {
			j[k] = map[Kind]int64{}
		}
		j[k][kind] = sum
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	return j, nil
}

// Findings counts the differences between the operations that the clients remember and the operations in the journal.
// It also has Compared, the number of compared operations. Examples describes the first findings.
type Findings struct {
	Compared int // number of compared operations

	Lost     int // acknowledged but missing in the journal, or in the journal with less than the requested amount
	Twice    int // in the journal with more than the requested amount
	Present  int // refused by every answer, but in the journal
	Unknown  int // in the journal, but in no client's memory
	Late     int // allowed: finally refused, but in the journal, because an attempt without an answer was executed
	Examples []string
}

const examplesMax = 10

// Violations returns the number of findings that break a promise.
func (f *Findings) Violations() int { return f.Lost + f.Twice + f.Present + f.Unknown }

func (f *Findings) found(count *int, what string, op *Operation) {
	*count++
	if len(f.Examples) < examplesMax {
		f.Examples = append(f.Examples, fmt.Sprintf("%s: %s %s of %d by %s, %s after %d attempts, %d of them unsure, first sent %s", what, op.Tenant, op.Kind,
			op.Amount, op.Key, op.Outcome, op.Attempts, op.Unsure, op.First.UTC().Format(time.RFC3339Nano)))
	}
}

// compare compares the clients' memory with the journal.
func compare(remembered []Operation, j journal) Findings {
	f := Findings{Compared: len(remembered)}
	known := make(map[key]bool, len(remembered))
	for i := range remembered {
		op := &remembered[i]
		k := key{op.Tenant, op.Key}
		known[k] = true
		entries, in := j[k]
		switch sum := entries[op.Kind]; {
		case in && sum > op.Amount:
			f.found(&f.Twice, "charged twice", op)
		case op.Outcome == Done && sum < op.Amount, in && sum < op.Amount:
			f.found(&f.Lost, "lost", op)
		case op.Outcome != Done && in && op.Unsure == 0 && op.Attempts > 0:
			f.found(&f.Present, "refused and in the journal", op)
		case op.Outcome == Refused && in:
			f.Late++
		}
	}
	for k := range j {
		if !known[k] {
			f.found(&f.Unknown, "nobody remembers it", &Operation{Tenant: k.tenant, Key: k.operation})
		}
	}
	return f
}

// compareAt compares the clients' memory with a journal that was restored to an instant. The journal must contain the
// operations that were acknowledged before the instant. It must not contain operations that were sent after the
// instant.
func compareAt(remembered []Operation, j journal, instant time.Time) Findings {
	var before []Operation
	for i := range remembered {
		op := remembered[i]
		switch in := j[key{op.Tenant, op.Key}] != nil; {
		case op.First.After(instant):
			op.Outcome, op.Unsure, op.Attempts = Refused, 0, 1 // must not be in the journal
		case op.Outcome == Done && op.Ended.After(instant):
			op.Outcome, op.Unsure = Open, 1 // may be in the journal
		case op.Outcome != Done && in:
			op.Unsure = max(op.Unsure, 1) // the operation was tried before the instant
		}
		before = append(before, op)
	}
	return compare(before, j)
}
