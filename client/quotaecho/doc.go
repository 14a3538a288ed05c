// Package quotaecho charges each request of an echo server (v4) to its tenant. It imports echo, client and
// client/quotahttp. Its terms and invariants are those of quotahttp.
//
//	quota, err := quotaecho.New(c, quotaecho.Options{Rules: quotaecho.Rules{Meter: "api_calls", Tenant: tenantOf}})
//	e.Use(quota)
//
// # Clock, concurrency, failure
//
// The package has the properties of quotahttp. If this backend causes an error, the middleware returns it, so that
// echo's error handler answers 500 and logs the error.
package quotaecho
