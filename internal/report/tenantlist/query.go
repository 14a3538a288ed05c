package tenantlist

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/errcode"
	"github.com/quotasvc/quotasvc/internal/ledger"
)

const (
	// MetadataMax is the largest number of metadata members in a query.
	MetadataMax = 3

	// MetadataValueMax is the longest value of a metadata member, in bytes.
	MetadataValueMax = 256

	// MetadataNameMax is the longest name of a metadata member, in bytes.
	MetadataNameMax = 64
)

// Query selects tenants. A field with its zero value does not restrict the list.
type Query struct {
	Plan     string
	Status   string
	Metadata map[string]string // names and values of metadata members; numbers and booleans as in JSON

	Near        *int   // only tenants that have used at least this percentage of a balance; nil: see AboutBalances
	Meter       string // only this meter; empty: the meter with the largest percentage (ByRemaining: the fewest units)
	ByRemaining bool   // order by remaining units, fewest first; false: order by tenant

	Tenant string // only this tenant
	Limit  int    // 1..listing.Max
	Cursor string // empty for the first page; otherwise the NextCursor of the previous page of the same query
}

// AboutBalances reports whether q selects by balances. If it does and Near is nil, q selects balances that have used
// or remaining units in the open period.
func (q *Query) AboutBalances() bool { return q.Near != nil || q.Meter != "" || q.ByRemaining }

// Filters reports whether q may leave out some tenants.
func (q *Query) Filters() bool {
	return q.AboutBalances() || q.filtersTenants()
}

// filtersTenants reports whether q selects by plan, status or metadata.
func (q *Query) filtersTenants() bool { return q.Plan != "" || q.Status != "" || len(q.Metadata) > 0 }

func (q *Query) percent() int {
	if q.Near == nil {
		return 0
	}
	return *q.Near
}

// members returns the names and values of the metadata members in q.
func (q *Query) members() (names, values []string) {
	names, values = []string{}, []string{}
	for _, name := range slices.Sorted(maps.Keys(q.Metadata)) {
		names, values = append(names, name), append(values, q.Metadata[name])
	}
	return names, values
}

// matches reports whether a tenant has the plan, the status and the metadata of q.
func (q *Query) matches(t *catalog.Tenant) bool {
	if q.Plan != "" && t.Plan != q.Plan || q.Status != "" && t.Status != q.Status {
		return false
	}
	var has map[string]json.RawMessage
	if len(q.Metadata) > 0 && json.Unmarshal(t.Metadata, &has) != nil {
		return false
	}
	for name, value := range q.Metadata {
		var text string
		if raw, ok := has[name]; !ok || json.Unmarshal(raw, &text) != nil && string(raw) != value || text != "" && text != value {
			return false
		}
	}
	return true
}

// BalanceStatus is the number of used and of remaining units of a balance.
type BalanceStatus struct {
	Meter           string
	Used, Remaining int64 // Used is net of refunds
	Percent         int   // 100 * used / (used + remaining), rounded down
}

// statusOf returns the status of a balance. ok is false if the balance has no used and no remaining units.
func statusOf(b *ledger.Balance) (s BalanceStatus, ok bool) {
	s = BalanceStatus{Meter: b.Meter, Used: max(b.Used-b.Refunded, 0), Remaining: b.Remaining}
	if s.Used+s.Remaining == 0 {
		return s, false
	}
	s.Percent = int(s.Used * 100 / (s.Used + s.Remaining)) // amounts are at most 2^53: no overflow
	return s, true
}

// position is the position after which a page begins: after the balance (tenant, meter, subject), or after all
// balances of tenant if meter is empty. In a list by remaining units, the page begins after (remaining, tenant).
type position struct {
	tenant, meter, subject string
	listed                 bool // the previous page lists tenant, but has not read all balances of tenant
	remaining              int64
}

const separator = " " // no id contains a blank

func (p position) cursor(byRemaining bool) string {
	text := p.tenant
	switch {
	case byRemaining:
		text = strconv.FormatInt(p.remaining, 10) + separator + p.tenant
	case p.meter != "":
		text += separator + p.meter + separator + p.subject + separator + strconv.FormatBool(p.listed)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(text))
}

// begin returns the position in the cursor of q.
func (q *Query) begin() (p position, err error) {
	if p.remaining = -1; q.Cursor == "" {
		return p, nil
	}
	wrong := errcode.Errorf(errcode.InvalidArgument, "cursor", "is an unknown cursor; it must be the next_cursor of the page before")
	raw, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil {
		return p, wrong
	}
	parts := strings.Split(string(raw), separator)
	if q.ByRemaining {
		if len(parts) != 2 || !bound.Name(parts[1]) {
			return p, wrong
		}
		if p.remaining, err = strconv.ParseInt(parts[0], 10, 64); err != nil {
			return p, wrong
		}
		p.tenant = parts[1]
		return p, nil
	}
	switch {
	case !bound.Name(parts[0]), len(parts) != 1 && len(parts) != 4, len(parts) == 4 && (!q.AboutBalances() || !bound.ID(parts[1]) || parts[2] != "" && !bound.Name(parts[2])):
		return p, wrong
	case len(parts) == 4:
		p.meter, p.subject, p.listed = parts[1], parts[2], parts[3] == "true"
	}
	p.tenant = parts[0]
	return p, nil
}

// validate returns the fault of the first invalid field of q.
func (q *Query) validate() error {
	if q.Near != nil && (*q.Near < 0 || *q.Near > 100) {
		return errcode.Errorf(errcode.InvalidArgument, "near", "%s", bound.MustBeInteger(0, 100))
	}
	if len(q.Metadata) > MetadataMax {
		return errcode.Errorf(errcode.InvalidArgument, "metadata", "at most %d members can be named", MetadataMax)
	}
	for name, value := range q.Metadata {
		if len(name) < 1 || len(name) > MetadataNameMax || len(value) > MetadataValueMax || !bound.Text(name+value, 1, MetadataNameMax+MetadataValueMax) {
			return errcode.Errorf(errcode.InvalidArgument, "metadata."+fmt.Sprintf("%.64s", name), "must be a name of 1 to %d bytes and a value of at most %d, of text", MetadataNameMax, MetadataValueMax)
		}
	}
	return nil
}
