// Package gpu reads how much GPU memory each process holds.
package gpu
