package e2e

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"math/big"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/lab/testenv"
)

// drawnMetadata returns metadata with odd numbers and odd texts. The service refuses some of them.
func drawnMetadata(random *rand.Rand) string {
	digits := func(most int) string { return fmt.Sprintf("%0*d", 1+random.IntN(most), random.Uint64()%10) }
	number := func() string {
		out := strings.TrimLeft(fmt.Sprint(random.Uint64()>>random.IntN(64), digits(30)), "0") + "." + digits(20)
		if strings.HasPrefix(out, ".") {
			out = "0" + out
		}
		return []string{"", "-"}[random.IntN(2)] + out + []string{"", "e", "E-", "e+"}[random.IntN(4)] + "0"
	}
	text := func() string {
		runes := make([]rune, random.IntN(6))
		for i := range runes {
			runes[i] = rune(1 + random.IntN([]int{0x20, 0x7f, 0xa0, 0x2100, 0xd7ff}[random.IntN(5)]))
		}
		quoted, _ := json.Marshal(string(runes)) // a string is always JSON
		return string(quoted)
	}
	list := make([]string, random.IntN(5))
	for i := range list {
		value := number() + strings.Repeat(digits(3), random.IntN(2))
		list[i] = fmt.Sprintf("\"%d%s:%s", i, text()[1:], []string{text(), value, "[" + value + "]"}[random.IntN(3)])
	}
	return "{" + strings.Join(list, ",") + "}"
}

// exact returns a JSON text as a value in which equal numbers are equal, however they are written. No text is {},
// because readers omit metadata without members.
func exact(t testing.TB, text []byte) any {
	t.Helper()
	if len(text) == 0 {
		return map[string]any{}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), "%.200s", text)
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case json.Number:
			n, ok := new(big.Rat).SetString(v.String())
			require.True(t, ok, "%s", v)
			return n.RatString()
		case []any:
			for i := range v {
				v[i] = walk(v[i])
			}
		case map[string]any:
			for name := range v {
				v[name] = walk(v[name])
			}
		}
		return v
	}
	return walk(v)
}

// TestMetadata_EveryReader_ShowsWhatIsAccepted: what one door accepts, each reader of ours can read and shows in full:
// the Go client, the console and its CSV file, the portal and the commands. The files of an archive and the SDKs have
// tests of their own with the same values.
func TestMetadata_EveryReader_ShowsWhatIsAccepted(t *testing.T) {
	t.Parallel()
	env := backends(t)
	c := newConsole(t, env...)
	api := sdk(t, c.instance)
	b, commands := c.browser(t).signIn(testKey), asks(c.instance)

	fixed := testenv.OddMetadata()
	values := append([]string{}, fixed...)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // values of a test
	for range 100 {
		values = append(values, drawnMetadata(random))
	}
	sent := map[string]string{} // by operation
	for i, text := range values {
		op := fmt.Sprint("odd-", i)
		body := fmt.Sprintf(`{"tenant":"acme","items":[{"meter":"api_calls","amount":1}],"metadata":%s}`, text)
		a, p := c.instance.post(t, "POST", "/v1/debits", body, "Idempotency-Key", op)
		if a.status == http.StatusBadRequest && i >= len(fixed) {
			require.True(t, len(p.Errors) == 1 && p.Errors[0].Field == "metadata", "%s: %s", text, a)
			continue
		}
		require.Equal(t, http.StatusOK, a.status, "%s: %s", text, a)
		sent[op] = text
	}
	require.Greater(t, len(sent), len(values)/2, "too many are refused")

	// The largest numbers of today, and one that earlier versions accepted.
	database := testenv.Pool(t, testenv.AsSuperuser(t, strings.TrimPrefix(env[0], "QUOTASVC_DATABASE_URL=")))
	const old = `{"ratio": 1e400, "more": [-2e999]}`
	testenv.Exec(t, database, "UPDATE entries SET metadata = $1 WHERE operation_id = 'debit-1'", old)
	sent["debit-1"] = old

	found := 0
	for e, err := range api.AllEntries(t.Context(), "acme", client.ListEntriesQuery{}) {
		require.NoError(t, err)
		if text, ok := sent[e.OperationID]; ok {
			found++
			assert.Equal(t, exact(t, []byte(text)), exact(t, e.Metadata), "Go client: %s", text)
		}
	}
	assert.Equal(t, len(sent), found, "entries")

	page := b.get(200, "/console/tenants/acme/journal?meter=api_calls")
	assert.Contains(t, html.UnescapeString(page), `0000000000]}`, "the journal lacks a number")
	b.get(200, "/console/tenants/acme?meter=api_calls")
	sheet := b.send("GET", "/console/tenants/acme/journal.csv", nil)
	rows := testenv.Must(t).Get(csv.NewReader(bytes.NewReader(sheet.body)).ReadAll())
	found = 0
	for _, row := range rows[1:] {
		text, ok := sent[row[10]]
		if !ok {
			continue
		}
		found++
		assert.Equal(t, exact(t, []byte(text)), exact(t, []byte(row[12])), "CSV: %s", text)
	}
	assert.Equal(t, len(sent), found, "rows of the CSV file")

	portal := c.browser(t)
	at := portal.follow(c.link(t, "acme", nil))
	for i, text := range append(fixed, old) {
		if text == old {
			testenv.Exec(t, database, "UPDATE tenants SET metadata = $1 WHERE tenant_id = 'acme'", old)
			c.do(t, 200, "PATCH", "/v1/tenants/acme", "", object{"timezone": "Europe/Vienna"}) // does not refuse it
		} else {
			c.do(t, 200, "PATCH", "/v1/tenants/acme", "", object{"metadata": json.RawMessage(text)})
		}
		want := exact(t, []byte(text))
		tenant := testenv.Must(t).Get(api.GetTenant(t.Context(), "acme"))
		assert.Equal(t, want, exact(t, tenant.Metadata), "Go client: %s", text)
		list := testenv.Must(t).Get(api.ListTenants(t.Context(), client.ListTenantsQuery{}))
		assert.Equal(t, want, exact(t, list.Items[0].Metadata), "Go client: %s", text)
		_, shown, _ := strings.Cut(b.get(200, "/console/tenants/acme"), "<h2>Metadata</h2><pre>")
		shown, _, _ = strings.Cut(shown, "</pre>")
		assert.Equal(t, want, exact(t, []byte(html.UnescapeString(shown))), "console: %s", text)
		portal.get(200, at)
		var printed struct{ Metadata json.RawMessage }
		require.NoError(t, json.Unmarshal([]byte(must(t, commands, "tenant", "get", "acme", "--json")), &printed))
		assert.Equal(t, want, exact(t, printed.Metadata), "tenant get --json: %s", text)
		if out := must(t, commands, "tenant", "get", "acme"); i > 0 {
			assert.Contains(t, out, "\n  ", "tenant get: %s", text)
			assert.False(t, strings.ContainsAny(out, "\x1b\x07\u009b\u202e\r"), "the terminal is controlled: %q", out)
		}
	}
	b.get(200, "/console/audit?tenant=acme", "tenant.patch")
	b.get(200, "/console/events")
}

// TestMetadata_NumberBeyondFloat64_400NamesTheField: at each door, nested and in each form of a body.
func TestMetadata_NumberBeyondFloat64_400NamesTheField(t *testing.T) {
	in, _ := parallelService(t, 1000)
	api := sdk(t, in)
	const items = `"tenant":"acme","items":[{"meter":"api_calls","amount":1}]`
	refused := func(field, method, path, body string, header ...string) {
		t.Helper()
		a, p := in.post(t, method, path, body, header...)
		assert.True(t, a.status == http.StatusBadRequest && p.Code == "invalid_argument" && len(p.Errors) == 1 &&
			p.Errors[0].Field == field && strings.Contains(p.Errors[0].Message, "1.797e308"),
			"%s %s %s: %s", method, path, body, a)
	}
	for _, metadata := range []string{
		`{"n":1e309}`, `{"n":-1e309}`, `{"a":[1,{"b":[2e308]}]}`, `{"n":1E+999}`, `{"n":17976931348623159e292}`,
	} {
		member := `"metadata":` + metadata
		refused("metadata", "POST", "/v1/debits", `{`+items+`,`+member+`}`, "Idempotency-Key", "k")
		refused("metadata", "POST", "/v1/consume", `{`+items+`,`+member+`}`, "Idempotency-Key", "k")
		hold := `{` + items + `,"hold_id":"h","ttl_seconds":60,` + member + `}`
		refused("metadata", "POST", "/v1/holds", hold, "Idempotency-Key", "k")
		refused("metadata", "PATCH", "/v1/tenants/acme", `{`+member+`}`)
		refused("metadata", "PUT", "/v1/tenants/acme", `{"plan":"basic",`+member+`}`)
		refused("tenants.acme.metadata", "POST", "/v1/catalog", `{"tenants":{"acme":{"plan":"basic",`+member+`}}}`)
		one := []client.Item{{Meter: "api_calls", Amount: 1}}
		bad := client.Metadata{"n": json.RawMessage(metadata)}
		got := testenv.Must(t).Get(api.DebitBatch(t.Context(), client.DebitBatchRequest{Debits: []client.BatchDebit{
			{IdempotencyKey: "good", Tenant: "acme", Items: one},
			{IdempotencyKey: "bad", Tenant: "acme", Items: one, Metadata: bad},
		}})).Results
		assert.True(t, got[0].Status == 200 && got[1].Status == 400 && got[1].Errors[0].Field == "metadata", "%+v", got)
	}
}
