package archive

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

const (
	// groupRows is the largest number of rows in a row group. The writer keeps a row group in memory: about 20 MB of
	// entries.
	groupRows = 50_000
	// batchRows is the number of rows that are passed to the writer, or read from the reader, at once.
	batchRows = 512
)

// epochMicros and epochDays are the time from 1970, the epoch of Parquet, to 2000, the epoch of PostgreSQL.
const (
	epochMicros = 946_684_800_000_000
	epochDays   = 10_957
)

// column is a column of a query and of its file. All columns are optional.
type column struct {
	name  string
	index int // index in the file, whose columns are sorted by name
	node  parquet.Node
	value func(raw []byte) parquet.Value // converts PostgreSQL's binary form
}

// columnsOf returns the columns of a query in the order of its results. It fails on a type that archives do not support
// yet.
func columnsOf(fields []pgconn.FieldDescription) ([]column, *parquet.Schema, error) {
	columns, group, types := make([]column, len(fields)), parquet.Group{}, pgtype.NewMap()
	for i, f := range fields {
		c := column{name: f.Name}
		switch f.DataTypeOID {
		case pgtype.TextOID, pgtype.VarcharOID:
			c.node, c.value = parquet.String(), parquet.ByteArrayValue
		case pgtype.ByteaOID, pgtype.UUIDOID:
			c.node, c.value = parquet.Leaf(parquet.ByteArrayType), parquet.ByteArrayValue
		case pgtype.JSONBOID: // a byte with the version of the format, then text
			c.node, c.value = parquet.JSON(), func(raw []byte) parquet.Value { return parquet.ByteArrayValue(raw[1:]) }
		case pgtype.BoolOID:
			c.node, c.value = parquet.Leaf(parquet.BooleanType), func(raw []byte) parquet.Value { return parquet.BooleanValue(raw[0] != 0) }
		case pgtype.Int4OID:
			c.node, c.value = parquet.Int(32), func(raw []byte) parquet.Value { return parquet.Int32Value(int32(binary.BigEndian.Uint32(raw))) }
		case pgtype.Int8OID:
			c.node, c.value = parquet.Int(64), func(raw []byte) parquet.Value { return parquet.Int64Value(int64(binary.BigEndian.Uint64(raw))) }
		case pgtype.DateOID:
			c.node, c.value = parquet.Date(), func(raw []byte) parquet.Value {
				return parquet.Int32Value(int32(binary.BigEndian.Uint32(raw)) + epochDays)
			}
		case pgtype.TimestamptzOID:
			c.node, c.value = parquet.Timestamp(parquet.Microsecond), instantValue
		case pgtype.NumericOID:
			c.node, c.value = parquet.String(), numericValue(types)
		default:
			return nil, nil, fmt.Errorf("column %s has a type that an archive cannot hold (OID %d)", f.Name, f.DataTypeOID)
		}
		group[f.Name] = parquet.Optional(c.node)
		columns[i] = c
	}
	schema := parquet.NewSchema("quotasvc", group)
	for i := range columns {
		leaf, ok := schema.Lookup(columns[i].name)
		if !ok || len(group) != len(fields) {
			return nil, nil, fmt.Errorf("column %s is there twice", columns[i].name)
		}
		columns[i].index = leaf.ColumnIndex
	}
	return columns, schema, nil
}

// instantValue converts an instant from PostgreSQL's epoch to that of Parquet. Infinite instants keep their values.
func instantValue(raw []byte) parquet.Value {
	micros := int64(binary.BigEndian.Uint64(raw))
	if micros != pgInfinity && micros != pgMinusInfinity {
		micros += epochMicros
	}
	return parquet.Int64Value(micros)
}

const (
	pgInfinity      = 1<<63 - 1
	pgMinusInfinity = -1 << 63
)

// numericValue returns a number of any size as text.
func numericValue(types *pgtype.Map) func(raw []byte) parquet.Value {
	return func(raw []byte) parquet.Value {
		var n pgtype.Numeric
		if err := types.Scan(pgtype.NumericOID, pgtype.BinaryFormatCode, raw, &n); err != nil {
			return parquet.NullValue()
		}
		text, err := n.MarshalJSON()
		if err != nil {
			return parquet.NullValue()
		}
		return parquet.ByteArrayValue(text)
	}
}

// fileWriter writes rows of a query to a Parquet file.
type fileWriter struct {
	columns []column
	out     *parquet.GenericWriter[any]
	batch   []parquet.Row
	n       int    // number of rows in batch
	bytes   []byte // data of the batch: the driver's bytes are valid for one row only
	grouped int
	rows    int64
}

func newFileWriter(to io.Writer, columns []column, schema *parquet.Schema) *fileWriter {
	w := &fileWriter{columns: columns, batch: make([]parquet.Row, batchRows)}
	w.out = parquet.NewGenericWriter[any](to, schema, parquet.Compression(&zstd.Codec{Level: zstd.SpeedDefault}), parquet.CreatedBy("quotasvc", "", ""))
	for i := range w.batch {
		w.batch[i] = make(parquet.Row, len(columns))
	}
	return w
}

// add adds a row, whose columns are in PostgreSQL's binary form.
func (w *fileWriter) add(raw [][]byte) error {
	row := w.batch[w.n]
	for i := range w.columns {
		c := &w.columns[i]
		if raw[i] == nil {
			row[c.index] = parquet.NullValue().Level(0, 0, c.index)
			continue
		}
		from := len(w.bytes)
		w.bytes = append(w.bytes, raw[i]...)
		row[c.index] = c.value(w.bytes[from:]).Level(0, 1, c.index)
	}
	w.n++
	w.rows++
	if w.n < len(w.batch) {
		return nil
	}
	return w.write()
}

// write passes the batch to the writer, which copies it.
func (w *fileWriter) write() error {
	if _, err := w.out.WriteRows(w.batch[:w.n]); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	w.grouped += w.n
	w.n, w.bytes = 0, w.bytes[:0]
	if w.grouped < groupRows {
		return nil
	}
	w.grouped = 0
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

// close writes the remaining rows and the file's footer.
func (w *fileWriter) close() error {
	if err := w.write(); err != nil {
		return err
	}
	if err := w.out.Close(); err != nil {
		return fmt.Errorf("write the end of the file: %w", err)
	}
	return nil
}

// fileReader reads some columns of a Parquet file, row by row, in order.
type fileReader struct {
	file    *os.File
	groups  []parquet.RowGroup
	rows    parquet.Rows
	columns []int // positions of the requested columns in the file; columnAbsent: the file has no such column
	batch   []parquet.Row
	n, at   int
}

// columnAbsent is the position of a column that a file does not have. Its values are null.
const columnAbsent = -1

// openFile opens a file to read the named columns. The columns in the list `later` may be absent: older files do not
// have them.
func openFile(path string, names []string, later ...string) (*fileReader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &fileReader{file: file, batch: make([]parquet.Row, batchRows)}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	p, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), file.Close())
	}
	r.groups = p.RowGroups()
	for _, name := range names {
		leaf, ok := p.Schema().Lookup(name)
		switch {
		case ok:
			r.columns = append(r.columns, leaf.ColumnIndex)
		case slices.Contains(later, name):
			r.columns = append(r.columns, columnAbsent)
		default:
			return nil, errors.Join(fmt.Errorf("%s has no column %s", path, name), file.Close())
		}
	}
	return r, nil
}

// next fills out with the columns of the next row. Their bytes are valid until the next call. It returns io.EOF after
// the last row.
func (r *fileReader) next(out []parquet.Value) error {
	for r.at == r.n {
		if err := r.fill(); err != nil {
			return err
		}
	}
	row := r.batch[r.at]
	r.at++
	for i, c := range r.columns {
		out[i] = parquet.NullValue()
		if c != columnAbsent {
			out[i] = row[c]
		}
	}
	return nil
}

func (r *fileReader) fill() error {
	if r.rows == nil {
		if len(r.groups) == 0 {
			return io.EOF
		}
		r.rows, r.groups = r.groups[0].Rows(), r.groups[1:]
	}
	n, err := r.rows.ReadRows(r.batch)
	r.n, r.at = n, 0
	if errors.Is(err, io.EOF) {
		err = r.rows.Close()
		r.rows = nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.file.Name(), err)
	}
	return nil
}

func (r *fileReader) close() error {
	var err error
	if r.rows != nil {
		err = r.rows.Close()
	}
	return errors.Join(err, r.file.Close())
}
