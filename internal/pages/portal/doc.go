// Package portal serves the pages on which the people of one tenant see the tenant's units and use. A link opens the
// pages. The operator may show them in a frame of its own page.
//
// # Terms
//
//   - link: see package link. Its secret is exchanged for a cookie. Browsers send the cookie only to the pages of
//     this link.
//   - visit: one request for a page, with its link and an API client that may read the tenant of the link.
//   - part: a section of a page that shows the answer to one call of the API, or its failure.
//
// # Invariants
//
//  1. The pages read data only through the API's handler, in this process. They use a key that has the scope read and
//     is bound to the tenant of the link. So no path and no query can show another tenant, and no page changes
//     anything.
//  2. Each request reads the link from PostgreSQL again. After a link has ended, its pages show nothing.
//  3. Only one request has the secret of a link in its path. Its answer sets a cookie and leads to a path without the
//     secret. The secret is not logged.
//  4. A page loads only scripts, styles and pictures of this program. The Content-Security-Policy forbids inline
//     scripts and styles, forms, and frames in pages of other origins than the operator's.
//  5. Ids of grants, keys and operations, reasons and metadata belong to the operator. The pages do not show them.
//
// # Clock, concurrency, failure
//
// Times are those of the API's answers, in the tenant's zone, which the page names. Visits share no data that
// changes. If a part cannot be read, the page says so and shows the other parts.
package portal
