// Package sim is a simulated kernel behind identity.Host: pids that are reused,
// forks, execs, exits, reparenting, subreapers, sessions, permissions and hidden
// rows, driven by a seed. hob's real decision code runs on it in tests.
package sim
