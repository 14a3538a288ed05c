package httpapi

import (
	"cmp"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/block"
	"github.com/quotasvc/quotasvc/internal/catalog/gauge"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/httpapi/answers"
	"github.com/quotasvc/quotasvc/internal/httpapi/reference"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/kit/listing"
	"github.com/quotasvc/quotasvc/internal/ledger"
	"github.com/quotasvc/quotasvc/internal/ledger/history"
	"github.com/quotasvc/quotasvc/internal/ledger/pg"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

func TestContract_IsValidOpenAPI(t *testing.T) {
	t.Parallel()
	require.NoError(t, contract().Validate(t.Context()))
}

func TestRoutes_EqualContract(t *testing.T) {
	t.Parallel()
	parameter := regexp.MustCompile(`\{([a-z_]+)\}`)
	type operation struct {
		Method, Path string
		Query        []string
		Public       bool
	}
	var written, served []operation
	for template, item := range contract().Paths.Map() {
		for method, op := range item.Operations() {
			path := parameter.ReplaceAllString(strings.Replace(template, restOfPath, "*", 1), ":$1")
			o := operation{Method: method, Path: path, Public: op.Security != nil}
			if anyMethod(op) {
				o.Method = methodAny
			}
			for _, p := range append(slices.Clone(item.Parameters), op.Parameters...) {
				if p.Value.In == openapi3.ParameterInQuery {
					o.Query = append(o.Query, p.Value.Name)
				}
			}
			written = append(written, o)
		}
	}
	for _, r := range (&Server{reference: reference.New()}).routes() {
		query := slices.Clone(r.query)
		if r.members != "" { // a query parameter that is an object with members
			query = append(query, strings.TrimSuffix(r.members, "."))
		}
		served = append(served, operation{r.method, r.path, query, r.public})
	}
	for _, list := range [][]operation{written, served} {
		for i := range list {
			slices.Sort(list[i].Query)
		}
		slices.SortFunc(list, func(a, b operation) int {
			return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Method, b.Method))
		})
	}
	assert.Equal(t, written, served)
}

// field is a field of a request body, from the table of the server or from the schema of the contract.
type field struct {
	Name     string
	Required bool
}

func fieldsOf[T any](members []body.Member[T]) []field {
	return answers.Map(members, func(m *body.Member[T]) field { return field{m.Name, m.Required} })
}

// fieldsOfObject returns the fields of a catalogue type. The argument `without` names the fields that are in the path
// instead of the body.
func fieldsOfObject[T any](without ...string) []field {
	fields := body.Fields(reflect.TypeFor[T](), without)
	return answers.Map(fields, func(f *body.Field) field { return field{f.Name, f.Required} })
}

func TestBodies_FieldsEqualSchemas(t *testing.T) {
	t.Parallel()
	r := newBodies()
	tables := map[string][]field{
		"CheckRequest": fieldsOf(r.check), "ConsumeRequest": fieldsOf(r.consume), "DebitRequest": fieldsOf(r.debit),
		"DebitBatchRequest": fieldsOf(r.batch), "CheckBatchRequest": fieldsOf(r.checkBatch), "GrantRequest": fieldsOf(r.grant), "RollRequest": fieldsOf(r.roll),
		"VerificationRequest": fieldsOf(r.verification), "Item": fieldsOf(itemMembers()), "HoldRequest": fieldsOf(r.hold),
		"CaptureRequest": fieldsOf(r.capture), "ReleaseRequest": fieldsOf(r.release), "ExtendRequest": fieldsOf(r.extend),
		"RefundRequest": fieldsOf(r.refund), "VoidRequest": fieldsOf(r.void), "GrantExtensionRequest": fieldsOf(r.extension), "AdjustmentRequest": fieldsOf(r.adjustment),
		"BatchDebit":   append(fieldsOf(slices.Concat(demandMembers(itemMembers()), changeMembers())), field{"idempotency_key", true}), // a dry run may omit the key; the contract does not say so
		"LeaseRequest": fieldsOf(r.lease), "LeaseRenewal": fieldsOf(r.renewal), "ResetRequest": fieldsOf(r.reset),
		"ChargeRequest": fieldsOf(r.charge), "ChargeRefundRequest": fieldsOf(r.chargeRefund), "ChargeSettleRequest": fieldsOf(r.chargeSettle),
		"GaugeRequest": fieldsOf(r.gauge), "KeyRequest": fieldsOf(r.key), "TestClockRequest": fieldsOf(r.clock), "KeyRotation": fieldsOf(r.rotation), "PortalSessionRequest": fieldsOf(r.link),
		"CatalogRequest": fieldsOf(r.catalog), "CatalogBlock": fieldsOfObject[block.Block](),
		"WebhookRequest": fieldsOf(r.webhook), "WebhookPatch": fieldsOf(r.webhookPatch), "WebhookReplayRequest": fieldsOf(r.replay),
		"MeterRequest": fieldsOfObject[catalog.Meter]("meter"), "PlanRequest": fieldsOfObject[catalog.Plan]("plan"),
		"TenantRequest": fieldsOfObject[catalog.Tenant]("tenant"), "TenantPatch": fieldsOfObject[catalog.TenantPatch](),
		"LimitRequest": fieldsOfObject[catalog.Limit]("rule"), "PlanLimit": fieldsOfObject[catalog.Limit](),
		"LimitOverrideRequest": fieldsOfObject[override.Override]("rule", "tenant", "subject"),
		"LimitMatch":           fieldsOfObject[catalog.Match](), "LimitCost": fieldsOfObject[catalog.RouteCost](),
		"Allowance": fieldsOfObject[catalog.Allowance](), "Rollover": fieldsOfObject[catalog.Rollover](),
		"Overage": fieldsOfObject[catalog.Overage](), "Overflow": fieldsOfObject[catalog.Overflow](),
		"BlockRequest":       fieldsOfObject[block.Block]("kind", "value"),
		"BlockPrefixRequest": fieldsOfObject[block.Block]("kind", "value", "tenant"),
	}
	bodies := map[string]bool{}
	for _, item := range contract().Paths.Map() {
		for _, op := range item.Operations() {
			if op.RequestBody != nil {
				bodies[strings.TrimPrefix(op.RequestBody.Value.Content.Get(typeJSON).Schema.Ref, "#/components/schemas/")] = true
			}
		}
	}
	for name := range bodies {
		_, ok := tables[name]
		assert.True(t, ok, "the body %s has no table in this test", name)
	}
	for name, table := range tables {
		schema := contract().Components.Schemas[name].Value
		var want []field
		for property := range schema.Properties {
			want = append(want, field{property, slices.Contains(schema.Required, property)})
		}
		byName := func(a, b field) int { return strings.Compare(a.Name, b.Name) }
		slices.SortFunc(want, byName)
		slices.SortFunc(table, byName)
		assert.Equal(t, want, table, "%s", name)
		if closed := schema.AdditionalProperties.Has; bodies[name] && (closed == nil || *closed) {
			t.Errorf("%s allows other fields; the decoder does not", name)
		}
	}
}

func TestContract_BoundsEqualCode(t *testing.T) {
	t.Parallel()
	schemas := contract().Components.Schemas
	property := func(schema, name string) *openapi3.Schema { return schemas[schema].Value.Properties[name].Value }
	for what, pair := range map[string][2]int64{
		"amount":          {int64(*schemas["Amount"].Value.Max), bound.MaxAmount},
		"items":           {int64(*schemas["Items"].Value.MaxItems), ledger.ItemsMax},
		"debits":          {int64(*property("DebitBatchRequest", "debits").MaxItems), ledger.BatchMax},
		"page":            {int64(*contract().Components.Parameters["PageLimit"].Value.Schema.Value.Max), min(pageMax, pg.PageMax, listing.Max)},
		"page default":    {int64(contract().Components.Parameters["PageLimit"].Value.Schema.Value.Default.(float64)), pageDefault},
		"cursor":          {int64(*contract().Components.Parameters["PageCursor"].Value.Schema.Value.MaxLength), cursorMax},
		"stale":           {int64(*property("CheckRequest", "max_stale_ms").Max), staleMaxMs},
		"priority":        {int64(*property("GrantRequest", "priority").Max), int64(ledger.PriorityMax)},
		"cost basis":      {int64(*property("GrantRequest", "cost_basis").MaxLength), costBasisMax},
		"reason":          {int64(*property("GrantRequest", "reason").MaxLength), reasonMax},
		"unit":            {int64(*property("MeterRequest", "unit").MaxLength), catalog.MaxUnit},
		"description":     {int64(*property("MeterRequest", "description").MaxLength), catalog.MaxDescription},
		"allowances":      {int64(*property("PlanRequest", "allowances").MaxItems), catalog.MaxAllowances},
		"plan limits":     {int64(*property("PlanRequest", "limits").MaxItems), catalog.MaxPlanLimits},
		"trial":           {int64(*property("Allowance", "expires_in_days").Max), catalog.MaxExpiresInDays},
		"overrides":       {int64(*schemas["Overrides"].Value.MaxProps), catalog.MaxOverrides},
		"override patch":  {int64(*schemas["OverridePatch"].Value.MaxProps), catalog.MaxOverrides},
		"terms' reason":   {ledger.TextMax, catalog.MaxReason},
		"rate":            {int64(*property("LimitRequest", "rate").MaxLength), 64},
		"costs":           {int64(*schemas["LimitCosts"].Value.MaxItems), catalog.MaxCosts},
		"pattern":         {int64(len("/") * 256), bound.MaxRoute},
		"block reason":    {int64(*property("BlockRequest", "reason").MaxLength), min(catalog.MaxReason, reasonMax)},
		"any reason":      {int64(*schemas["Reason"].Value.MaxLength), ledger.TextMax},
		"lease ttl":       {int64(*schemas["LeaseTtl"].Value.Max), int64(rule.MaxLeaseTTL.Seconds())},
		"key name":        {int64(*property("KeyRequest", "name").MaxLength), access.NameMax},
		"key scopes":      {int64(*property("KeyRequest", "scopes").MaxItems), int64(len(access.ScopeNames()))},
		"overlap":         {int64(*property("KeyRotation", "overlap_seconds").Max), int64(access.OverlapMax.Seconds())},
		"ttl":             {int64(*schemas["TtlSeconds"].Value.Max), int64(ledger.HoldTTLMax.Seconds())},
		"difference":      {-int64(*property("AdjustmentRequest", "amount").Min), bound.MaxAmount},
		"tenant metadata": {4096, bound.MaxMetadata},
	} {
		assert.True(t, pair[0] == pair[1], "%s: %d and %d", what, pair[0], pair[1])
	}
	passage := contract().Components.Parameters["QuotaAmountHeader"].Value.Schema.Value
	assert.True(t, int64(*passage.Max) == bound.MaxAmount, "the amount of a passage: %v", *passage.Max)
	for schema, matches := range map[string]func(string) bool{"Id": bound.ID, "Name": bound.Name, "Subject": bound.Name, "Route": bound.Route, "RoutePattern": bound.Route} {
		pattern := regexp.MustCompile(schemas[schema].Value.Pattern)
		for _, s := range []string{
			"", "a", "Z9", "a.b_c:d-e", "-a", ".a", "a b", " a", "a/b", "{a}", "é", "a\x00", "\x7f", "a\n",
			"_x", "auth0|5f7c8e", "ann@example.com", "gid://app/User/12", "a=b+c", "~!$&'()*,;[]^`}", "a.", "..", `a"b`, "a%2Fb", `a\b`, "a?b", "a#b", "a<b", "a>b",
			strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("x", 255), strings.Repeat("x", 256), strings.Repeat("x", 257),
		} {
			assert.True(t, pattern.MatchString(s) == matches(s),
				"%s: %.20q (%d bytes) matches %s: %v", schema, s, len(s), pattern, pattern.MatchString(s))
		}
	}
}

func TestProblemKinds_EveryCodeHasContractStatus(t *testing.T) {
	t.Parallel()
	want := map[errcode.Code]int{
		errcode.InvalidArgument: 400, codeIdempotencyKeyMissing: 400, codeUnauthenticated: 401, errcode.CreditsExhausted: 402,
		gate.CodeForbidden: 403, errcode.TenantSuspended: 403, errcode.MeterNotInPlan: 403, gate.CodeFeatureNotInPlan: 403, gauge.CodeLimit: 403, errcode.NotFound: 404, errcode.TenantNotFound: 404,
		errcode.GrantNotFound: 404, errcode.HoldNotFound: 404, errcode.OperationNotFound: 404, errcode.ChargeNotFound: 404, errcode.Archived: 410, codeMethodNotAllowed: 405, errcode.Conflict: 409, errcode.TooMany: 409, errcode.TooManyGrants: 409, errcode.HoldNotActive: 409,
		catalog.CodeChangePending:    409,
		errcode.IdempotencyKeyReused: 422, errcode.RefundExceedsDebit: 422, errcode.AmountOutOfRange: 422, gate.CodeCostExceedsCapacity: 422, gate.CodeTooManyLimits: 422, errcode.QuotaExceeded: 429,
		gate.CodeLeaseNotFound: 404, gate.CodeRateLimited: 429, errcode.Internal: 500, errcode.QueueFull: 503, errcode.Unavailable: 503, errcode.OutcomeUnknown: 503, errcode.ReportTooSlow: 503,
	}
	got := map[errcode.Code]int{}
	for code, kind := range problemKinds() {
		got[code] = kind.status
		assert.True(t, kind.title != "" && kind.detail != "", "%s has no title or no detail", code)
	}
	assert.Equal(t, want, got)
}

func TestReference_NeedsNoKey(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for path, mediaType := range map[string]string{
		"/v1/openapi.yaml": "application/yaml", "/v1/openapi.json": "application/json", "/docs": "text/html; charset=utf-8",
		reference.ViewerPath: "text/javascript; charset=utf-8",
	} {
		a := s.call("GET", path, "", "Authorization").want(http.StatusOK)
		got := a.header.Get("Content-Type")
		assert.True(t, got == mediaType && len(a.body) >= 500, "%s: %s, %d bytes", path, got, len(a.body))
		b := s.call("GET", path, "", "If-None-Match", a.header.Get("ETag"), "Authorization").want(http.StatusNotModified)
		assert.Empty(t, b.body, "%s: %d bytes with 304", path, len(b.body))
		s.call("GET", path+"?x=1", "", "Authorization").problem(http.StatusBadRequest, "invalid_argument")
	}
	a := s.call("GET", "/v1/openapi.yaml", "").want(http.StatusOK)
	assert.True(t, string(a.body) == string(reference.Specification), "it is not the contract")
}

// TestHead_WhereGetIs_SameHeaders: HEAD answers with the same status and headers as GET, and without a body. This
// includes refused requests.
func TestHead_WhereGetIs_SameHeaders(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.materials()
	for _, path := range []string{
		"/v1/meters", "/v1/meters/calls", "/v1/tenants/acme", "/v1/tenants/acme/balances", "/v1/tenants/nobody", "/v1/meters?limit=x", "/v1/openapi.json", "/docs",
	} {
		// Go's client asks for gzip in a GET by default, but not in a HEAD.
		same := []string{"X-Request-Id", "one", "Accept-Encoding", "identity"}
		get, head := s.call("GET", path, "", same...), s.call("HEAD", path, "", same...)
		assert.True(t, head.status == get.status && len(head.body) == 0,
			"%s: %d with %d bytes, GET is %d", path, head.status, len(head.body), get.status)
		for _, name := range []string{"Content-Type", "X-Request-Id", "ETag", "Cache-Control"} {
			assert.True(t, head.header.Get(name) == get.header.Get(name),
				"%s: %s is %q, of GET %q", path, name, head.header.Get(name), get.header.Get(name))
		}
	}
	a := s.call("HEAD", "/v1/debits", "")
	assert.True(t, a.status == http.StatusMethodNotAllowed, "HEAD of a POST: %d", a.status)
	p := s.call("DELETE", "/v1/tenants/acme/balances", "").problem(http.StatusMethodNotAllowed, "method_not_allowed")
	assert.True(t, p.Status == http.StatusMethodNotAllowed, p)
}

// The contract lists every problem code of the program. Each code in the contract belongs to exactly one alternative
// of Problem.
func TestContract_ProblemCodes_EqualCode(t *testing.T) {
	t.Parallel()
	schemas := contract().Components.Schemas
	var want, listed, divided []string
	for code := range problemKinds() {
		want = append(want, string(code))
	}
	for _, code := range schemas["ProblemCode"].Value.Enum {
		listed = append(listed, code.(string))
	}
	for _, one := range schemas["Problem"].Value.OneOf {
		for _, code := range one.Value.Properties["code"].Value.Enum {
			divided = append(divided, code.(string))
		}
	}
	slices.Sort(want)
	slices.Sort(listed)
	slices.Sort(divided)
	assert.Equal(t, want, listed)
	assert.Equal(t, want, divided, "code - / alternatives of Problem +")
}

func TestContract_EntryKinds_EqualCode(t *testing.T) {
	t.Parallel()
	code := answers.Map(history.Kinds(), func(kind *ledger.EntryKind) string { return string(*kind) })
	var written []string
	for _, kind := range contract().Components.Schemas["EntryKind"].Value.Enum {
		written = append(written, kind.(string))
	}
	assert.Equal(t, code, written)
}
