// Package quotaecho charges each request of an echo server (v4) to its tenant. It imports echo, client and
// client/quotahttp. It has the terms and invariants of quotahttp.
//
//	quota, err := quotaecho.New(c, quotaecho.Options{Rules: quotaecho.Rules{Meter: "api_calls", Tenant: tenantOf}})
//	e.Use(quota)
//
// # Clock, concurrency, failure
//
// As in quotahttp. An error of this backend is returned, so that echo's error handler answers 500 and logs it.
package quotaecho
