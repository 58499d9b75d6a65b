# The project's two roads: see it work, and know that it works.

CARGO ?= cargo
INPUT ?=
SCALE ?= 1
ONLY ?=
DRAW ?=
RIVALS_PACKAGES := libkyotocabinet-dev libclang-dev liburing-dev pkg-config cmake g++ make

.PHONY: help demo test figures rivals format lint

help:
	@echo 'make demo              load real text, read it back, verify it, and report rates and amplifications'
	@echo 'make demo INPUT=FILE   the same with the lines of your own file'
	@echo 'make figures           measure this machine into docs/figures.md (about 50 minutes; SCALE=0.1 for less)'
	@echo 'make figures ONLY=A,B  only these parts; DRAW=1 draws what was measured before'
	@echo 'make rivals            build the benchmarks of other engines; installs what they need (about half an hour)'
	@echo 'make test              format, lints and every test, as continuous integration runs them'

demo:
	$(CARGO) build --release --package forebay-cli --package xtask
	@$(CARGO) run --quiet --release --package xtask -- demo $(if $(INPUT),'$(abspath $(INPUT))')

# Where the program of other engines was built before, it is brought up to date.
figures:
	$(CARGO) build --release --package forebay-cli --package xtask
	@if [ -z "$(DRAW)" ] && [ -f crates/bench-rivals/target/release/forebay-bench-rivals ]; then \
	    cd crates/bench-rivals && $(CARGO) build --release; fi
	@$(CARGO) run --quiet --release --package xtask -- figures scale=$(SCALE) $(if $(ONLY),only=$(ONLY)) $(if $(DRAW),draw)

# Debian's packages, where one is missing; then, from sources that Cargo brings, the engines themselves.
rivals:
	@missing=$$(for package in $(RIVALS_PACKAGES); do \
	    dpkg-query --show --showformat='$${Status}' $$package 2>/dev/null | grep -q 'ok installed' || echo $$package; \
	done); \
	if [ -n "$$missing" ]; then \
	    sudo=$$([ "$$(id -u)" = 0 ] || echo sudo); \
	    $$sudo apt-get update && $$sudo apt-get install --yes --no-install-recommends $$missing; \
	fi
	cd crates/bench-rivals && $(CARGO) build --release

test: format lint
	$(CARGO) test --workspace

# A toolchain without rustfmt or clippy fetches it; where that fails too, the step is passed over aloud.
format:
	@if $(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt; then \
	    echo '$(CARGO) fmt --all --check'; $(CARGO) fmt --all --check; \
	else echo 'skipped: rustfmt is not installed' >&2; fi

lint:
	@if $(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy; then \
	    echo '$(CARGO) clippy --workspace --all-targets -- -D warnings'; \
	    $(CARGO) clippy --workspace --all-targets -- -D warnings; \
	else echo 'skipped: clippy is not installed' >&2; fi
