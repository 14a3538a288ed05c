package proven

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDoubt_ClosesUntilTrust(t *testing.T) {
	t.Parallel()
	calls := 0
	v := New(func() { calls++ })
	r := httptest.NewRequestWithContext(With(t.Context(), v), "GET", "/", nil)
	w := httptest.NewRecorder()
	Doubt(w, r)
	assert.Equal(t, "close", w.Header().Get("Connection"), "a stranger")
	Trust(w, r)
	Trust(w, r)
	Doubt(w, r)
	assert.Empty(t, w.Header()["Connection"], "a known visitor")
	assert.True(t, v.Known() && calls == 1, "%d calls", calls)

	w = httptest.NewRecorder()
	w.Header()["Connection"] = []string{"close"} // for another reason
	Doubt(w, r)
	Trust(w, r)
	assert.Equal(t, "close", w.Header().Get("Connection"), "another reason to close")

	w, r = httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
	Doubt(w, r)
	assert.Equal(t, "close", w.Header().Get("Connection"), "no visitor")
	Trust(w, r)
	assert.Empty(t, w.Header()["Connection"])
}
