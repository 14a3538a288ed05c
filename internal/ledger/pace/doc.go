// Package pace says how much of a large job one transaction takes, and how long the job rests before the next one, so that requests find PostgreSQL idle.
// Nothing here waits for PostgreSQL: the caller asks it, and says what it answered.
package pace
