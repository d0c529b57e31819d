# Completion of the tilus tools for bash. What there is to complete, the tools say themselves.

# The values of option $2 (without dashes) of tool $1, one a line; nothing when any file will do.
_tilus_values()
{
    local beside=
    [[ $1 == */* ]] && beside=${1%/*}/
    case $2 in
    passes | pass-pipeline | print-before | print-after | skip | stop-after)
        "${beside}tilus-opt" --list-passes | cut -d ' ' -f 1 ;;
    mcpu)
        "${beside}tilus-llc" --list-targets ;;
    *)
        "$1" --help-options | sed -n "s/^-*$2=\(.\)/\1/p" ;;
    esac
}

# Completes the value $3 of option $2; of a list of names, the last one.
_tilus_complete_value()
{
    local head=
    [[ $3 == *,* ]] && head=${3%,*},
    mapfile -t COMPREPLY < <(compgen -P "$head" -W "$(_tilus_values "$1" "$2")" -- "${3##*,}")
}

# Completes the option $2, with as many dashes as it has. A choice ends at its `=`, too.
_tilus_complete_option()
{
    local options
    options=$("$1" --help-options | sed 's/=.*/=/' | uniq)
    [[ $2 != --* ]] && options=$(sed 's/^--/-/' <<< "$options")
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$2")
    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2> /dev/null
    return 0
}

# To bash `=` is a word of its own, so the words are taken from the line.
_tilus()
{
    local line=${COMP_LINE:0:COMP_POINT} word words option
    word=${line##*[[:space:]]}
    read -r -a words <<< "${line%"$word"}"
    COMPREPLY=()
    if [[ $word == -*=* ]]; then
        option=${word%%=*}
        option=${option#-}
        _tilus_complete_value "$1" "${option#-}" "${word#*=}"
    elif [[ $word == -* ]]; then
        _tilus_complete_option "$1" "$word"
    elif [[ $1 == *tilus-cache && ! ${words[-1]} =~ ^-[^=]*$ ]]; then
        mapfile -t COMPREPLY < <(compgen -W "list verify prune clear" -- "$word")
    elif [[ $1 == *tilus-tune && ${#words[@]} == 1 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "run show export import compile" -- "$word")
    elif [[ $1 == *tilus-matmul && ${#words[@]} == 1 ]]; then
        mapfile -t COMPREPLY < <(compgen -W "plan kernels pack build check run" -- "$word")
    elif [[ ${words[-1]} == -* ]]; then
        option=${words[-1]#-}
        _tilus_complete_value "$1" "${option#-}" "$word"
    fi
} 2> /dev/null

complete -o default -F _tilus tilus-opt tilus-llc tilus-run tilus-reduce tilus-cache tilus-doctor tilus-dump \
    tilus-tune tilus-matmul tilus-lsp tilus-explain
