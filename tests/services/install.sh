#!/usr/bin/env bash
# Installs what the service tests need beyond Python, on Debian and its relatives.
set -euo pipefail
missing=()
command -v node > /dev/null || missing+=(nodejs)
command -v chromium > /dev/null || missing+=(chromium)
compgen -G "/usr/lib/postgresql/*/bin/initdb" > /dev/null || missing+=(postgresql)
command -v Rscript > /dev/null || missing+=(r-base-core)
for package in survival MASS; do # Debian has both as packages, whether R is there already or not
    Rscript -e "library($package)" > /dev/null 2>&1 || missing+=("r-cran-${package,,}")
done
if ((${#missing[@]})); then
    wait=(-o DPkg::Lock::Timeout=600) # another process may install something
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive \
        apt-get install -qq -y "${wait[@]}" --no-install-recommends "${missing[@]}" > /dev/null
fi
