// Package e2e holds the tests that drive the built hob on real tmux servers with
// real processes: every way for a session to end, every kind of child that tries
// to escape it, the strangers around it, and a hob that is killed at any step.
// There is nothing in it but tests.
package e2e
