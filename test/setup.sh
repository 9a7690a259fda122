#!/usr/bin/env bash
# Installs what the tests and benchmarks need and is not there yet: promtool,
# Alertmanager, chromium, nginx, curl and git from Debian (as root or through
# sudo), and the client libraries of test/clients through npm. What is there
# stays as it is.
set -euo pipefail
cd "$(dirname "$0")/.."

missing() { ! command -v "$1" >/dev/null 2>&1; }

for tool in go node npm; do
  if missing "$tool"; then
    echo "The tests need $tool: Go 1.26 or newer, Node 20 or newer with npm." >&2
    exit 1
  fi
done

packages=()
missing promtool && packages+=(prometheus)
missing prometheus-alertmanager && packages+=(prometheus-alertmanager)
missing chromium && packages+=(chromium)
missing nginx && [ ! -x /usr/sbin/nginx ] && packages+=(nginx-light)
missing curl && packages+=(curl)
missing git && packages+=(git)
if [ ${#packages[@]} -gt 0 ]; then
  if missing apt-get; then
    echo "Please install: ${packages[*]} (Debian's names)." >&2
    exit 1
  fi
  root=()
  if [ "$(id -u)" -ne 0 ]; then
    if missing sudo; then
      echo "Please install as root: apt-get install ${packages[*]}" >&2
      exit 1
    fi
    root=(sudo)
  fi
  install=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}")
  echo "Installing from Debian: ${packages[*]}"
  "${install[@]}" >/dev/null 2>&1 || { "${root[@]}" apt-get update -qq && "${install[@]}" >/dev/null; }
fi

# npm ci only when the lock has changed since the last one.
cd test/clients
if ! cmp -s package-lock.json node_modules/.installed-lock; then
  echo "Installing the client libraries"
  npm ci --loglevel=error
  cp package-lock.json node_modules/.installed-lock
fi
