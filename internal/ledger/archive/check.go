package archive

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/parquet-go/parquet-go"

	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/journal"
)

// differencesMax bounds the differences that a check lists.
const differencesMax = 100

// CheckOptions select what to check.
type CheckOptions struct {
	DatabaseURL string
	Dir         string
	Log         *slog.Logger
	Progress    func(Progress) // nil: progress is not reported
}

// Report is the result of a check.
type Report struct {
	Manifest    *Manifest
	Entries     int64
	Balances    int64    // balances with entries in the archive
	Differences []string // the first differencesMax differences
	Count       int64    // number of all differences
}

// Clean reports whether there is no difference.
func (r *Report) Clean() bool { return r.Count == 0 }

func (r *Report) add(format string, args ...any) {
	r.Count++
	if len(r.Differences) < differencesMax {
		r.Differences = append(r.Differences, fmt.Sprintf(format, args...))
	}
}

// check is the state of one call of Check.
type check struct {
	run
	report *Report
	files  []*entryFile // the files with entries, oldest month first
	ends   *endRows
}

// Check compares an archive with its manifest and with the database that it comes from. It checks that the files are
// unaltered, that each balance's entries are complete and in their hash chain, and that the database continues where
// the archive ends. An error means that the archive could not be checked at all.
func Check(ctx context.Context, o CheckOptions) (*Report, error) {
	m, digest, err := ReadManifest(o.Dir)
	if err != nil {
		return nil, err
	}
	if !m.Complete {
		return nil, fmt.Errorf("the archive in %s is not complete: run quotasvc archive --before %s with it again", o.Dir, m.Before)
	}
	c := &check{report: &Report{Manifest: m}, run: run{Options: Options{DatabaseURL: o.DatabaseURL, Dir: o.Dir, Log: o.Log, Progress: o.Progress}, dir: directory(o.Dir)}}
	if err := c.open(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = c.conn.Close(context.WithoutCancel(ctx)) }() // nothing was written
	if err := c.readState(ctx); err != nil {
		return nil, err
	}
	if m.Database != c.state.database {
		return nil, fmt.Errorf("the archive in %s is of another database (%s; this one is %s)", o.Dir, m.Database, c.state.database)
	}
	if err := c.compareManifest(ctx, digest); err != nil {
		return nil, err
	}
	if !c.compareFiles() {
		return c.report, nil // the rows of altered files cannot be trusted
	}
	return c.report, c.compareEntries(ctx)
}

// compareManifest compares the manifest with the digest that was recorded when the months were archived.
func (c *check) compareManifest(ctx context.Context, digest string) error {
	months, err := c.report.Manifest.months()
	if err != nil {
		return err
	}
	for _, m := range months {
		var recorded []byte
		err := c.conn.QueryRow(ctx, c.sql["ManifestOf"], m.Start()).Scan(&recorded)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			c.report.add("%s: the database does not know that this month was archived", m)
		case err != nil:
			return fmt.Errorf("archive: read the record of %s: %w", m, err)
		case hex.EncodeToString(recorded) != digest:
			c.report.add("%s: %s is not the one with which the month was archived", m, manifestName)
		}
	}
	return nil
}

// compareFiles compares the files with the manifest, and reports whether all are unaltered.
func (c *check) compareFiles() bool {
	good := true
	for i := range c.report.Manifest.Files {
		f := &c.report.Manifest.Files[i]
		c.Progress(Progress{Step: "read " + f.Name})
		if err := c.dir.check(f); err != nil {
			c.report.add("%v", err)
			good = false
		}
	}
	return good
}

// entryColumns are the columns of entries that are read, in the order of the indexes below.
var entryColumns = []string{
	"tenant_id", "meter", "subject", "seq", "operation_id", "line", "kind", "period_start", "grant_id", "source", "amount", "remaining_after", "item",
	"requested", "fingerprint", "created_at", "effective_at", "op_subject", "detail", "metadata", "actor",
}

// entryColumnsLater are the columns that files of older versions do not have.
var entryColumnsLater = []string{"actor"}

// entryFile reads a month's entries one after another.
type entryFile struct {
	name  string
	month journal.Month
	in    *fileReader
	row   []parquet.Value
	at    ledger.BalanceKey // balance of the current row
	ended bool
}

func (f *entryFile) next() error {
	err := f.in.next(f.row)
	if errors.Is(err, io.EOF) {
		f.ended = true
		return nil
	}
	if err != nil {
		return err
	}
	f.at = ledger.BalanceKey{Tenant: text(f.row[0]), Meter: text(f.row[1]), Subject: text(f.row[2])}
	return nil
}

func text(v parquet.Value) string { return string(v.ByteArray()) }

func bytesOf(v parquet.Value) []byte {
	if v.IsNull() {
		return nil
	}
	return append([]byte(nil), v.ByteArray()...)
}

// entry returns the current row as an entry.
func (f *entryFile) entry() (*ledger.Entry, error) {
	v := f.row
	e := &ledger.Entry{
		BalanceKey: f.at, Seq: v[3].Int64(), OperationID: text(v[4]), Line: v[5].Int32(), Kind: ledger.EntryKind(text(v[6])),
		PeriodStart: time.UnixMicro(v[7].Int64()).UTC(), Grant: text(v[8]), Source: ledger.Source(text(v[9])), Amount: v[10].Int64(),
		RemainingAfter: v[11].Int64(), Item: v[12].Int32(), Fingerprint: bytesOf(v[14]), CreatedAt: time.UnixMicro(v[15].Int64()).UTC(),
		Detail: bytesOf(v[18]), Metadata: bytesOf(v[19]),
	}
	if !v[13].IsNull() {
		e.Requested = v[13].Int64()
	}
	if !v[16].IsNull() {
		e.EffectiveAt = time.UnixMicro(v[16].Int64()).UTC()
	}
	if !v[17].IsNull() {
		e.OpSubject = text(v[17])
	}
	if !v[20].IsNull() {
		e.Actor = text(v[20])
	}
	for _, document := range [][]byte{e.Detail, e.Metadata} {
		if len(document) > 0 && !json.Valid(document) {
			return nil, fmt.Errorf("%s: entry %d of %s/%s has a document that is not JSON", f.name, e.Seq, e.Tenant, e.Meter)
		}
	}
	return e, nil
}

// compareEntries reads the entries of all months in the order of balances and seq. In the same order it reads the
// ends of archives that the database has recorded.
func (c *check) compareEntries(ctx context.Context) error {
	defer func() {
		for _, f := range c.files {
			_ = f.in.close() // the file was only read
		}
	}()
	for i := range c.report.Manifest.Files {
		f := &c.report.Manifest.Files[i]
		if f.Table != "entries" {
			continue
		}
		month, err := monthOfFile(f)
		if err != nil {
			return err
		}
		in, err := openFile(c.dir.path(f.Name), entryColumns, entryColumnsLater...)
		if err != nil {
			return err
		}
		file := &entryFile{name: f.Name, month: month, in: in, row: make([]parquet.Value, len(entryColumns))}
		c.files = append(c.files, file)
		if err := file.next(); err != nil {
			return err
		}
	}
	rows, err := c.conn.Query(ctx, c.sql["ArchivedEnds"])
	if err != nil {
		return fmt.Errorf("archive: read the checkpoints: %w", err)
	}
	c.ends = &endRows{rows: rows}
	defer rows.Close()
	for {
		key, found := c.first()
		if !found {
			break
		}
		if err := c.compareBalance(key); err != nil {
			return err
		}
	}
	return c.ends.err()
}

// first returns the first balance with unread entries.
func (c *check) first() (key ledger.BalanceKey, found bool) {
	for _, f := range c.files {
		if !f.ended && (!found || ledger.CompareKeys(f.at, key) < 0) {
			key, found = f.at, true
		}
	}
	return key, found
}

// end is the last entry of a balance in an archive.
type end struct {
	key       ledger.BalanceKey
	seq       int64
	at        time.Time
	remaining int64
	chain     []byte
}

// endRows reads the ends of archives in the order of balances and seq.
type endRows struct {
	rows pgx.Rows
	next *end
	fail error
}

// of returns the ends of a balance. It skips the ends of earlier balances, so it must be called in the order of
// balances.
func (r *endRows) of(key ledger.BalanceKey) (out []end) {
	for r.fail == nil {
		if r.next == nil {
			if !r.rows.Next() {
				return out
			}
			e := &end{}
			if r.fail = r.rows.Scan(&e.key.Tenant, &e.key.Meter, &e.key.Subject, &e.seq, &e.at, &e.remaining, &e.chain); r.fail != nil {
				return out
			}
			r.next = e
		}
		order := ledger.CompareKeys(r.next.key, key)
		if order > 0 {
			return out
		}
		if order == 0 {
			out = append(out, *r.next)
		}
		r.next = nil
	}
	return out
}

func (r *endRows) err() error { return errors.Join(r.fail, r.rows.Err()) }

// compareBalance reads the entries of a balance, and compares their numbering, instants and chain with the ends of
// archives that the database has recorded.
func (c *check) compareBalance(key ledger.BalanceKey) error {
	ends := c.ends.of(key)
	c.report.Balances++
	var first, last *ledger.Entry
	var chain ledger.Chain
	for _, f := range c.files {
		for !f.ended && f.at == key {
			e, err := f.entry()
			if err != nil {
				return err
			}
			if first == nil {
				first = e
				chain = startOf(ends, e.Seq)
			}
			c.follow(f, last, e)
			if from := chainFrom(ends, e.Seq); from > 0 && e.Seq >= from {
				chain.Extend(e)
			}
			last = e
			c.report.Entries++
			if err := f.next(); err != nil {
				return err
			}
		}
	}
	name := fmt.Sprintf("%s/%s", key.Tenant, key.Meter)
	if key.Subject != "" {
		name += "/" + key.Subject
	}
	if first.Seq != 1 && !slices.ContainsFunc(ends, func(e end) bool { return e.seq == first.Seq-1 }) {
		c.report.add("%s: the archive begins with entry %d, and the database knows no archive that ends before it", name, first.Seq)
	}
	for _, e := range ends {
		if e.seq != last.Seq {
			continue
		}
		if !e.at.Equal(last.CreatedAt) || e.remaining != last.RemainingAfter {
			c.report.add("%s: entry %d has %s and remaining %d, the database recorded %s and %d", name, last.Seq,
				last.CreatedAt.Format(time.RFC3339Nano), last.RemainingAfter, e.at.UTC().Format(time.RFC3339Nano), e.remaining)
		}
		if stored, ok := decodeChain(e.chain); !ok || stored.Last == last.Seq && stored != chain {
			c.report.add("%s: the hash chain of its entries does not lead to the head that the database recorded at entry %d", name, last.Seq)
		}
		return nil
	}
	c.report.add("%s: the archive ends with entry %d, the database recorded no end there", name, last.Seq)
	return nil
}

// follow compares an entry with the previous entry of its balance.
func (c *check) follow(f *entryFile, last, e *ledger.Entry) {
	if last != nil && e.Seq != last.Seq+1 {
		c.report.add("%s: %s/%s: entry %d follows entry %d", f.name, e.Tenant, e.Meter, e.Seq, last.Seq)
	}
	if last != nil && e.CreatedAt.Before(last.CreatedAt) {
		c.report.add("%s: %s/%s: entry %d is older than the one before it", f.name, e.Tenant, e.Meter, e.Seq)
	}
	if journal.MonthOf(e.CreatedAt) != f.month {
		c.report.add("%s: %s/%s: entry %d is of %s", f.name, e.Tenant, e.Meter, e.Seq, e.CreatedAt.Format(time.RFC3339))
	}
}

// startOf returns the chain up to entry seq-1 if the previous archive ended there. Otherwise it returns an empty
// chain.
func startOf(ends []end, seq int64) ledger.Chain {
	for _, e := range ends {
		if e.seq == seq-1 {
			chain, _ := decodeChain(e.chain)
			return chain
		}
	}
	return ledger.Chain{}
}

// chainFrom returns the first entry that the recorded chain covers. It reads the chain of the first end at or after
// entry seq, and returns 0 if there is no such end or chain.
func chainFrom(ends []end, seq int64) int64 {
	for _, e := range ends {
		if e.seq >= seq {
			chain, _ := decodeChain(e.chain)
			return chain.From
		}
	}
	return 0
}

// decodeChain decodes a chain column: first and newest entry, 8 bytes each, then the head.
func decodeChain(stored []byte) (c ledger.Chain, ok bool) {
	if len(stored) == 0 {
		return c, true
	}
	if len(stored) != 16+sha256.Size {
		return c, false
	}
	c.From, c.Last = int64(binary.BigEndian.Uint64(stored)), int64(binary.BigEndian.Uint64(stored[8:]))
	copy(c.Head[:], stored[16:])
	return c, true
}
