package rule

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestLeaseKey_DifferentBuckets_DifferentKeys_ParsedBack(t *testing.T) {
	t.Parallel()
	name := rapid.StringMatching(testenv.NamePattern)
	id := rapid.StringMatching(testenv.IDPattern)
	type bucket struct {
		shared                  bool
		tenant, rule, dimension string
	}
	draw := func(t *rapid.T) bucket {
		b := bucket{shared: rapid.Bool().Draw(t, "shared"), rule: id.Draw(t, "rule")}
		if !b.shared {
			b.tenant = name.Draw(t, "tenant")
		}
		if rapid.Bool().Draw(t, "with dimension") {
			b.dimension = Dimension(name.Draw(t, "subject"))
		}
		return b
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t), draw(t)
		key, tag := LeaseKey(a.shared, a.tenant, a.rule, a.dimension)
		other, _ := LeaseKey(b.shared, b.tenant, b.rule, b.dimension)
		require.True(t, (key == other) == (a == b), "%+v and %+v: %s", a, b, key)
		require.True(t, a.shared || tag == bound.Tag(a.tenant), "hash tag %q of %+v", tag, a)
		layout := Layout{ID: a.rule, Kind: KindConcurrency, Shared: a.shared, Dimension: a.dimension != ""}
		tenant, dimension, ok := layout.Parse(key)
		require.True(t, ok && tenant == a.tenant && dimension == a.dimension, "%s: %q, %q", key, tenant, dimension)
	})
}
