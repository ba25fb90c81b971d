#!/usr/bin/env bash
# Builds the command of an older commit in target/compat, which takes minutes, and prints where it is.
#
#   scripts/build-old.sh COMMIT
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH="$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin"

readonly commit=$1
readonly tree=target/compat/$commit
if [ ! -d "$tree" ]; then
    git worktree add --detach "$tree" "$commit" >/dev/null 2>&1 ||
        { echo "build-old: git has no commit $commit here: fetch it" >&2; exit 2; }
fi
cargo build -q --release --locked --manifest-path "$tree/Cargo.toml" \
    --target-dir "$tree/target" -p dacapo-cli
echo "$PWD/$tree/target/release/dacapo"
