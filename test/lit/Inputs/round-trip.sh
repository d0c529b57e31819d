#!/usr/bin/env bash
# round-trip.sh PREFIX [option | file] ...: for each file, what tilus-opt prints
# with the options must be what it prints of that text. Temporary files begin
# with PREFIX. At least one file must be there.
set -eu
prefix=$1
shift
options=() files=()
for arg; do
    case $arg in
    -*) options+=("$arg") ;;
    *) files+=("$arg") ;;
    esac
done
for file in "${files[@]}"; do
    tilus-opt "${options[@]}" "$file" -o "$prefix.1"
    passes=()
    for option in "${options[@]}"; do
        case $option in --passes*) passes+=("$option") ;; esac
    done
    tilus-opt "${passes[@]}" "$prefix.1" -o "$prefix.2"
    diff "$prefix.1" "$prefix.2"
done
[ ${#files[@]} -gt 0 ]
