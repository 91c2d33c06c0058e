# SPDX-License-Identifier: GPL-2.0-or-later
# The README's two commands are `make lab LAB=lab03-ipset` and `make test`. Each first sets up what is missing; that
# takes seconds if nothing is.

LAB ?= lab03-ipset
FWLAB = .venv/bin/fwlab
PYTEST = .venv/bin/pytest

.PHONY: help setup boxes lab labs test test-offline test-live coverage nested-host bench lint readme figures ranges clean

help:
	@echo 'make lab LAB=$(LAB)   set up, build the boxes, measure every case, judge, write a report'
	@echo 'make test                   set up, run the linters, the offline and the live tests'
	@echo 'make setup boxes            only set up; only build the boxes'
	@echo 'make test-offline coverage  only linters and offline tests; the offline tests with their coverage'
	@echo 'make labs bench             every lab in full, measured and graded; repeatability and the generator (results/)'
	@echo 'make nested-host            the real testbed on an emulated host with KVM (results/nested-host); takes hours'
	@echo 'make figures ranges         keep a run of every case; write the pages and the ranges that come from it'
	@echo 'make lint readme            run every linter; write the generated parts of the pages'

setup:
	@provision/host/install
	@provision/host/venv

boxes: setup
	@packer/build --lab $(LAB)

lab: boxes
	$(FWLAB) run $(LAB)

# Measure every case, and grade start, reference, mistake and variants of every exercise. All labs use the same
# machines. A failing lab does not stop the others.
labs: boxes
	@vagrant up $(LAB) && code=0; \
	for lab in labs/lab[0-9][0-9]-*; do \
		$(FWLAB) run $${lab#labs/} --machines $(LAB) || code=$$?; \
		$(PYTEST) --testinfra --lab $${lab#labs/} --part all --machines $(LAB) || code=$$?; \
	done; \
	vagrant destroy -f $(LAB) && exit $$code

test: test-offline test-live

test-offline: setup
	$(PYTEST) tests/offline -n auto --dist loadfile

# Apart from test-offline, because tracing the lines takes two thirds more time.
coverage: setup
	$(PYTEST) tests/offline --cov --cov-report=term

# All live tests use the same machines, which are destroyed at the end in any case.
test-live: boxes
	$(PYTEST) tests/live --durations=12

# The real testbed on an emulated host with KVM, an IOMMU and virtual functions; takes hours. LINKS: see fwlab/testbed/links.
LINKS ?= socket
nested-host: boxes
	.venv/bin/python -m tests.nested_host --links $(LINKS)

bench: boxes
	$(FWLAB) author repeatability $(LAB)

lint: setup
	.venv/bin/pre-commit run --all-files

readme: setup
	$(FWLAB) author pages

# After a run of every case: keep the run under results/ and renew the figures on the pages.
figures: setup
	$(FWLAB) author publish $(LAB)

# Renew a lab's expected ranges from its latest run.
ranges: setup
	$(FWLAB) author ranges $(LAB)

clean:
	rm -rf reports .pytest_cache .ruff_cache .mypy_cache .coverage engine/build
