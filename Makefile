# Each target with a "## text" is listed by make help.
GO      ?= go
BIN     := bin/tapedeck
GOFILES := $(shell git ls-files '*.go' 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help build test thorough race vet lint python conformance copilotkit crash postgres stress real-agents bench fuzz docs api ui ui-check ui-e2e ui-firefox packages clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the program into bin/
	$(GO) build -trimpath -o $(BIN) ./cmd/tapedeck

# The files of tests are in memory if there is room: most tests wait for the disk. The
# targets crash, postgres and stress use the disk.
TESTTMP = $(shell d=/dev/shm/tapedeck-test-$$(id -u); [ "$$(df -k --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 8000000 ] 2>/dev/null && mkdir -p -m 755 $$d && [ -O $$d ] && echo TMPDIR=$$d GOTMPDIR=$${TMPDIR:-/tmp})

test: vet ## run vet and all tests (fetches Go modules on first use)
	$(TESTTMP) $(GO) test -p 4 -timeout 30m ./... # most of them wait for a disk or a process
	cd adk && $(GO) test ./...

thorough: ## run the suites of stores with every random test at length (takes an hour)
	$(GO) test ./store/memory ./store/sqlite ./store/tail ./store/postgres -timeout 3h -args -thorough -rapid.checks=1000

race: ## run the tests with the race detector (long tests repeat less often), and call all verbs of a program that has it
	$(TESTTMP) $(GO) test -race -short -timeout 30m $$($(GO) list ./... | grep -v -e '/tapedeck/test/' -e '/cmd/tapedeck$$') # those run the program in processes of their own
	cd adk && $(GO) test -race -short ./...
	$(GO) build -race -trimpath -o $(BIN)-race ./cmd/tapedeck
	TAPEDECK_BIN=$(abspath $(BIN))-race $(GO) test ./test/stress ./test/protocols -count=1 -timeout 20m

vet: ## check the formatting and run go vet
	@unformatted=$$(gofmt -l $(GOFILES)); if [ -n "$$unformatted" ]; then echo "not formatted:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	cd adk && $(GO) vet ./...

lint: ## run golangci-lint (its first build takes some minutes)
	$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run
	cd adk && $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run

conformance: build ## run the official Durable Streams suite, the official clients of MCP, A2A, AG-UI, CopilotKit and the AI SDK, and the clients of four other designs (needs Node 20 and npm)
	cd conformance/durable && npm ci --no-audit --no-fund --silent && node run.mjs --binary $(abspath $(BIN))
	cd conformance/mcp && npm ci --no-audit --no-fund --silent && node run.mjs --binary $(abspath $(BIN))
	cd conformance/source000 && npm ci --no-audit --no-fund --silent && node run.mjs --binary $(abspath $(BIN))
	cd conformance/source002 && node run.mjs --binary $(abspath $(BIN))
	cd conformance/source003 && npm ci --no-audit --no-fund --silent && node run.mjs --binary $(abspath $(BIN))
	cd conformance/source004 && node run.mjs --binary $(abspath $(BIN))
	cd conformance/a2a && npm ci --no-audit --no-fund --silent && node run.mjs --binary $(abspath $(BIN))
	TAPEDECK_BIN=$(abspath $(BIN)) $(GO) test ./test/a2a -count=1
	cd conformance/agui && npm ci --no-audit --no-fund --silent && node run.mjs --binary $(abspath $(BIN))
	cd conformance/aisdk && npm ci --no-audit --no-fund --silent && node run.mjs --binary $(abspath $(BIN))

python: build ## test the Python client and examples/python with the real program (needs Python 3.11, installs nothing)
	cd clients/python && TAPEDECK_BIN=$(abspath $(BIN)) PYTHONDONTWRITEBYTECODE=1 python3 -W error::SyntaxWarning -m unittest
	cd examples/python && TAPEDECK_BIN=$(abspath $(BIN)) PYTHONPATH=$(abspath clients/python) PYTHONDONTWRITEBYTECODE=1 python3 -W error::SyntaxWarning -m unittest

copilotkit: build ## test CopilotKit's React chat in a real browser (pinned npm packages, 530 MB; needs Node 20, npm and chromium)
	cd conformance/copilotkit && npm ci --ignore-scripts --no-audit --no-fund --silent && node run.mjs --binary $(abspath $(BIN))

crash: build ## kill the server under load, and cut the power of its disk, 50 times each (ROUNDS=n for another number)
	$(GO) test ./test/crash -run 'TestKill|TestPowerCut|TestFailedSync|TestLyingDisk' -count=1 -v -timeout 5h -args -rounds=$(or $(ROUNDS),50) -cuts=$(or $(ROUNDS),50) -workflow-kills=$(or $(ROUNDS),50)

postgres: build ## run the tests of all protocols with the sessions in PostgreSQL, also through a server that forwards, and the suite of stores over three of them (needs initdb and postgres)
	TAPEDECK_TEST_STORE=postgres TAPEDECK_BIN=$(abspath $(BIN)) $(GO) test ./test/protocols -count=1 -timeout 20m
	TAPEDECK_TEST_STORE=cluster TAPEDECK_BIN=$(abspath $(BIN)) $(GO) test ./test/protocols -count=1 -timeout 20m
	TAPEDECK_BIN=$(abspath $(BIN)) $(GO) test ./test/crash -run Postgres -count=1 -timeout 20m
	$(GO) test ./store/shards -run TestPostgres -count=1 -timeout 20m -args -clusters

stress: build ## call all verbs of the real program at once for 30 seconds, and look for leaks for as long (DURATION=10m for another time)
	TAPEDECK_BIN=$(abspath $(BIN)) $(GO) test ./test/stress -count=1 -v -timeout 50h -args -stress.duration=$(or $(DURATION),30s)

real-agents: build ## install real coding agents (pinned npm packages, 1.7 GB) and run them against a scripted model
	# not npm ci: it refuses a lock file without the binaries of other systems
	cd conformance/agents && npm install --no-save --no-audit --no-fund --silent
	TAPEDECK_BIN=$(abspath $(BIN)) $(GO) test ./test/agents -count=1 -v -timeout 40m -args -agents=$(abspath conformance/agents/node_modules/.bin)

bench: build ## compare with a reference server and write docs/benchmarks.md (needs Node 20 and npm)
	# not npm ci: it refuses a lock file without the binaries of other systems
	cd bench/rival && npm install --no-save --no-audit --no-fund --silent
	$(GO) run ./bench

fuzz: ## fuzz every parser for a minute each
	@for p in $$(grep -rl '^func Fuzz' --include=*_test.go . | xargs -n1 dirname | sort -u); do \
	  for f in $$(grep -ho '^func Fuzz[A-Za-z]*' $$p/*_test.go | cut -c6-); do \
	    echo "== $$p $$f"; $(GO) test $$p -run '^$$' -fuzz "^$$f$$" -fuzztime $(or $(FUZZTIME),1m) || exit 1; done; done

api: ## write docs/openapi.json and packages/client/src/wire.ts from the Go types of the HTTP API
	$(GO) run ./internal/apischema/cmd

ui: ## build the user interface from ui/ into web/dist (needs Node 20 and npm)
	npm ci --no-audit --no-fund --silent && npm run --silent -w ui build

ui-check: ## check types, style and tests of the screen (its fold on LOGS=2000 random logs), its lock file, its types of the HTTP API, and that web/dist is what it builds
	$(GO) run ./internal/apischema/cmd -check
	npm ci --no-audit --no-fund --silent && npm run --silent lock && npm run --silent typecheck && npm run --silent lint && LOGS=$(or $(LOGS),2000) npm run --silent test
	cp -r web/dist node_modules/.committed && trap 'rm -rf node_modules/.committed' EXIT && \
	  npm run --silent -w ui build && diff -r node_modules/.committed web/dist

ui-e2e: build ## test the user interface in a real browser with the real program (needs Node 20, npm and chromium)
	npm ci --no-audit --no-fund --silent && cd ui && TAPEDECK=$(abspath $(BIN)) npm run --silent e2e

ui-firefox: build ## test the main ways through the user interface in Firefox (needs Node 20, npm and firefox-esr)
	npm ci --no-audit --no-fund --silent && cd ui && TAPEDECK=$(abspath $(BIN)) node e2e/firefox.mjs

packages: build ## pack the npm packages, and check the tarballs in a project of its own, their sizes, docs/typescript.md and examples/ (needs Node 20, npm and chromium)
	npm ci --no-audit --no-fund --silent --ignore-scripts && npm run --silent -w packages/client build && npm run --silent -w packages/react build && npm run --silent -w packages/player build && npm run --silent -w packages/ai-sdk build
	cd examples/react && TAPEDECK_BIN=$(abspath $(BIN)) npm run --silent check
	node examples/player/check.mjs --binary $(abspath $(BIN))
	node examples/ai-sdk/check/check.mjs --binary $(abspath $(BIN))
	node test/packages/run.mjs --binary $(abspath $(BIN))

clean: ## remove build results
	rm -rf bin conformance/*/node_modules bench/rival/node_modules node_modules packages/*/dist packages/*/LICENSE
