// Package route has the parts of limits that concern routes: patterns, forms of spelling, and the route of a URI. A
// route is the path of a request, or a name that a caller gives to the request.
package route
