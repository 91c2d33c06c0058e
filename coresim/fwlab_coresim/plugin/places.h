/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where the cycles go: what is counted in the windows, by the block of code that was running.
 *
 * A second file, which fwlab_coresim/counters.py reads. A place is named by the address at which its block
 * begins. All programs together are one place, as are blocks for which there is no room: both are at address 0. */
#ifndef FWLAB_MODEL_PLACES_H
#define FWLAB_MODEL_PLACES_H

#include "core.h"

#define PLACES_MAGIC 0x314c50424d414c46 /* "FLAMBPL1" */
#define PLACES_KEPT (1 << 16)
/* Of the counters, the first ones: instructions and waits (core.h). */
#define PLACES_COUNTERS 6

struct place {
	uint64_t address;
	uint64_t counted[PLACES_COUNTERS];
};

struct places {
	uint64_t magic;
	uint64_t counters; /* of a place: a reader can see whether it knows this file */
	uint64_t kept;
	uint64_t used;
	struct place place[PLACES_KEPT]; /* a hash table, but for the first, which is the place at address 0 */
};

/* What was counted is added up here. */
struct account {
	struct places *places; /* NULL: there is no such file, and nothing is done */
	struct place *place;   /* of the block that runs */
	bool open;	       /* a window is open */
	uint64_t seen[PLACES_COUNTERS];
};

/* Map the file, as marks_open does. */
struct places *places_open(const char *path);
/* The place of a block that begins at this address. */
struct place *places_find(struct places *places, uint64_t address);

/* What was counted since the last call belongs to the block that ran until now, if a window is open. */
static inline void account_settle(struct account *account, const struct counters *count)
{
	const uint64_t *now = &count->instructions;

	for (unsigned i = 0; i < PLACES_COUNTERS; i++) {
		if (account->open)
			account->place->counted[i] += now[i] - account->seen[i];
		account->seen[i] = now[i];
	}
}

/* A window begins or ends. */
void account_window(struct account *account, const struct counters *count, bool open);

#endif
