package access

import (
	"bytes"
	"testing"
	"time"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// Every instance of a database has the same key of ids, and every installation another. A new one has no leases with ids that are not signed.
func TestIDKey_OneOfEachDatabase(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	first, second := newInstance(t, url), newInstance(t, url)
	a, err := first.store.IDKey(t.Context())
	check(t, err)
	b, err := second.store.IDKey(t.Context())
	check(t, err)
	if len(a.Secret) != 32 || !bytes.Equal(a.Secret, b.Secret) || a.UnsignedUntil.After(time.Now()) {
		t.Errorf("%d bytes, the same %v, until %s", len(a.Secret), bytes.Equal(a.Secret, b.Secret), a.UnsignedUntil)
	}
}
