# hob: build, test and show. `make demo` and `make test` set up what they need.

PREFIX  ?= /usr/local
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  = -s -w -X main.version=$(VERSION)
TOOLS    = $(CURDIR)/.tools
LINT     = $(TOOLS)/golangci-lint-$(LINT_VERSION)

# The same versions everywhere; raise them on purpose.
LINT_VERSION = v2.15.0

.PHONY: all help build install setup setup-test test demo demo-ollama bench lint cross soak clean

all: build

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' Makefile

build: ## bin/hob
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/hob ./cmd/hob

install: build ## into PREFIX/bin
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 0755 bin/hob '$(DESTDIR)$(PREFIX)/bin/hob'

setup:
	@.ci/setup tmux=tmux

setup-test:
	@.ci/setup tmux=tmux gcc=gcc g++=g++ =libc6-dev ps=procps curl=curl =python3 =python3-setproctitle

# The race detector lets every process sleep for a second at its end, and the
# tests start many: not here (https://go.dev/doc/articles/race_detector).
test: setup-test ## everything with the race detector
	@examples/ollama/install.sh >/dev/null # here, so that no test's timeout has to cover a build
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 go test -race -timeout 20m ./...

demo: setup build ## a recipe, end to end, with the built-in engine
	examples/demo.sh

demo-ollama: setup build ## the same with a real Ollama and a tiny real model
	examples/ollama/demo.sh

bench: setup-test build ## ratios, each measured in one run
	go test -run '^$$' -bench . -benchtime 1x -timeout 30m ./...

soak: setup-test ## longer: every cut at every turn, 300 random ones, 500 steps of ten hobs at once, 100,000 schedules
	HOB_SOAK=1 HOB_SCHEDULES=100000 go test -timeout 6h ./sweep ./cmd/hob/e2e

lint: $(LINT) ## gofmt, go vet, golangci-lint
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'run gofmt -w on these'; exit 1; }
	go vet ./...
	$(LINT) run ./...

$(LINT):
	GOBIN='$(TOOLS)' go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv '$(TOOLS)/golangci-lint' '$(LINT)'

cross: ## every system that hob claims to build on; its tests are compiled too
	@for os in linux/arm64 linux/386 darwin/arm64 freebsd/amd64 openbsd/amd64 windows/amd64; do \
	  echo "build and vet $$os"; \
	  CGO_ENABLED=0 GOOS=$${os%/*} GOARCH=$${os#*/} go build ./... || exit 1; \
	  CGO_ENABLED=0 GOOS=$${os%/*} GOARCH=$${os#*/} go vet ./... || exit 1; \
	done

clean: ## takes bin and .tools away
	rm -rf bin .tools
