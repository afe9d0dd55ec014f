# SPDX-License-Identifier: Apache-2.0
from load import ladder

__doc__ = ladder.__doc__
run = ladder.run
