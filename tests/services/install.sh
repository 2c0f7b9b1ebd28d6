#!/usr/bin/env bash
# Installs what the service tests need beyond Python, on Debian and its relatives.
set -euo pipefail
if ! command -v chromium > /dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium > /dev/null
fi
