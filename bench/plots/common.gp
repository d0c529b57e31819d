# Settings of every plot. Set before: kind (svg or png), out, wide, high.
if (kind eq 'svg') {
  set terminal svg size wide,high font 'Helvetica,13' background '#ffffff' dynamic
} else {
  set terminal pngcairo size wide,high font 'Sans,10' background '#ffffff'
}
set output out
set encoding utf8
set border 3 lc rgb '#444444'
set tics nomirror out
set grid ytics lc rgb '#dddddd' lw 1
set style fill solid 0.9 noborder
set key noenhanced samplen 2 spacing 1.1
set key outside below center horizontal
set xtics noenhanced

ours = '#1b6ca8'
second = '#e08a1e'
third = '#4c9f70'
fourth = '#8e63a8'
fifth = '#c55a7b'
peer = '#b4bac1'
library = '#8a2f2f'
least = '#111111'

# A short line across a bar that begins at x and is w wide.
set style line 9 lc rgb least lw 2.5

# The i-th of names that semicolons part.
rest(text) = text[strstrt(text, ';')+1:*]
part(text, i) = i > 1 ? part(rest(text), i-1) : \
                strstrt(text, ';') ? text[1:strstrt(text, ';')-1] : text
