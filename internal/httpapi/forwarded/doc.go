// Package forwarded reads the requests that gateways forward for a decision, and writes refusals in the form that
// each gateway needs. It does not decide about requests.
//
// # Terms
//
//   - gateway: a proxy that delays a request of its client and asks the API whether the request may pass.
//   - forwarded request: the request that may pass or not, described by its method and URI.
//   - trusted proxy: a peer whose headers with client addresses are believed.
//
// # Invariants
//
//  1. A header of a client cannot pass for a header of its gateway: a header that may appear once is refused if it
//     appears twice, and unknown X-Quota headers are refused.
//  2. If every server treats several spellings of a path as the same path, they give one route. See route.FromURI.
package forwarded
