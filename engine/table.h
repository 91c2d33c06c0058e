/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads a frame table and checks all of it, so that nothing behind this door checks again. */
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
	__u16 min_len, max_len; /* of the frames, bytes */
	__u32 streams;		/* highest stream id + 1 */
	__u64 *per_loop;	/* [streams] frames of each stream in one loop */
};

/* Maps the file at `path`. False: `why` holds one line that names what is wrong; nothing to close. */
bool table_open(struct table *t, const char *path, char *why, size_t why_len);
void table_close(struct table *t);

/* Adds to counts[streams] what the first `frames` frames, looping, hold of each stream. */
void table_count_streams(const struct table *t, __u64 frames, __u64 *counts);

#endif
