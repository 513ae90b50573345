# `make help` lists what there is.
CARGO ?= cargo
CLUSTER := $(CARGO) run --quiet -p test-cluster --bin cluster --

# What is built, pushed and deployed; and how the webhooks get their certificate: self-signed, or
# default for cert-manager.
IMG ?= task-operator:0.1.0
OVERLAY ?= self-signed
MANIFESTS = kubectl kustomize config/overlays/$(OVERLAY) | sed 's|image: task-operator:.*|image: $(IMG)|'

.DEFAULT_GOAL := help
.PHONY: help all bench build model test lint fmt generate check-generated cluster demo transitions \
	docker-build docker-push check-image deploy undeploy uninstall

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

all: build test ## Build, then test

build: ## Build the operator for release, into target/release
	$(CARGO) build --release --locked

test: ## Run all tests; builds the control plane first where that was not done yet
	hack/test

transitions: ## Walk every property of a Task through all classes of values; `make test` takes a part
	TRANSITIONS_EVERY=1 $(CARGO) test --locked --test transitions -- --nocapture

model: ## Search the states of the model, also the larger ones that `make test` leaves out
	MODEL=large $(CARGO) test --locked --test model -- --nocapture

bench: build ## Measure it: TASKS=100,1000 WHOLE=true SCENARIOS=create,quiet PEER=BINARY, see docs/performance.md
	$(CARGO) run --quiet --release --locked -p bench

lint: ## Formatting, clippy and documentation with warnings as errors, licences and advisories
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --manifest-path fuzz/Cargo.toml --target-dir target --locked -- -D warnings
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

docker-build: ## Build the image IMG; for both architectures: DOCKER_BUILD="buildx build --platform=linux/amd64,linux/arm64"
	docker $(or $(DOCKER_BUILD),build) -t $(IMG) .

docker-push: ## Push the image IMG
	docker push $(IMG)

check-image: ## Lint the Dockerfile, and do its steps without an engine
	hack/image-check

deploy: ## Install the operator, with the image IMG, into the cluster of KUBECONFIG
	$(MANIFESTS) | kubectl apply -f -
	kubectl -n task-system rollout status deployment/task-operator --timeout=120s

undeploy: ## Take the operator away again; the Tasks and what they own stay
	$(CARGO) run --quiet --locked -- finalize --all --stop=task-system/task-operator
	$(MANIFESTS) | awk 'BEGIN { RS = "---\n"; ORS = RS } !/\nkind: CustomResourceDefinition\n/' | kubectl delete --ignore-not-found -f -

uninstall: undeploy ## Take the definition away too, and with it all Tasks and what they own
	kubectl delete --ignore-not-found crd tasks.task.example.io
