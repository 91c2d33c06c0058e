/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "settings.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NUMBERS 3

/* "32768:8:4" as numbers. Returns how many there are, or -1. */
static int numbers_in(const char *text, uint64_t *numbers)
{
	int count = 0;
	char *end;

	for (;;) {
		if (count == MAX_NUMBERS || *text < '0' || *text > '9')
			return -1;
		numbers[count++] = strtoull(text, &end, 10);
		if (!*end)
			return count;
		if (*end != ':')
			return -1;
		text = end + 1;
	}
}

int settings_word(struct parameters *p, const char *word)
{
	const struct {
		const char *key;
		uint64_t *large; /* the first number, if it may be large */
		unsigned *rest[MAX_NUMBERS];
	} known[] = {
		{ "l1i", &p->l1i_size, { NULL, &p->l1i_ways } },
		{ "l1d", &p->l1d_size, { NULL, &p->l1d_ways, &p->l1_latency } },
		{ "l2", &p->l2_size, { NULL, &p->l2_ways, &p->l2_latency } },
		{ "llc", &p->llc_size, { NULL, &p->llc_ways, &p->llc_latency } },
		{ "memory", NULL, { &p->memory_latency } },
		{ "itlb", NULL, { &p->itlb_small, &p->itlb_small_ways } },
		{ "itlb_large", NULL, { &p->itlb_large, &p->itlb_large_ways } },
		{ "dtlb", NULL, { &p->dtlb_small, &p->dtlb_small_ways } },
		{ "dtlb_large", NULL, { &p->dtlb_large, &p->dtlb_large_ways } },
		{ "stlb", NULL, { &p->stlb, &p->stlb_ways, &p->stlb_latency } },
		{ "directions", &p->counters, { NULL, &p->outcomes } },
		{ "targets", &p->targets, { NULL, &p->target_history } },
		{ "returns", NULL, { &p->returns } },
		{ "mispredicted", NULL, { &p->mispredicted } },
		{ "locked", NULL, { &p->locked } },
	};
	const struct {
		const char *key;
		bool *value;
	} switches[] = { { "stlb_split", &p->stlb_split },
			 { "stlb_large", &p->stlb_large },
			 { "retpolines_predicted", &p->retpolines_predicted } };
	const char *value = strchr(word, '=');
	uint64_t numbers[MAX_NUMBERS];
	int count = value ? numbers_in(value + 1, numbers) : -1;
	size_t length = value ? (size_t)(value - word) : 0;

	if (count < 0)
		return -1;
	for (unsigned i = 0; i < sizeof(switches) / sizeof(*switches); i++) {
		if (strlen(switches[i].key) == length && !strncmp(switches[i].key, word, length)) {
			*switches[i].value = numbers[0];
			return count == 1 && numbers[0] <= 1 ? 0 : -1;
		}
	}
	for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strlen(known[i].key) != length || strncmp(known[i].key, word, length))
			continue;
		for (int n = 0; n < MAX_NUMBERS; n++) {
			bool first = n == 0 && known[i].large;

			if ((n < count) != (first || known[i].rest[n]))
				return -1;
			if (first)
				*known[i].large = numbers[0];
			else if (n < count)
				*known[i].rest[n] = numbers[n];
		}
		return 0;
	}
	return -1;
}
