// Package jobs runs a bounded number of long jobs in the background of a process, and ends them with it.
package jobs
