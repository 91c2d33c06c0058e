/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file of counters. The plugin maps it and counts in it; fwlab_coresim/counters.py reads it.
 *
 * Each mark in the guest writes the counters of that moment into the next record. `marks` says how many there have
 * been, and is written last. Old records are overwritten. */
#ifndef FWLAB_MODEL_MARKS_H
#define FWLAB_MODEL_MARKS_H

#include <stddef.h>

#include "core.h"

#define MARKS_MAGIC 0x314c444d42414c46 /* "FLABMDL1" */
#define MARKS_KEPT 4096

struct record {
	uint64_t mark;
	struct counters counters;
};

struct marks {
	uint64_t magic;
	uint64_t counters; /* of a record: a reader can see whether it knows this file */
	uint64_t kept;
	uint64_t marks;
	struct counters now;
	struct record records[MARKS_KEPT];
};

/* Map a file of this size, full of zeros. It must exist: who starts QEMU makes it, as QEMU may be a user who can make
 * no files there. Returns NULL if it cannot be mapped. */
void *map_file(const char *path, size_t size);
/* The same for the file of counters. */
struct marks *marks_open(const char *path);
void marks_add(struct marks *marks, uint32_t mark);

#endif
