package answers

import (
	"time"

	"github.com/quotasvc/quotasvc/client"
	"github.com/quotasvc/quotasvc/internal/catalog"
	"github.com/quotasvc/quotasvc/internal/catalog/override"
	"github.com/quotasvc/quotasvc/internal/gate"
	"github.com/quotasvc/quotasvc/internal/kit/address"
	"github.com/quotasvc/quotasvc/internal/ratelimit/rule"
)

// Override returns an override of a limit in the contract's type.
func Override(o *override.Override) client.LimitOverride {
	return client.LimitOverride{
		Rule: o.Rule, Tenant: o.Tenant, Subject: o.Subject, Rate: o.Rate, Burst: o.Burst, ExpiresAt: o.ExpiresAt, CreatedAt: o.CreatedAt,
		UpdatedAt: o.UpdatedAt,
	}
}

// Limit returns a limit of the catalogue in the contract's type.
func Limit(l *catalog.Limit) client.Limit {
	return client.Limit{
		Rule: l.Rule, Per: Map(l.Per, perOf), Match: matchOf(l.Match), Kind: client.LimitKind(l.Kind), Rate: l.Rate, Burst: l.Burst, Debt: l.Debt,
		Cost: l.Cost, Costs: costsOf(l.Costs), CostBy: client.LimitCostBy(l.CostBy), Replaces: l.Replaces, Timezone: l.Timezone,
		Mode: client.LimitMode(l.Mode), OnBackendError: client.OnBackendError(l.OnBackendError), RegionShare: l.RegionShare,
		Counts: client.LimitCounts(l.Counts), RouteKey: client.LimitRouteKey(l.RouteKey), Normalize: normalizeOf(l.Normalize), IPPrefix: prefixOf(l.IPPrefix),
		Ban:       banOf(l.Ban),
		CreatedAt: l.CreatedAt, UpdatedAt: l.UpdatedAt,
	}
}

// PlanLimit returns a limit that belongs to a plan, in the contract's type.
func PlanLimit(l *catalog.Limit) client.PlanLimit {
	return client.PlanLimit{
		Rule: l.Rule, Per: Map(l.Per, perOf), Match: matchOf(l.Match), Kind: client.LimitKind(l.Kind), Rate: l.Rate, Burst: l.Burst, Debt: l.Debt,
		Cost: l.Cost, Costs: costsOf(l.Costs), CostBy: client.LimitCostBy(l.CostBy), Replaces: l.Replaces, Timezone: l.Timezone,
		Mode: client.LimitMode(l.Mode), OnBackendError: client.OnBackendError(l.OnBackendError), RegionShare: l.RegionShare,
		Counts: client.LimitCounts(l.Counts), RouteKey: client.LimitRouteKey(l.RouteKey), Normalize: normalizeOf(l.Normalize), IPPrefix: prefixOf(l.IPPrefix),
		Ban: banOf(l.Ban),
	}
}

// normalizeOf returns the forms in which a path is normalized. It returns nil if the limit has no such list. An empty
// list is returned as an empty list: it means that nothing is normalized.
func normalizeOf(forms []string) *client.LimitNormalize {
	if forms == nil {
		return nil
	}
	return &forms
}

func banOf(b catalog.Ban) client.LimitBan {
	return client.LimitBan{After: b.After, Within: b.Within, For: b.For}
}

func prefixOf(p address.Prefix) client.LimitIPPrefix {
	return client.LimitIPPrefix{V4: int64(p.V4), V6: int64(p.V6)}
}

func costsOf(costs []catalog.RouteCost) client.LimitCosts {
	if len(costs) == 0 {
		return nil
	}
	return Map(costs, func(c *catalog.RouteCost) client.LimitCost { return client.LimitCost{Route: c.Route, Cost: c.Cost} })
}

func perOf(per *string) client.LimitPer { return client.LimitPer(*per) }

func matchOf(m catalog.Match) client.LimitMatch {
	return client.LimitMatch{Method: m.Method, Route: m.Route, Meter: m.Meter, Plan: m.Plan, Tenant: m.Tenant}
}

// Explanation returns the explanation of a limit in the contract's type.
func Explanation(e *gate.LimitExplanation) client.LimitExplanation {
	out := client.LimitExplanation{
		Summary: e.Summary, Capacity: e.Capacity, UnitsPerToken: e.Units, UnitsPerMicrosecond: e.Num, FirstSecond: e.InAnySecond,
		MostPerPeriod: e.PeriodMost, PerSecond: perSecond(e.Sustained), BytesPerBucket: e.KeyBytes,
		KeptSeconds: seconds(e.MaxTTL), LeaseTTLSeconds: seconds(e.LeaseTTL),
	}
	if !e.WindowStart.IsZero() {
		out.Window.Start, out.Window.End = e.WindowStart, e.WindowEnd
	}
	if e.Override != nil {
		out.Override = Override(e.Override)
	}
	away := &out.RedisAway
	away.OnBackendError, away.Replicas = client.OnBackendError(e.Policy.String()), int64(e.Replicas)
	if e.Policy == rule.BackendLocalShare {
		away.Holders, away.CapacityEach, away.PerSecondEach = e.Holders, e.Share, perSecond(e.ShareRate)
	}
	return out
}

// perSecond returns a rate per second. It returns 0 for the zero rate.
func perSecond(r rule.Rate) float64 {
	if r.Period == 0 {
		return 0
	}
	return float64(r.Count) / r.Period.Seconds()
}

// TopItem returns one bucket of the list of the fullest buckets.
func TopItem(b *gate.UsedBucket) client.LimitTopItem {
	return client.LimitTopItem{Tenant: b.Tenant, Subject: b.Subject, Route: b.Route, IP: b.IP, Bucket: b.Bucket, Used: b.Used, Limit: b.Limit}
}

// seconds returns a duration in whole seconds, rounded up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
