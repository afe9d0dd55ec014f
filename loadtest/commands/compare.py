# SPDX-License-Identifier: Apache-2.0
from load import compare

__doc__ = compare.__doc__
run = compare.run
