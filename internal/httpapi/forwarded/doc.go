// Package forwarded reads the requests that gateways forward for a decision, and writes refusals in the form that
// each gateway needs. It does not decide about requests.
//
// # Terms
//
//   - gateway: a proxy that asks the API whether a client's request may pass, and delays the request until the
//     answer.
//   - forwarded request: this client's request. The gateway sends its method and URI to the API.
//   - trusted proxy: a peer that may name the address of its client in a header.
//
// # Invariants
//
//  1. A client cannot forge a header of its gateway. If a header that may appear once appears twice, the request is
//     refused. Unknown X-Quota headers are refused.
//  2. If every web server treats several spellings of a path as the same path, all these spellings give the same
//     route. See route.FromURI.
package forwarded
