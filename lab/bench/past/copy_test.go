package past

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCopyStream_Rows_AnyReadSize(t *testing.T) {
	t.Parallel()
	rows := func() func(b []byte) []byte {
		n := 0
		return func(b []byte) []byte {
			if n == 10_000 {
				return b
			}
			n++
			return copyBigint(copyRow(b, 1), int64(n))
		}
	}
	whole, err := io.ReadAll(newCopyStream(rows()))
	require.NoError(t, err)
	require.Len(t, whole, len(copyBegin)+10_000*14+2)
	var small bytes.Buffer
	_, err = io.CopyBuffer(struct{ io.Writer }{&small}, newCopyStream(rows()), make([]byte, 7))
	require.NoError(t, err)
	require.Equal(t, whole, small.Bytes())
	require.Equal(t, []byte{0xff, 0xff}, whole[len(whole)-2:])
}
