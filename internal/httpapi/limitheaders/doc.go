// Package limitheaders writes the headers that show rate limits to clients: RateLimit-Policy and RateLimit
// (structured fields, RFC 9651), Retry-After, and older sets of headers if they are configured.
//
// # Terms
//
//   - policy: the size of a limit. It has the parameters q (tokens) and w (seconds).
//   - state: the present state of a limit. It has the parameters r (remaining tokens) and t (seconds until more are
//     available).
//   - most restrictive: the limit that will refuse a request first. A header names it before the other limits.
//
// # Clock
//
// t, Reset and Retry-After are differences from the instant of the decision. Only the legacy set x-ratelimit-epoch
// sends a point in time, by the process's clock.
package limitheaders
