# `make help` lists what there is.
CARGO ?= cargo
CLUSTER := $(CARGO) run --quiet -p test-cluster --bin cluster --

.DEFAULT_GOAL := help
.PHONY: help all bench build test lint fmt generate check-generated cluster demo deny transitions

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

all: build test ## Build, then test

build: ## Build the operator for release, into target/release
	$(CARGO) build --release --locked

test: ## Run all tests; builds the control plane first where that was not done yet
	hack/test

transitions: ## Walk every property of a Task through all classes of values; `make test` takes a part
	TRANSITIONS_EVERY=1 $(CARGO) test --locked --test transitions -- --nocapture

bench: build ## Measure it: TASKS=100,1000 WHOLE=true SCENARIOS=create,quiet PEER=BINARY, see docs/performance.md
	$(CARGO) run --quiet --release --locked -p bench

lint: ## Formatting, clippy and documentation with warnings as errors, licences and advisories
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --locked
	hack/deny

fmt: ## Format the code
	$(CARGO) fmt --all

generate: ## Write the generated files: the definition, webhooks, policies, roles and the manifests to install
	hack/generate

check-generated: ## Fail if a generated file is not current
	hack/generate --check

cluster: ## Start a control plane on this machine and keep it until Ctrl-C
	$(CLUSTER)

demo: ## Start a control plane and the operator, apply the sample, show what happens; until Ctrl-C
	hack/demo
