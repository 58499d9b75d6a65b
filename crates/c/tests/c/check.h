/* What the test programs share: checks that say where they failed, and random numbers from a seed. */
#ifndef CHECK_H
#define CHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(is_so)                                                                      \
    do {                                                                                  \
        if (!(is_so)) {                                                                   \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #is_so);           \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

/* A call that must succeed, with its error. */
#define MUST(call)                                                                        \
    do {                                                                                  \
        bool is_done = (call);                                                            \
        if (!is_done || error != NULL) {                                                  \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, forebay_error_message(error)); \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

/* splitmix64 */
static inline uint64_t drawn(uint64_t *seed) {
    uint64_t z = (*seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline size_t below(uint64_t *seed, size_t bound) { return (size_t)(drawn(seed) % bound); }

#endif
