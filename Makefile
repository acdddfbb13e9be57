# Each target first installs and builds whatever it needs. `make help` lists them.
# Settings: JOBS, SEEDS, SANITIZE_SEEDS, SOAK_SEEDS, SOAK_FIRST, FUZZ_S, PREFIX, DESTDIR, NP,
# BENCH_ARGS, LAB_ARGS.

# Debian's own cmake, ninja and python before any other that a user may have installed.
export PATH := /usr/bin:/bin:$(PATH)

JOBS ?= $(shell nproc)
SEEDS ?= 1000
SANITIZE_SEEDS ?= 60
SOAK_SEEDS ?= 100000
SOAK_FIRST ?= 1
FUZZ_S ?= 600
PREFIX ?= /usr/local
NP ?= 4
BENCH_ARGS ?= -b 4K -e 32M -f 8
LAB_ARGS ?=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup build bench test sanitize soak fuzz lab install format clean

help:
	@echo "make bench              benchmark $(NP) local ranks over UDP, clean and with 1 % loss"
	@echo "make test               build and run the tests"
	@echo "make build              programs in build/release/bin, library in build/release/lib"
	@echo "make sanitize           tests under ASan + UBSan, then under TSan"
	@echo "make soak               $(SOAK_SEEDS) seeds of the simulator's swarm, for hours"
	@echo "make fuzz               each fuzz target for $(FUZZ_S) s under ASan + UBSan (installs clang-19)"
	@echo "make lab                ours beside gloo and Open MPI, as root; test/lab/README.md says more"
	@echo "make install PREFIX=DIR libraries, headers, CMake package, optireduce.pc"
	@echo "make format             clang-format-19 over all sources (asks for it if missing)"
	@echo "make clean              remove build/"

setup:
	@scripts/setup.sh

build: setup
	@scripts/build.sh release $(JOBS)

bench: build
	@echo "== $(NP) ranks on this machine, clean"
	build/release/bin/optireduce-bench --np $(NP) $(BENCH_ARGS)
	@echo "== the same with 1 % of the packets lost"
	build/release/bin/optireduce-bench --np $(NP) $(BENCH_ARGS) --loss 1

test: build
	OPTIREDUCE_TEST_SEEDS=$(SEEDS) \
	  scripts/test.sh release $(JOBS) -LE '^(soak|fuzz|bench|train)$$'

sanitize: setup
	@scripts/build.sh asan $(JOBS)
	OPTIREDUCE_TEST_SEEDS=$(SANITIZE_SEEDS) \
	  scripts/test.sh asan $(JOBS) -L '^(unit|simulation|loopback)$$'
	@scripts/build.sh tsan $(JOBS)
	OPTIREDUCE_TEST_SEEDS=$(SANITIZE_SEEDS) \
	  scripts/test.sh tsan $(JOBS) -L '^(unit|simulation|loopback)$$'

soak: build
	@scripts/soak.sh build/release/bin/optireduce-sim $(SOAK_SEEDS) $(JOBS) $(SOAK_FIRST)

fuzz:
	@scripts/setup.sh clang-19 libclang-rt-19-dev
	@scripts/fuzz.sh $(FUZZ_S) $(JOBS)

lab: setup
	test/lab/compare.py --jobs $(JOBS) $(LAB_ARGS)

install: build
	DESTDIR="$(DESTDIR)" cmake --install build/release --prefix "$(abspath $(PREFIX))"

format:
	@command -v clang-format-19 >/dev/null || { echo "format: apt-get install clang-format-19"; exit 1; }
	clang-format-19 -i $$(git ls-files '*.h' '*.cc')

clean:
	rm -rf build
