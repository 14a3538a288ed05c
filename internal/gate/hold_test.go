package gate

import (
	"testing"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

func TestHold_SuspendedTenant_OnlyReplaysPass(t *testing.T) {
	t.Parallel()
	in := newShared(t)
	in.catalogue()
	hold := func(id string) *ledger.Hold {
		return &ledger.Hold{Tenant: "acme", Key: "hold-" + id, HoldID: id, Items: request("", "calls", 4).Items}
	}
	if _, err := in.Hold(t.Context(), hold("dry"), true); err != nil || in.remaining("calls") != 10 {
		t.Errorf("a dry run left %d: %v", in.remaining("calls"), err)
	}
	if got, err := in.Hold(t.Context(), hold("h1"), false); err != nil || got.Replayed || in.remaining("calls") != 6 {
		t.Errorf("%+v, %v, left %d", got, err, in.remaining("calls"))
	}
	in.putTenant(catalog.Tenant{ID: "acme", Plan: "basic", Status: catalog.StatusSuspended})
	if got, err := in.Hold(t.Context(), hold("h1"), false); err != nil || !got.Replayed {
		t.Errorf("a replay: %+v, %v", got, err)
	}
	for _, dry := range []bool{true, false} {
		_, err := in.Hold(t.Context(), hold("h2"), dry)
		in.expectCode(errcode.TenantSuspended, "hold", err)
	}
	if got := in.remaining("calls"); got != 6 {
		t.Errorf("%d are left", got)
	}
}
