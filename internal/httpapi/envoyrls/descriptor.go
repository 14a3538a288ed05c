package envoyrls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/route"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// descriptorsMax is the maximum number of descriptors of a request. Each descriptor is a separate charge.
const descriptorsMax = 16

// knownKeys lists the keys that an entry may have, for error messages.
const knownKeys = "tenant, subject or user, route or path, method, remote_address or ip, rule, after_the_fact"

// Parts of a request that can be bad: the values of the label field of a metric.
const (
	fieldDomain       = "domain"
	fieldDescriptors  = "descriptors"
	fieldEntries      = "entries"
	fieldKey          = "key" // of an entry
	fieldTenant       = "tenant"
	fieldSubject      = "subject"
	fieldRoute        = "route"
	fieldMethod       = "method"
	fieldIP           = "ip"
	fieldRule         = "rule"
	fieldAfterTheFact = "after_the_fact"
	fieldHits         = "hits_addend"
	fieldLimit        = "limit"
	fieldNegative     = "is_negative_hits"
)

// fields lists all parts that can be bad.
var fields = []string{
	fieldDomain, fieldDescriptors, fieldEntries, fieldKey, fieldTenant, fieldSubject, fieldRoute, fieldMethod, fieldIP,
	fieldRule, fieldAfterTheFact, fieldHits, fieldLimit, fieldNegative,
}

// badRequest is the error for a request that cannot be read.
type badRequest struct {
	field       string // one of fields
	path, fault string // where the field is in the request, and its fault

	// chosen means that a client may have chosen the value: a path, a method, a user, an address or a number of hits.
	// Therefore the request is answered as over limit. After an error, a proxy that fails open would let the request
	// pass. Otherwise Envoy's configuration is wrong, and the answer is an error.
	chosen     bool
	descriptor int // index of the descriptor in the request
}

// Error returns the path of the field and its fault.
func (e *badRequest) Error() string { return e.path + " " + e.fault }

// charge is a charge that a descriptor asks for.
type charge struct {
	gate.ChargeRequest // DryRun: the descriptor looks, it has 0 hits

	afterTheFact string // value of the entry: "true", "false", or "" without an entry
}

// readRequest returns the charges of a request, one for each descriptor. The error is a *badRequest.
func readRequest(req *rls.RateLimitRequest) ([]charge, error) {
	descriptors := req.GetDescriptors()
	switch n := len(descriptors); {
	case req.GetDomain() == "":
		return nil, bad(fieldDomain, "domain", "is required")
	case n < 1 || n > descriptorsMax:
		return nil, bad(fieldDescriptors, "descriptors", "must have 1 to %d elements; it has %d", descriptorsMax, n)
	}
	charges := make([]charge, len(descriptors))
	for i, d := range descriptors {
		if err := readDescriptor(&charges[i], d, req, fmt.Sprintf("descriptors[%d]", i)); err != nil {
			err.descriptor = i
			return nil, err
		}
	}
	return charges, nil
}

// readDescriptor reads one descriptor. path is the descriptor's path in the request, for errors.
func readDescriptor(c *charge, d *ratelimitv3.RateLimitDescriptor, req *rls.RateLimitRequest, path string) *badRequest {
	switch {
	case len(d.GetEntries()) == 0:
		return bad(fieldEntries, path+".entries", "must have an entry")
	case d.GetLimit() != nil:
		return bad(fieldLimit, path+".limit", "is not supported: limits are in the catalogue; change them there, or override them per tenant")
	case d.GetIsNegativeHits():
		return bad(fieldNegative, path+".is_negative_hits", "is not supported: tokens come back with time")
	}
	for i, e := range d.GetEntries() {
		if err := readEntry(c, e, fmt.Sprintf("%s.entries[%d]", path, i)); err != nil {
			return err
		}
	}
	if c.Tenant == "" {
		if !bound.Name(req.GetDomain()) {
			return bad(fieldTenant, path+".entries", "has no tenant, and the domain cannot name one: it %s", bound.MustBeName)
		}
		c.Tenant = req.GetDomain()
	}
	slices.Sort(c.Rules)             // their order has no meaning
	c.Forwarded = "envoy " + c.Route // it comes through a proxy, so all spellings of a route count as one route
	hits := uint64(max(req.GetHitsAddend(), 1))
	if own := d.GetHitsAddend(); own != nil {
		hits = own.GetValue()
	}
	if hits > bound.MaxAmount {
		err := bad(fieldHits, path+".hits_addend", "must be at most %d", int64(bound.MaxAmount))
		err.chosen = true
		return err
	}
	c.Cost, c.DryRun = int64(max(hits, 1)), hits == 0
	return nil
}

// readEntry reads one entry. path is the entry's path in the request, for errors.
func readEntry(c *charge, e *ratelimitv3.RateLimitDescriptor_Entry, path string) *badRequest {
	var field, fault string
	var given bool
	value := e.GetValue()
	valid := func(ok bool, must string) {
		if !ok {
			fault = must
		}
	}
	switch e.GetKey() {
	case "tenant":
		field, given, c.Tenant = fieldTenant, c.Tenant != "", value
		valid(bound.Name(value), bound.MustBeName)
	case "subject", "user":
		field, given, c.Subject = fieldSubject, c.Subject != "", value
		valid(bound.Name(value), bound.MustBeName)
	case "route":
		field, given, c.Route = fieldRoute, c.Route != "", value
		valid(bound.Route(value), bound.MustBeRoute)
	case "path": // as in Envoy's :path, with the query
		field, given, c.Route = fieldRoute, c.Route != "", route.FromURI(value)
		valid(bound.Route(c.Route), bound.MustBeRoute)
	case "method":
		field, given, c.Method = fieldMethod, c.Method != "", strings.ToUpper(value)
		valid(bound.Method(c.Method), bound.MustBeMethod)
	case "remote_address", "ip":
		field, given = fieldIP, c.IP.IsValid()
		address, ok := body.ParseAddress(value)
		c.IP = address
		valid(ok, body.MustBeAddress)
	case "rule":
		field, c.Rules = fieldRule, append(c.Rules, value)
		valid(bound.ID(value), bound.MustBeID)
		if len(c.Rules) > ratelimit.MaxCharges {
			return bad(field, path, "names more than %d rules", ratelimit.MaxCharges)
		}
	case "after_the_fact":
		field, given, c.afterTheFact = fieldAfterTheFact, c.afterTheFact != "", value
		valid(value == "true" || value == "false", "must be true or false")
	default:
		return bad(fieldKey, path+".key", "%q is unknown; must be one of: %s", body.Clip(e.GetKey()), knownKeys)
	}
	switch {
	case given:
		return bad(fieldKey, path+".key", "%q: the descriptor names this twice", e.GetKey())
	case fault == "":
		return nil
	}
	err := bad(field, path+".value", "of %s %s", e.GetKey(), fault)
	err.chosen = field != fieldTenant && field != fieldRule && field != fieldAfterTheFact
	return err
}

func bad(field, path, format string, args ...any) *badRequest {
	return &badRequest{field: field, path: path, fault: fmt.Sprintf(format, args...)}
}
