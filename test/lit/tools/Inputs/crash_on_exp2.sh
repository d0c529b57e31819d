# A tool that a signal ends when the program in $1, which must be valid, computes exp2 in a loop.
text=$(tilus-opt "$1") || exit 1
case $text in
*"for %"*"    "*"exp2 %"*) kill -SEGV $$ ;;
esac
