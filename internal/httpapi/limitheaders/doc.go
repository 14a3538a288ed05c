// Package limitheaders writes the headers that tell clients about rate limits: RateLimit-Policy and RateLimit (structured fields, RFC 9651),
// older sets by setting, and Retry-After.
//
// # Terms
//
//   - policy: what a limit allows: q and w.
//   - state: what is left of it: r and t.
//   - most restrictive: the limit that refuses the next request first. Answers name it first.
//
// # Clock
//
// t, Reset and Retry-After are differences to the instant of the decision. Only the legacy set x-ratelimit-epoch has a time of day, by the
// process's clock.
package limitheaders
