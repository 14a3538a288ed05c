// Package portal serves the page on which the people of one tenant see what it has and uses. It is opened by a link, and may be shown inside a page
// of the operator's.
//
// # Terms
//
//   - link: see package link. Its secret is exchanged for a cookie that is sent to the pages of this link only.
//   - visit: one request for a page, with its link and a client of the API that may read the tenant of the link.
//   - part: a piece of a page that stands for one question to the API, or for its failure.
//
// # Invariants
//
//  1. Everything shown comes from the API's handler, in this process, with a key that has the scope read and is bound to the tenant of the link. So
//     no page shows another tenant, whatever its path or query says. Nothing is changed.
//  2. Each question asks PostgreSQL for the link again: an ended link shows nothing more.
//  3. The secret of a link is in the path of one request only, which answers with a cookie and leads to a path without it. It is not logged.
//  4. No page contains or loads a script, style or picture that is not from here. The Content-Security-Policy refuses inline ones, forms, and frames of
//     other origins than the operator's.
//  5. Ids of grants, keys and operations, reasons and metadata are the operator's own, and not shown.
//
// # Clock, concurrency, failure
//
// Times are those of the API's answers, in the tenant's zone, which is said. Visits share nothing that changes. A part that cannot be read says so, and
// the others are shown.
package portal
