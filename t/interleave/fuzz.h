/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_FUZZ_H
#define INTERLEAVE_FUZZ_H

#include "script.h"

/**
 * @file fuzz.h
 * @brief Races nobody thought of: sessions that do anything to anybody's
 *        order, with clocks that differ and lines that break.
 *
 * One number makes one script, always the same; what is demanded are the
 * invariants (judge.h), and that no answer is a defect.
 */

script_t *fuzz_script(unsigned seed, apr_pool_t *p);

#endif
