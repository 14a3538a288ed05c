package block

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestID_DifferentBlocks_DifferentIDsAndCursors(t *testing.T) {
	t.Parallel()
	name := rapid.StringMatching(testenv.NamePattern)
	draw := func(t *rapid.T) Block {
		b := Block{Kind: rapid.SampledFrom([]string{KindTenant, KindSubject}).Draw(t, "kind")}
		b.Value = name.Draw(t, "value")
		if b.Kind == KindSubject {
			b.Tenant = name.Draw(t, "tenant")
		}
		return b
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t), draw(t)
		require.True(t, (a.ID() == b.ID()) == (a == b), "%+v and %+v: %s", a, b, a.ID())
		parts, ok := ParseCursor(a.Cursor())
		require.True(t, ok && parts == [3]string{a.Kind, a.Tenant, a.Value}, "%+v: %q", a, parts)
	})
}
