# Each target with a "## text" is listed by make help.
ifneq ($(wildcard .git),)
$(shell git config merge.generated.driver >/dev/null || git config merge.generated.driver true) # see .gitattributes
endif
GO        ?= go
# Folders of clones differ: with -trimpath what was built in one serves the next.
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)
BIN       := bin/tapedeck
PROGRAM   := TAPEDECK_BIN=$(abspath $(BIN))
LINT      := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run
NPM       := node_modules/.package-lock.json
# The engine of Chromium without its windows: a check takes 0.6 of the processor time. Only the
# full checks of the screen run in the whole browser.
export CHROMIUM ?= $(or $(wildcard /usr/bin/chromium-headless-shell),/usr/bin/chromium)

.DEFAULT_GOAL := help
.PHONY: help build
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the program into bin/
	$(GO) build -o $(BIN) ./cmd/tapedeck

# The way to land: AGENTS.md. Each name in these lists is a target below.
RULES  := lint types house style generated-api lock
CHECKS := test e2e-gate conformance packages postgres-core ui-test ui-build python
FULL   := race-all e2e test-all packages crash conformance ui-firefox ui-test-long postgres stress ui-build python

.PHONY: gate rules checks full flaky
gate: ## clone HEAD, run .ci/run in the clone, and note the commit if it has passed
	scripts/gate

rules: ## run all cheap rules: lint, types, the house's own, style, generated files
	scripts/run rules

checks: ## run the rules, then the tests of the gate (15 minutes)
	scripts/run rules checks

full: ## run everything there is (an hour), before an issue is closed
	scripts/run rules full

flaky: build ## repeat the tests that docs/rough_edges.md calls flaky fifty times, beside two busy loops
	scripts/flaky

.PHONY: all-rules all-checks all-full
all-rules:  $(addprefix step-,$(RULES))
all-checks: $(addprefix step-,$(CHECKS))
all-full:   $(addprefix step-,$(FULL))
step-%:
	@scripts/step $* '$(MAKE) --no-print-directory $*'
# What several steps need is made once, before them.
$(addprefix step-,types style $(filter ui-% e2e% packages,$(CHECKS) $(FULL))): step-npm
$(addprefix step-,$(CHECKS) $(FULL)): step-build

.PHONY: npm
npm: $(NPM) ## install the npm packages of the lock file
$(NPM): package-lock.json
	npm ci --no-audit --no-fund --loglevel error --ignore-scripts
	@touch $@

# Rules

.PHONY: lint house generated-api types style lock
lint: ## run golangci-lint, with vet and gofmt (its first build takes some minutes)
	@$(LINT); status=$$?; cd adk && $(LINT) && exit $$status

house: ## check which package imports which, the words of the glossary, names, and that web/dist belongs to its sources
	$(GO) test ./internal/house ./web

generated-api: ## check that docs/openapi.json and wire.ts are what make generated writes
	$(GO) run ./internal/apischema/cmd -check

types: $(NPM) ## check the types of the TypeScript packages and of the screen
	@status=0; for p in $(dir $(wildcard packages/*/tsconfig.json examples/*/tsconfig.json ui/tsconfig.json)); do npx tsc --noEmit -p $$p || status=1; done; exit $$status

style: $(NPM) ## check the style of the TypeScript packages and of the screen
	npm run --silent lint

lock: ## check the lock file of the npm packages
	node scripts/lock.mjs

# Generated files

.PHONY: generated
generated: ## write docs/openapi.json, wire.ts, web/dist and the lock file; in a merge, solve their conflicts
	scripts/generated

# Tests in Go
#
# The files of tests are in memory if there is room: most tests wait for the disk. The
# targets crash, postgres and stress use the disk.
TESTTMP = $(shell d=/dev/shm/tapedeck-test-$$(id -u); [ "$$(df -k --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 8000000 ] 2>/dev/null && mkdir -p -m 755 $$d && [ -O $$d ] && echo TMPDIR=$$d GOTMPDIR=$${TMPDIR:-/tmp})

# A test that fails runs a second time, unless more than three fail. scripts/verdict names
# those that passed then. Tests that kill a program, or look at its memory, run once. No result
# comes from go's cache.
GOTEST = $(GO) run gotest.tools/gotestsum@v1.13.0 --format pkgname-and-test-fails --hide-summary skipped --rerun-fails=1 --rerun-fails-max-failures=3 --rerun-fails-report=bin/gate/$@.reruns --packages

# make lint has go vet. Without the tables of a debugger, which no test needs, a test program is
# linked in two thirds of the time.
QUICK := -short -count=1 -vet=off -ldflags=-w -timeout 20m

# Each package is tested once: with the race detector where goroutines are its matter, and
# without it where that takes ten times as long, or where nothing runs beside another.
PLAIN := . ./cmd/... ./payload/... ./order/... ./view/... ./search ./projection ./store/sqlite ./store/tail ./store/postgres \
	./engine/exchange ./protocol/agui ./runner/agui ./runner/workflow/bpmn ./runner/workflow/expression ./internal/apischema ./test/...
# The parts of the stores' suite in which goroutines meet: the detector looks at them too.
CONCURRENT := ^(concurrency|races|observe|faults|producers)$$
ONCE := ./test/crash ./test/memory ./test/stress ./test/migrate

.PHONY: test race test-go test-once test-all race-all
test: race test-go test-once ## run all tests in Go, with fewer random cases than make test-all (fetches Go modules on first use)

race: ## run the tests of the packages whose matter is goroutines, with the race detector
	@mkdir -p bin/gate
	$(TESTTMP) $(GOTEST) "$$($(GO) list ./... | grep -vxF "$$($(GO) list $(PLAIN) ./internal/house)" | tr '\n' ' ')" -- -race $(QUICK)
	$(TESTTMP) $(GO) test -race $(QUICK) -run '^TestStore$$/$(CONCURRENT)' ./store/sqlite ./store/postgres
	$(TESTTMP) $(GO) test -race $(QUICK) -run '^TestStore$$/64/$(CONCURRENT)' ./store/tail

test-go: build ## run the tests of the other packages
	@mkdir -p bin/gate
	$(TESTTMP) $(PROGRAM) $(GOTEST) "$$($(GO) list $(PLAIN) | grep -vxF "$$($(GO) list $(ONCE))" | tr '\n' ' ')" -- -p 4 $(QUICK)
	$(GO) test -count=1 ./store/memory # and without -short, which hides faults between goroutines
	cd adk && $(GO) test -count=1 ./...

test-once: build ## run the tests that kill the program or look at its memory
	$(TESTTMP) $(PROGRAM) $(GO) test $(QUICK) $(ONCE)

test-all: ## run all tests in Go at full length
	$(TESTTMP) $(GO) test -p 4 -count=1 -timeout 30m ./... # most of them wait for a disk or a process
	cd adk && $(GO) test -count=1 ./...

race-all: ## run all tests with the race detector, and call all verbs of a program that has it
	$(TESTTMP) $(GO) test -race -short -count=1 -timeout 60m $$($(GO) list ./... | grep -v '/tapedeck/test/') # those run the program in processes of their own
	cd adk && $(GO) test -race -short -count=1 ./...
	$(GO) build -race -o $(BIN)-race ./cmd/tapedeck
	TAPEDECK_BIN=$(abspath $(BIN))-race $(GO) test ./test/stress ./test/protocols -count=1 -timeout 20m

.PHONY: thorough
thorough: ## run the suites of stores with every random test at length (takes an hour)
	$(GO) test ./store/memory ./store/sqlite ./store/tail ./store/postgres -timeout 3h -args -thorough -rapid.checks=1000

CLIENTS := durable mcp source000 source001 source002 source003 source004 a2a agui aisdk
.PHONY: conformance python $(addprefix conformance-,$(CLIENTS))
conformance: $(addprefix conformance-,$(CLIENTS)) ## run the official Durable Streams suite, the official clients of MCP, A2A, AG-UI, CopilotKit and the AI SDK, and the clients of five other designs

$(addprefix conformance-,$(CLIENTS)): conformance-%: build
	cd conformance/$* && { [ ! -f package-lock.json ] || npm ci --no-audit --no-fund --silent; } && node run.mjs --binary $(abspath $(BIN))

python: build ## test the Python client and examples/python with the real program (needs Python 3.11, installs nothing)
	cd clients/python && TAPEDECK_BIN=$(abspath $(BIN)) PYTHONDONTWRITEBYTECODE=1 python3 -W error::SyntaxWarning -m unittest
	cd examples/python && TAPEDECK_BIN=$(abspath $(BIN)) PYTHONPATH=$(abspath clients/python) PYTHONDONTWRITEBYTECODE=1 python3 -W error::SyntaxWarning -m unittest

copilotkit: build ## test CopilotKit's React chat in a real browser (pinned npm packages, 530 MB; needs Node 20, npm and chromium)
	cd conformance/copilotkit && npm ci --ignore-scripts --no-audit --no-fund --silent && node run.mjs --binary $(abspath $(BIN))

crash: build ## kill the server under load, and cut the power of its disk, 50 times each (ROUNDS=n for another number)
	$(GO) test ./test/crash -run 'TestKill|TestPowerCut|TestFailedSync|TestLyingDisk' -count=1 -v -timeout 5h -args -rounds=$(or $(ROUNDS),50) -cuts=$(or $(ROUNDS),50) -workflow-kills=$(or $(ROUNDS),50)

.PHONY: postgres postgres-core
postgres-core: build ## run the tests of all protocols with the sessions in PostgreSQL
	TAPEDECK_TEST_STORE=postgres $(PROGRAM) $(GO) test ./test/protocols -count=1 -short -timeout 20m

postgres: build ## run the tests of all protocols with the sessions in PostgreSQL, also through a server that forwards, and the suite of stores over three of them (needs initdb and postgres)
	TAPEDECK_TEST_STORE=postgres $(PROGRAM) $(GO) test ./test/protocols -count=1 -timeout 20m
	TAPEDECK_TEST_STORE=cluster $(PROGRAM) $(GO) test ./test/protocols -count=1 -timeout 20m
	$(PROGRAM) $(GO) test ./test/crash -run Postgres -count=1 -timeout 20m
	$(GO) test ./store/shards -run TestPostgres -count=1 -timeout 20m -args -clusters

stress: build ## call all verbs of the real program at once for 30 seconds, and look for leaks for as long (DURATION=10m for another time)
	$(PROGRAM) $(GO) test ./test/stress -count=1 -v -timeout 50h -args -stress.duration=$(or $(DURATION),30s)

real-agents: build ## install real coding agents (pinned npm packages, 1.7 GB) and run them against a scripted model
	# not npm ci: it refuses a lock file without the binaries of other systems
	cd conformance/agents && npm install --no-save --no-audit --no-fund --silent
	$(PROGRAM) $(GO) test ./test/agents -count=1 -v -timeout 40m -args -agents=$(abspath conformance/agents/node_modules/.bin)

bench: build ## compare with a reference server and write docs/benchmarks.md (needs Node 20 and npm)
	# not npm ci: it refuses a lock file without the binaries of other systems
	cd bench/rival && npm install --no-save --no-audit --no-fund --silent
	$(GO) run ./bench

fuzz: ## fuzz every parser for a minute each
	@for p in $$(grep -rl '^func Fuzz' --include=*_test.go . | xargs -n1 dirname | sort -u); do \
	  for f in $$(grep -ho '^func Fuzz[A-Za-z]*' $$p/*_test.go | cut -c6-); do \
	    echo "== $$p $$f"; $(GO) test $$p -run '^$$' -fuzz "^$$f$$" -fuzztime $(or $(FUZZTIME),1m) || exit 1; done; done

# The screen and the npm packages

.PHONY: ui ui-test ui-test-long ui-build e2e e2e-gate ui-firefox packages
ui: $(NPM) ## build the user interface from ui/ into web/dist
	npm run --silent -w ui build

ui-test: $(NPM) ## run the tests of the screen and the packages, their fold on LOGS=200 random logs
	LOGS=$(or $(LOGS),200) npm run --silent test

ui-test-long: $(NPM)
	LOGS=$(or $(LOGS),2000) npm run --silent test

ui-build: $(NPM) ## check that web/dist is what ui/ builds
	DIST=$(abspath bin/dist) npm run --silent -w ui build && diff -r bin/dist web/dist

e2e: build $(NPM) ## test the user interface in a real browser with the real program, or the checks with ONLY=text in their names (needs chromium)
	cd ui && CHROMIUM=/usr/bin/chromium TAPEDECK=$(abspath $(BIN)) npm run --silent e2e

e2e-gate: build $(NPM) ## leave out the browser checks that ui/e2e/full.mjs names
	cd ui && TAPEDECK=$(abspath $(BIN)) npm run --silent e2e -- --gate

ui-firefox: build $(NPM) ## test the main ways through the user interface in Firefox (needs firefox-esr)
	cd ui && TAPEDECK=$(abspath $(BIN)) node e2e/firefox.mjs

packages: build $(NPM) ## pack the npm packages, and check the tarballs in a project of its own, their sizes, the TypeScript of docs and examples/ (needs chromium)
	for p in client react player ai-sdk; do npm run --silent -w packages/$$p build || exit 1; done
	cd examples/react && TAPEDECK_BIN=$(abspath $(BIN)) npm run --silent check
	node examples/player/check.mjs --binary $(abspath $(BIN))
	node examples/ai-sdk/check/check.mjs --binary $(abspath $(BIN))
	node test/packages/run.mjs --binary $(abspath $(BIN))

.PHONY: clean
clean: ## remove build results
	rm -rf bin conformance/*/node_modules bench/rival/node_modules node_modules packages/*/dist packages/*/LICENSE
