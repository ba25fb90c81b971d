#!/bin/sh
# Cargo calls this for the crates of the workspace when it builds the fuzzer (RUSTC_WORKSPACE_WRAPPER):
# the compiler with counters of coverage for libFuzzer, as cargo-fuzz sets them. Crates from outside
# are built without them. A build script is a program of its own and has nobody to read counters.
case " $* " in
*" build_script_build "*) exec "$@" ;;
esac
exec "$@" \
    -Ccodegen-units=1 \
    -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
