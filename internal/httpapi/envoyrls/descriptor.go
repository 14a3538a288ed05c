package envoyrls

import (
	"errors"
	"fmt"
	"strings"

	"github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/kit/body"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
	"github.com/quotasvc/quotasvc/internal/kit/route"
	"github.com/quotasvc/quotasvc/internal/ratelimit"
)

// descriptorsMax is the maximum number of descriptors of a request. Each descriptor is a separate charge.
const descriptorsMax = 16

// knownKeys lists the keys that an entry may have, for error messages.
const knownKeys = "tenant, subject or user, route or path, method, remote_address or ip, rule"

// unusable is the error for a value that no limit can count: a path, a method, a user, an address or a number of
// hits. A client may have chosen this value. Therefore the request is answered as over limit. After an error, a proxy
// that fails open would let the request pass.
type unusable struct {
	descriptor   int // index of the descriptor in the request
	field, fault string
}

// Error returns the name of the field and its fault.
func (e *unusable) Error() string { return e.field + " " + e.fault }

// readRequest returns the charges of a request, one for each descriptor. The error names the faulty field. If a
// client may have caused the fault, the error is an *unusable. If Envoy's configuration is wrong, it is a gRPC
// status.
func readRequest(req *rls.RateLimitRequest) ([]gate.ChargeRequest, error) {
	descriptors := req.GetDescriptors()
	switch n := len(descriptors); {
	case req.GetDomain() == "":
		return nil, invalid("domain", "is required")
	case n < 1 || n > descriptorsMax:
		return nil, invalid("descriptors", "must have 1 to %d elements; it has %d", descriptorsMax, n)
	}
	charges := make([]gate.ChargeRequest, len(descriptors))
	for i, d := range descriptors {
		err := readDescriptor(&charges[i], d, req, fmt.Sprintf("descriptors[%d]", i))
		if e, ok := errors.AsType[*unusable](err); ok {
			e.descriptor = i
		}
		if err != nil {
			return nil, err
		}
	}
	return charges, nil
}

// readDescriptor reads one descriptor. path is the descriptor's path in the request, for errors.
func readDescriptor(c *gate.ChargeRequest, d *ratelimitv3.RateLimitDescriptor, req *rls.RateLimitRequest, path string) error {
	switch {
	case len(d.GetEntries()) == 0:
		return invalid(path+".entries", "must have an entry")
	case d.GetLimit() != nil:
		return invalid(path+".limit", "is not supported: limits are in the catalogue; change them there, or override them per tenant")
	case d.GetIsNegativeHits():
		return invalid(path+".is_negative_hits", "is not supported: tokens come back with time")
	}
	for i, e := range d.GetEntries() {
		if err := readEntry(c, e, fmt.Sprintf("%s.entries[%d]", path, i)); err != nil {
			return err
		}
	}
	if c.Tenant == "" {
		if !bound.Name(req.GetDomain()) {
			return invalid(path+".entries", "has no tenant, and the domain cannot name one: it %s", bound.MustBeName)
		}
		c.Tenant = req.GetDomain()
	}
	c.Forwarded = "envoy " + c.Route // it comes through a proxy, so all spellings of a route count as one route
	hits := uint64(max(req.GetHitsAddend(), 1))
	if own := d.GetHitsAddend(); own != nil {
		hits = own.GetValue()
	}
	if hits > bound.MaxAmount {
		return &unusable{field: path + ".hits_addend", fault: fmt.Sprintf("must be at most %d", int64(bound.MaxAmount))}
	}
	c.Cost, c.DryRun = int64(max(hits, 1)), hits == 0
	return nil
}

// readEntry reads one entry. path is the entry's path in the request, for errors.
func readEntry(c *gate.ChargeRequest, e *ratelimitv3.RateLimitDescriptor_Entry, path string) error {
	value, known, given, fault := e.GetValue(), true, false, ""
	valid := func(ok bool, must string) {
		if !ok {
			fault = must
		}
	}
	switch e.GetKey() {
	case "tenant":
		given, c.Tenant = c.Tenant != "", value
		valid(bound.Name(value), bound.MustBeName)
	case "subject", "user":
		given, c.Subject = c.Subject != "", value
		valid(bound.Name(value), bound.MustBeName)
	case "route":
		given, c.Route = c.Route != "", value
		valid(bound.Route(value), bound.MustBeRoute)
	case "path": // as in Envoy's :path, with the query
		given, c.Route = c.Route != "", route.FromURI(value)
		valid(bound.Route(c.Route), bound.MustBeRoute)
	case "method":
		given, c.Method = c.Method != "", strings.ToUpper(value)
		valid(bound.Method(c.Method), bound.MustBeMethod)
	case "remote_address", "ip":
		given = c.IP.IsValid()
		address, ok := body.ParseAddress(value)
		c.IP = address
		valid(ok, body.MustBeAddress)
	case "rule":
		c.Rules = append(c.Rules, value)
		valid(bound.ID(value), bound.MustBeID)
		if len(c.Rules) > ratelimit.MaxCharges {
			return invalid(path, "names more than %d rules", ratelimit.MaxCharges)
		}
	default:
		known = false
	}
	switch {
	case !known:
		return invalid(path+".key", "%q is unknown; must be one of: %s", body.Clip(e.GetKey()), knownKeys)
	case given:
		return invalid(path+".key", "%q: the descriptor names this twice", e.GetKey())
	case fault == "":
		return nil
	case e.GetKey() == "tenant" || e.GetKey() == "rule": // a client does not choose this value
		return invalid(path+".value", "of %s %s", e.GetKey(), fault)
	}
	return &unusable{field: path + ".value", fault: "of " + e.GetKey() + " " + fault}
}

// invalid returns the gRPC status InvalidArgument for a field with a wrong value.
func invalid(field, format string, args ...any) error {
	return status.Error(codes.InvalidArgument, field+" "+fmt.Sprintf(format, args...))
}
