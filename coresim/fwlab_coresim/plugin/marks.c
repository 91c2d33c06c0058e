/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "marks.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *map_file(const char *path, size_t size)
{
	void *mapped = MAP_FAILED;
	int file = open(path, O_RDWR | O_CLOEXEC);

	if (file < 0)
		return NULL;
	if (!ftruncate(file, size))
		mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (mapped == MAP_FAILED)
		return NULL;
	return memset(mapped, 0, size);
}

struct marks *marks_open(const char *path)
{
	struct marks *marks = map_file(path, sizeof(*marks));

	if (!marks)
		return NULL;
	marks->counters = sizeof(struct counters) / sizeof(uint64_t);
	marks->kept = MARKS_KEPT;
	__atomic_store_n(&marks->magic, MARKS_MAGIC, __ATOMIC_RELEASE);
	return marks;
}

void marks_add(struct marks *marks, uint32_t mark)
{
	struct record *record = marks->records + marks->marks % MARKS_KEPT;

	record->mark = mark;
	record->counters = marks->now;
	__atomic_store_n(&marks->marks, marks->marks + 1, __ATOMIC_RELEASE);
}
