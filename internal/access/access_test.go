package access

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// refused fails the test unless err is a *Refusal with this reason.
func refused(t testing.TB, why Reason, err error) {
	t.Helper()
	r, ok := errors.AsType[*Refusal](err)
	if !ok || r.Reason != why {
		t.Fatalf("%v, want %s", err, why.label())
	}
}

func TestSecret_FormAndChecksum(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^qk_[0-9A-Za-z]{49}$`)
	seen := map[string]bool{}
	for range 100 {
		s := newSecret()
		require.True(t, form.MatchString(s) && isSecret(s) && !seen[s], "%q", s)
		seen[s] = true
		for _, at := range []int{3, 20, len(s) - 1} { // one mistyped character
			wrong := []byte(s)
			wrong[at] = digits[(strings.IndexByte(digits, s[at])+1)%len(digits)]
			assert.False(t, isSecret(string(wrong)), "%q passes for %q", wrong, s)
		}
	}
	for _, s := range []string{"", "qk_", strings.Repeat("x", 52), newSecret() + "x", "qx_" + newSecret()[3:]} {
		assert.False(t, isSecret(s), "%q", s)
	}
}

func TestScopes_AdminIncludesOthers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		names            []string
		use, read, admin bool
		shown            string
	}{
		{[]string{"use"}, true, false, false, "use"},
		{[]string{"read"}, false, true, false, "read"},
		{[]string{"read", "use", "use"}, true, true, false, "use,read"},
		{[]string{"admin"}, true, true, true, "admin"},
		{[]string{"use", "admin"}, true, true, true, "admin"},
	} {
		s, ok := ParseScopes(tc.names)
		assert.True(t, ok && s.Has(Use) == tc.use && s.Has(Read) == tc.read && s.Has(Admin) == tc.admin &&
			s.String() == tc.shown, "%v: %s", tc.names, s)
	}
	for _, names := range [][]string{nil, {""}, {"write"}, {"use", "Admin"}} {
		_, ok := ParseScopes(names)
		assert.False(t, ok, "%v passes", names)
	}
}

// TestKey_Life: a key works on every instance from its creation to its end. Soon after its end every instance refuses
// it. In this test instances read the keys again only because of announcements and unknown secrets.
func TestKey_Life(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	a, b := newInstance(t, url), newInstance(t, url)
	k, secret := a.create(New{Name: "gateway", Scopes: []string{"use"}, Tenant: "acme"})
	for _, i := range []*instance{a, b} { // at once, without waiting for the announcement
		got := testenv.Must(t).Get(i.ask(secret))
		assert.True(t, got.ID == k.ID && got.Tenant == "acme" && got.Scopes == Use && got.May("acme") &&
			!got.May("other"), got)
	}
	_, err := a.ask(newSecret())
	refused(t, Unknown, err)

	rotated, second, err := b.store.Rotate(t.Context(), k.ID, time.Hour, anybody)
	require.NoError(t, err)
	assert.True(t, rotated.ID == k.ID && second != secret, rotated)
	for _, i := range []*instance{a, b} {
		for _, s := range []string{secret, second} {
			testenv.Must(t).Get(i.ask(s))
		}
	}
	_, third, err := a.store.Rotate(t.Context(), k.ID, 0, anybody)
	require.NoError(t, err)
	_, err = b.ask(third)
	require.NoError(t, err)
	for _, i := range []*instance{a, b} { // the second rotation also ends the overlap of the first
		for _, s := range []string{secret, second} {
			ends(t, i, s)
		}
	}
	require.NoError(t, a.store.Revoke(t.Context(), k.ID, anybody))
	require.NoError(t, a.store.Revoke(t.Context(), k.ID, anybody))
	ends(t, a, third)
	ends(t, b, third)
	_, _, err = a.store.Rotate(t.Context(), k.ID, 0, anybody)
	assert.Equal(t, errcode.Conflict, errcode.Of(err), "%v", err)
	got := testenv.Must(t).Get(a.store.Get(t.Context(), k.ID))
	assert.True(t, got.Status == StatusRevoked && !got.RevokedAt.IsZero(), got)
	var stored string
	require.NoError(t, a.pool.QueryRow(t.Context(), "SELECT string_agg(s::text, ' ') FROM (SELECT k::text AS s FROM keys k UNION ALL SELECT k::text FROM key_secrets k UNION ALL SELECT l::text FROM audit l) all_rows").Scan(&stored))
	for _, s := range []string{secret, second, third} {
		assert.NotContains(t, stored, s[12:], "a secret is stored")
	}
	var lines string
	require.NoError(t, a.pool.QueryRow(t.Context(), "SELECT string_agg(action, ' ' ORDER BY audit_id) FROM audit WHERE object_id = $1 AND tenant_id = 'acme'", k.ID).Scan(&lines))
	assert.Equal(t, "key.create key.rotate key.rotate key.revoke", lines, "audit log")
}

// TestKey_EndedHere_RefusedAtOnce: the instance that revokes or rotates a key refuses its old secrets at once, even if a
// read of the keys is running that began before.
func TestKey_EndedHere_RefusedAtOnce(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	i := newInstance(t, url)
	for n := range 20 {
		k, secret := i.create(New{Name: "n", Scopes: []string{"use"}})
		_, err := i.ask(secret)
		require.NoError(t, err)
		i.Changed() // a read may run now
		next := secret
		if n%2 == 1 {
			_, next, err = i.Rotate(t.Context(), k.ID, 0, anybody)
			require.NoError(t, err)
			_, err = i.ask(next)
			require.NoError(t, err, "the new secret")
		} else {
			require.NoError(t, i.Revoke(t.Context(), k.ID, anybody))
		}
		_, err = i.ask(secret)
		refused(t, Unknown, err)
		require.NoError(t, i.Revoke(t.Context(), k.ID, anybody))
		_, err = i.Authenticate(t.Context(), "Bearer "+next, at(netip.MustParseAddr("192.0.2.9")), time.Now())
		refused(t, Unknown, err)
	}
	k, secret := i.create(New{Name: "n", Scopes: []string{"use"}})
	_, next, err := i.Rotate(t.Context(), k.ID, time.Hour, anybody)
	require.NoError(t, err)
	for _, s := range []string{secret, next} {
		_, err = i.ask(s)
		require.NoError(t, err, "during the overlap")
	}
}

// ends waits until the instance refuses the secret.
func ends(t testing.TB, i *instance, secret string) {
	t.Helper()
	var err error
	testenv.Eventually(t, func() bool { _, err = i.ask(secret); return err != nil }, "the secret is refused")
	refused(t, Unknown, err)
}

func TestKey_Expires_WithoutReading(t *testing.T) {
	t.Parallel()
	i := newInstance(t, testenv.Postgres(t))
	k, secret := i.create(New{Name: "trial", Scopes: []string{"read"}, ExpiresAt: time.Now().Add(time.Hour)})
	now := time.Now()
	_, err := i.ask(secret)
	require.NoError(t, err)
	_, err = i.Authenticate(t.Context(), "Bearer "+secret, at(home), k.ExpiresAt.Add(-time.Microsecond))
	require.NoError(t, err)
	_, err = i.Authenticate(t.Context(), "Bearer "+secret, at(home), k.ExpiresAt)
	refused(t, Unknown, err)
	_, _, err = i.store.Create(t.Context(), New{Name: "late", Scopes: []string{"use"}, ExpiresAt: now.Add(-time.Minute)})
	assert.True(t, isFault(err, "expires_at"), err)
}

func isFault(err error, field string) bool {
	e, ok := errors.AsType[*errcode.Error](err)
	return ok && e.Code == errcode.InvalidArgument && e.Fields[0].Field == field
}

func TestCreate_Faults(t *testing.T) {
	t.Parallel()
	for field, n := range map[string]New{
		"name":   {Scopes: []string{"use"}},
		"scopes": {Name: "n", Scopes: []string{"write"}},
		"tenant": {Name: "n", Scopes: []string{"use"}, Tenant: "<a>"},
	} {
		_, err := n.check()
		assert.True(t, isFault(err, field), "%s: %v", field, err)
	}
	long := New{Name: strings.Repeat("é", NameMax), Scopes: []string{"use"}}
	_, err := long.check()
	assert.NoError(t, err)
	long.Name += "é"
	_, err = long.check()
	assert.True(t, isFault(err, "name"), err)
}

func TestAuthenticate_Headers(t *testing.T) {
	t.Parallel()
	d, err := NewDirectory(nil, bootstrap, Config{})
	require.NoError(t, err)
	for header, want := range map[string]Reason{
		"": Missing, "Bearer": Missing, "Bearer ": Missing, "Basic " + bootstrap: Missing, bootstrap: Missing,
		"Bearer x": Unknown, "Bearer " + bootstrap + "x": Unknown, "Bearer " + bootstrap[1:]: Unknown, "Bearer " + newSecret(): Unknown,
	} {
		_, err := d.Authenticate(t.Context(), header, at(home), time.Now())
		refused(t, want, err)
	}
	for _, header := range []string{"Bearer " + bootstrap, "bearer  " + bootstrap, "BEARER " + bootstrap} {
		k := testenv.Must(t).Get(d.Authenticate(t.Context(), header, at(home), time.Now()))
		assert.True(t, k.ID == "bootstrap" && k.Scopes == Admin && k.Tenant == "", k)
	}
	require.NoError(t, d.SetBootstrap("another-"+bootstrap))
	_, err = d.Authenticate(t.Context(), "Bearer "+bootstrap, at(home), time.Now())
	refused(t, Unknown, err)
	assert.Error(t, d.SetBootstrap("short"), "a short key passes")
}

// TestUse_StoredOnStop_NewestWins: if two instances have used a key, the later use is stored.
func TestUse_StoredOnStop_NewestWins(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	a, b := newInstance(t, url), newInstance(t, url)
	k, secret := a.create(New{Name: "n", Scopes: []string{"use"}})
	began := time.Now().Truncate(time.Second)
	for i, d := range []*instance{a, b} {
		_, err := d.ask(secret)
		require.NoError(t, err)
		_, err = d.Authenticate(t.Context(), "Bearer "+secret, at(home), began.Add(time.Duration(2-i)*time.Hour))
		require.NoError(t, err)
	}
	for _, d := range []*instance{a, b} {
		require.NoError(t, d.storeUses(t.Context()))
	}
	got := testenv.Must(t).Get(a.store.Get(t.Context(), k.ID))
	assert.WithinDuration(t, began.Add(2*time.Hour), got.LastUsedAt, 0)
}

func TestList_PagesOfATenant(t *testing.T) {
	t.Parallel()
	i := newInstance(t, testenv.Postgres(t))
	want := map[string]bool{}
	for n := range 7 {
		k, _ := i.create(New{Name: fmt.Sprint(n), Scopes: []string{"use", "read"}, Tenant: []string{"", "acme"}[n%2]})
		want[k.ID] = true
	}
	for tenant, count := range map[string]int{"": 7, "acme": 3, "nobody": 0} {
		seen, cursor := map[string]bool{}, ""
		for {
			page, err := i.store.List(t.Context(), listing.Query{Limit: 2, Cursor: cursor, Tenant: tenant})
			require.NoError(t, err)
			for _, k := range page.Items {
				seen[k.ID] = want[k.ID]
			}
			if cursor = page.NextCursor; cursor == "" {
				break
			}
		}
		assert.Len(t, seen, count, "%q: want %v", tenant, want)
	}
	_, err := i.store.Get(t.Context(), "key_none")
	assert.Equal(t, errcode.NotFound, errcode.Of(err), "%v", err)
}

// BenchmarkAuthenticate measures a request with one of the most keys that there can be, beside the hash of its secret,
// of which it takes a few.
func BenchmarkAuthenticate(b *testing.B) {
	d, secret := crowded(b, KeysMax)
	header, now := "Bearer "+secret, time.Now()
	b.Run("hash", func(b *testing.B) {
		for b.Loop() {
			_ = hashOf(secret)
		}
	})
	b.Run("request", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			testenv.Must(b).Get(d.Authenticate(b.Context(), header, at(home), now))
		}
	})
}

func TestSetBootstrap_Length_ErrorWithoutTheKey(t *testing.T) {
	t.Parallel()
	for key, ok := range map[string]bool{
		strings.Repeat("k", 31): false, strings.Repeat("k", 32): true, "": false, strings.Repeat("k", 31) + " ": false, strings.Repeat("k", 4097): false,
		strings.Repeat("é", 20): false,
	} {
		_, err := NewDirectory(nil, key, Config{})
		assert.True(t, (err == nil) == ok, "%q: %v", key, err)
		assert.False(t, err != nil && key != "" && strings.Contains(err.Error(), key), "the error has the key: %v", err)
	}
}

// crowded returns a directory with n valid keys, and the secret of one of them.
func crowded(t testing.TB, n int) (d *Directory, secret string) {
	t.Helper()
	d = testenv.Must(t).Get(NewDirectory(nil, bootstrap, Config{}))
	secret = newSecret()
	all := map[hash]*known{hashOf(secret): {Key: Key{ID: newID()}, hash: hashOf(secret), ends: time.Now().Add(time.Hour)}}
	for i := range n - 1 {
		k := &known{Key: Key{ID: "key"}, hash: hashOf(fmt.Sprint(i))}
		all[k.hash] = k
	}
	d.stored.Store(&all)
	return d, secret
}

// TestAuthenticate_MadeUpKeys_OnlyWithoutSecret: the key of a context is used if the request has no secret. It is
// never used instead of a wrong secret.
func TestAuthenticate_MadeUpKeys_OnlyWithoutSecret(t *testing.T) {
	t.Parallel()
	d := testenv.Must(t).Get(NewDirectory(nil, bootstrap, Config{}))
	mine := &Key{ID: "person:1", Name: "Ada", Scopes: Read, Tenant: "acme"}
	ctx := As(t.Context(), mine)
	got, err := d.Authenticate(ctx, "", at(home), time.Now())
	require.NoError(t, err)
	assert.True(t, got == mine, got)
	_, err = d.Authenticate(ctx, "Bearer wrong", at(home), time.Now())
	refused(t, Unknown, err)
	_, err = d.Authenticate(t.Context(), "", at(home), time.Now())
	refused(t, Missing, err)
}
