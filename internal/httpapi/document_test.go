package httpapi

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

// faultsOf decodes the body of a debit. It returns the debit and its faults, each as a line of text.
func faultsOf(t *testing.T, text string) (r gate.Request, faults []string) {
	t.Helper()
	var d body.Document
	err := body.Decode(&d, []byte(text), &r, newBodies().debit)
	if err == nil {
		return r, nil
	}
	refused, ok := errors.AsType[*body.Error](err)
	require.True(t, ok, "%T: %v", err, err)
	for _, f := range refused.Faults {
		faults = append(faults, f.Field+" "+f.Message)
	}
	return r, faults
}

func TestDecode_AnyFieldOrderAndEscapes(t *testing.T) {
	t.Parallel()
	want := gate.Request{
		Tenant: "acme", Subject: "u1", Mode: ledger.ModeNormal, DryRun: true, Metadata: []byte(`{"a":[1,2.5],"b":"é"}`),
		Items: []ledger.Item{{Meter: "api_calls", Amount: 9007199254740991}, {Meter: "b", Amount: 1}},
	}
	for name, body := range map[string]string{
		"plain": `{"tenant":"acme","items":[{"meter":"api_calls","amount":9007199254740991},{"meter":"b","amount":1}],
			"subject":"u1","mode":"normal","metadata":{"a":[1,2.5],"b":"é"},"dry_run":true}`,
		"reordered": `{"dry_run":true,"metadata":{"b":"é", "a": [1, 2.5]},"mode":"normal","subject":"u1",
			"items":[{"amount":9007199254740991,"meter":"api_calls"},{"meter":"b","amount":1}],"tenant":"acme"}`,
		"escaped": ` {"\u0074enant":"\u0061cme","items":[{"meter":"api\u005fcalls","amount":9007199254740991},{"meter":"b","amount":1}],` +
			`"subject":"u1","mode":"normal","metadata":{"a":[1,2.5],"\u0062":"\u00e9"},"dry_run":true} `,
	} {
		got, faults := faultsOf(t, body)
		assert.True(t, faults == nil, "%s: %q", name, faults)
		assert.EqualExportedValues(t, want, got, name)
		assert.Equal(t, want.IP, got.IP, name)
	}
}

func TestDecode_AllFaultsByPath(t *testing.T) {
	t.Parallel()
	_, got := faultsOf(t, `{"tenant":"a b","items":[{"meter":"x","amount":0},{"amount":1.5,"colour":1},7],"dry_run":1,"refund":{"a":[1]},"metadata":[]}`)
	want := []string{
		"tenant " + bound.MustBeName,
		"items[0].amount must be an integer from 1 to 9007199254740991",
		"items[1].amount must be an integer from 1 to 9007199254740991",
		"items[1].colour is an unknown field",
		"items[1].meter is required",
		"items[2] must be an object",
		"dry_run must be true or false",
		"refund is an unknown field",
		"metadata " + bound.MustBeMetadata,
	}
	assert.Equal(t, want, got)
}

func TestDecode_NotJSON_NamesPlace(t *testing.T) {
	t.Parallel()
	const good = `{"tenant":"acme","items":[{"meter":"x","amount":1}]}`
	for body, want := range map[string]string{
		"":                                      "body must be a JSON object; it is empty",
		" \n":                                   "body must be a JSON object; it is empty",
		"null":                                  "body must be an object",
		"[]":                                    "body must be an object",
		`"x"`:                                   "body must be an object",
		"7":                                     "body must be an object",
		"{":                                     "body is not JSON: it ends early, at byte 1",
		good[:len(good)-1]:                      "body is not JSON: it ends early, at byte 51",
		good + "{}":                             "body must end after the JSON object",
		good + "x":                              "body must end after the JSON object",
		good + "\x00":                           "body must end after the JSON object",
		`{"tenant":"a","tenant"`:                "tenant is a duplicate field",
		`{"items":[{"meter":"x","meter":"y"}]}`: "items[0].meter is a duplicate field",
		`{"metadata":{"k":1,"\u006b":2}}`:       "metadata.k is a duplicate field",
		`{"tenant":01}`:                         "body is not JSON at byte 11: invalid character '1' after object value (expecting ',' or '}')",
		`{'tenant':1}`:                          "body is not JSON at byte 1: invalid character '\\'' at start of value",
		"{\"tenant\":\"\xff\"}":                 "tenant is not JSON at byte 11: invalid UTF-8",
		"{\"tenant\":\"\\ud800\"}":              "tenant is not JSON at byte 11: invalid surrogate pair `\\ud800\"}` in string",
		"{\"tenant\":\"a\x00\"}":                "tenant is not JSON at byte 12: invalid character '\\x00' in string (expecting non-control character)",
		`{"tenant":NaN}`:                        "tenant is not JSON at byte 10: invalid character 'N' at start of value",
		`{"metadata":` + strings.Repeat("[", 10_001):    "metadata" + strings.Repeat(".0", 76) + "... is not JSON at byte 10011: exceeded max depth",
		"\xef\xbb\xbf" + good:                           "body is not JSON at byte 0: invalid character '\\ufeff' at start of value",
		`{"tenant":"a","items":[{"meter":"x" "amount"}`: "items[0] is not JSON at byte 36: invalid character '\"' after object value (expecting ',' or '}')",
	} {
		_, got := faultsOf(t, body)
		assert.True(t, len(got) != 0 && got[len(got)-1] == want, "%.60q:\n got %q\nwant %q", body, got, want)
	}
}

func TestDecode_AmountIsBoundedInteger(t *testing.T) {
	t.Parallel()
	body := func(amount string) string {
		return fmt.Sprintf(`{"tenant":"a","items":[{"meter":"m","amount":%s}]}`, amount)
	}
	for _, amount := range []string{"1", "2", "9007199254740991"} {
		if r, faults := faultsOf(t, body(amount)); faults != nil || fmt.Sprint(r.Items[0].Amount) != amount {
			t.Errorf("%s: %d %q", amount, r.Items[0].Amount, faults)
		}
	}
	for _, amount := range []string{
		"0", "-0", "-1", "-9007199254740991", "9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808",
		"18446744073709551617", "1000000000000000000000000000000", "1e3", "1E0", "1.01", "1.5", "0.1", "1e-3", "1e400",
		`"1"`, "true", "false", "null", "[]", "[1]", "{}", `""`,
	} {
		_, faults := faultsOf(t, body(amount))
		assert.Equal(t, []string{"items[0].amount must be an integer from 1 to 9007199254740991"}, faults, amount)
	}
}

func TestDecode_IDsHaveAlphabetAndLength(t *testing.T) {
	t.Parallel()
	body := func(id string) string { return `{"tenant":"` + id + `","items":[{"meter":"m","amount":1}]}` }
	for _, id := range []string{"a", "0", "a.b_c:d-e", "a/b", "{a}", "a{b}", "-a", "_a", ":a", "auth0|5f7c8e", strings.Repeat("x", 255)} {
		r, faults := faultsOf(t, body(id))
		assert.True(t, faults == nil && r.Tenant == id, "%q: %q", id, faults)
	}
	for _, id := range []string{
		"", " ", "a b", ".a", "a%00", "a<b", "a?", "#", `a\u0000`, `\n`, "é", "a\u00e9", strings.Repeat("x", 256),
	} {
		_, faults := faultsOf(t, body(id))
		assert.True(t, len(faults) == 1 && faults[0] == "tenant "+bound.MustBeName, "%q: %q", id, faults)
	}
}

func TestDecode_1To16ItemsOfDistinctMeters(t *testing.T) {
	t.Parallel()
	body := func(n int, meter string) string {
		var items []string
		for i := range n {
			items = append(items, fmt.Sprintf(`{"meter":"%s%d","amount":1}`, meter, i))
		}
		return `{"tenant":"a","items":[` + strings.Join(items, ",") + `]}`
	}
	for n, want := range map[int]string{
		0: "items must have 1 to 16 elements; it has 0", 1: "", 16: "",
		17: "items must have 1 to 16 elements; it has 17", 5000: "items must have 1 to 16 elements; it has 5000",
	} {
		_, faults := faultsOf(t, body(n, "m"))
		assert.Equal(t, want, strings.Join(faults, "; "), "%d items", n)
	}
	_, faults := faultsOf(t, `{"tenant":"a","items":[{"meter":"m","amount":1},{"meter":"n","amount":1},{"meter":"m","amount":2}]}`)
	assert.Equal(t, []string{"items[2].meter is a duplicate of items[0].meter"}, faults)
}

func TestDecode_MetadataIsStorable(t *testing.T) {
	t.Parallel()
	body := func(metadata string) string {
		return `{"tenant":"a","items":[{"meter":"m","amount":1}],"metadata":` + metadata + `}`
	}
	filled := func(n int) string { return `{"a":"` + strings.Repeat("x", n-len(`{"a":""}`)) + `"}` }
	nested := func(levels int) string {
		return strings.Repeat(`{"a":`, levels) + "1" + strings.Repeat("}", levels)
	}
	digits := strings.Repeat("9", 64)
	for _, metadata := range []string{
		`{}`, `{"a":null,"b":[true,{"c":-1.5e-3}]}`, `{"a":"\\u0000"}`, `{"a":"\"\\"}`, filled(bound.MaxMetadata), nested(bound.MaxMetadataDepth),
		`{"a":1e308,"b":` + digits + `}`,
	} {
		_, faults := faultsOf(t, body(metadata))
		assert.True(t, faults == nil, "%.40s: %q", metadata, faults)
	}
	for _, metadata := range []string{
		`[]`, `"x"`, `1`, `{"a":"\u0000"}`, `{"\u0000":1}`, `{"a":["\\\u0000"]}`, filled(bound.MaxMetadata + 1),
		nested(bound.MaxMetadataDepth + 1), `{"a":1e309}`, `{"a":[{"b":-2e308}]}`, `{"a":1e1000}`, `{"a":1E+1000}`, `{"a":1e0001}`, `{"a":9` + digits + `}`,
	} {
		_, faults := faultsOf(t, body(metadata))
		assert.True(t, len(faults) == 1 && faults[0] == "metadata "+bound.MustBeMetadata, "%.40s: %q", metadata, faults)
	}
}

func TestDecode_HostileBody_ShortAnswer(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, `"%d%s":1,`, i, strings.Repeat("\U0001F600", 5))
	}
	_, faults := faultsOf(t, "{"+b.String()+`"tenant":"a"}`)
	assert.Len(t, faults, 32, "faults")
	_, faults = faultsOf(t, `{"`+strings.Repeat("x", 1<<19)+`":1}`)
	for _, f := range faults {
		assert.True(t, len(f) <= 2*160, "a fault of %d bytes", len(f))
	}
}

func TestDecode_DocumentReusableAfterFault(t *testing.T) {
	t.Parallel()
	var d body.Document
	members := newBodies().debit
	for _, text := range []string{`{"tenant":`, `{"x":1}`, `{"tenant":"\u12"}`, `{"a":1,"a":2}`} {
		require.Error(t, body.Decode(&d, []byte(text), new(gate.Request), members), "%s was accepted", text)
		var r gate.Request
		err := body.Decode(&d, []byte(`{"tenant":"a","items":[{"meter":"m","amount":1}]}`), &r, members)
		require.True(t, err == nil && r.Tenant == "a", "after %s: %v", text, err)
	}
}

// FuzzBody: the decoder does not panic for any text. It accepts only values within their bounds.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"tenant":"acme","items":[{"meter":"m","amount":1}]}`, `{"tenant":"a","items":[{"meter":"m","amount":1e3}]}`, `{`, `{"metadata":{"a":"\\"}}`,
		`{"debits":[{"idempotency_key":"k","tenant":"a","items":[{"meter":"m","amount":1}],"metadata":{"x":[{}]}}]}`,
	} {
		f.Add([]byte(seed))
	}
	all := newBodies()
	f.Fuzz(func(t *testing.T, text []byte) {
		var d body.Document
		var r gate.Request
		if err := body.Decode(&d, text, &r, all.debit); err == nil {
			require.True(t, bound.ID(r.Tenant) && len(r.Items) >= 1 && len(r.Items) <= ledger.ItemsMax &&
				len(r.Metadata) <= bound.MaxMetadata, "accepted: %+v", r)
			for _, it := range r.Items {
				require.True(t, bound.ID(it.Meter) && it.Amount >= 1 && it.Amount <= bound.MaxAmount,
					"accepted: %+v", it)
			}
		} else if _, ok := errors.AsType[*body.Error](err); !ok {
			t.Fatalf("%T: %v", err, err)
		}
		var many batch
		_ = body.Decode(&d, text, &many, all.batch)
		require.True(t, len(many.debits) <= ledger.BatchMax, "%d debits", len(many.debits))
	})
}
