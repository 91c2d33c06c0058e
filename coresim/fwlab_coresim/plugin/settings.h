/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parameters of a core as words of the form key=value, as topology.yml's cores are handed over. */
#ifndef FWLAB_MODEL_SETTINGS_H
#define FWLAB_MODEL_SETTINGS_H

#include "core.h"

/* Set one parameter. Returns 0, or -1 for an unknown key or a wrong value. */
int settings_word(struct parameters *parameters, const char *word);

#endif
