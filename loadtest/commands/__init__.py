# SPDX-License-Identifier: Apache-2.0
"""The rig's commands: NAME.py has run(arguments) and says itself what it does."""
