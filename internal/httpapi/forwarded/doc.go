// Package forwarded reads the requests that gateways ask about, and writes refusals in the form that each gateway needs. It decides nothing.
//
// # Terms
//
//   - gateway: a proxy that holds back a request of its client and asks whether it may pass.
//   - forwarded request: the request that a gateway asks about, with its method and URI.
//   - trusted proxy: a peer whose statements about client addresses count.
//
// # Invariants
//
//  1. What a client can write is not taken for what its gateway says: a header that may appear once is refused if it appears twice, and
//     unknown X-Quota headers are refused.
//  2. All spellings of a path that every server takes for one give one route. See route.FromURI.
package forwarded
