// Package pilot is hob's built-in engine: a small, real, deterministic text
// model behind the OpenAI-style routes, in a process shape like the big engines'.
package pilot
