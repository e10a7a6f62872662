# frifs: `make help` lists the targets. Only Go (see go.mod) is needed; tests use more where it is there.

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS  := -s -w -X main.version=$(VERSION)
LINT     := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZTIME ?= 10m
SOAK     ?= 6m
BENCH    ?= .
BENCHTIME ?= 1s
# PKG selects packages for test and bench, for example `make test PKG=./fri`.
# (The go command leaves folders called testdata out of ./..., even if they hold a package.)
PKG      ?= ./... ./internal/testdata

.DEFAULT_GOAL := help
.PHONY: help build install demo test test-matrix soak race lint bench fuzz proto fmt venv clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

build: ## compile bin/frifs
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/frifs ./cmd/frifs

install: ## compile frifs into $(go env GOBIN), or GOPATH/bin
	CGO_ENABLED=0 $(GO) install -trimpath -ldflags '$(LDFLAGS)' ./cmd/frifs

demo: build ## mount the embedded sample dataset, show a tour, unmount again
	bin/frifs demo

test: venv ## all tests; mounts and Python clients are used where they are there
	$(GO) test -timeout 30m $(PKG)

test-matrix: venv ## official Lance releases 0.39 to 14 on remapped tables of every type, version and history (half an hour)
	@integration/venv.sh 12.0.0 7.1.0 4.0.2 1.0.4 0.39.0 lancedb node
	FRIFS_MATRIX=all $(GO) test -count=1 -v -timeout 120m -run 'Remapped|Untranslated|ExportIsADataset|CopiesAreEqual|LanceDB|Frames' ./integration

soak: venv ## official Lance writes a table for SOAK (6m) while eight readers compare what a mount shows of it
	FRIFS_SOAK=$(SOAK) $(GO) test -count=1 -v -timeout 0 -run 'TestSoak|TestLive' ./integration

race: ## all tests but integration/, with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race -timeout 30m $$($(GO) list $(PKG) | grep -v /integration)

lint: ## go vet, gofmt and golangci-lint with .golangci.yml
	$(GO) vet ./...
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not gofmt-ed: $$out"; exit 1; fi
	$(GO) run $(LINT) run ./... ./internal/testdata

fmt: ## gofmt everything
	gofmt -w $$(git ls-files '*.go')

bench: ## the benchmarks behind docs/PERFORMANCE.md; BENCH=regexp and PKG=./path narrow them down
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem -timeout 60m $(PKG)

fuzz: ## every fuzz target for FUZZTIME (10m) in all
	.ci/fuzz $(FUZZTIME)

proto: ## regenerate internal/pb from its .proto files (needs protoc)
	$(GO) generate ./internal/pb

venv: ## the Python clients for the tests, in integration/.venv
	@integration/venv.sh

clean: ## remove what the other targets made
	rm -rf bin dist integration/.venv integration/.venv-* integration/node/node_modules
	rm -rf "$${TMPDIR:-/tmp}"/frifs-testdata-$$(id -u)-*
