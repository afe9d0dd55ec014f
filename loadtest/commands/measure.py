# SPDX-License-Identifier: Apache-2.0
from load import measure

__doc__ = measure.__doc__
run = measure.run
