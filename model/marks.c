/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "marks.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct marks *marks_open(const char *path)
{
	struct marks *marks = MAP_FAILED;
	int file = open(path, O_RDWR | O_CLOEXEC);

	if (file < 0)
		return NULL;
	if (!ftruncate(file, sizeof(*marks)))
		marks = mmap(NULL, sizeof(*marks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (marks == MAP_FAILED)
		return NULL;
	memset(marks, 0, sizeof(*marks));
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
