# SPDX-License-Identifier: Apache-2.0
from load import report

__doc__ = report.__doc__
run = report.run
