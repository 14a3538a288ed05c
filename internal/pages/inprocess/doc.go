// Package inprocess calls the API's handler in this process, for the pages of this service.
//
// # Terms
//
//   - sender: the request for a page. The API treats its address as the address of the caller.
//   - caller: the identity with which a page calls the API. Either it is a secret, which the API authenticates as
//     usual, or it is a made-up key, which the page creates from a session. Such a session belongs to a person who
//     signed in with an identity provider, or to a link to one tenant's page.
//
// # Invariants
//
//  1. A made-up key is passed in the context of the call. No header and no other data of a connection can contain
//     such a key.
//  2. A call with a made-up key has no Authorization header, so the browser's headers never reach the API's
//     authentication.
//
// # Clock, concurrency, failure
//
// The client's timeout bounds each call. A client serves one page.
package inprocess
