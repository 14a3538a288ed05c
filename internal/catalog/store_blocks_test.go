package catalog

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/catalog/diff"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

func TestPutBlock_CreateReplaceListDelete(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	soonOver := time.Now().Add(time.Hour).Truncate(time.Microsecond).UTC()
	first, created, err := s.PutBlock(ctx, block.Block{Kind: block.KindIP, Value: "2001:DB8::/48", Reason: "abuse"})
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, "2001:db8::/48", first.Value)
	require.Equal(t, block.ActionBlock, first.Action)
	again, created, err := s.PutBlock(ctx, block.Block{Kind: block.KindIP, Value: "2001:db8::/48", Reason: "abuse"})
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first, again)
	changed, created, err := s.PutBlock(ctx, block.Block{Kind: block.KindIP, Value: "2001:db8::/48", Action: block.ActionAllow, ExpiresAt: soonOver})
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first.CreatedAt, changed.CreatedAt)
	require.True(t, changed.UpdatedAt.After(first.UpdatedAt))
	read, err := s.Block(ctx, block.KindIP, "2001:db8:0::/48", "")
	require.NoError(t, err)
	require.Equal(t, changed, read)

	put(t, s.PutBlock, block.Block{Kind: block.KindTenant, Value: "acme"})
	put(t, s.PutBlock, block.Block{Kind: block.KindSubject, Value: "eve", Tenant: "acme"})
	read, err = s.Block(ctx, block.KindSubject, "eve", "")
	require.NoError(t, err, "a subject's tenant need not be named while there is one")
	require.Equal(t, "acme", read.Tenant)
	put(t, s.PutBlock, block.Block{Kind: block.KindSubject, Value: "eve", Tenant: "b"})
	for _, err := range []error{s.DeleteBlock(ctx, block.KindSubject, "eve", ""), func() error { _, err := s.Block(ctx, block.KindSubject, "eve", ""); return err }()} {
		require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
		require.Equal(t, []string{"tenant"}, fieldsIn(t, err))
	}

	var ids []string
	for page := (listing.Query{Limit: 1}); ; {
		list, err := s.ListBlocks(ctx, page)
		require.NoError(t, err)
		for _, b := range list.Items {
			ids = append(ids, b.ID())
		}
		if page.Cursor = list.NextCursor; page.Cursor == "" {
			break
		}
	}
	require.Equal(t, []string{"ip 2001:db8::/48", "subject acme/eve", "subject b/eve", "tenant acme"}, ids)
	for _, cursor := range []string{"!!", "AAAA", "bm9uc2Vuc2U", "YSBi"} {
		_, err = s.ListBlocks(ctx, listing.Query{Limit: 1, Cursor: cursor})
		require.Equal(t, errcode.InvalidArgument, errcode.Of(err), cursor)
	}

	require.NoError(t, s.DeleteBlock(ctx, block.KindSubject, "eve", "b"))
	require.NoError(t, s.DeleteBlock(ctx, block.KindSubject, "eve", ""))
	require.NoError(t, s.DeleteBlock(ctx, block.KindIP, "2001:db8::/48", ""))
	require.Equal(t, errcode.NotFound, errcode.Of(s.DeleteBlock(ctx, block.KindIP, "2001:db8::/48", "")))
	_, err = s.Block(ctx, block.KindIP, "192.0.2.1", "")
	require.Equal(t, errcode.NotFound, errcode.Of(err))
	_, err = s.Block(ctx, block.KindIP, "acme", "")
	require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
}

func TestPutBlock_DeletesExpired(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	_, _, err := s.PutBlock(ctx, block.Block{Kind: block.KindTenant, Value: "late", ExpiresAt: time.Now().Add(-time.Second)})
	require.Equal(t, errcode.InvalidArgument, errcode.Of(err))
	require.Equal(t, []string{"expires_at"}, fieldsIn(t, err))
	testenv.Exec(t, s.db.Pool(), `INSERT INTO blocks (kind, tenant_id, value, action, expires_at, created_at)
		SELECT 'tenant', '', 't' || n, 'block', now() - interval '1 s', now() - interval '1 day' FROM generate_series(1, 150) n`)
	_, err = s.Block(ctx, block.KindTenant, "t150", "")
	require.Equal(t, errcode.NotFound, errcode.Of(err))
	list, err := s.ListBlocks(ctx, listing.Query{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, list.Items)
	require.Equal(t, errcode.NotFound, errcode.Of(s.DeleteBlock(ctx, block.KindTenant, "t150", "")))

	stored, created, err := s.PutBlock(ctx, block.Block{Kind: block.KindTenant, Value: "t150"})
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, stored.UpdatedAt, stored.CreatedAt, "it is a new one")
	var left int
	require.NoError(t, s.db.Pool().QueryRow(ctx, "SELECT count(*) FROM blocks").Scan(&left))
	require.LessOrEqual(t, left, 150-forgottenAtOnce+1)
}

func TestPutBlock_MaxBlocks(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newStore(t)
	testenv.Exec(t, s.db.Pool(), `INSERT INTO blocks (kind, tenant_id, value, action)
		SELECT 'tenant', '', 't' || n, 'block' FROM generate_series(1, $1) n`, maxBlocks-1)
	put(t, s.PutBlock, block.Block{Kind: block.KindTenant, Value: "last"})
	_, _, err := s.PutBlock(ctx, block.Block{Kind: block.KindTenant, Value: "beyond"})
	require.Equal(t, errcode.Conflict, errcode.Of(err))
	require.ErrorContains(t, err, "at most 50000")
	put(t, s.PutBlock, block.Block{Kind: block.KindTenant, Value: "last", Reason: "a change adds none"})
}

func TestCatalog_BlockOnAllInstances_Expires(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := testenv.Postgres(t)
	here, there := startCatalog(t, url, Config{ReloadEvery: time.Hour}), startCatalog(t, url, Config{ReloadEvery: time.Hour})
	blocked := func(c *Catalog, ip string, now time.Time) bool {
		b, _ := c.Blocks().Find("acme", "", netip.MustParseAddr(ip), now)
		return b != nil
	}
	within := func(what string, ok func() bool) { t.Helper(); testenv.Eventually(t, ok, what) }
	before := there.Snapshot()
	end := time.Now().Add(time.Hour)
	put(t, here.PutBlock, block.Block{Kind: block.KindIP, Value: "192.0.2.0/24", ExpiresAt: end})
	for _, c := range []*Catalog{here, there} {
		within("the block", func() bool { return blocked(c, "192.0.2.7", time.Now()) })
		require.False(t, blocked(c, "192.0.2.7", end), "nobody has to end it")
	}
	require.NoError(t, there.DeleteBlock(ctx, block.KindIP, "192.0.2.0/24", ""))
	for _, c := range []*Catalog{here, there} {
		within("no block", func() bool { return !blocked(c, "192.0.2.7", time.Now()) })
	}
	require.Same(t, before, there.Snapshot(), "blocks change nothing about the rules")
}

func TestApply_Blocks(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	put(t, s.PutBlock, block.Block{Kind: block.KindTenant, Value: "unlisted"})
	put(t, s.PutBlock, block.Block{Kind: block.KindTenant, Value: "bad"})
	const text = `blocks:
  - {kind: ip, value: 10.0.0.0/8, reason: inside, expires_at: 2098-01-01T00:00:00Z}
  - {kind: subject, value: bot, tenant: acme, action: allow}
  - {kind: tenant, value: bad, reason: "unpaid"}
  - {kind: tenant, value: over, expires_at: 2020-01-01T00:00:00Z}
`
	report := apply(t, s, text, false)
	require.Equal(t, `+ block ip 10.0.0.0/8
    + action: "block"
    + expires_at: "2098-01-01T00:00:00Z"
    + reason: "inside"
+ block subject acme/bot
    + action: "allow"
~ block tenant bad
    + reason: "unpaid"
? block tenant unlisted is not in the file
2 created, 1 changed, 0 unchanged, 1 not in the file (left as they are)
`, report.String())
	require.Equal(t, 3, apply(t, s, text, false).Count(diff.Unchanged))

	_, err := ParseFile([]byte(`blocks:
  - {kind: ip, value: 10.0.0.1/8}
  - {kind: tenant, value: a}
  - {kind: tenant, value: a, action: allow}
  - {kind: subject, value: a}
  - {kind: tenant, value: b, until: tomorrow}
  - nothing
`))
	require.EqualError(t, err, `line 2: blocks[0].value has bits after its prefix; write 10.0.0.0/8 for the whole prefix
line 4: blocks[2] is a duplicate of blocks[1]
line 5: blocks[3].tenant is required for kind subject
line 6: blocks[4].until is an unknown field
line 7: blocks[5] must be a mapping`)
	_, err = ParseFile([]byte("blocks:\n  acme: {kind: tenant}\n"))
	require.EqualError(t, err, "line 2: blocks must be a list")
}
