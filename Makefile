# SPDX-License-Identifier: GPL-2.0-or-later
# The two commands of the README: `make lab LAB=lab03-ipset` and `make test`. Both set up what is missing first,
# and take seconds over it where nothing is.

LAB ?= lab03-ipset
FWLAB = .venv/bin/fwlab
PYTEST = .venv/bin/pytest

.PHONY: help setup boxes lab labs test test-offline test-live bench lint readme figures ranges clean

help:
	@echo 'make lab LAB=$(LAB)   set up, build the boxes, measure every case, judge, write a report'
	@echo 'make test                   set up, run the offline and the live tests'
	@echo 'make setup boxes            only set up; only build the boxes'
	@echo 'make labs bench             every lab in full, measured and graded; repeatability and the generator (results/)'
	@echo 'make figures ranges         keep a run of every case; write the pages and the ranges that come from it'
	@echo 'make lint readme            check the sources; write the generated parts of the pages'

setup:
	@provision/host/install
	@provision/host/venv

boxes: setup
	@packer/build

lab: boxes
	$(FWLAB) run $(LAB)

# Every case, and start, reference, mistake and variants of every exercise. One set of machines serves all labs. A lab
# that fails does not keep the others from being measured.
labs: boxes
	@vagrant up $(LAB) && code=0; \
	for lab in labs/lab[0-9][0-9]-*; do \
		$(FWLAB) run $${lab#labs/} --machines $(LAB) || code=$$?; \
		$(PYTEST) --testinfra --lab $${lab#labs/} --part all --machines $(LAB) || code=$$?; \
	done; \
	vagrant destroy -f $(LAB) && exit $$code

test: test-offline test-live

test-offline: setup
	$(PYTEST) tests/offline

# One set of machines for all live tests; they are gone at the end, however it ends.
test-live: boxes
	$(PYTEST) tests/live --durations=12

bench: boxes
	$(FWLAB) author repeatability $(LAB)

lint: setup
	.venv/bin/pre-commit run --all-files

readme: setup
	$(FWLAB) author pages

# After a run of every case: keep it, and renew the figures that pages show from it.
figures: setup
	$(FWLAB) author publish $(LAB)

# The expected ranges of a lab, from its latest run.
ranges: setup
	$(FWLAB) author ranges $(LAB)

clean:
	rm -rf reports .pytest_cache .ruff_cache .mypy_cache .coverage engine/build
