#!/usr/bin/env bash
# Two versions of dacapo on one wire: each lists, joins, plays, sends and receives with the other,
# both ways, over every transport of flows. `make compat` calls it.
#
#   scripts/compat.sh [COMMIT]     COMMIT (default b8cfde3) is built in target/compat, which takes minutes
#   OLD=PATH NEW=PATH scripts/compat.sh      these programs
#
# A line for each: what was done, by whom, and ok or why not. Exit status 1 when one failed.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH="$PATH:${CARGO_HOME:-${HOME:-}/.cargo}/bin"

readonly commit="${1:-b8cfde3}"
readonly transports="udp tcp shm quic quic-datagram xtp xtp-datagram udp-multicast tcp-multicast"
failed=0

new=${NEW:-}
if [ -z "$new" ]; then
    cargo build -q --release --locked -p dacapo-cli
    new=${CARGO_TARGET_DIR:-target}/release/dacapo
fi
old=${OLD:-$(scripts/build-old.sh "$commit")}
new=$(realpath "$new")
old=$(realpath "$old")

place=$(mktemp -d)
server=
stop_server() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
        server=
    fi
}
trap 'stop_server; rm -rf "$place"' EXIT
cd "$place"
# Identities and settings of this run alone; both programs are one user's.
export HOME="$place" XDG_CONFIG_HOME="$place/config" XDG_DATA_HOME="$place/data"

"$old" testmovie movie.avi --duration 3s --size 160x120 >/dev/null
head -c 3000000 /dev/urandom >bytes.bin

# tell WHAT STATUS LOG: one line of the table.
tell() {
    if [ "$2" = 0 ]; then
        printf 'ok      %s\n' "$1"
    else
        failed=1
        printf 'FAILED  %s: %s\n' "$1" "$(tail -n 3 "$3" | tr '\n' ' ')"
    fi
}

# start LOG COMMAND...: starts a server and waits for the address it prints; sets `address`.
start() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 &
    server=$!
    for _ in $(seq 100); do
        address=$(grep -o -m 1 '127\.0\.0\.1:[0-9]*' "$log" || true)
        [ -z "$address" ] || return 0
        sleep 0.1
    done
    return 1
}

# session TRANSPORT: a movie whose flows go over it.
session() {
    local stream port=21004
    printf '[session]\nname = "movie"\n'
    for stream in video audio; do
        printf '\n[[flow]]\nname = "%s"\nfrom = "creator"\n' "$stream"
        printf 'source = { file = "movie.avi", stream = "%s" }\n' "$stream"
        if [ "$1" = udp-multicast ]; then
            printf 'multicast = "239.255.77.9:%s"\n' "$port"
        else
            printf 'transport = "%s"\n' "$1"
        fi
        printf 'attributes = { order = "ordered", integrity = "checked" }\n'
        port=$((port + 2))
    done
}

# same DIR: the movie that was saved there has the streams of the one that was sent.
same() {
    "$new" inspect movie.avi --json | grep -o '"sha256": *"[0-9a-f]*"' | sort >sent.txt
    "$new" inspect "$1/movie.avi" --json | grep -o '"sha256": *"[0-9a-f]*"' | sort >got.txt
    [ -s sent.txt ] && cmp -s sent.txt got.txt
}

play_all() {
    local from=$1 to=$2 names=$3 transport what status
    for transport in $transports; do
        session "$transport" >movie.toml
        what="$names  ls, play  $transport"
        if ! start serve.log "$from" serve movie.toml --port 0 --speed 3; then
            tell "$what" 1 serve.log
            stop_server
            continue
        fi
        status=0
        { timeout 20 "$to" ls "$address" | grep -q movie; } >play.log 2>&1 || status=1
        rm -rf got
        timeout 30 "$to" play "dacapo://$address/movie" --save got >>play.log 2>&1 || status=1
        same got >>play.log 2>&1 || status=1
        tell "$what" "$status" play.log
        stop_server
    done
}

send_all() {
    local from=$1 to=$2 names=$3 how what status
    local -a there here
    for how in "shared memory" tcp udp; do
        what="$names  send      $how"
        there=() here=()
        case "$how" in
        # Of a path that is named nobody takes it that both ends are on one host.
        tcp) there=(--path lan) ;;
        udp) here=(--ask "throughput<=200Mbit/s") ;;
        esac
        rm -rf in
        if ! start recv.log "$to" recv --port 0 --out in "${there[@]}"; then
            tell "$what" 1 recv.log
            stop_server
            continue
        fi
        status=0
        timeout 30 "$from" send "$address" bytes.bin "${here[@]}" >send.log 2>&1 || status=1
        for _ in $(seq 50); do
            [ ! -f in/bytes.bin ] || break
            sleep 0.1
        done
        cmp -s bytes.bin in/bytes.bin || status=1
        tell "$what" "$status" send.log
        stop_server
    done
}

play_all "$old" "$new" "old serves, new plays  "
play_all "$new" "$old" "new serves, old plays  "
send_all "$old" "$new" "old sends, new receives"
send_all "$new" "$old" "new sends, old receives"
exit "$failed"
