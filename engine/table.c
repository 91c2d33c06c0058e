// SPDX-License-Identifier: GPL-2.0-or-later
#include "table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the table is read in place, which needs a little-endian CPU"
#endif

__attribute__((format(printf, 3, 4))) static bool bad(char *why, size_t why_len, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, why_len, fmt, args);
	va_end(args);
	return false;
}

static bool map_file(struct table *t, const char *path, char *why, size_t why_len)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return bad(why, why_len, "cannot open: %s", strerror(errno));
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return bad(why, why_len, "not a regular file");
	}
	if ((size_t)st.st_size < sizeof(struct table_header)) {
		close(fd);
		return bad(why, why_len, "%lld bytes, shorter than the %zu-byte header", (long long)st.st_size,
			   sizeof(struct table_header));
	}
	t->map_len = (size_t)st.st_size;
	t->map = mmap(NULL, t->map_len, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (t->map == MAP_FAILED) {
		t->map = NULL;
		return bad(why, why_len, "cannot map: %s", strerror(errno));
	}
	return true;
}

static bool check_header(struct table *t, char *why, size_t why_len)
{
	const struct table_header *h = t->head;
	__u64 room = t->map_len - sizeof(*h), records;

	if (memcmp(h->magic, TABLE_MAGIC, sizeof(h->magic)) != 0)
		return bad(why, why_len, "not a frame table (wrong magic)");
	if (h->version != TABLE_VERSION)
		return bad(why, why_len, "version %u, this engine reads version %u", h->version, TABLE_VERSION);
	if (h->count == 0)
		return bad(why, why_len, "holds no frames");
	if (h->count > TABLE_MAX_FRAMES)
		return bad(why, why_len, "%u frames, more than %u", h->count, TABLE_MAX_FRAMES);
	records = (__u64)h->count * sizeof(struct table_record);
	if (records > room || h->data_len != room - records)
		return bad(why, why_len, "%zu bytes do not hold %u records and %llu bytes of frames", t->map_len,
			   h->count, (unsigned long long)h->data_len);
	return true;
}

static bool check_records(struct table *t, char *why, size_t why_len)
{
	const struct table_header *h = t->head;
	__u64 before = 0;

	t->min_len = FRAME_MAX_LEN;
	for (__u32 i = 0; i < t->count; i++) {
		const struct table_record *r = &t->records[i];

		if (r->len < FRAME_MIN_LEN || r->len > FRAME_MAX_LEN)
			return bad(why, why_len, "frame %u: %u bytes, outside %u..%u", i, r->len, FRAME_MIN_LEN,
				   FRAME_MAX_LEN);
		if (r->offset > h->data_len || r->len > h->data_len - r->offset)
			return bad(why, why_len, "frame %u: bytes %u to %llu lie outside the file", i, r->offset,
				   (unsigned long long)r->offset + r->len);
		if (h->loop_ns ? (r->time_ns < before || r->time_ns >= h->loop_ns) : r->time_ns != 0)
			return bad(why, why_len,
				   "frame %u: time %llu ns decreases, or lies outside the loop of %llu ns", i,
				   (unsigned long long)r->time_ns, (unsigned long long)h->loop_ns);
		before = r->time_ns;
		if (r->len < t->min_len)
			t->min_len = r->len;
		if (r->len > t->max_len)
			t->max_len = r->len;
		if (r->stream >= t->streams)
			t->streams = r->stream + 1u;
	}
	return true;
}

bool table_open(struct table *t, const char *path, char *why, size_t why_len)
{
	memset(t, 0, sizeof(*t));
	if (!map_file(t, path, why, why_len))
		return false;
	t->head = t->map;
	if (!check_header(t, why, why_len))
		goto fail;
	t->count = t->head->count;
	t->records = (const void *)(t->head + 1);
	t->data = (const void *)(t->records + t->count);
	if (!check_records(t, why, why_len))
		goto fail;
	t->per_loop = calloc(t->streams, sizeof(*t->per_loop));
	if (!t->per_loop) {
		bad(why, why_len, "no memory for %u stream counters", t->streams);
		goto fail;
	}
	for (__u32 i = 0; i < t->count; i++)
		t->per_loop[t->records[i].stream]++;
	return true;
fail:
	table_close(t);
	return false;
}

void table_close(struct table *t)
{
	free(t->per_loop);
	if (t->map)
		munmap(t->map, t->map_len);
	memset(t, 0, sizeof(*t));
}

void table_count_streams(const struct table *t, __u64 frames, __u64 *counts)
{
	__u64 loops = frames / t->count, rest = frames % t->count;

	for (__u32 s = 0; s < t->streams; s++)
		counts[s] += loops * t->per_loop[s];
	for (__u32 i = 0; i < rest; i++)
		counts[t->records[i].stream]++;
}
