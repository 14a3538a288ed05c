// Package console serves HTML pages for browsers, on which people see, understand and correct the data of the ledger.
//
// # Terms
//
//   - page: an answer for a person. It is complete without scripts. htmx replaces sections of it, and uPlot draws
//     charts of tables on it.
//   - call: one request, with the session of the person who sends it, and with an API client that uses the session's
//     key.
//   - correction: a change by an administrator in three steps: a form, a preview of the changes (a dry run), the
//     change itself.
//   - stream: server-sent events that replace a section of a page while its tab is visible.
//   - kept form: a form that was sent after its session had ended. Its fields are kept during the sign-in and shown
//     again afterwards.
//
// # Invariants
//
//  1. The pages read and change data only through the API's handler, in this process, with the key of the person who
//     signed in. So the console can do exactly what the API permits that key. The audit log names the key for each
//     change.
//  2. A page loads only scripts, styles, fonts and pictures of this program, and contains no inline ones. The
//     Content-Security-Policy forbids inline scripts and styles.
//  3. A request that changes something is a POST from a page of this origin. It contains the token of the session.
//  4. A form of a correction has the same idempotency key from its first step to its last. If it is sent twice, it
//     changes data only once. Forms of webhooks have no idempotency key in the API, so their keys are remembered for
//     a day. While Redis answers, all instances share these keys; otherwise each instance remembers its own.
//  5. Streams are bounded in number and time. A stream ends with its session, and when the instance stops.
//
// # Clock, concurrency, failure
//
// Times are those of the API's answers, in the tenant's zone or in UTC. Each time has its zone. Calls share no data
// that changes. If a page needs several answers and one fails, the page shows the error in the place of that answer.
// An error page says whether something was changed.
package console
