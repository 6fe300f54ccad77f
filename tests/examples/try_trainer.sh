#!/bin/sh
# Builds examples/horovod_like as a user would and runs it: alone, by variables, by the launcher, and
# with the mistakes that its users make.
#
# usage: try_trainer.sh SOURCES BUILD PREFIX LIBDIR MESON RUNNER
set -eu
sources=$1 build=$2 prefix=$3 libdir=$4 meson=$5 runner=$6
for tool in cmake c++; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is missing"; exit 77; }
done

root=$build/tests/examples/trainer
rm -rf "$root"
mkdir -p "$root"
DESTDIR=$root/staging $meson install -C "$build" --no-rebuild --quiet --tags library,devel
{ cmake -S "$sources" -B "$root" -DCMAKE_PREFIX_PATH="$root/staging$prefix" && cmake --build "$root"; } >"$root/log" ||
    { cat "$root/log"; exit 1; }

fail() {
    echo "$1; it said:"
    cat "$root/said"
    exit 1
}

# run CODE WORDS RANKS ARGUMENT...: it ends with the code, and says the words.
run() {
    code=$1 words=$2 ranks=$3
    shift 3
    found=0
    timeout 100 "$runner" run -n "$ranks" "$root/sgd" "$@" >"$root/said" 2>&1 || found=$?
    [ "$found" = "$code" ] || fail "exit code $found instead of $code for $*"
    grep -q "$words" "$root/said" || fail "no '$words' for $*"
    echo "ok: $ranks ranks $* ($words)"
}

run 0 '4 ranks, difference from one process' 4
run 0 '3 ranks, difference from one process' 3 --uneven
run 1 'stalled: "tensor3.gradient" has waited for .* missing ranks: 1$' 3 \
    --fault=name --warn-after-ms=500 --give-up-after-ms=1500
grep -q 'stalled: "another.gradient" has waited for .* missing ranks: 0 2$' "$root/said" ||
    fail 'the wrong name is not named'
run 1 '"tensor3.gradient" is in flight already' 3 --fault=twice
# Which rank is heard first is a matter of time.
run 1 '"tensor3.gradient" has .*\(1000 on rank [02]\|999 on rank 1\)$' 3 --fault=size
run 2 'unknown argument --steps' 1 --steps

pids=
for rank in 0 1; do
    RANK=$rank WORLD_SIZE=2 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$$ \
        timeout 100 "$root/sgd" >"$root/said.$rank" 2>&1 &
    pids="$pids $!"
done
for pid in $pids; do wait "$pid" || { cat "$root"/said.*; exit 1; }; done
grep -q '2 ranks, difference from one process' "$root/said.0"
echo "ok: 2 ranks by variables"
