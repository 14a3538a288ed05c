package audit

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// entry is a row of entries. Its texts are valid until the next row is read. Instants are microseconds since 1970.
type entry struct {
	seq, line, item   int64
	operation, kind   []byte
	period, createdAt int64
	month             int32 // days since 1970
	grant, source     []byte
	amount, remaining int64
	requested         int64
	fingerprint       []byte
	effectiveAt       int64
	hasEffective      bool
	opSubject         []byte
	detail, metadata  []byte
	actor             []byte // empty: none

	moves *moves // what one unit of the entry adds to the sums; nil: unknown kind
	named string // the kind to which moves belongs
	span  monthSpan
}

// monthSpan is the time of a month in microseconds since 1970: from inclusive, until exclusive.
type monthSpan struct{ from, until int64 }

// PostgreSQL counts instants and days from the year 2000.
const (
	epoch2000     = 946_684_800_000_000
	epoch2000Days = 10_957
)

// readable returns an error unless the columns of VerifyEntries come in PostgreSQL's binary form. Text columns are
// not checked: their binary and text forms are the same.
func readable(rows pgx.Rows) error {
	fields := rows.FieldDescriptions()
	for _, i := range [...]int{0, 1, 3, 4, 6, 9, 10, 11, 12, 13, 14, 15} {
		if fields[i].Format != pgx.BinaryFormatCode {
			return fmt.Errorf("column %s is not in binary form", fields[i].Name)
		}
	}
	return nil
}

// eachEntry calls the function `do` with each row of VerifyEntries, and with the position of its balance in the
// request, from 0. The statement does not order the rows over all balances, because that would sort all rows.
// PostgreSQL returns the rows in order nevertheless. eachEntry returns an error if the rows are not in order.
func eachEntry(rows pgx.Rows, do func(balance int, e *entry) error) error {
	defer rows.Close()
	var e entry
	for first, last := true, 0; rows.Next(); first = false {
		if first {
			if err := readable(rows); err != nil {
				return err
			}
		}
		balance := e.read(rows.RawValues()) - 1
		if balance < last {
			return fmt.Errorf("entries of balance %d were read after those of balance %d", balance+1, last+1)
		}
		last = balance
		if err := do(balance, &e); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read entries: %w", err)
	}
	return nil
}

// read decodes the columns of VerifyEntries, and returns the position of the balance. It decodes by hand, which takes a
// third of the time of a scan.
func (e *entry) read(v [][]byte) (ord int) {
	number := func(i int) int64 { return int64(binary.BigEndian.Uint64(v[i])) }
	ord = int(number(0))
	e.seq, e.operation, e.line = number(1), v[2], int64(int32(binary.BigEndian.Uint32(v[3])))
	e.month = int32(binary.BigEndian.Uint32(v[4])) + epoch2000Days
	e.kind, e.period, e.grant, e.source = v[5], number(6)+epoch2000, v[7], v[8]
	e.amount, e.remaining, e.item, e.requested = number(9), number(10), int64(int32(binary.BigEndian.Uint32(v[11]))), 0
	if v[12] != nil {
		e.requested = number(12)
	}
	e.fingerprint, e.createdAt = v[13], number(14)+epoch2000
	if e.hasEffective = v[15] != nil; e.hasEffective {
		e.effectiveAt = number(15) + epoch2000
	}
	e.opSubject, e.detail, e.metadata = v[16], v[columnDetail], v[columnMetadata]
	e.actor = v[columnActor]
	if e.named != string(e.kind) { // most entries have the kind of the entry before
		m, known := kinds[string(e.kind)]
		e.named, e.moves = string(e.kind), nil
		if known {
			e.moves = &m
		}
	}
	return ord
}

const columnDetail, columnMetadata, columnActor = 17, 18, 19

// inMonth reports whether the entry is in the partition of its instant.
func (e *entry) inMonth() bool {
	if e.createdAt < e.span.from || e.createdAt >= e.span.until {
		at := time.UnixMicro(e.createdAt).UTC()
		first := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
		e.span = monthSpan{first.UnixMicro(), first.AddDate(0, 1, 0).UnixMicro()}
	}
	return int64(e.month)*86_400_000_000 == e.span.from
}

// instant returns an instant of the journal as text for people.
func instant(micros int64) string { return time.UnixMicro(micros).UTC().Format(time.RFC3339Nano) }
