// Package tasks holds the records of runs (store), the life cycle that acts on
// them (manager), the keeper that is each pane's first process, and readiness.
package tasks
