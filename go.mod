module hob

go 1.26.0

require golang.org/x/sys v0.50.0

require (
	github.com/GianlucaP106/gotmux v0.5.0
	github.com/creack/pty v1.1.24
	pgregory.net/rapid v1.3.0
)
