package access

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// All instances of a database have the same key of ids, and each database has a different key. A new database accepts
// no lease ids without a signature.
func TestIDKey_OneOfEachDatabase(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	first, second := newInstance(t, url), newInstance(t, url)
	a := testenv.Must(t).Get(first.store.IDKey(t.Context()))
	b := testenv.Must(t).Get(second.store.IDKey(t.Context()))
	assert.True(t, len(a.Secret) == 32 && bytes.Equal(a.Secret, b.Secret) && !a.UnsignedUntil.After(time.Now()),
		"%d bytes, the same %v, until %s", len(a.Secret), bytes.Equal(a.Secret, b.Secret), a.UnsignedUntil)
}
