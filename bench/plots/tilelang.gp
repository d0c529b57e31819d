# Columns: number, shape, then speedup and floor of each series; `names` of the series.
load plots.'/common.gp'
set title heading noenhanced
set xlabel 'shape, k x n' offset 0,-1
set bmargin 7.5
set ylabel 'speedup over cuBLAS f16'
set yrange [0:*]
set xrange [-0.6:7.6]
plot for [i=0:2] data using ($1+0.27*(i-1)):(column(3+2*i)):(0.25) with boxes \
         lc rgb word(ours.' '.second.' '.third, i+1) title part(names, i+1), \
     for [i=0:2] data using ($1+0.27*(i-1)-0.125):(column(4+2*i)):(0.25):(0) \
         with vectors nohead ls 9 title (i == 0 ? 'read floor (estimate)' : ''), \
     1 with lines lc rgb library lw 2 dt 2 title 'cuBLAS f16', \
     data using 1:(NaN):xtic(2) notitle
