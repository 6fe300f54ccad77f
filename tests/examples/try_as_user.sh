#!/bin/sh
# Compiles and runs the examples as a user would, against a fresh installation.
#
# usage: try_as_user.sh WAY SOURCES BUILD PREFIX LIBDIR MESON [RUNNER]
#   WAY: pkg-config or cmake. RUNNER: the isthmus program; without it the ranks get torchrun's variables.
set -eu
way=$1 sources=$2 build=$3 prefix=$4 libdir=$5 meson=$6 runner=${7:-}

missing() {
    echo "skipped: $1 is missing"
    exit 77
}
command -v "$way" >/dev/null || missing "$way"
command -v cc >/dev/null || missing "a C compiler (cc)"
command -v c++ >/dev/null || missing "a C++ compiler (c++)"

# The installation is moved once: nothing in it may know where it was made for.
root=$build/tests/examples/$way
rm -rf "$root"
mkdir -p "$root"
DESTDIR=$root/staging $meson install -C "$build" --no-rebuild --quiet --tags library,devel
mv "$root/staging$prefix" "$root/installed"
library=$root/installed/$libdir

if [ "$way" = pkg-config ]; then
    export PKG_CONFIG_PATH="$library/pkgconfig"
    version=$(pkg-config --modversion isthmus)
    flags=$(pkg-config --cflags --libs isthmus)
    # Word splitting of $flags is meant.
    cc -std=c99 -pedantic -Wall -Wextra -Werror "$sources/allreduce.c" $flags -o "$root/allreduce"
    c++ -std=c++20 -Wall -Wextra -Werror "$sources/gradient_average.cc" $flags -o "$root/gradient_average"
    LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    echo "pkg-config isthmus $version: $flags"
else
    cmake -S "$sources" -B "$root" -DCMAKE_PREFIX_PATH="$root/installed" >"$root/log" ||
        { cat "$root/log"; exit 1; }
    cmake --build "$root" >>"$root/log" || { cat "$root/log"; exit 1; }
    # A version that does not exist yet must not be found.
    mkdir "$root/later"
    printf 'cmake_minimum_required(VERSION 3.18)\nproject(later NONE)\nfind_package(isthmus 9.0 REQUIRED)\n' \
        >"$root/later/CMakeLists.txt"
    if cmake -S "$root/later" -B "$root/later/build" -DCMAKE_PREFIX_PATH="$root/installed" >"$root/log" 2>&1; then
        echo "find_package(isthmus 9.0) found something"
        exit 1
    fi
fi

with_runner() {
    timeout 60 "$runner" run -n 4 "$1"
}

with_variables() {
    pids=
    for rank in 0 1 2 3; do
        RANK=$rank WORLD_SIZE=4 LOCAL_RANK=$rank LOCAL_WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=$$ \
            timeout 60 "$1" &
        pids="$pids $!"
    done
    for pid in $pids; do wait "$pid"; done
}

for example in allreduce gradient_average; do
    "$root/$example" # alone: a world of one rank
    with_variables "$root/$example"
    if [ -n "$runner" ]; then with_runner "$root/$example"; fi
done
