/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Prints one line of JSON on standard output: what was intended and what left the NIC. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>

#include "run.h"

struct outcome {
	const struct run *run;
	const struct nic *nic;
	__u64 elapsed_ns;
	__u64 intended; /* frames due so far; UINT64_MAX if flat out without a count */
};

void report_line(const struct outcome *o, bool final);

/* The output of --check: the table's size and frame lengths. */
void report_table(const struct table *t);

#endif
