# SPDX-License-Identifier: Apache-2.0
from load import rush

__doc__ = rush.__doc__
run = rush.run
