/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Error messages: which item, what is wrong with it, and what to do next. */
#ifndef ERROR_H
#define ERROR_H

#define EXIT_USAGE 2	   /* bad arguments or a bad table; nothing was sent */
#define EXIT_CANNOT_SEND 3 /* the machine or its NIC cannot send */

/* Prints two lines to stderr: "fwlab-replay: ITEM: WHAT" and "  next: NEXT"; returns `code`. */
__attribute__((format(printf, 4, 5))) int print_error(int code, const char *what, const char *next, const char *item,
						      ...);

#endif
