# Two panels, groups of 32 and 128. Set before, beside what common.gp takes: names of the series, data blocks $g32_1 ..
# $g128_4 of bits and perplexity, and base, the perplexity without requantizing.
load plots.'/common.gp'
set multiplot layout 1,2 title 'SmolLM2-135M, requantized from Q4_1: perplexity of 512 tokens' noenhanced \
    margins 0.06,0.99,0.12,0.78 spacing 0.07,0.1
set xlabel 'bits of a weight with its part of scales and zero points'
set logscale y
set yrange [20:1000]
set xrange [3:9.2]
set xtics 3,1,9
set ytics (20, 30, 50, 100, 200, 500, 1000)
set style line 1 lc rgb second lw 2 pt 7 ps 0.8
set style line 2 lc rgb ours lw 2 pt 7 ps 0.8
set style line 3 lc rgb fourth lw 2 pt 7 ps 0.8
set style line 4 lc rgb third pt 9 ps 1.1
set title 'groups of 32'
set ylabel 'perplexity'
set key at screen 0.5,0.9 center horizontal maxrows 1 width -2 font ',9'
plot $g32_1 with linespoints ls 1 title part(names, 1), $g32_2 with linespoints ls 2 title part(names, 2), \
     $g32_3 with linespoints ls 3 title part(names, 3), $g32_4 with points ls 4 title part(names, 4), \
     base with lines lc rgb library lw 2 dt 2 title 'as it was'
set title 'groups of 128'
unset ylabel
unset key
plot $g128_1 with linespoints ls 1, $g128_2 with linespoints ls 2, $g128_3 with linespoints ls 3, \
     $g128_4 with points ls 4, base with lines lc rgb library lw 2 dt 2
unset multiplot
