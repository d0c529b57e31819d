# complete.sh COMPLETION LINE: what bash offers where LINE ends, one a line.
. "$1"
COMP_LINE=$2
COMP_POINT=${#2}
read -r -a words <<< "$2"
_tilus "${words[0]}"
printf '%s\n' "${COMPREPLY[@]}" end
