# SPDX-License-Identifier: GPL-2.0-or-later
# The README's two commands are `make lab LAB=lab03-ipset` and `make test`. Each first sets up what is missing; that
# takes seconds if nothing is.

LAB ?= lab03-ipset
FWLAB = .venv/bin/fwlab
TOOLS = .venv/bin/python -m tools
PYTEST = .venv/bin/pytest
# Python keeps what it compiles, whatever the caller's shell says: otherwise each command compiles all it imports.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help setup test-setup boxes lab labs bundle wheel guides test test-all test-offline test-browser test-live coverage \
	nested-host arm64-host bench image lint readme figures ranges release clean

help:
	@echo 'make lab LAB=$(LAB)   set up, build the boxes, measure every case, judge, write a report'
	@echo 'make test                   set up, run the linters, the offline, the browser and the live tests'
	@echo 'make test-all               the same with the live tests that take long'
	@echo 'make bundle LAB=$(LAB)   an archive for students, without solutions: bundles/'
	@echo 'make wheel                  what `uv tool install` and `pipx install` take, for `fwlab init`: dist/'
	@echo 'make guides                 the guides and all labs as one site with search: site/index.html; STUDENTS=1: no answers'
	@echo 'make release                all that a release publishes: release/, of a clean tree (CONTRIBUTING.md)'
	@echo 'make setup boxes            only set up; only build the boxes'
	@echo 'make boxes EXPORT=folder    also copy them there; IMPORT=folder: take them from there and build nothing'
	@echo 'make image                  a container image with all of this (guides/hosts.md); IMPORT=folder: with these boxes'
	@echo 'make test-offline coverage  only linters and offline tests; the offline tests with their coverage'
	@echo 'make labs bench             every lab in full, measured and graded; repeatability and the generator (results/)'
	@echo 'make nested-host            the real testbed on an emulated host with KVM (results/nested-host); takes hours'
	@echo 'make figures ranges         keep a run of every case; write the pages and the ranges that come from it'
	@echo 'make arm64-host             a DUT whose QEMU is arm64 code, beside the published run (results/arm64-host); an hour'
	@echo 'make lint readme            run every linter; write the generated parts of the pages'
	@echo 'make clean                  remove what is made again: site, bundles, wheel, caches of tools'

# Who imports boxes builds none.
setup:
	@provision/host/install $(if $(IMPORT),packages.txt)
	@provision/host/venv

# What only tests, linters and benchmarks need.
test-setup: setup
	@provision/host/install packages-test.txt
	@! command -v go > /dev/null || [ -x .venv/bin/actionlint ] \
		|| GOBIN='$(CURDIR)/.venv/bin' go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 \
		|| echo 'without actionlint, workflows are not checked' >&2

boxes: setup
	@packer/build --lab $(LAB) $(if $(EXPORT),--export '$(EXPORT)') $(if $(IMPORT),--import '$(IMPORT)')

# With whichever program is here; it needs nothing else of this host. IMAGE: its name. The addresses and checksums of TRex
# and FreeBSD are passed on if they are set.
IMAGE ?= fwlab
SOURCES = $(shell sed -n 's/^ARG \(FWLAB_[A-Z0-9_]*\)$$/\1/p' Containerfile)
BUILDER ?= $(firstword $(foreach program,podman buildah docker,$(if $(shell command -v $(program)),$(program))))
image:
	@[ -n '$(BUILDER)' ] || { echo 'make image: install podman, buildah or docker' >&2; exit 2; }
	$(BUILDER) build --tag $(IMAGE) --file Containerfile $(if $(IMPORT),--build-context boxes='$(abspath $(IMPORT))') \
		$(foreach name,$(SOURCES),$(if $($(name)),--build-arg $(name)='$($(name))')) .

lab: boxes
	$(FWLAB) run $(LAB)

# Measure every case; grade start, reference, mistake and variants of every exercise, and what must not pass. All labs
# use the same machines, but for those whose DUT has more NICs. A failing lab does not stop the others.
labs: boxes
	@vagrant up $(LAB) && code=0; usual=; own=; \
	for lab in labs/lab[0-9][0-9]-*; do \
		if grep -q '^  nics:' $$lab/lab.yml; then machines=; own="$$own --lab $${lab#labs/}"; \
		else machines='--machines $(LAB)'; usual="$$usual --lab $${lab#labs/}"; fi; \
		$(FWLAB) run $${lab#labs/} $$machines || code=$$?; \
	done; \
	$(PYTEST) --testinfra --part all $$usual --machines $(LAB) || code=$$?; \
	[ -z "$$own" ] || $(PYTEST) --testinfra --part all $$own || code=$$?; \
	vagrant destroy -f $(LAB) && exit $$code

test: test-offline test-browser test-live

# One process more than there are cores: a tenth of the time is spent waiting. The tests of a file share a process, and
# what their modules keep.
OFFLINE = $(PYTEST) tests/unit tests/contract -n $$(($$(nproc) + 1)) --dist loadfile --no-loadscope-reorder
test-offline: test-setup
	$(OFFLINE) -m 'not thorough'

# Apart from test-offline, because tracing the lines takes two thirds more time.
coverage: test-setup
	$(PYTEST) tests/unit tests/contract --cov --cov-report=term

# Opens the site and reports in Chromium. Where that cannot be installed, the tests are skipped; in CI they fail.
test-browser: setup
	@provision/host/install packages-browser.txt || echo 'without Chromium, the browser tests are skipped' >&2
	@! command -v npm > /dev/null || npm ci --silent --no-audit --no-fund --prefix tests/browser \
		|| echo 'without axe-core, the pages are not searched for obstacles' >&2
	$(PYTEST) tests/browser

# Most live tests use the same machines, which are destroyed at the end in any case. On two cores or more, two processes
# share the tests, each with machines of its own. SETS=1: only one process.
SETS ?= $(shell [ "$$(nproc)" -ge 2 ] && echo 2 || echo 1)
LIVE = $(PYTEST) tests/live --durations=12 $(if $(filter-out 1,$(SETS)),-n $(SETS) --dist loadfile --no-loadscope-reorder)
test-live: test-setup boxes
	$(LIVE) -m 'not thorough'

# With those that vary what a shorter test shows. Run it before a release.
test-all: test-browser test-setup boxes
	$(OFFLINE)
	$(LIVE)

# The real testbed on an emulated host with KVM, an IOMMU and virtual functions; takes hours. LINKS: see fwlab/testbed/links.
LINKS ?= socket
nested-host: boxes
	.venv/bin/python -m tests.nested_host --links $(LINKS)

# Three cases of lab03 on a DUT whose QEMU is arm64 code, run by a user-mode emulator; takes an hour.
arm64-host: boxes
	.venv/bin/python -m tests.arm64_host --restored

bench: test-setup boxes
	$(TOOLS) repeatability $(LAB)
	$(TOOLS) waits $(LAB) --every-case

lint: test-setup
	.venv/bin/pre-commit run --all-files

# What a student needs, without solutions: bundles/fwlab-LAB.tar.gz. All labs in one: .venv/bin/fwlab author bundle
bundle: setup
	@$(FWLAB) author bundle $(LAB)

# With the files that `fwlab init` makes folders from. What was built before is not mixed in.
wheel: setup
	@rm -rf build
	@.venv/bin/uv -q build --wheel --no-build-isolation --python .venv/bin/python --out-dir dist
	@ls dist/*.whl

# The pages as one site, from the disk too: open site/index.html. A broken link or anchor fails. STUDENTS=1: theirs.
guides: setup
	@$(if $(STUDENTS),$(TOOLS) students-site site,NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build)
	@echo 'open site/index.html'

# Of this commit, whose tag is the version. URL=…: where its boxes will be, for Vagrant. IMAGE=…: also this image.
release: setup
	$(TOOLS) release release $(if $(URL),--url '$(URL)') $(if $(filter command line,$(origin IMAGE)),--image '$(IMAGE)')

readme: setup
	$(TOOLS) pages

# After a run: publish it, the latest or RUN=FILE, under results/ and renew the figures on the pages.
figures: setup
	$(TOOLS) publish $(LAB) $(RUN)

# Renew a lab's expected ranges from its published run.
ranges: setup
	$(TOOLS) ranges $(LAB)

# Reports stay: they have what was measured and marked.
clean:
	rm -rf site bundles build dist release .pytest_cache .ruff_cache .mypy_cache .coverage engine/build
