/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One JSON line on standard output: what was intended and what left the NIC. */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>

#include "run.h"

struct outcome {
	const struct run *run;
	const struct nic *nic;
	__u64 elapsed_ns;
	__u64 intended; /* frames due by then; UINT64_MAX when flat out without a count */
};

void report_line(const struct outcome *o, bool final);

/* What --check prints: the table's figures. */
void report_table(const struct table *t);

#endif
