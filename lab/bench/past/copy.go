package past

import (
	"encoding/binary"
	"io"
	"time"
)

// The functions of this file write rows in the binary format of PostgreSQL's COPY. This format needs the least CPU time
// in the client and the server. PostgreSQL's manual describes it under "COPY", "Binary Format".

var copyBegin = []byte("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00")

// postgresEpoch is the instant from which PostgreSQL counts instants and days.
var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func copyRow(b []byte, columns int) []byte { return binary.BigEndian.AppendUint16(b, uint16(columns)) }

func copyText[T ~string | ~[]byte](b []byte, v T) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
}

func copyBigint(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(v))
}

func copyInteger(b []byte, v int32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 4), uint32(v))
}

func copyInstant(b []byte, t time.Time) []byte {
	return copyBigint(b, t.Sub(postgresEpoch).Microseconds())
}

func copyDay(b []byte, t time.Time) []byte {
	return copyInteger(b, int32(t.Sub(postgresEpoch)/(24*time.Hour)))
}

func copyNull(b []byte) []byte { return binary.BigEndian.AppendUint32(b, ^uint32(0)) }

// copyStream is a reader of the data of a COPY. It encodes further rows when its buffer is empty.
type copyStream struct {
	row  func(b []byte) []byte // appends the next row, or nothing after the last row
	buf  []byte
	at   int
	over bool
}

// copyChunk is the number of bytes to encode at a time.
const copyChunk = 64 << 10

func newCopyStream(row func(b []byte) []byte) *copyStream {
	return &copyStream{row: row, buf: append(make([]byte, 0, copyChunk+4096), copyBegin...)}
}

// Read implements io.Reader.
func (s *copyStream) Read(p []byte) (int, error) {
	if s.at == len(s.buf) {
		if s.over {
			return 0, io.EOF
		}
		s.at, s.buf = 0, s.buf[:0]
		for len(s.buf) < copyChunk {
			before := len(s.buf)
			if s.buf = s.row(s.buf); len(s.buf) == before {
				s.over, s.buf = true, binary.BigEndian.AppendUint16(s.buf, ^uint16(0))
				break
			}
		}
	}
	n := copy(p, s.buf[s.at:])
	s.at += n
	return n, nil
}
