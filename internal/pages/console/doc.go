// Package console serves the pages with which people see, understand and correct what the ledger has: HTML, made here, for browsers.
//
// # Terms
//
//   - page: an answer for a person. It is whole without scripts; htmx exchanges parts of it, and uPlot draws what a table on it says.
//   - call: one request, with the session of the person who sends it and a client of the API that has the session's key.
//   - correction: something that an administrator changes, in three steps: a form, a preview of what it would do (a dry run), the change.
//   - stream: server-sent events that exchange a part of a page while its tab is seen.
//   - kept form: a form whose session ended before it was sent. Its fields are kept through the sign-in and shown again.
//
// # Invariants
//
//  1. Everything shown and changed goes through the API's handler, in this process, with the key that the person signed in with. So the console
//     can do what the API can do with that key, and nothing more; changes are audited as the key's.
//  2. No page contains or loads a script, style, font or picture that is not in this program. The Content-Security-Policy refuses inline ones.
//  3. A request that changes something is a POST from a page of this origin with the session's token.
//  4. A form of a correction has one idempotency key from its first step to its last. Sent twice, it changes things once. Forms of webhooks, which have no
//     such key in the API, are remembered for a day: by all instances while Redis answers, else by each.
//  5. Streams are bounded in number and time. One ends with its session, and when the instance stops.
//
// # Clock, concurrency, failure
//
// Times are those of the API's answers, shown in the tenant's zone or in UTC, which is said beside each. Calls share nothing that changes. A page of
// several answers shows those that it got, and in place of another one what went wrong. An error page says whether something was changed.
package console
