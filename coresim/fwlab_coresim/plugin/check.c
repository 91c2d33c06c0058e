/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The model without QEMU: reads commands, prints counters. For tests.
 *     model-check l1i=32768:8 ... <commands
 *
 *     l|s|f ADDRESS [PHYSICAL]       a load, store or fetch; addresses are hexadecimal, physical is usually the same
 *     sweep l|s|f START STEP COUNT TIMES   the same for COUNT addresses in a row, TIMES over
 *     e KIND BRANCH AFTER TARGET NEXT      a block ended; KIND as in core.h, from 0
 *     b INSTRUCTIONS LOCKED          a block ran
 *     mark NUMBER, file FILE         write a record of counters; map this file first
 *     places FILE, run ADDRESS, window 0|1    count by place in this file; a block begins; a window begins or ends
 *     d ADDRESS BYTES                decode an instruction, and print what was found
 *     p                              print all counters and set them to 0
 * Exit: 0, or 2 for a wrong parameter or command. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "decode.h"
#include "marks.h"
#include "places.h"
#include "settings.h"

static struct core core;
static struct counters own;
static struct marks *marks;
static struct account account;

static int access_memory(char kind, uint64_t address, uint64_t physical)
{
	switch (kind) {
	case 'l':
		if (core_load(&core, address))
			core_load_below(&core, physical);
		return 0;
	case 's':
		if (core_store(&core, address))
			core_store_below(&core, physical);
		return 0;
	case 'f':
		if (core_fetch(&core, address))
			core_fetch_below(&core, physical);
		return 0;
	}
	return -1;
}

static int sweep(char kind, uint64_t start, uint64_t step, uint64_t count, uint64_t times)
{
	for (; times; times--) {
		for (uint64_t i = 0; i < count; i++) {
			if (access_memory(kind, start + i * step, start + i * step) < 0)
				return -1;
		}
	}
	return 0;
}

static int show_decoded(uint64_t address, const char *hex)
{
	uint8_t bytes[16];
	size_t length = 0;
	unsigned value;

	for (; length < sizeof(bytes) && sscanf(hex, "%2x", &value) == 1; hex += 2)
		bytes[length++] = value;
	if (*hex && *hex != '\n')
		return -1;
	struct decoded found = decode(bytes, length, address);
	printf("%d %" PRIx64 " %d %d %" PRIx32 "\n", found.ending, found.target, found.locked, found.writes_top,
	       found.mark);
	return 0;
}

static void print_counters(void)
{
#define SHOW(name) printf("%s %" PRIu64 "\n", #name, core.count->name);
	COUNTERS(SHOW)
#undef SHOW
	memset(core.count, 0, sizeof(*core.count));
}

static int command(const char *line)
{
	uint64_t a, b, c, d;
	unsigned number, other;
	char kind, text[256];

	if (sscanf(line, "sweep %c %" SCNx64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &kind, &a, &b, &c, &d) == 5)
		return sweep(kind, a, b, c, d);
	if (sscanf(line, "e %u %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64, &number, &a, &b, &c, &d) == 5) {
		core_ended(&core, number, a, b, c, d);
		return 0;
	}
	if (sscanf(line, "b %u %u", &number, &other) == 2) {
		core_block(&core, number, other);
		return 0;
	}
	if (sscanf(line, "file %255s", text) == 1) {
		marks = marks_open(text);
		if (marks)
			core.count = &marks->now;
		return marks ? 0 : -1;
	}
	if (sscanf(line, "mark %u", &number) == 1 && marks) {
		marks_add(marks, number);
		return 0;
	}
	if (sscanf(line, "places %255s", text) == 1) {
		account.places = places_open(text);
		if (account.places)
			account.place = account.places->place;
		return account.places ? 0 : -1;
	}
	if (sscanf(line, "run %" SCNx64, &a) == 1 && account.places) {
		account_settle(&account, core.count);
		account.place = places_find(account.places, a);
		return 0;
	}
	if (sscanf(line, "window %u", &number) == 1) {
		account_window(&account, core.count, number);
		return 0;
	}
	if (sscanf(line, "d %" SCNx64 " %255s", &a, text) == 2)
		return show_decoded(a, text);
	if (!strcmp(line, "p\n")) {
		print_counters();
		return 0;
	}
	switch (sscanf(line, "%c %" SCNx64 " %" SCNx64, &kind, &a, &b)) {
	case 2: return access_memory(kind, a, a);
	case 3: return access_memory(kind, a, b);
	}
	return -1;
}

int main(int argc, char **argv)
{
	struct parameters parameters = { 0 };
	char line[512];

	for (int i = 1; i < argc; i++) {
		if (settings_word(&parameters, argv[i]) < 0) {
			fprintf(stderr, "model-check: wrong parameter: %s\n", argv[i]);
			return 2;
		}
	}
	if (core_make(&core, &parameters, &own) < 0) {
		fprintf(stderr, "model-check: there is no such core\n");
		return 2;
	}
	while (fgets(line, sizeof(line), stdin)) {
		if (command(line) < 0) {
			fprintf(stderr, "model-check: wrong command: %s", line);
			return 2;
		}
	}
	core_free(&core);
	return 0;
}
