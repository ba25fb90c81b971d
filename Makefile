# dacapo: what a person types. The work is in cargo and in `cargo xtask`.

DURATION ?= 30
SPEED ?= 1
OUT ?= out/demo
LINK ?=
MINUTES ?= 60
ARGS ?=

# rustup's folder; a shell that was open during the installation does not have it yet.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

.DEFAULT_GOAL := help
.PHONY: help demo build check test large faults nightly compat eval-peers eval

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s  %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: ## the demonstration (DURATION=30 seconds, SPEED=1, OUT=out/demo, LINK=loss=5%,delay=20ms)
	@scripts/setup.sh demo
	@cargo build --release --locked -p dacapo-cli
	@cargo run --release --locked -q -p dacapo-cli -- demo --duration $(DURATION) --speed $(SPEED) --out $(OUT) \
		$(if $(LINK),--link '$(LINK)')

build: ## everything, with optimisation
	@scripts/setup.sh build
	@cargo build --workspace --release --locked

check: ## what is quick of the checks: format, tidy, clippy, unit tests (4 minutes at most when warm)
	@cargo xtask check

test: ## every check of a change: format, tidy, clippy, doc, ratchet, tests (30 minutes at most on two cores)
	@scripts/setup.sh test
	@cargo xtask ci

large: ## the tests of `make test` that write gigabytes (not part of it)
	@scripts/setup.sh test
	@cargo test --release --locked -p dacapo-media -p dacapo-cli --test ffmpeg --test transfer -- --ignored

faults: ## every fault of the table, and docs/faults.md from what was seen (an hour; goes on where it was stopped)
	@scripts/setup.sh test
	@cargo build --locked -q -p dacapo-lab
	@cargo run --locked -q -p dacapo-lab -- faults --records docs/faults.jsonl --write docs/faults.md

nightly: ## what takes minutes or root, programs of b8cfde3, then seeds, fuzzing and kills in turn (MINUTES=60); goes on from where it was
	@scripts/setup.sh night
	@cargo xtask night
	@scripts/compat.sh
	@cargo run --locked -q -p dacapo-lab -- nightly --minutes $(MINUTES)

compat: ## programs of b8cfde3 and now list, play, send and receive both ways over every transport (minutes: builds both)
	@scripts/setup.sh build
	@scripts/compat.sh

eval-peers: ## builds what dacapo is measured beside: TCP, UDP, quinn, SRT, ZeroMQ, Zenoh, Aeron, iceoryx2, iperf3
	@scripts/setup.sh build
	@scripts/eval-peers.sh

eval: eval-peers ## measures, and makes the documents anew (ARGS='network --only ours-udp'; see eval/README.md; root)
	@cargo build -q --release --locked -p dacapo-cli -p dacapo-eval
	@target/release/dacapo-eval run $(or $(ARGS),all)
	@target/release/dacapo-eval check --write
