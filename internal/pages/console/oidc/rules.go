package oidc

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/quotasvc/quotasvc/internal/access"
	"github.com/quotasvc/quotasvc/internal/kit/bound"
)

// RulesMax is the maximum number of rules.
const RulesMax = 100

// anyValue matches any value of a claim. As the tenant of a rule, it means the tenant whose id is the value of the
// claim.
const anyValue = "*"

// rule gives rights to people who have a claim with a value.
type rule struct {
	claim, value string // value may be anyValue, which matches any value
	scopes       access.Scope
	tenant       string // empty: all tenants; anyValue: the tenant whose id is the claim's value
}

// Rules is the set of all rules.
type Rules struct {
	list []rule
	id   string // id of this set; a session ends when the configured rules have another id
}

// ParseRules parses rules such as "groups=support->read", "email=ada@example.com->admin" and "tenant_id=*->read@*".
func ParseRules(texts []string) (*Rules, error) {
	if len(texts) == 0 || len(texts) > RulesMax {
		return nil, fmt.Errorf("has %d rules; 1 to %d are needed, such as groups=support->read", len(texts), RulesMax)
	}
	out := &Rules{}
	for _, text := range texts {
		r, err := parseRule(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		out.list = append(out.list, r)
	}
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	out.id = hex.EncodeToString(sum[:6])
	return out, nil
}

func parseRule(text string) (rule, error) {
	wrong := func(what string) (rule, error) {
		return rule{}, fmt.Errorf("the rule %.128q %s; write claim=value->scope, with scopes joined by + and perhaps @tenant", text, what)
	}
	at := strings.LastIndex(text, "->")
	if at < 0 {
		return wrong("has no ->")
	}
	claim, value, found := strings.Cut(text[:at], "=")
	if !found || claim == "" || value == "" {
		return wrong("has no claim=value")
	}
	names, tenant, bounded := strings.Cut(text[at+2:], "@")
	scopes, ok := access.ParseScopes(strings.Split(names, "+"))
	switch {
	case !ok:
		return wrong("has unknown scopes; the scopes are " + strings.Join(access.ScopeNames(), ", "))
	case !scopes.Has(access.Read):
		return wrong("gives neither read nor admin, without which nobody can use the console")
	case bounded && tenant != anyValue && !bound.Name(tenant):
		return wrong("has an invalid tenant id")
	case !bounded && value == anyValue && scopes.Has(access.Admin):
		return wrong("makes everybody who has the claim an administrator")
	}
	return rule{claim, value, scopes, tenant}, nil
}

// rights returns the scopes that the rules give to a person with these claims, and the tenant. If the tenant is
// empty, the scopes are for all tenants.
func (rs *Rules) rights(claims map[string]any) (access.Scope, string, error) {
	var all, one access.Scope
	var tenants []string
	for _, r := range rs.list {
		for _, value := range valuesOf(claims, r.claim) {
			if r.value != anyValue && r.value != value {
				continue
			}
			tenant := r.tenant
			if tenant == anyValue {
				if tenant = value; !bound.Name(tenant) {
					continue
				}
			}
			if tenant == "" {
				all |= r.scopes
				continue
			}
			one |= r.scopes
			if !slices.Contains(tenants, tenant) {
				tenants = append(tenants, tenant)
			}
		}
	}
	switch {
	case all != 0:
		return all, "", nil
	case len(tenants) == 1:
		return one, tenants[0], nil
	case len(tenants) > 1:
		return 0, "", refuse("Your account has rights for %d tenants, and a session reaches one of them or all. Ask the administrator of this service to change the rules.", len(tenants))
	default:
		return 0, "", refuse("Your account is known, but has no rights here. Ask the administrator of this service for rights.")
	}
}

// valuesMax is the maximum number of values of one claim that are read.
const valuesMax = 1000

// valuesOf returns the values of a claim as texts. It returns no value of a verifiable claim unless the provider has
// verified this one value.
func valuesOf(claims map[string]any, name string) []string {
	if slices.Contains(verifiable, name) {
		_, single := claims[name].(string)
		if verified := claims[name+verifiedSuffix]; !single || verified != true && verified != "true" {
			return nil
		}
	}
	text := func(v any) (string, bool) {
		switch v := v.(type) {
		case string:
			return v, v != ""
		case bool:
			return strconv.FormatBool(v), true
		case float64:
			return strconv.FormatFloat(v, 'f', -1, 64), true
		}
		return "", false
	}
	list, isList := claims[name].([]any)
	if !isList {
		list = []any{claims[name]}
	}
	var out []string
	for _, v := range list[:min(len(list), valuesMax)] {
		if s, ok := text(v); ok {
			out = append(out, s)
		}
	}
	return out
}
