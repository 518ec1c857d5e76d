#!/bin/sh
# Installs the suite as it is pinned here and runs it against a binary:
#
#     conformance/durable/run.sh bin/tapedeck
set -eu
binary=$(realpath "$1")
cd "$(dirname "$0")"
npm ci --no-audit --no-fund --loglevel=error
exec node run.mjs --binary "$binary"
