/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Maps a frame table and validates all of it, so that no other code has to. */
#ifndef TABLE_H
#define TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "table_format.h"

struct table {
	const struct table_header *head;
	const struct table_record *records;
	const __u8 *data;
	void *map;
	size_t map_len;
	__u32 count;
	__u16 min_len, max_len; /* of the frames, in bytes */
	__u32 streams;		/* highest stream id + 1 */
	__u64 *per_loop;	/* [streams] frames of each stream per loop */
};

/* Maps the file at `path`. Returns false with the reason in `why` (one line); table_close is not needed then. */
bool table_open(struct table *t, const char *path, char *why, size_t why_len);
void table_close(struct table *t);

/* Adds to counts[streams] how many of the first `frames` frames played belong to each stream. */
void table_count_streams(const struct table *t, __u64 frames, __u64 *counts);

#endif
