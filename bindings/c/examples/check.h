/* What the examples share: a call that must work, or the program says why not and ends. */
#ifndef SEGSTREAM_EXAMPLES_CHECK_H
#define SEGSTREAM_EXAMPLES_CHECK_H

#include "segstream.h"

#include <stdio.h>
#include <stdlib.h>

#define MUST(call) must((call), #call)

static inline void must(segstream_status status, const char *call)
{
    if (status != SEGSTREAM_OK) {
        fprintf(stderr, "%s: %s\n", call, segstream_last_error());
        exit(1);
    }
}

/* Options of an end that waits for a minute: a debugger or a checker of memory makes a program slow. Free them. */
static inline segstream_options *patient_options(void)
{
    segstream_options *options;

    MUST(segstream_options_new(&options));
    MUST(segstream_options_set(options, "connect_timeout_ms", 60000));
    MUST(segstream_options_set(options, "idle_timeout_ms", 60000));
    return options;
}

#endif
