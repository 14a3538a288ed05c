// Package inprocess calls the API's handler in this process, for pages that are made here.
//
// # Terms
//
//   - sender: the request for a page, whose address the API takes for that of its caller.
//   - caller: what a page calls the API as. It is either a secret, which the API authenticates as it does any other,
//     or a key that the page has made up from a session. Such a session is that of a person who came from an identity provider, or of a link to
//     one tenant's page.
//
// # Invariants
//
//  1. A made-up key travels in the context of the call. No header and nothing else that comes over a connection can carry one.
//  2. Such a call has no Authorization header, so what a browser sends never reaches the API.
//
// # Clock, concurrency, failure
//
// A call has the time limit of the client. A client serves one page.
package inprocess
