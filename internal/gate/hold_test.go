package gate

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestHold_SuspendedTenant_OnlyReplaysPass(t *testing.T) {
	t.Parallel()
	in := newShared(t).catalogue()
	hold := func(id string) *ledger.Hold {
		return &ledger.Hold{Tenant: "acme", Key: "hold-" + id, HoldID: id, Items: request("", "calls", 4).Items}
	}
	_, err := in.Hold(t.Context(), hold("dry"), true)
	assert.True(t, err == nil && in.remaining("calls") == 10, "a dry run left %d: %v", in.remaining("calls"), err)
	got, err := in.Hold(t.Context(), hold("h1"), false)
	assert.True(t, err == nil && !got.Replayed && in.remaining("calls") == 6, "%+v, %v", got, err)
	in.putTenant(catalog.Tenant{ID: "acme", Plan: "basic", Status: catalog.StatusSuspended})
	got, err = in.Hold(t.Context(), hold("h1"), false)
	assert.True(t, err == nil && got.Replayed, "a replay: %+v, %v", got, err)
	for _, dry := range []bool{true, false} {
		_, err := in.Hold(t.Context(), hold("h2"), dry)
		in.expectCode(errcode.TenantSuspended, "hold", err)
	}
	assert.EqualValues(t, 6, in.remaining("calls"), "are left")
}
