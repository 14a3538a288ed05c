# quotasvc. `make` lists the targets. A machine needs only Go and make: run and test
# install PostgreSQL, Redis and curl with the system's package manager if missing.

# The version of Go in go.mod runs everything, linters as well: one built with an older Go refuses this code. Any Go from 1.21 on downloads it,
# unless it is told `local`, as some packages and images of Go are.
export GOTOOLCHAIN := $(shell awk '$$1 == "toolchain" { print $$2 }' go.mod)+auto

BIN     := bin/quotasvc
BENCH   := bin/quotasvc-bench
DRILL   := bin/quotasvc-drill
RESULTS := bench-results

# Tools run at pinned versions from the module cache. They are not in go.mod, because
# they need hundreds of modules that the service does not need. internal/lab/clientgen/doc.go
# pins the generator of the API's types.
GOLANGCI_LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
GOVULNCHECK   := go run golang.org/x/vuln/cmd/govulncheck@v1.9.0

KUSTOMIZE     := go run sigs.k8s.io/kustomize/kustomize/v5@v5.7.1
KUBECONFORM   := go run github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0
CYCLONEDX     := go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

# For each package. It is there for hangs: no machine that works meets it.
TEST_TIMEOUT := 30m
# With the race detector the same tests take two to four times as long.
RACE_TIMEOUT := 60m

# The product has no C, and neither have its tests: they need no C compiler, and what one target has compiled serves the others.
# Without the directory in what is compiled, a second clone on the same machine compiles nothing again.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(filter-out -trimpath,$(GOFLAGS)) -trimpath)

# Go keeps what it downloads and compiles below HOME. A user of a system service may have none.
ifeq ($(HOME),)
export HOME := $(CURDIR)/bin/home
export GOFLAGS += -modcacherw
endif

# Runs tests with the servers started once, and says how far it is: go doc ./internal/lab/testenv/suite
SUITE := go run ./internal/lab/testenv/suite

# The commit goes into the binary if git works. It refuses a clone of another user, and
# go build would then fail.
BUILDVCS := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo true || echo false)

# What `quotasvc version` and the metric quotasvc_build_info say. Empty without git, unless given: make build VERSION=v1.2.3 COMMIT=...
VERSION ?= $(shell git describe --tags --always --dirty=-modified 2>/dev/null)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
# The time in an image's labels and files: that of the commit, so that the same commit gives the same image.
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
IMAGE   ?= quotasvc:dev
LDFLAGS := -X main.version=$(VERSION) -X main.commit=$(COMMIT)

# Further arguments: make run ARGS='--listen 127.0.0.1:8090', make test ARGS='-run Lane ./internal/kit/lane'
ARGS     ?=
# The client and its middleware for echo are modules of their own, so that who imports them gets nothing of the service; so is
# the laboratory, so that the service needs none of its libraries.
PACKAGES ?= ./... ./client/... ./client/quotaecho/... ./lab/...

.DEFAULT_GOAL := help

.PHONY: help
help: ## use: List the targets
	@for group in use develop measure release; do \
		printf '\n%s\n' "$$group"; \
		awk -v group="$$group" 'BEGIN { FS = ":.*## " group ": " } /^[a-z-]+:.*## / && NF > 1 { printf "  %-19s %s\n", $$1, $$2 }' Makefile; \
	done

.PHONY: run
run: servers build ## use: Run the service for a trial, with a private PostgreSQL and Redis and demo data; Ctrl-C stops all
	@exec $(BIN) dev $(ARGS)

.PHONY: test
test: servers test-tools ## develop: Run the whole test suite on real servers (SLOWEST=20 lists the slowest): about 14 minutes on two cores
	@$(SUITE) -slowest $(or $(SLOWEST),0) '$(PACKAGES)' -count=1 -shuffle=on -timeout $(TEST_TIMEOUT) $(ARGS)
	@ls /usr/share/postgresql/*/extension/citus.control >/dev/null 2>&1 || echo 'NOT TESTED: the ledger on Citus, which is not installed (docs/operations/citus.md)'

# The packages whose tests use the database: a test compares them with the tests. The ledger and what is in front of it come first, the longest last.
CITUS_PACKAGES := ./internal/store/citus ./internal/lab/localstack ./internal/ledger/... ./internal/catalog/... ./internal/access/... ./internal/gate/... \
	./internal/outbox/... ./internal/notify/... ./internal/report/... ./internal/pages/... ./deploy/postgres ./internal/httpapi/... ./cmd/quotasvc ./lab/e2e

.PHONY: test-citus
test-citus: servers test-tools ## develop: Run the database tests on private Citus clusters (Citus 13.2 beside PostgreSQL 15), one package at a time: about 25 minutes
	QUOTASVC_TEST_CITUS=1 go test -count=1 -p 1 -timeout 30m $(ARGS) $(CITUS_PACKAGES)

# What the race detector has nothing to see in. Packages: files are compared with code, or another program is measured. Tests of
# lab/e2e: a browser, a pasted page, a benchmark or a drill drives the program with requests whose handlers other tests run. The
# program of lab/e2e has the detector, too: it is built with it if the tests are.
RACE_WITHOUT := /(deploy|internal/lab/archtest|internal/lab/clientgen|internal/lab/testenv/suite|lab/bench.*|lab/drill.*)$$
RACE_SKIP    := ^Test(Console_InChromium|Portal_InChromium|Pages|Scene|Operations|Growth|Drill|BenchPostgres|SDKExamples|Version|Upgrade|Release|Install)_

.PHONY: test-race
test-race: servers test-tools ## develop: Run the tests with the race detector, but for those in which it sees nothing (needs a C compiler)
	@$(SUITE) -slowest $(or $(SLOWEST),0) "$$(go list $(PACKAGES) | grep -vE '$(RACE_WITHOUT)')" -skip '$(RACE_SKIP)' -race -count=1 -shuffle=on -timeout $(RACE_TIMEOUT) $(ARGS)

# Numbers of steps in a soak. A step is up to five requests, a clock step, a sweep or a change of plans. The steps on the
# service run on PostgreSQL with two instances, lost answers and kills; those of the archive on two ledgers, one of which is archived.
# On two cores they took about 60, 25 and 13 minutes.
SOAK_STEPS         ?= 10000000
SOAK_SERVICE_STEPS ?= 200000
SOAK_ARCHIVE_STEPS ?= 20000
# Number of refusals whose would_succeed_at the soak tries. On two cores they took about 35 minutes.
SOAK_REFUSALS      ?= 100000

.PHONY: soak
soak: servers ## measure: Run random programs for about two hours (SOAK_STEPS, SOAK_SERVICE_STEPS, SOAK_ARCHIVE_STEPS, SOAK_REFUSALS)
	QUOTASVC_SOAK_STEPS=$(SOAK_STEPS) go test -v -count=1 -timeout 6h -run '^Test(Model|Calendar)_Programs' ./internal/ledger/model
	go test -v -count=1 -timeout 6h -run '^TestDenial_WouldSucceedAt' ./internal/ledger/model -rapid.checks=$(SOAK_REFUSALS)
	QUOTASVC_SOAK_SERVICE_STEPS=$(SOAK_SERVICE_STEPS) go test -v -count=1 -timeout 6h -run '^TestService_Programs' ./internal/ledger/pg
	QUOTASVC_SOAK_ARCHIVE_STEPS=$(SOAK_ARCHIVE_STEPS) go test -v -count=1 -timeout 6h -run '^TestArchive_RandomInstants' ./internal/ledger/archive

.PHONY: rolling
rolling: servers test-tools ## measure: Restart three instances in turn behind HAProxy and nginx under load, ROLLING (30000) requests each: about 3 minutes
	QUOTASVC_TEST_ROLLING=$(or $(ROLLING),30000) go test -v -count=1 -timeout 30m -parallel 1 -run '^TestRolling_' ./lab/e2e

.PHONY: kills
kills: servers ## measure: Kill migrations and commands at each of their statements, and run them again: about 15 minutes
	QUOTASVC_TEST_KILLS=1 go test -v -count=1 -timeout $(TEST_TIMEOUT) -run 'KilledAt(Each|A)Statement' ./lab/e2e

.PHONY: large
large: servers ## measure: Measure a catalogue of LARGE (20000) limits and five times as many overrides: a PUT, checks beside changes, leases, memory: some minutes
	QUOTASVC_TEST_LARGE=$(or $(LARGE),20000) go test -v -count=1 -run '^TestLarge_Catalogue' ./internal/gate

.PHONY: rebalance
rebalance: servers ## measure: Fill and empty a node of a Redis cluster under load with redis-cli, a quarter of all slots: about 3 minutes
	QUOTASVC_TEST_REBALANCE=1 go test -v -count=1 -timeout $(TEST_TIMEOUT) -run '^TestCluster_NodeJoinsAndLeaves' ./internal/gate

.PHONY: bench
bench: servers build build-bench ## measure: Measure cost, throughput and latency beside the baselines (ARGS=--record keeps the figures); about 3 minutes; results in bench-results/
	$(BENCH) run $(ARGS)

.PHONY: bench-outage
bench-outage: servers build build-bench ## measure: Kill Redis at 5,000 requests/s; show waits and admissions; about a minute; results in bench-results/
	$(BENCH) outage $(ARGS)

.PHONY: bench-flood
bench-flood: servers build build-bench ## measure: Flood with refused requests; show others' p99 with and without; about 3 minutes; results in bench-results/
	$(BENCH) flood $(ARGS)

.PHONY: bench-postgres
bench-postgres: servers build build-bench ## measure: Run debits on PostgreSQL with one setting after the other (ARGS='--only commit --markdown'); about 12 minutes; results in bench-results/
	$(BENCH) postgres $(ARGS)

.PHONY: bench-growth
bench-growth: servers build build-bench ## measure: Compare small and large amounts of stored data; continues where it was ended (ARGS=--full, ARGS='--again journal', GROWTH_SMALL=1); about 40 minutes
	$(BENCH) growth $(ARGS)

.PHONY: bench-history
bench-history: servers ## measure: Measure questions about a balance with many entries (HISTORY_ENTRIES, at least 1000000, default 4000000): some minutes
	QUOTASVC_HISTORY_ENTRIES=$(or $(HISTORY_ENTRIES),4000000) go test -v -count=1 -timeout 1h -run '^TestReports_LargeBalance' ./internal/ledger/history

.PHONY: bench-verify
bench-verify: servers ## measure: Measure verify and seal on one large balance and on many (VERIFY_ENTRIES, default 10000000; VERIFY_BALANCES, 1000000): some minutes
	QUOTASVC_VERIFY_ENTRIES=$(or $(VERIFY_ENTRIES),10000000) QUOTASVC_VERIFY_BALANCES=$(or $(VERIFY_BALANCES),1000000) \
		go test -v -count=1 -timeout 1h -parallel 1 -run '^TestVerify_(LargeBalance|ManyBalances)' ./internal/ledger/verifier

.PHONY: bench-archive
bench-archive: servers ## measure: Measure the archive of many balances with 200 entries each (ARCHIVE_BALANCES, default 5000): some minutes
	QUOTASVC_ARCHIVE_BALANCES=$(or $(ARCHIVE_BALANCES),5000) go test -v -count=1 -timeout 1h -run '^TestArchive_ManyEntries' ./internal/ledger/archive

.PHONY: bench-redis-memory
bench-redis-memory: servers ## measure: Measure the bytes in Redis of buckets, leases and copies of balances (REDIS_MEMORY_TENANTS, default 1000000 of each): some minutes
	QUOTASVC_REDIS_MEMORY_TENANTS=$(or $(REDIS_MEMORY_TENANTS),1000000) go test -v -count=1 -timeout 1h -p 1 \
		-run '^(TestBucket_TakesAtMost170Bytes|TestLeases_InRedis_BytesOfEach|TestCopy_InRedis_TakesAtMost240Bytes)$$' ./internal/ratelimit ./internal/gate/balances

.PHONY: bench-console
bench-console: servers ## measure: Measure each page of the console with a million tenants (CONSOLE_TENANTS, default 1000000): p95 below 50 ms; some minutes
	QUOTASVC_TEST_CONSOLE_TENANTS=$(or $(CONSOLE_TENANTS),1000000) go test -v -count=1 -timeout 30m -run '^TestConsole_ManyTenants_PagesAreQuick$$' ./lab/e2e

.PHONY: bench-citus
bench-citus: servers ## measure: Measure debits on Citus beside PostgreSQL in one run: rate and CPU per debit (CITUS_ROUND, default 5s): some minutes
	QUOTASVC_BENCH_CITUS=$(or $(CITUS_ROUND),5s) go test -v -count=1 -timeout 30m -run '^TestBench_DebitsOnCitus' ./internal/ledger/pg

.PHONY: drill
drill: servers build build-drill ## measure: Kill and pause everything under load, fail over, restore, flood, stall logs; compare journal and limits (DRILL_KILLS, DRILL_FAILOVERS, DRILL_OTHERS, ARGS='--seed 7'); about 20 minutes
	DRILL_KILLS=$(or $(DRILL_KILLS),200) DRILL_FAILOVERS=$(or $(DRILL_FAILOVERS),20) DRILL_OTHERS=$(or $(DRILL_OTHERS),42) $(DRILL) $(ARGS)

.PHONY: build-drill
build-drill: ## measure: Build bin/quotasvc-drill, the program of make drill
	go build -buildvcs=$(BUILDVCS) -o $(DRILL) ./lab/drill/cmd

.PHONY: build-bench
build-bench: ## measure: Build bin/quotasvc-bench, the benchmark program
	go build -buildvcs=$(BUILDVCS) -o $(BENCH) ./lab/bench/cmd

.PHONY: test-upgrade upgrade-snapshot
test-upgrade: servers ## develop: Test the upgrade: old schemas with data, and the newest release beside this version (ARGS)
	program=$$(scripts/build-previous.sh) && QUOTASVC_UPGRADE_PROGRAM=$$program go test -count=1 -v -timeout $(TEST_TIMEOUT) -run '^TestUpgrade' $(ARGS) ./lab/e2e

upgrade-snapshot: servers ## release: After a release: name its commit for clones without tags, store its schema with data; see lab/e2e/testdata/upgrade
	commit=$$(scripts/build-previous.sh --released --commit) && echo $$commit >lab/e2e/testdata/upgrade/previous
	program=$$(scripts/build-previous.sh --released) && QUOTASVC_UPGRADE_PROGRAM=$$program QUOTASVC_UPGRADE_SNAPSHOT=1 go test -count=1 -v -run '^TestUpgrade_Snapshot' ./lab/e2e

.PHONY: test-containers
test-containers: servers ## develop: Run the compose file, the image and tests with containers on an engine (DOCKER_HOST); CONTAINERS=pull uses the images of a registry
	QUOTASVC_TEST_CONTAINERS=$(or $(CONTAINERS),1) scripts/container-engine.sh \
		go test -v -count=1 -timeout $(TEST_TIMEOUT) $(ARGS) ./lab/containers

.PHONY: test-sdk sdk-tools test-sdk-python test-sdk-typescript generate-sdk generate-sdk-python generate-sdk-typescript
test-sdk: test-sdk-python test-sdk-typescript ## develop: Run the tests of the SDKs

sdk-tools: ## develop: Install what the tests of the SDKs need, if it is missing: Debian's Python packages, Node, packages from npm
	@sdk/python/scripts/test.sh --install
	@scripts/install-servers.sh npm
	@sdk/typescript/scripts/test.sh --install

test-sdk-python: servers build ## develop: Run the tests of the Python SDK with a real service (ARGS='-k webhook'); writes sdk/python/features.json
	QUOTASVC_SDK_FEATURES=$(if $(ARGS),,write) sdk/python/scripts/test.sh $(ARGS)

test-sdk-typescript: servers build ## develop: Test the TypeScript SDK on a real service; installs Node and npm if missing (ARGS='middleware', ARGS=--update)
	@scripts/install-servers.sh npm
	@sdk/typescript/scripts/test.sh $(ARGS)

generate-sdk: generate-sdk-python generate-sdk-typescript ## develop: Generate the SDKs again

generate-sdk-typescript: ## develop: Generate the types and operations of the TypeScript SDK again (needs npm ci)
	@cd sdk/typescript && npm run --silent generate

generate-sdk-python: ## develop: Generate the Python SDK again (from openapi.yaml and from its asyncio modules)
	/usr/bin/env python3 -B sdk/python/scripts/generate.py

.PHONY: lint
lint: ## develop: Run golangci-lint, which includes go vet, and check the formatting
	$(GOLANGCI_LINT) run $(ARGS) $(PACKAGES)

.PHONY: lint-deploy
lint-deploy: ## release: Check the Kubernetes manifests against its schemas (needs raw.githubusercontent.com), and the systemd units
	$(KUSTOMIZE) build deploy/kubernetes/example | $(KUBECONFORM) -strict -summary
	@if command -v systemd-analyze >/dev/null; then scripts/verify-units.sh; else echo 'systemd units: NOT CHECKED, there is no systemd-analyze here'; fi

.PHONY: fmt
fmt: ## develop: Format the code
	$(GOLANGCI_LINT) fmt

.PHONY: generate
generate: ## develop: Generate files again (API types from openapi.yaml)
	go generate ./...

.PHONY: verify-generated
verify-generated: ## develop: Fail if a generated file is out of date
	@scripts/verify-generated.sh

.PHONY: vuln
vuln: ## release: Search called code for known vulnerabilities (needs vuln.go.dev)
	$(GOVULNCHECK) $(PACKAGES)

.PHONY: build
build: ## use: Build bin/quotasvc
	go build -buildvcs=$(BUILDVCS) -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/quotasvc

.PHONY: build-release
build-release: ## release: Build bin/quotasvc as the image does: the same source gives the same bytes (GOOS, GOARCH, VERSION, COMMIT)
	GOWORK=off GOFLAGS= go build -trimpath -buildvcs=false -ldflags '-s -w -buildid= $(LDFLAGS)' -o $(BIN) ./cmd/quotasvc

.PHONY: verify-reproducible
verify-reproducible: ## release: Build twice, from two directories and without a cache, and compare the bytes
	@scripts/verify-reproducible.sh '$(VERSION)' '$(COMMIT)'

# The version as it was given, in the command line or the environment: a release takes none from git.
GIVEN_VERSION = $(if $(filter command environment,$(origin VERSION)),$(VERSION))

.PHONY: release release-version release-tags
release: ## release: Build a release into dist/: archives, SBOMs, packages, image, checksums (VERSION; PARTS, PLATFORMS: less); docs/releasing.md
	@CYCLONEDX='$(CYCLONEDX)' PARTS='$(PARTS)' PLATFORMS='$(PLATFORMS)' IMAGE='$(if $(filter command environment,$(origin IMAGE)),$(IMAGE))' scripts/release.sh '$(GIVEN_VERSION)'

release-version: ## release: Write the version of the next release into the files that name it (VERSION)
	@scripts/release-version.sh '$(GIVEN_VERSION)'

release-tags: ## release: Set the tags of a release for this commit (VERSION)
	@scripts/release-tags.sh --set '$(GIVEN_VERSION)'

.PHONY: sbom
sbom: build-release ## release: Write bin/quotasvc.cdx.json: what the program contains (CycloneDX)
	$(CYCLONEDX) bin -json -licenses -version '$(VERSION)' -output $(BIN).cdx.json $(BIN)

.PHONY: image
image: ## release: Build the image for this machine's kind of processor (IMAGE, VERSION, COMMIT)
	docker build --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) --build-arg SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) -t $(IMAGE) .

.PHONY: image-release
image-release: ## release: Build and push the image for amd64 and arm64, with SBOM and provenance (IMAGE, VERSION, COMMIT)
	docker buildx build --platform linux/amd64,linux/arm64 --sbom=true --provenance=mode=max --push \
		--build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT) --build-arg SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) -t $(IMAGE) .

.PHONY: pin-images
pin-images: ## release: Write the digests of the base images into the files that name them (needs the registries)
	@scripts/pin-images.sh

.PHONY: servers
servers: ## use: Install PostgreSQL, Redis and curl if they are missing
	@scripts/install-servers.sh

.PHONY: test-idle test-tools
test-idle: ## measure: A roll over a million idle balances: it has nothing to do
	QUOTASVC_IDLE_BALANCES=1000000 go test -count=1 -v -run TestRoll_OnlyIdlePeriodsPass_HasNothingToDo ./internal/ledger/pg

test-tools: ## develop: Install missing programs that only tests use: nginx, HAProxy, Chromium, promtool, libfaketime, PgBouncer and an OpenID provider
	@scripts/install-servers.sh nginx haproxy
	@case ",$$QUOTASVC_TEST_WITHOUT," in *,chromium,*) ;; *) scripts/install-servers.sh chromium ;; esac
	@scripts/install-test-tools.sh
	@scripts/install-oidc-provider.sh

.PHONY: console-pictures
console-pictures: servers test-tools ## release: Make the pictures of docs/console.md and docs/portal.md again, in Chromium; look at them before you commit them
	QUOTASVC_CONSOLE_PICTURES=$(CURDIR)/docs/img go test -v -count=1 -run '^TestConsole_Pictures$$' ./lab/e2e

.PHONY: test-sdk-go
test-sdk: test-sdk-go

test-sdk-go: servers ## develop: Test the Go SDK on a real service (`make test` does too)
	go test -count=1 -timeout $(TEST_TIMEOUT) ./client/... ./internal/lab/clientgen
	@$(SUITE) ./lab/e2e -count=1 -timeout $(TEST_TIMEOUT) -run '^Test(SDK|LocalUnits)' $(ARGS)

.PHONY: test-sdk-scenes
test-sdk: test-sdk-scenes

test-sdk-scenes: servers ## develop: Follow the pages of docs/integrate from nothing, as a stranger does: npm and Debian's Python packages, one at a time
	@scripts/install-servers.sh npm
	@sdk/python/scripts/test.sh --install
	QUOTASVC_TEST_SCENES=node,python go test -count=1 -parallel 1 -timeout $(TEST_TIMEOUT) -run '^TestScene' $(ARGS) ./lab/e2e

.PHONY: test-release
test-release: servers ## release: Build a whole release, twice, and install and use it from its files alone; needs npm and Debian's Python packages
	@scripts/install-servers.sh npm
	@sdk/python/scripts/test.sh --install
	QUOTASVC_TEST_RELEASE=1 QUOTASVC_TEST_SCENES=node,python go test -count=1 -v -timeout 2h -run '^Test(Release|Install|Scene)' $(ARGS) ./lab/e2e

.PHONY: clean
clean: ## use: Remove binaries, a built release and the results of benchmarks and drills; keep the data of `make run`
	rm -rf bin dist $(RESULTS) drill-results

.PHONY: clean-dev
clean-dev: ## use: Remove the data of `make run`
	@if [ -f .quotasvc/postgres.path ]; then \
		dir=$$(cat .quotasvc/postgres.path); \
		case $$dir in /var/lib/quotasvc-dev/?*) rm -rf "$$dir" ;; esac; \
	fi
	rm -rf .quotasvc
