// SPDX-License-Identifier: GPL-2.0-or-later
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

int print_error(int code, const char *what, const char *next, const char *item, ...)
{
	va_list args;

	fputs("fwlab-replay: ", stderr);
	va_start(args, item);
	vfprintf(stderr, item, args);
	va_end(args);
	fprintf(stderr, ": %s\n  next: %s\n", what, next);
	return code;
}
