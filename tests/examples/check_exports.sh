#!/bin/sh
# The library shows exactly the functions that the header promises, and misses nothing.
#
# usage: check_exports.sh LIBRARY HEADER...
set -eu
library=$1
shift
for tool in nm ldd; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is missing"; exit 77; }
done

promised=$(sed -n 's/^ISTHMUS_API .*[ *]\(isthmus[A-Za-z]*\)(.*/\1/p' "$@" | sort)
# "A" is the name of the version itself.
exported=$(nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)
if [ "$promised" != "$exported" ]; then
    echo "promised by the header, then exported by the library:"
    echo "$promised"
    echo "--"
    echo "$exported"
    exit 1
fi
missing=$(ldd -r "$library" 2>&1 | grep -E 'undefined symbol|not found' || true)
# A sanitized library gets these from its program.
missing=$(printf '%s' "$missing" | grep -vE '__(asan|ubsan|tsan|sanitizer)' || true)
if [ -n "$missing" ]; then
    echo "$missing"
    exit 1
fi
echo "$(echo "$exported" | wc -l) functions exported, none missing"
