// Package proven says which connections have shown a right key, an open session or an open link.
//
// # Terms
//
//   - visitor: the client at the other end of a connection. A visitor is known once it has shown something right.
//
// # Invariants
//
//  1. A visitor that is known stays known as long as its connection is open.
//  2. The answer to a visitor that is not known closes its connection, if the handler calls Doubt. So strangers cannot
//     hold connections.
//
// # Clock, concurrency, failure
//
// The package uses no clock. All functions may be called from any goroutine. A context without a visitor counts as one
// of an unknown visitor.
package proven
