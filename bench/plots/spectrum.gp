# Columns: bits, then speedup and floor of unsigned and signed integers and of floats.
load plots.'/common.gp'
set title heading noenhanced
set xlabel 'bits of a weight'
set ylabel 'speedup over cuBLAS f16'
set xrange [0.4:8.6]
set xtics 1,1,8
set yrange [0:*]
plot data using ($1-0.27):2:(0.25) with boxes lc rgb ours title 'unsigned integers', \
     data using ($1):4:(0.25) with boxes lc rgb second title 'signed integers', \
     data using ($1+0.27):6:(0.25) with boxes lc rgb third title 'floats', \
     data using ($1-0.395):3:(0.25):(0) with vectors nohead ls 9 title 'read floor (estimate)', \
     data using ($1-0.125):5:(0.25):(0) with vectors nohead ls 9 notitle, \
     data using ($1+0.145):7:(0.25):(0) with vectors nohead ls 9 notitle, \
     1 with lines lc rgb library lw 2 dt 2 title 'cuBLAS f16'
