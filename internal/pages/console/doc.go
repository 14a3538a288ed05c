// Package console serves HTML pages for browsers. On these pages, people see, understand and correct the data of the
// ledger.
//
// # Terms
//
//   - page: an HTML document for a person. It shows all its data without scripts. htmx replaces sections of the page,
//     and uPlot draws charts from the tables of the page.
//   - call: one request for a page. It has the session of the person who sends it, and an API client that uses the
//     session's key.
//   - correction: a change that an administrator makes in three steps. The steps are a form, a preview of the changes
//     (a dry run), and the change itself.
//   - stream: server-sent events with which the browser replaces a section of a page, while the page's tab is
//     visible.
//   - kept form: a form that was sent after its session had ended. Its fields are kept during the sign-in and shown
//     again afterwards.
//
// # Invariants
//
//  1. The pages read and change data only through the API's handler, in this process. They use the key of the person
//     who signed in, so they can do exactly what the API permits that key. For each change, the audit log names the
//     key.
//  2. A page loads only scripts, styles and pictures of this program. It contains no inline scripts or styles. The
//     Content-Security-Policy also forbids them.
//  3. A request that changes data is a POST from a page of this origin. It contains the token of the session.
//  4. A form of a correction has the same idempotency key at all its steps. If it is sent twice, it changes data only
//     once. The API has no idempotency keys for webhooks, so the console stores the keys of their forms for a day.
//     While Redis answers, all instances share these keys. Otherwise each instance stores its own keys.
//  5. The number of streams and the time of each stream are bounded. A stream ends when its session ends or the
//     instance stops.
//
// # Clock, concurrency, failure
//
// A page shows the times in the API's answers, in the tenant's zone or in UTC, always with the name of the zone.
// Calls share no data that changes. If a page needs several answers of the API and one call fails, the page shows the
// error instead of that answer. An error page says whether something was changed.
package console
