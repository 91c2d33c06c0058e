/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "places.h"

#include "marks.h"

/* Linux's half of the address space. */
#define KERNEL 0xffff800000000000
/* So many tries find a place in a table that is not nearly full. */
#define TRIES 64

struct places *places_open(const char *path)
{
	struct places *places = map_file(path, sizeof(*places));

	if (!places)
		return NULL;
	places->counters = PLACES_COUNTERS;
	places->kept = PLACES_KEPT;
	places->used = 1;
	__atomic_store_n(&places->magic, PLACES_MAGIC, __ATOMIC_RELEASE);
	return places;
}

struct place *places_find(struct places *places, uint64_t address)
{
	uint64_t at = (address * 0x9e3779b97f4a7c15) >> 48;

	if (address < KERNEL)
		return places->place;
	for (unsigned i = 0; i < TRIES; i++) {
		struct place *place = places->place + (at + i) % PLACES_KEPT;

		if (place == places->place)
			continue;
		if (place->address == address)
			return place;
		if (!place->address) {
			place->address = address;
			places->used++;
			return place;
		}
	}
	return places->place;
}

void account_window(struct account *account, const struct counters *count, bool open)
{
	if (!account->places)
		return;
	account_settle(account, count);
	account->open = open;
}
