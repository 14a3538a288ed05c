// Package limitheaders writes the headers that show rate limits to clients: RateLimit-Policy and RateLimit
// (structured fields, RFC 9651), Retry-After, and older sets of headers if they are configured.
//
// # Terms
//
//   - policy: the size of a limit: q and w.
//   - state: the remainder of a limit: r and t.
//   - most restrictive: the limit that will refuse a request first. Answers name it first.
//
// # Clock
//
// t, Reset and Retry-After are differences from the instant of the decision. Only the legacy set x-ratelimit-epoch
// has a time of day, by the process's clock.
package limitheaders
