package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// newProof starts a console. It also returns the URL of its database.
func newProof(t *testing.T) (c *consoled, database string) {
	t.Helper()
	env := backends(t)
	c = newConsole(t, env...)
	database, _ = strings.CutPrefix(env[0], "QUOTASVC_DATABASE_URL=")
	return c, testenv.AsSuperuser(t, database)
}

// After years of nightly verifications, each page of the list shows two weeks, the newest first.
func TestConsole_Proof_Years_PageByPage(t *testing.T) {
	t.Parallel()
	c, database := newProof(t)
	b := c.browser(t).signIn(testKey)
	b.get(200, "/console/proof", "No verification was started yet", "POST /v1/verifications", "No day is sealed yet", "quotasvc seal")
	execSQL(t, database, `INSERT INTO verifications (verification_id, tenant_id, status, report, error, started_at, heartbeat_at, finished_at)
		SELECT 'night-' || n, CASE n WHEN 1998 THEN 'acme' ELSE '' END, CASE n WHEN 1999 THEN 'failed' ELSE 'clean' END,
			jsonb_build_object('Entries', 1234567 + n, 'Incremental', n > 1, 'Unread', CASE n WHEN 1999 THEN 2 ELSE 0 END),
			CASE n WHEN 1999 THEN 'two balances' ELSE '' END, timestamptz '2018-01-01 02:30Z' + n * interval '1 day', now(), timestamptz '2018-01-01 02:31:07Z' + n * interval '1 day'
		FROM generate_series(1, 2000) n`)
	page := b.get(200, "/console/proof", "Started (UTC) Ended (UTC) State Of Entries read Differences",
		"2023-06-24 02:30:00 2023-06-24 02:31:07 clean all tenants 1,236,567 since the last clean one 0", "failed all tenants 1,236,566 since the last clean one 0 2 not read", "clean acme 1,236,565")
	assert.Equal(t, 14, strings.Count(page, "?verification=night-"), "on a page")
	assert.Less(t, strings.Index(page, "night-2000"), strings.Index(page, "night-1999"), "the newest first")
	next := regexp.MustCompile(`href="(/console/proof\?cursor=[^"]+)"`).FindStringSubmatch(page)
	require.NotNil(t, next, "there is no next page")
	page = b.get(200, unescaped(next[1]), "2023-06-10 02:30:00")
	assert.True(t, !strings.Contains(page, "night-1987") && strings.Contains(page, "night-1986"),
		"the second page does not go on where the first ended")
	b.get(200, "/console/proof?verification=night-1999", "Verification of all tenants", "The verification could not finish Two balances.", "Took 1m7s")
	b.get(200, "/console/proof?verification=nobody", "There is nothing with this id", "Seals")
	b.get(200, "/console/proof?cursor=x", "The API does not accept this", "Seals")

	read, _ := c.key(t, "", "read")
	b.signIn(read)
	assert.NotContains(t, b.get(200, "/console/proof", "Verifications are shown to keys with the scope admin", "No day is sealed yet"), "Verify now",
		"a key that may not start verifications is offered to")
}

// TestConsole_InChromium_Proof: a verification that is started on the page appears in its list when it ends, with a
// link to its differences.
func TestConsole_InChromium_Proof(t *testing.T) {
	oneChromium.join(t)
	t.Parallel()
	c, database := newProof(t)
	b := newChromium(t, c).signIn(testKey)
	b.pick("Proof")
	b.shows("No verification was started yet")
	b.click("Verify now")
	b.shows("Verification of all tenants")
	b.until(`document.querySelector("#verification .status.clean") && document.querySelector("#verifications .status.clean")`)
	execSQL(t, database, "UPDATE balances SET used = used + 1, head_remaining = head_remaining - 1 WHERE tenant_id = 'acme' AND meter = 'api_calls'")
	b.fill("tenant", "acme")
	b.click("Verify now")
	b.shows("Verification of acme")
	b.until(`document.querySelector("#verification .status.drift") && document.querySelector("#verifications .status.drift")`)
	b.shows("Nothing was repaired")
	b.pick("Proof")
	b.until(`!document.querySelector("#verification")`)
	b.clickAt(`//main//tr[contains(., "drift")]//a`)
	b.until(`document.querySelector("#verification td.n").innerText !== ""`)
	b.shows("According to the journal")
	b.accessible(axe(t))
	b.clean()
}
