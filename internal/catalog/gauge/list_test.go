package gauge

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// pages reads all pages of a query. It returns the gauges, each as meter/subject:value/limit, and the number of
// pages.
func (b *bundle) pages(t testing.TB, q Query) (all []string, pages int) {
	t.Helper()
	for pages < 100 {
		page, err := b.List(t.Context(), q)
		require.NoError(t, err)
		pages++
		for _, s := range page.Items {
			all = append(all, fmt.Sprintf("%s/%s:%d/%d", s.Meter, s.Subject, s.Value, s.Limit))
		}
		if q.Cursor = page.NextCursor; q.Cursor == "" {
			break
		}
	}
	return all, pages
}

func TestList_PlanSubjectsAndWhatThePlanLost_InPages(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	ctx := t.Context()
	for _, meter := range []string{"desks", "zones"} {
		testenv.Put(t, b.catalog.PutMeter, catalog.Meter{ID: meter, Unit: "x", Kind: catalog.KindGauge})
	}
	testenv.Put(t, b.catalog.PutMeter, catalog.Meter{ID: "calls", Unit: "call"})
	testenv.Put(t, b.catalog.PutPlan, catalog.Plan{ID: "all", Allowances: []catalog.Allowance{
		{Meter: "zones", Amount: 4},
		{Meter: "seats", Amount: 3, PerSubject: new(int64(2))},
		{Meter: "desks", Amount: 9},
		{Meter: "calls", Amount: 5, Every: "month", Anchor: "calendar"},
	}})
	b.join(t, "acme", "all")
	b.join(t, "other", "all")
	set := func(k Key, value int64) {
		t.Helper()
		_, err := b.Set(ctx, Change{Key: k, OperationID: b.key(), Value: &value})
		require.NoError(t, err)
	}
	set(Key{"acme", "seats", "u2"}, 2)
	set(Key{"acme", "seats", "u1"}, 1)
	set(Key{"acme", "seats", "gone"}, 0)
	set(Key{"acme", "zones", ""}, 4)
	set(Key{"other", "desks", ""}, 7)
	want := []string{"desks/:0/9", "seats/:0/3", "seats/gone:0/2", "seats/u1:1/2", "seats/u2:2/2", "zones/:4/4"}
	for limit := 1; limit <= 7; limit++ {
		all, pages := b.pages(t, Query{Tenant: "acme", Limit: limit})
		require.Equal(t, want, all, limit)
		require.Equal(t, (len(want)+limit-1)/limit, pages)
		all, _ = b.pages(t, Query{Tenant: "acme", Meter: "seats", Limit: limit})
		require.Equal(t, want[1:5], all, limit)
	}
	// Each item is equal to the result of Get.
	page, err := b.List(ctx, Query{Tenant: "acme", Limit: 500})
	require.NoError(t, err)
	for _, s := range page.Items {
		one, err := b.Get(ctx, s.Key)
		require.NoError(t, err)
		require.Equal(t, one.At.IsZero(), s.At.IsZero())
		require.Equal(t, one, s)
	}
	b.join(t, "acme", "none") // the values stay; gauges with the value 0 are not in the list any more
	all, _ := b.pages(t, Query{Tenant: "acme", Limit: 2})
	require.Equal(t, []string{"seats/u1:1/0", "seats/u2:2/0", "zones/:4/0"}, all)
}

func TestList_BadInput(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	for _, q := range []Query{
		{Tenant: "nobody", Limit: 1},
		{Tenant: "{}", Limit: 1},
		{Tenant: "acme", Limit: 1, Cursor: "%"},
		{Tenant: "acme", Limit: 1, Cursor: "c2VhdHM"},
		{Tenant: "acme", Limit: 1, Meter: "desks", Cursor: "c2VhdHMg"},
	} {
		_, err := b.List(t.Context(), q)
		require.Contains(t, []errcode.Code{errcode.InvalidArgument, errcode.TenantNotFound}, errcode.Of(err), "%+v: %v", q, err)
	}
}
