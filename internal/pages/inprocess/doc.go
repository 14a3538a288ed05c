// Package inprocess calls the API's handler directly in this process, without a network connection. The HTML pages of
// this service use it.
//
// # Terms
//
//   - sender: the browser's request for a page. The API treats the address of this request as the address of the
//     caller.
//   - caller: the identity with which a page calls the API. It is the secret of an API key or a made-up key. The API
//     authenticates the secret as usual.
//   - made-up key: a key that the page creates for a person who signed in at an identity provider, or for a link to the
//     pages of one tenant.
//
// # Invariants
//
//  1. A made-up key is passed in the context of the call. No header and no other data that a client sends can contain
//     such a key.
//  2. A call with a made-up key has no Authorization header, so the API uses no other key for this call.
//
// # Clock, concurrency, failure
//
// The client's timeout bounds each call. A client is used for one page only.
package inprocess
