# `make help` lists what there is.
CARGO ?= cargo
CLUSTER := $(CARGO) run --quiet -p test-cluster --bin cluster --
CRD := config/crd/tasks.task.example.io.yaml
WEBHOOKS := config/webhook/manifests.yaml
POLICIES := config/policy/policies.yaml
RBAC := config/rbac/rbac.yaml
RBAC_SELF_SIGNED := config/rbac/self-signed/rbac.yaml

.DEFAULT_GOAL := help
.PHONY: help all build test lint fmt generate check-generated cluster demo deny transitions

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

all: build test ## Build, then test

build: ## Build the operator for release, into target/release
	$(CARGO) build --release --locked

test: ## Run all tests; builds the control plane first where that was not done yet
	hack/test

transitions: ## Walk every property of a Task through all classes of values; `make test` takes a part
	TRANSITIONS_EVERY=1 $(CARGO) test --locked --test transitions -- --nocapture

lint: ## Formatting, clippy and documentation with warnings as errors, licences and advisories
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --locked
	hack/deny

fmt: ## Format the code
	$(CARGO) fmt --all

generate: ## Write the generated files: the CRD, the webhook configurations, the policies and the roles
	$(CARGO) run --quiet --locked -- crd > $(CRD).new && mv $(CRD).new $(CRD)
	$(CARGO) run --quiet --locked -- webhooks > $(WEBHOOKS).new && mv $(WEBHOOKS).new $(WEBHOOKS)
	$(CARGO) run --quiet --locked -- policies > $(POLICIES).new && mv $(POLICIES).new $(POLICIES)
	$(CARGO) run --quiet --locked -- rbac > $(RBAC).new && mv $(RBAC).new $(RBAC)
	$(CARGO) run --quiet --locked -- rbac --webhook-self-signed > $(RBAC_SELF_SIGNED).new && mv $(RBAC_SELF_SIGNED).new $(RBAC_SELF_SIGNED)

check-generated: ## Fail if a generated file is not current
	$(CARGO) run --quiet --locked -- crd | diff -u $(CRD) -
	$(CARGO) run --quiet --locked -- webhooks | diff -u $(WEBHOOKS) -
	$(CARGO) run --quiet --locked -- policies | diff -u $(POLICIES) -
	$(CARGO) run --quiet --locked -- rbac | diff -u $(RBAC) -
	$(CARGO) run --quiet --locked -- rbac --webhook-self-signed | diff -u $(RBAC_SELF_SIGNED) -

cluster: ## Start a control plane on this machine and keep it until Ctrl-C
	$(CLUSTER)

demo: ## Start a control plane and the operator, apply the sample, show what happens; until Ctrl-C
	hack/demo
