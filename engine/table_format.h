/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file format of the frame table, little-endian: header, records, then the frames' bytes. */
#ifndef TABLE_FORMAT_H
#define TABLE_FORMAT_H

#include <linux/types.h>

#define TABLE_MAGIC "FWLFRAME" /* 8 bytes, not terminated */
#define TABLE_VERSION 1u
#define TABLE_MAX_FRAMES 1048576u
#define FRAME_MIN_LEN 60u /* Ethernet's minimum of 64, less the frame check sequence */
#define FRAME_MAX_LEN 9018u

struct table_header {
	char magic[8];
	__u32 version;
	__u32 count;	/* frames, 1..TABLE_MAX_FRAMES */
	__u64 loop_ns;	/* duration of one loop; 0: the frames have no times */
	__u64 data_len; /* bytes after the records */
};

struct table_record {
	__u64 time_ns; /* from the start of the loop; never decreases, always below loop_ns */
	__u32 offset;  /* from the end of the records; frames may share bytes */
	__u16 len;
	__u16 stream; /* counted separately in the report */
};

_Static_assert(sizeof(struct table_header) == 32, "the header is 32 bytes");
_Static_assert(sizeof(struct table_record) == 16, "a record is 16 bytes");

#endif
