// Package portal serves the pages on which people of a tenant see the tenant's units and use. People open the pages
// by a link. The operator of the service may show the pages in a frame on its own site.
//
// # Terms
//
//   - link: a secret URL for the pages of one tenant, see package link. The service exchanges the link's secret for a
//     cookie, which browsers send only to the pages of this link.
//   - visit: one request for a page, with its link and an API client that may read the tenant of the link.
//   - part: a section of a page that shows the answer to one call of the API, or its failure.
//
// # Invariants
//
//  1. The pages read data only through the API's handler, in this process. Their key has the scope read and is bound
//     to the tenant of the link. So no path and no query can show another tenant, and no page changes data.
//  2. Each request reads the link from PostgreSQL again. After a link has ended, its pages show no data.
//  3. Only the first request has the secret of the link in its path. The answer sets a cookie, and leads the browser
//     to a path without the secret. The secret is not logged.
//  4. A page loads only scripts, styles and pictures of this program. The Content-Security-Policy forbids inline
//     scripts, inline styles and forms. Only the sites that the operator has configured may show the pages in a frame.
//  5. The pages show no reasons, no metadata, and no ids of grants, keys or operations, because these data belong to
//     the operator.
//
// # Clock, concurrency, failure
//
// A page shows the times in the API's answers in the tenant's zone, and names the zone. Visits share no data that
// changes. If a part cannot be read, the page says so and shows the other parts.
package portal
