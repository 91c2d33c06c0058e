// SPDX-License-Identifier: GPL-2.0-or-later
/* fwlab-replay: sends a table of frames out of one NIC. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>

#include "error.h"
#include "report.h"
#include "run.h"

#define MAX_RATE 1e8
#define MAX_BATCH 256u /* the kernel's own limit */

static const char usage[] =
	"usage: fwlab-replay --dev NIC --table FILE [--rate PPS | --speed FACTOR] [--count N] [--duration S]\n"
	"                    [--driver xdp|virtio] [--report-every S] [--tick-us N] [--batch N]\n"
	"                    [--refusal-limit N] [--verbose]\n"
	"       fwlab-replay --check --table FILE\n"
	"\n"
	"Without --rate or --speed it plays flat out; --speed 1 keeps the table's own times. It plays until the count\n"
	"or the duration is reached, or until SIGTERM or SIGINT, and then prints one line of JSON. SIGUSR1 and\n"
	"--report-every print a line without stopping.\n";

static libbpf_print_fn_t default_print;

struct options {
	const char *dev, *table, *driver;
	double rate, speed, duration, report_every, tick_us, count, batch, refusal_limit;
	bool check;
};

static int print_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level, (void)format, (void)args;
	return 0;
}

/* Parses a number in [low, high]; an integer if `whole`. */
static bool parse(const char *text, double low, double high, bool whole, double *value)
{
	char *end;

	errno = 0;
	*value = strtod(text, &end);
	return !errno && end != text && !*end && *value >= low && *value <= high && (!whole || *value == floor(*value));
}

static bool known_driver(const char *name)
{
	return !strcmp(name, xdp_driver.name) || !strcmp(name, virtio_driver.name);
}

static int parse_options(int argc, char **argv, struct options *o)
{
	enum {
		DEV,
		TABLE,
		RATE,
		SPEED,
		COUNT,
		DURATION,
		EVERY,
		BATCH,
		TICK,
		REFUSALS,
		DRIVER,
		CHECK,
		JSON,
		VERBOSE,
		HELP,
		VERSION
	};
	static const struct option names[] = {
		{ "dev", 1, 0, DEV },
		{ "table", 1, 0, TABLE },
		{ "rate", 1, 0, RATE },
		{ "speed", 1, 0, SPEED },
		{ "count", 1, 0, COUNT },
		{ "duration", 1, 0, DURATION },
		{ "batch", 1, 0, BATCH },
		{ "report-every", 1, 0, EVERY },
		{ "tick-us", 1, 0, TICK },
		{ "check", 0, 0, CHECK },
		{ "refusal-limit", 1, 0, REFUSALS },
		{ "patience", 1, 0, REFUSALS },
		{ "driver", 1, 0, DRIVER },
		{ "json", 0, 0, JSON },
		{ "verbose", 0, 0, VERBOSE },
		{ "help", 0, 0, HELP },
		{ "version", 0, 0, VERSION },
		{ 0, 0, 0, 0 },
	};
	int which, index = 0;
	bool good = true;

	while (good && (which = getopt_long(argc, argv, "", names, &index)) != -1) {
		switch (which) {
		case DEV: o->dev = optarg; break;
		case TABLE: o->table = optarg; break;
		case RATE: good = parse(optarg, 1e-3, MAX_RATE, false, &o->rate); break;
		case SPEED: good = parse(optarg, 1e-6, 1e6, false, &o->speed); break;
		case COUNT: good = parse(optarg, 1, 1e15, true, &o->count); break;
		case DURATION: good = parse(optarg, 1e-3, 1e6, false, &o->duration); break;
		case EVERY: good = parse(optarg, 1e-2, 1e6, false, &o->report_every); break;
		case BATCH: good = parse(optarg, 1, MAX_BATCH, true, &o->batch); break;
		case TICK: good = parse(optarg, 1, 1e6, true, &o->tick_us); break;
		case REFUSALS: good = parse(optarg, 1, 1e9, true, &o->refusal_limit); break;
		case DRIVER:
			good = known_driver(optarg);
			o->driver = optarg;
			break;
		case CHECK: o->check = true; break;
		case JSON: break; /* the only output format */
		case VERBOSE: libbpf_set_print(default_print); break;
		case HELP: fputs(usage, stdout); exit(0);
		case VERSION: puts("fwlab-replay " ENGINE_VERSION); exit(0);
		default:
			return print_error(EXIT_USAGE, "unknown or incomplete option", "fwlab-replay --help",
					   "arguments");
		}
	}
	if (!good)
		return print_error(EXIT_USAGE,
				   which == DRIVER ? "not a driver of this engine" : "not a number in its range",
				   "fwlab-replay --help", "--%s %s", names[index].name, optarg);
	if (optind < argc)
		return print_error(EXIT_USAGE, "not expected", "fwlab-replay --help", "%s", argv[optind]);
	if (!o->table || (!o->check && !o->dev))
		return print_error(EXIT_USAGE, "missing", "fwlab-replay --help", "%s", o->table ? "--dev" : "--table");
	if (o->rate && o->speed)
		return print_error(EXIT_USAGE, "exclude each other", "give one of them", "--rate and --speed");
	return 0;
}

static enum schedule_mode schedule_mode(const struct options *o)
{
	if (o->rate)
		return BY_RATE;
	return o->speed ? BY_TIMES : FLAT_OUT;
}

static int play(const struct options *o, const struct table *t)
{
	struct run r = {
		.schedule = { .mode = schedule_mode(o), .rate = o->rate, .speed = o->speed, .table = t },
		.count = (__u64)o->count,
		.duration_ns = (__u64)(o->duration * 1e9),
		.report_ns = (__u64)(o->report_every * 1e9),
		.tick_ns = (__u64)(o->tick_us * 1e3),
	};
	struct nic n = {
		.dev = o->dev, .table = t, .batch = (__u32)o->batch, .refusal_limit = (__u32)o->refusal_limit
	};
	int code;

	if (o->speed && !t->head->loop_ns)
		return print_error(EXIT_USAGE, "its frames have no times", "use --rate, or write the table with times",
				   "%s", o->table);
	code = nic_open(&n, o->driver);
	if (!code)
		code = run_play(&r, &n);
	nic_close(&n);
	return code;
}

int main(int argc, char **argv)
{
	struct options o = { .driver = xdp_driver.name, .batch = 128, .tick_us = 250, .refusal_limit = 1024 };
	struct table t;
	char why[160];
	int code;

	default_print = libbpf_set_print(print_nothing);
	code = parse_options(argc, argv, &o);
	if (code)
		return code;
	if (!table_open(&t, o.table, why, sizeof(why)))
		return print_error(EXIT_USAGE, why, "write the table again", "%s", o.table);
	if (o.check)
		report_table(&t);
	else
		code = play(&o, &t);
	table_close(&t);
	return code;
}
