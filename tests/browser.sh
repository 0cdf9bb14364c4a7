#!/usr/bin/env bash
# What the page tests want besides Python packages: Chromium, and axe-core in the folder that is named.
# Whatever can't be had is said; the tests that need it are skipped with the reason.
set -u
into="$1"
if ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null) \
    || echo "no Chromium could be installed: page tests will be skipped"
fi
if [ ! -f "$into/axe.min.js" ]; then
  (cd "$into" && npm pack --silent axe-core@4 >/dev/null 2>&1 && tar -xzf axe-core-*.tgz package/axe.min.js \
    && mv package/axe.min.js . && rm -rf package axe-core-*.tgz) \
    || echo "no axe-core could be had from npm: the accessibility test will be skipped"
fi
exit 0
